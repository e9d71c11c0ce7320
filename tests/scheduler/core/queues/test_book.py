"""One cell's books."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from queue_builders import CPU, cell, inclusive, queue

from scheduler.core.queues.book import Book
from scheduler.core.queues.tree import tree_of

TREE = tree_of(
    (
        queue("org", cpu=cell(30, maximum=60)),
        queue("a", "org", cpu=cell(20)),
        queue("b", "org"),
        queue("c", cpu=cell(nominal=25, lending_limit=10)),
    )
)


def book(own: dict[str, int]) -> Book:
    total = inclusive(TREE, {name: {CPU: amount} for name, amount in own.items()})
    return Book(TREE, CPU, {name: of[CPU] for name, of in total.items()})


def test_what_is_gone() -> None:
    """The larger of what is used, what is kept, and what is gone below; never more than may be used."""
    idle = book({})
    assert {name: idle.of(name).gone for name in ("org", "a", "b", "c")} == {"org": 30, "a": 20, "b": 0, "c": 15}
    busy = book({"a": 5, "b": 25})
    assert {name: busy.of(name).gone for name in ("org", "a", "b", "c")} == {"org": 45, "a": 20, "b": 25, "c": 15}
    full = book({"a": 5, "b": 50})
    assert full.of("org").gone == 60
    cut = book({"a": 5, "b": 65})
    assert cut.of("org").gone == 70


def test_work_of_queues_that_are_gone_and_of_inner_ones_counts() -> None:
    """A queue may get children, or go, while its work runs."""
    found = book({"gone": 7, "org": 4, "b": 3})
    assert (found.of("org").inside, found.of("gone").gone, found.of("").used) == (4, 7, 14)
    assert found.of("org").gone == 30
    assert (found.reserved("", "org"), found.reserved("org", "b"), found.reserved("", "gone")) == (15, 20, 23 + 15)


def test_without_a_word_on_the_root_it_uses_what_is_below() -> None:
    assert Book(TREE, CPU, {"c": 5, "org": 6, "a": 6}).of("").used == 11


names = st.sampled_from(["a", "b", "c", "org", "gone", "default"])


@given(
    start=st.dictionaries(names, st.integers(0, 40)), steps=st.lists(st.tuples(names, st.integers(0, 40)), max_size=8)
)
def test_charging_comes_to_the_same_as_beginning_with_it(start: dict[str, int], steps: list[tuple[str, int]]) -> None:
    """Step by step along paths, or all at once; taking it off again undoes it."""
    charged, total = book(start), dict(start)
    for name, amount in steps:
        charged.known(name).charge(amount)
        total[name] = total.get(name, 0) + amount
    whole = book(total)
    assert figures(charged) == figures(whole)
    for name, amount in reversed(steps):
        charged.known(name).charge(-amount)
    assert figures(charged) == figures(book(start))


@given(steps=st.lists(st.tuples(names, st.integers(-20, 40), st.booleans()), max_size=12))
def test_what_is_gone_is_the_same_whenever_somebody_asks(steps: list[tuple[str, int, bool]]) -> None:
    """After each charge, after many, or after a queue was charged and all of it taken off again."""
    found, total = book({}), dict[str, int]()
    for name, amount, asked in steps:
        amount = max(amount, -total.get(name, 0))
        found.known(name).charge(amount)
        total[name] = total.get(name, 0) + amount
        if asked:
            assert figures(found) == figures(book(total))
    assert figures(found) == figures(book(total))


@given(
    steps=st.lists(
        st.tuples(names, st.integers(-20, 40), st.none() | st.integers(0, 120), st.integers(1, 60)), max_size=12
    )
)
def test_room_found_before_answers_as_room_found_now(steps: list[tuple[str, int, int | None, int]]) -> None:
    """Whatever was charged, taken off, or came to the capacity and left it since."""
    kept, total = book({}), dict[str, int]()
    for name, amount, capacity, asked in steps:
        amount = max(amount, -total.get(name, 0))
        kept.known(name).charge(amount)
        kept.bound(capacity)
        total[name] = total.get(name, 0) + amount
        fresh = book(total)
        fresh.bound(capacity)
        for each in ("a", "b", "c", "gone", "default"):
            assert kept.known(each).fits(asked) is fresh.known(each).fits(asked), each


def figures(found: Book) -> dict[str, tuple[int, int, int, int]]:
    """Of each node that has any: used, inside, below, gone."""
    rows = {name: found.of(name) for name in found.nodes}
    figures = {name: (row.used, row.inside, row.below, row.gone) for name, row in rows.items()}
    return {name: each for name, each in figures.items() if any(each)}
