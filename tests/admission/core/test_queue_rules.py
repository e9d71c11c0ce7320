"""Rules of the tree of queues, in one sentence each, with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from admission.core.queue_rules import KnownQueue, QueueWords, refusals, undeletable, warnings
from model.queue import Queue, QueuePreemption, QuotaCell

WORDS = QueueWords("spec.parent", "spec.guaranteed", "spec.soft", "spec.hard")
BOTH = msgspec.structs.replace(WORDS, guarded=("guaranteed", "nominal"))
LOOSE = msgspec.structs.replace(WORDS, guarded=(), bounded=False)


def queue(name: str, parent: str = "", **cells: QuotaCell) -> Queue:
    return Queue(name, parent, cells={("", resource): cell for resource, cell in cells.items()})


def known(*queues: Queue, **facts: Any) -> Mapping[str, KnownQueue]:
    """`facts` are of the first one."""
    found = [KnownQueue(each, f"Queue {each.name}") for each in queues]
    return {each.queue.name: each for each in (msgspec.structs.replace(found[0], **facts), *found[1:])}


def cell(guaranteed: int = 0, nominal: int | None = None, maximum: int | None = None) -> QuotaCell:
    return QuotaCell(guaranteed, nominal, maximum)


ORG = queue("org", cpu=cell(8000, 16_000, 32_000))
TREE = known(ORG, queue("a", "org", cpu=cell(5000, 9000, 20_000)), queue("b", "org", cpu=cell(2000)))
REFUSED: dict[str, tuple[Queue, Mapping[str, KnownQueue], QueueWords, str]] = {
    "its own parent": (
        queue("c", "c"), TREE, WORDS, "spec.parent is c itself; name another queue, or none",
    ),
    "a parent that is not there": (
        queue("c", "gone"), TREE, WORDS, "spec.parent is gone, and there is no queue of that name; create it first",
    ),
    "a circle": (
        queue("org", "a"), TREE, WORDS, "spec.parent a makes a circle, org < a < org; name another queue, or none",
    ),
    "more than the parent guarantees": (
        queue("c", "org", cpu=cell(2000)),
        TREE,
        WORDS,
        "spec.guaranteed.cpu is 2: the queues of org would have 9 together, more than its 8; lower it",
    ),
    "a parent that guarantees nothing": (
        queue("c", "org", memory=cell(1 << 30)),
        TREE,
        WORDS,
        "spec.guaranteed.memory is 1Gi: the queues of org would have 1Gi together, more than its 0; lower it",
    ),
    "less than its queues guarantee": (
        queue("org", cpu=cell(6000)),
        TREE,
        WORDS,
        "spec.guaranteed.cpu is 6, less than the 7 of queues a, b below it; raise it, or lower theirs",
    ),
    "more than the parent's own": (
        queue("c", "org", cpu=cell(0, 8000)),
        TREE,
        BOTH,
        "spec.soft.cpu is 8: the queues of org would have 17 together, more than its 16; lower it",
    ),
    "less than its queues' own": (
        queue("org", cpu=cell(8000, 8500)),
        TREE,
        BOTH,
        "spec.soft.cpu is 8500m, less than the 9 of queue a below it; raise it, or lower theirs",
    ),
    "a maximum above the parent's": (
        queue("c", "org", cpu=cell(0, None, 40_000)),
        TREE,
        WORDS,
        "spec.hard.cpu is 40, more than the 32 of org above it; lower it, or raise that",
    ),
    "a maximum above that of a queue higher up": (
        queue("d", "b", cpu=cell(0, None, 40_000)),
        TREE,
        WORDS,
        "spec.hard.cpu is 40, more than the 32 of org above it; lower it, or raise that",
    ),
    "a maximum below that of a queue further down": (
        queue("org", cpu=cell(8000, None, 10_000)),
        TREE,
        WORDS,
        "spec.hard.cpu is 10, less than the 20 of a below it; raise it, or lower that",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    new, others, words, told = REFUSED[case]
    assert refusals("Queue x", new, others, words) == (f"Queue x: {told}",)


ALLOWED: dict[str, tuple[Queue, QueueWords]] = {
    "a root": (queue("c", cpu=cell(90_000, 90_000, 90_000)), BOTH),
    "room among its siblings": (queue("c", "org", cpu=cell(1000)), WORDS),
    "the same again": (queue("a", "org", cpu=cell(5000, 9000, 20_000)), BOTH),
    "less of its own": (queue("a", "org", cpu=cell(4000, 9000, 20_000)), BOTH),
    "a parent without an amount of its own": (queue("c", "b", cpu=cell(0, 4000)), BOTH),
    "a resource that nobody bounds": (queue("c", "org", gpu=cell(0, 8, 8)), WORDS),
    "an API that guards nothing": (queue("c", "org", cpu=cell(9000, 90_000, 90_000)), LOOSE),
    "as much as the parent": (queue("c", "org", cpu=cell(0, None, 32_000)), WORDS),
    "another place": (queue("a", cpu=cell(50_000)), WORDS),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_is_let_in(case: str) -> None:
    new, words = ALLOWED[case]
    assert refusals("Queue x", new, TREE, words) == ()


def test_several_sentences() -> None:
    """Each rule that is broken says so."""
    found = refusals("Queue x", queue("c", "org", cpu=cell(2000, None, 40_000), memory=cell(1)), TREE, WORDS)
    assert [each.split(" ")[2] for each in found] == ["spec.guaranteed.cpu", "spec.guaranteed.memory", "spec.hard.cpu"]


WARNED: dict[str, tuple[Queue, Mapping[str, KnownQueue], tuple[str, ...]]] = {
    "less than is in use": (
        queue("a", cpu=cell(0, None, 4000)),
        known(queue("a"), used={"cpu": 6000}),
        ("spec.hard.cpu is 4, less than the 6 in use: what runs stays, and nothing more starts until enough of it ended",),
    ),
    "as much as is in use": (queue("a", cpu=cell(0, None, 4000)), known(queue("a"), used={"cpu": 4000}), ()),
    "the first below a queue with jobs": (
        queue("a", "org"),
        known(queue("org"), running=1, waiting=2),
        ("spec.parent org has 1 job that runs and 2 jobs that wait of its own: with a queue below it, those that wait "
         "are held; let them name that",),
    ),
    "lenders that are not there": (
        msgspec.structs.replace(queue("a"), lenders=("b", "typo", "a", "default")),
        known(queue("b")),
        ("spec.borrowing.allowedQueues: no such queue typo; create what is meant, or name another",),
    ),
    "preemptors that are not there": (
        msgspec.structs.replace(queue("a"), preemption=QueuePreemption(preemptors=("x", "y"))),
        known(queue("b")),
        ("spec.preemption.allowPreemptFrom: no such queues x, y; create what is meant, or name another",),
    ),
    "the second": (queue("b", "org"), known(queue("org"), queue("a", "org"), running=1), ()),
    "the first below a queue without jobs": (queue("a", "org"), known(queue("org")), ()),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNED)
def test_what_is_warned_of(case: str) -> None:
    new, others, told = WARNED[case]
    assert warnings("Queue x", new, others, WORDS) == tuple(f"Queue x: {each}" for each in told)


DELETED: dict[str, tuple[Mapping[str, KnownQueue], str]] = {
    "nobody in it": (known(queue("x")), ""),
    "one below it": (known(queue("x"), queue("a", "x")), "queue a is part of it; delete or move that first"),
    "several below it": (
        known(queue("x"), *(queue(name, "x") for name in "abcde")),
        "queues a, b, c and 2 more are part of it; delete or move that first",
    ),
    "jobs in it": (known(queue("x"), running=2), "2 jobs that run in it; delete them first, or wait for their end"),
    "not known": (known(queue("a", "x")), ""),
    "another object has the name": (known(queue("x"), where="Queue of another", running=2), ""),
}


@pytest.mark.parametrize("case", DELETED)
def test_what_may_be_deleted(case: str) -> None:
    others, told = DELETED[case]
    assert undeletable("Queue x", "x", others) == (f"Queue x: {told}" if told else "")


def test_a_circle_that_is_there_already_ends() -> None:
    """Made while admission was away: every walk through the tree ends."""
    circle = known(queue("a", "b", cpu=cell()), queue("b", "a"))
    assert refusals("Queue x", queue("c", "a", cpu=cell(0, None, 1)), circle, WORDS) == ()
    assert "makes a circle" in refusals("Queue x", queue("a", "b"), circle, WORDS)[0]
