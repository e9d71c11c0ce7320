"""Who may take back from whom."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from queue_builders import CPU, GPU, books, cell, queue

from model.queue import Cell, Queue, QueuePreemption
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.reclaimable import Reclaim, may_lose, over_in
from scheduler.core.queues.shares import QuotaMode, ShareRules

HALVES = (queue("a", cpu=cell(nominal=50)), queue("b", cpu=cell(nominal=50)))
ORGS = (
    queue("A"),
    queue("B"),
    queue("a1", "A"),
    queue("a2", "A"),
    queue("b1", "B", cpu=cell(10)),
    queue("b2", "B"),
)


def borrowed(queues: tuple[Queue, ...] = HALVES, b: int = 20, a: int = 80, wants: int = 30) -> Quota:
    """`a` uses 80 of 100, `b` 20 and wants 30 more."""
    return books(queues, 100, {"a": a, "b": b}, {"b": wants, "a": 40})


def b_with(rules: QueuePreemption) -> tuple[Queue, ...]:
    return (queue("a", cpu=cell(nominal=50), preemption=rules), queue("b", cpu=cell(nominal=50)))


CASES: dict[str, tuple[Quota, str, Mapping[Cell, int], str, str]] = {
    # books, requester's queue, what it asks for, victim's queue, why not
    "what was borrowed is taken back": (borrowed(), "b", {CPU: 30}, "a", ""),
    "not above one's own": (
        borrowed(),
        "b",
        {CPU: 31},
        "a",
        'queue "b" would have 51 cpu, and may take back no more than 50',
    ),
    "not from one who has what is his": (
        books((*HALVES, queue("c")), 100, {"b": 50, "c": 50}, {"a": 10}),
        "a",
        {CPU: 10},
        "b",
        'queue "b", or one above it, has no more cpu than it is entitled to',
    ),
    "not within a queue": (borrowed(), "b", {CPU: 1}, "b", 'both are of queue "b", where priority decides'),
    "not from its parent": (
        books(ORGS, 100, {"a1": 100}),
        "a1",
        {CPU: 1},
        "A",
        'both are of queue "a1", where priority decides',
    ),
    "a queue that may not be reclaimed from": (
        borrowed(b_with(QueuePreemption(reclaimable=False))),
        "b",
        {CPU: 30},
        "a",
        'queue "a" does not let its work be reclaimed',
    ),
    "only by those it names": (
        borrowed(b_with(QueuePreemption(preemptors=("c", "d")))),
        "b",
        {CPU: 30},
        "a",
        'queue "a" lets only c, d reclaim its work',
    ),
    "one that it names": (borrowed(b_with(QueuePreemption(preemptors=("c", "b")))), "b", {CPU: 30}, "a", ""),
    "by weight where no amount is one's own": (
        books((queue("a"), queue("b", weight=3)), 100, {"a": 90}, {"b": 90}),
        "b",
        {CPU: 75},
        "a",
        "",
    ),
    "cousins: both orgs are compared": (
        books(ORGS, 100, {"a1": 70, "b1": 20}, {"b1": 30, "a1": 30}),
        "b1",
        {CPU: 30},
        "a1",
        "",
    ),
    "cousins: an org within its share loses nothing": (
        books(ORGS, 100, {"a1": 50, "b1": 50}, {"b2": 30, "a1": 30}),
        "b2",
        {CPU: 20},
        "a1",
        'queue "B" would have 70 cpu, and may take back no more than 55',
    ),
    "siblings: their org is not compared": (
        books(ORGS, 100, {"a1": 90}, {"a2": 30}),
        "a2",
        {CPU: 30},
        "a1",
        "",
    ),
    "a queue that is gone has no share": (books(HALVES, 100, {"gone": 100}, {"a": 10}), "a", {CPU: 10}, "gone", ""),
    "cells with room are not contested": (
        books(
            (queue("a"), queue("b", cpu=cell(nominal=10))),
            {CPU: 100, GPU: 8},
            {"a": {CPU: 8, GPU: 8}, "b": {CPU: 10}},
            {"b": {CPU: 4, GPU: 4}},
        ),
        "b",
        {CPU: 4, GPU: 4},
        "a",
        "",
    ),
    "all that is asked for is contested where the nodes are short, not the quota": (
        books(HALVES, 100, {"a": 60, "b": 20}, {"b": 10, "a": 40}),
        "b",
        {CPU: 10},
        "a",
        "",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_why_not(name: str) -> None:
    """One sentence with numbers, empty where it may."""
    quota, asking, amounts, victim, expected = CASES[name]
    assert quota.may_reclaim(asking, amounts, victim) == expected


def test_proportion_takes_shares_where_capacity_takes_nominal() -> None:
    """A queue above nominal and within its share by weight is taken from in one mode alone."""
    queues = (queue("a", cpu=cell(nominal=20)), queue("b", cpu=cell(nominal=80)))
    for mode, why in (
        (QuotaMode.CAPACITY, ""),
        (QuotaMode.PROPORTION, 'queue "b" would have 51 cpu, and may take back no more than 50'),
    ):
        quota = books(queues, 100, {"a": 50, "b": 50}, {"b": 30, "a": 50}, ShareRules(mode=mode))
        assert quota.may_reclaim("b", {CPU: 1}, "a") == why


LOSSES: dict[str, tuple[Quota, Mapping[Cell, int], tuple[Cell, ...] | None, bool]] = {
    "what is over": (borrowed(), {CPU: 30}, None, True),
    "more than is over, while it keeps its guarantee": (borrowed(), {CPU: 80}, None, True),
    "not below its guarantee": (
        borrowed((queue("a", cpu=cell(45, nominal=50)), queue("b", cpu=cell(nominal=50)))),
        {CPU: 36},
        None,
        False,
    ),
    "down to its guarantee": (
        borrowed((queue("a", cpu=cell(45, nominal=50)), queue("b", cpu=cell(nominal=50)))),
        {CPU: 35},
        None,
        True,
    ),
    "not where it is not over": (borrowed(a=50, b=50), {CPU: 1}, None, False),
    "not without some of what is contested": (borrowed(), {GPU: 1}, (CPU,), False),
    "a guarantee of what is not contested does not hold it": (
        books(
            (queue("a", cpu=cell(8)), queue("b", gpu=cell(8))),
            {CPU: 100, GPU: 8},
            {"a": {CPU: 8, GPU: 8}},
            {"b": {GPU: 8}},
        ),
        {CPU: 8, GPU: 8},
        (GPU,),
        True,
    ),
    "one of what is contested does": (
        books(
            (queue("a", cpu=cell(8)), queue("b", gpu=cell(8))),
            {CPU: 8, GPU: 8},
            {"a": {CPU: 8, GPU: 8}},
            {"b": {CPU: 1, GPU: 8}},
        ),
        {CPU: 8, GPU: 8},
        (CPU, GPU),
        False,
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_a_victims_queue_may_lose(name: str) -> None:
    quota, amounts, cells, expected = LOSSES[name]
    assert quota.may_lose("a", amounts, cells=cells) is expected


def test_an_ancestors_guarantee_holds_below_the_common_ancestor_alone() -> None:
    """Among siblings the org has as much as before."""
    queues = (queue("A", cpu=cell(60)), queue("B"), queue("a1", "A"), queue("a2", "A"), queue("b", "B"))
    quota = books(queues, 100, {"a1": 60, "b": 40}, {"a2": 40, "b": 40, "a1": 40})
    assert quota.may_lose("a1", {CPU: 20}, queue="a2")
    assert not quota.may_lose("a1", {CPU: 20}, queue="b")


def test_what_a_parent_borrows_is_not_its_childrens() -> None:
    """An org of nominal 6 with a share of 7: its teams divide the 6, so that one of them gives back the seventh."""
    queues = (
        queue("A", cpu=cell(nominal=6)),
        queue("a1", "A"),
        queue("a2", "A", cpu=cell(3)),
        queue("b", cpu=cell(nominal=3)),
        queue("c"),
    )
    quota = books(queues, 10, {"a1": 5, "a2": 2, "b": 2, "c": 1}, {"a1": 4, "a2": 1, "b": 1, "c": 9})
    assert [quota.share(name, CPU) for name in ("A", "a1", "a2", "b", "c")] == [7, 4, 3, 3, 0]
    assert [quota.entitled(name, CPU) for name in ("A", "a1", "a2", "b", "c")] == [6, 3, 3, 3, 0]
    assert "may take back no more than 6" in quota.may_reclaim("a2", {CPU: 1}, "c")
    assert quota.may_reclaim("a2", {CPU: 1}, "a1") == ""
    assert quota.may_reclaim("b", {CPU: 1}, "a1") == ""
    assert [quota.standing(name)[CPU].borrowed for name in ("A", "a1", "a2", "c")] == [1, 2, 0, 1]


def test_all_nodes_must_be_over_in_one_cell() -> None:
    """A team over in CPUs, in an org over in GPUs alone, takes nothing from others by either."""
    queues = (
        queue("A", cpu=cell(nominal=60), gpu=cell(nominal=2)),
        queue("a", "A", cpu=cell(nominal=10), gpu=cell(nominal=2)),
        queue("other", "A"),
        queue("b", cpu=cell(nominal=40), gpu=cell(nominal=6)),
    )
    used = {"a": {CPU: 50, GPU: 1}, "other": {GPU: 4}}
    quota = books(queues, {CPU: 100, GPU: 8}, used, {"b": {CPU: 90, GPU: 3}})
    cells = (CPU, GPU)
    assert quota.over("a", CPU) and quota.over("A", GPU)
    assert over_in(quota, ("a", "A"), cells) == ()
    assert not may_lose(quota, "a", ("a", "A"), {CPU: 1, GPU: 1}, cells)
    assert "entitled" in Reclaim(quota, "b", {CPU: 1, GPU: 1}, cells).why_not("a")
