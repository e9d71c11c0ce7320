"""How much more a queue may have, and what binds it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queue_builders import CPU, GPU, MEMORY, books, cell, queue

from model.queue import Cell, CellStanding, Queue
from scheduler.core.queues.headroom import Headroom, Quota, Shortage
from scheduler.core.queues.shares import QuotaMode, Share, ShareRules

TWO = (queue("a", cpu=cell(20, nominal=40)), queue("b", cpu=cell(nominal=60)))
ORG = (queue("org", cpu=cell(maximum=50)), queue("a", "org"), queue("b", "org", cpu=cell(15)), queue("c"))

CASES: dict[str, tuple[Quota, str, Headroom]] = {
    "all there is": (books((), 100), "default", Headroom(CPU, "", 100, "capacity")),
    "what is left": (books(TWO, 100, {"a": 30, "b": 30}), "b", Headroom(CPU, "", 40, "capacity")),
    "an idle guarantee of others": (books(TWO, 100, {"b": 30}), "b", Headroom(CPU, "", 50, "capacity", 20)),
    "one's own guarantee": (books(TWO, 100, {"b": 80}), "a", Headroom(CPU, "", 20, "capacity")),
    "guarantees of more than there is": (
        books((queue("a", cpu=cell(8)), queue("b", cpu=cell(8))), 8),
        "a",
        Headroom(CPU, "", 4, "capacity", 4),
    ),
    "guarantees of more than their parent's maximum": (
        books(
            (queue("org", cpu=cell(maximum=20)), queue("a", "org", cpu=cell(30)), queue("b", "org", cpu=cell(10))), 90
        ),
        "a",
        Headroom(CPU, "org", 15, "maximum", 5),
    ),
    "a maximum": (books((queue("a", cpu=cell(maximum=25)),), 100, {"a": 5}), "a", Headroom(CPU, "a", 20, "maximum")),
    "a borrowing limit": (
        books((queue("a", cpu=cell(nominal=10, borrowing_limit=5)),), 100, {"a": 3}),
        "a",
        Headroom(CPU, "a", 12, "borrowing limit"),
    ),
    "borrowing without limit": (
        books((queue("a", cpu=cell(nominal=10)),), 100),
        "a",
        Headroom(CPU, "", 100, "capacity"),
    ),
    "what others do not lend": (
        books((queue("a"), queue("b", cpu=cell(nominal=60, lending_limit=20))), 100, {"b": 10}),
        "a",
        Headroom(CPU, "", 60, "capacity", 30),
    ),
    "an inner maximum": (books(ORG, 100, {"a": 10, "b": 20}), "a", Headroom(CPU, "org", 20, "maximum")),
    "within it, a sibling's guarantee": (books(ORG, 100, {"a": 10}), "a", Headroom(CPU, "org", 25, "maximum", 15)),
    "a maximum narrower than what is left above": (
        books((*ORG[:1], queue("a", "org", cpu=cell(maximum=4))), 100),
        "a",
        Headroom(CPU, "a", 4, "maximum"),
    ),
    "a cut below use": (
        books((queue("a", cpu=cell(maximum=25)),), 100, {"a": 30}),
        "a",
        Headroom(CPU, "a", -5, "maximum"),
    ),
    "a node lost": (books(TWO, 50, {"a": 20, "b": 60}), "b", Headroom(CPU, "", -30, "capacity")),
    "of equal bounds its own": (
        books((*ORG[:1], queue("a", "org", cpu=cell(maximum=10)), queue("b")), 20, {"a": 10, "b": 10}),
        "a",
        Headroom(CPU, "a", 0, "maximum"),
    ),
    "no bound": (books((queue("a"),), {}), "a", Headroom(CPU, "", None, "capacity")),
    "no bound but its own": (books((queue("a", cpu=cell(maximum=3)),), {}), "a", Headroom(CPU, "a", 3, "maximum")),
    "a queue that is gone": (books(TWO, 100, {"gone": 30}), "gone", Headroom(CPU, "", 50, "capacity", 20)),
    "work of an inner queue": (books(ORG, 100, {"org": 30}), "a", Headroom(CPU, "org", 5, "maximum", 15)),
}


@pytest.mark.parametrize("name", CASES)
def test_headroom(name: str) -> None:
    """The least along the path, with the node and the kind of bound."""
    quota, queue_name, expected = CASES[name]
    assert quota.headroom(queue_name, CPU) == expected


def test_limits_of_borrowing_and_lending_count_from_nominal() -> None:
    """So they go where nominal is ignored, and the guarantee stays."""
    queues = (
        queue("a", cpu=cell(nominal=10, borrowing_limit=5)),
        queue("b", cpu=cell(7, nominal=60, lending_limit=20)),
    )
    quota = books(queues, 100, rules=ShareRules(mode=QuotaMode.PROPORTION))
    assert quota.headroom("a", CPU) == Headroom(CPU, "", 93, "capacity", 7)


SHORTAGES: dict[str, tuple[Quota, str, Mapping[Cell, int], tuple[Shortage, ...]]] = {
    "it fits": (books(TWO, 100, {"b": 30}), "b", {CPU: 50}, ()),
    "a guarantee of others is in the way": (
        books(TWO, 100, {"b": 30}),
        "b",
        {CPU: 51},
        (Shortage(CPU, "", "guarantees of others", 51, 50),),
    ),
    "more than there is even without it": (
        books(TWO, 100, {"b": 30}),
        "b",
        {CPU: 71},
        (Shortage(CPU, "", "capacity", 71, 50),),
    ),
    "what is not asked for does not matter": (books(TWO, 10, {"b": 30}), "b", {CPU: 0, MEMORY: 1}, ()),
    "several cells, sorted": (
        books((queue("a", cpu=cell(maximum=3), gpu=cell(maximum=1)),), {CPU: 9, GPU: 9, MEMORY: 9}),
        "a",
        {GPU: 2, MEMORY: 9, CPU: 4},
        (Shortage(CPU, "a", "maximum", 4, 3), Shortage(GPU, "a", "maximum", 2, 1)),
    ),
    "memory in bytes": (
        books((queue("a"),), {MEMORY: 1 << 62}, {"a": {MEMORY: 1}}),
        "a",
        {MEMORY: 1 << 62},
        (Shortage(MEMORY, "", "capacity", 1 << 62, (1 << 62) - 1),),
    ),
}


@pytest.mark.parametrize("name", SHORTAGES)
def test_what_is_short(name: str) -> None:
    """Asked and left, by cell."""
    quota, queue_name, amounts, expected = SHORTAGES[name]
    assert quota.short(queue_name, amounts) == expected


def test_what_is_kept_comes_back_with_the_node() -> None:
    """Each keeps all of its own again; what runs by then counts."""
    quota = books((queue("a", cpu=cell(8)), queue("b", cpu=cell(8))), 8, {"a": 4})
    assert [quota.headroom(name, CPU).amount for name in "ab"] == [0, 4]
    quota.renew({CPU: 16})
    assert [quota.headroom(name, CPU).amount for name in "ab"] == [4, 8]
    quota.charge("b", {CPU: 8})
    quota.renew({CPU: 10})
    assert [quota.headroom(name, CPU).amount for name in "ab"] == [-2, -3]


def test_as_if_victims_were_gone() -> None:
    """Nothing of it stays, not even after an error."""
    quota = books(TWO, 100, {"a": 70, "b": 30})
    asked = {CPU: 30}
    assert [one.room for one in quota.short("b", asked)] == [0]
    assert quota.short("b", asked, {"a": {CPU: 30}}) == ()
    assert [one.room for one in quota.short("b", asked, {"a": {CPU: 10}})] == [10]
    assert [one.room for one in quota.short("b", asked)] == [0]
    assert (quota.used("a", CPU), quota.used("", CPU)) == (70, 100)


POTENTIAL: dict[str, tuple[tuple[Queue, ...], str, int, tuple[Shortage, ...]]] = {
    "the cluster": ((), "default", 101, (Shortage(CPU, "", "capacity", 101, 100),)),
    "all of it": ((), "default", 100, ()),
    "a maximum": ((queue("a", cpu=cell(maximum=9)),), "a", 10, (Shortage(CPU, "a", "maximum", 10, 9),)),
    "others' guarantees": (TWO, "b", 90, (Shortage(CPU, "", "guarantees of others", 90, 80),)),
    "an inner maximum": (ORG, "a", 36, (Shortage(CPU, "org", "guarantees of others", 36, 35),)),
    "lenders": (
        (queue("a", cpu=cell(nominal=10), lenders=("b",)), queue("b", cpu=cell(5, nominal=20)), queue("c")),
        "a",
        26,
        (Shortage(CPU, "a", "lenders", 26, 25),),
    ),
    "lenders without an amount of their own may have any share": (
        (queue("a", cpu=cell(nominal=10), lenders=("c",)), queue("c")),
        "a",
        100,
        (),
    ),
}


@pytest.mark.parametrize("name", POTENTIAL)
def test_what_can_never_fit(name: str) -> None:
    """Whatever is used at this moment: a request above it is terminal."""
    queues, queue_name, asked, expected = POTENTIAL[name]
    quota = books(queues, 100, {"default": 77})
    assert quota.potential_short(queue_name, {CPU: asked}) == expected


CHOOSY = (
    queue("a", cpu=cell(nominal=10), lenders=("b", "nobody")),
    queue("b", cpu=cell(5, nominal=20)),
    queue("c", cpu=cell(nominal=70)),
)
LENDING: dict[str, tuple[tuple[Queue, ...], dict[str, int], int]] = {
    "its own, and what b does not use": (CHOOSY, {"a": 0, "b": 0}, 25),
    "b uses some": (CHOOSY, {"a": 12, "b": 8}, 10),
    "what it borrows already is part of it": (CHOOSY, {"a": 25}, 0),
    "b wants it back": (CHOOSY, {"a": 25, "b": 20}, -15),
    "another borrower of b's": (
        (*CHOOSY, queue("d", cpu=cell(nominal=0), lenders=("b", "c"))),
        {"a": 10, "d": 6},
        9,
    ),
    "another borrower of others'": (
        (*CHOOSY, queue("d", cpu=cell(nominal=0), lenders=("c",))),
        {"a": 10, "d": 6},
        15,
    ),
}


@pytest.mark.parametrize("name", LENDING)
def test_named_lenders(name: str) -> None:
    """A queue that names its lenders borrows what these do not use and may lend, and no more."""
    queues, used, expected = LENDING[name]
    found = books(queues, 100, used).headroom("a", CPU)
    assert (found.amount, found.node, found.bound) == (expected, "a", "lenders")


BORROWS: dict[str, tuple[Quota, str, Mapping[Cell, int], bool]] = {
    "within nominal": (books(TWO, 100, {"a": 30}), "a", {CPU: 10}, False),
    "above nominal": (books(TWO, 100, {"a": 30}), "a", {CPU: 11}, True),
    "within its share": (books((queue("a"), queue("b")), 100, {"a": 10}, {"a": 90, "b": 90}), "a", {CPU: 40}, False),
    "above its share": (books((queue("a"), queue("b")), 100, {"a": 10}, {"a": 90, "b": 90}), "a", {CPU: 41}, True),
    "asked for nothing": (books(TWO, 100, {"a": 60}), "a", {CPU: 0}, False),
    "an inner queue": (
        books((queue("org", cpu=cell(nominal=20)), queue("a", "org", cpu=cell(nominal=90))), 100, {"a": 15}),
        "org",
        {CPU: 6},
        True,
    ),
    "an unbounded cell": (books((queue("a"),), {}), "a", {MEMORY: 5}, False),
}


@pytest.mark.parametrize("name", BORROWS)
def test_would_borrow(name: str) -> None:
    """Above what is its own: nominal, or its share where it has none."""
    quota, queue_name, amounts, expected = BORROWS[name]
    assert quota.would_borrow(queue_name, amounts) is expected


def test_charges_run_along_the_path() -> None:
    """And are taken off as they came."""
    quota = books(ORG, {CPU: 100, GPU: 8}, {"a": 10})
    quota.charge("b", {CPU: 20, GPU: 2})
    assert [quota.used(node, CPU) for node in ("b", "org", "a", "")] == [20, 30, 10, 30]
    assert quota.used("org", GPU) == 2
    assert quota.dominant_share("org") == Share(quota.dominant_share("").value, "cpu")
    quota.charge("b", {CPU: 20, GPU: 2}, -1)
    assert quota.used("org", CPU) == 10
    assert quota.headroom("b", CPU) == books(ORG, 100, {"a": 10}).headroom("b", CPU)


BORROW = (
    queue("org"),
    *(queue(name, "org", cpu=cell(nominal=10)) for name in "abcd"),
    queue("far", cpu=cell(nominal=10)),
)


@given(
    st.lists(
        st.tuples(st.sampled_from(("a", "b", "c", "d", "far")), st.integers(1, 12), st.sampled_from((1, -1))),
        max_size=30,
    )
)
def test_others_borrow(charges: list[tuple[str, int, int]]) -> None:
    """As by a look at every queue of the tree, after any charge and within a question about victims."""
    quota = books(BORROW, 1000)

    def expected(asker: str) -> bool:
        tree = ("a", "b", "c", "d") if asker != "far" else ("far",)
        return any(each != asker and quota.used(each, CPU) > 10 for each in tree)

    for name, amount, sign in charges:
        quota.charge(name, {CPU: amount}, sign)
        for asker in ("a", "b", "c", "d", "far"):
            assert quota.others_borrow(asker, CPU) is expected(asker)
        with quota.as_if_gone({"a": {CPU: 5}, "b": {CPU: 15}}):
            assert quota.others_borrow("d", CPU) is expected("d")
        assert quota.others_borrow("d", CPU) is expected("d")


@given(st.lists(st.tuples(st.sampled_from(("a", "b", "c", "org", "none")), st.integers(1, 60)), max_size=12))
def test_who_is_over_of_many_at_once(charges: list[tuple[str, int]]) -> None:
    """As each of them by itself; nobody where shares are not known."""
    quota, names = books(ORG, 100, {"a": 10, "b": 20}, {"c": 90}), ("a", "b", "c", "org", "none", "")
    for name, amount in charges:
        quota.charge(name, {CPU: amount, GPU: amount})
        for each in (CPU, GPU):
            assert quota.all_over(names, each) == [quota.over(name, each) for name in names]


def test_the_version_of_what_relatives_use() -> None:
    """Another one after each charge below the same top queue, whoever is charged; not after a question."""
    quota = books(ORG, 100)
    before, other = quota.version("a"), quota.version("c")
    assert before == quota.version("org") == quota.version("b") != other
    with quota.as_if_gone({"a": {CPU: 5}}):
        quota.charge("b", {CPU: 5})
        quota.charge("b", {CPU: 5}, -1)
        assert quota.version("a") == before
    assert quota.version("a") == before
    quota.charge("b", {CPU: 5})
    quota.charge("b", {CPU: 5}, -1)
    assert quota.version("a") != before and quota.version("c") == other
    assert quota.version("none") == quota.version("none")


def test_the_use_that_was_given_may_change_afterwards() -> None:
    """It is copied: what is charged is counted once."""
    use = {"a": {CPU: 10}, "": {CPU: 10}}
    quota = Quota(books(TWO, 100).tree, {CPU: 100}, use, {})
    use["a"][CPU] = 90
    quota.charge("a", {CPU: 5})
    assert quota.used("a", CPU) == 15


def test_flavours_of_a_resource_count_together_in_the_dominant_share() -> None:
    """4 of 8 and 0 of 8 are a quarter of all GPUs."""
    a100, v100 = ("a100", "gpu"), ("v100", "gpu")
    quota = books((queue("a"),), {a100: 8, v100: 8, CPU: 100}, {"a": {a100: 4, CPU: 20}})
    assert quota.dominant_share("a").value * 4 == 1
    assert quota.dominant_share("a").resource == "gpu"


def test_standing_of_a_queue() -> None:
    """All its numbers, in the cells that it or the cluster knows."""
    quota = books(TWO, {CPU: 100, GPU: 8}, {"a": {CPU: 70}, "b": {CPU: 10}}, {"a": {CPU: 10}, "b": {CPU: 50}})
    assert quota.standing("a", {CPU: 5}, {CPU: 80}) == {
        CPU: CellStanding(
            guaranteed=20, nominal=40, share=40, entitled=40, used=65, nominated=5, demand=80, borrowed=30, headroom=20
        ),
        GPU: CellStanding(headroom=8),
    }
    assert quota.standing("b")[CPU] == CellStanding(
        nominal=60, share=60, entitled=60, used=10, demand=10, lent=30, headroom=20
    )
    assert quota.standing("")[CPU].lent == 0


def test_without_shares_nothing_is_over() -> None:
    """A cell that no share is known of is contested by nobody."""
    quota = Quota(books(TWO, 100).tree, {CPU: 100}, {"a": {CPU: 100}}, {})
    assert quota.entitled("b", CPU) is None
    assert not quota.over("b", CPU)
