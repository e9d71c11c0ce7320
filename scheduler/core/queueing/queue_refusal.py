"""Queue refusal: why a queue does not let a workload be placed now, as a decision with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from model.decision import Decision, TermSum, Unit
from model.explain import amount as shown
from model.queue import ROOT_QUEUE, Cell
from model.reason import Reason
from model.resources import CPU
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.queue_book import add, cells_of
from scheduler.core.placement.explain import Verdict
from scheduler.core.queueing.news import Need, NewsKind
from scheduler.core.queues.headroom import (
    BORROWING_LIMIT,
    CAPACITY,
    GUARANTEES_OF_OTHERS,
    LENDERS,
    MAXIMUM,
    BookVersion,
    Quota,
    Shortage,
)

NAME = "queue quota"
_BOUNDS = {
    MAXIMUM: "that is the maximum",
    BORROWING_LIMIT: "that is the borrowing limit",
    LENDERS: "that is what there is to borrow from the lenders",
    GUARANTEES_OF_OTHERS: "the rest is kept for other queues",
    CAPACITY: "that is what the cluster has for queues",
}
_OTHER_JOBS = Need(NewsKind.QUEUES | NewsKind.JOBS | NewsKind.PODS | NewsKind.PLACED)
_BY_OTHER_JOBS = (Reason.QUEUE_FULL, Reason.QUEUE_ORDER, Reason.WAITING_FOR_PODS_READY)


class QueueRefusal(msgspec.Struct, frozen=True):
    """`short` is what its queue lacks, empty where it is not a matter of amounts; `version` is that of the books, where
    nothing else decides.
    """

    reason: Reason
    detail: str
    short: tuple[Shortage, ...] = ()
    version: BookVersion | None = None

    @property
    def need(self) -> Need:
        """What may end it: other queues, an amount of what is lacking, or jobs that start or end."""
        if self.reason in _BY_OTHER_JOBS:
            return _OTHER_JOBS
        return _amounts(frozenset([each.cell[1] for each in self.short]), self.version)


@lru_cache(1024)
def _amounts(resources: frozenset[str], version: BookVersion | None) -> Need:
    """One object for all that lack the same: whoever looks at thousands of them looks once."""
    return Need(NewsKind.QUEUES | NewsKind.NODE_ADDED, resources, version=version)


def lacking(queue: str, short: tuple[Shortage, ...], *, ever: bool = False) -> QueueRefusal:
    """A queue that has no more, or will never have as much."""
    first, others = short[0], [each.cell[1] for each in short[1:]]
    asked, room = amount_of(first.cell, first.asked), amount_of(first.cell, max(first.room, 0))
    more = f"; nor is there enough {', '.join(others)}" if others else ""
    why = f"{_BOUNDS[first.bound]}{_of(first)}{more}"
    if ever:
        detail = f'queue "{queue}" can never have {asked} of {first.cell[1]}, only {room}: {why}'
    else:
        detail = f'queue "{queue}" may have {room} more of {first.cell[1]} now, and {asked} is asked for: {why}'
    return QueueRefusal(Reason.QUOTA_TOO_SMALL if ever else Reason.QUOTA_EXHAUSTED, detail, short)


def none_of_it(queue: str) -> QueueRefusal:
    """A queue that has no more for any of its pods, though it was asked for less than all."""
    return QueueRefusal(Reason.QUOTA_EXHAUSTED, f'queue "{queue}" may have none of these pods now')


def never_enough(quota: Quota, queue: str, asked: Mapping[Cell, int]) -> tuple[Shortage, ...]:
    """What the queue may never have as queues are written; a cluster, whose own bound is the root's, may grow."""
    return tuple(each for each in quota.potential_short(queue, asked) if each.node != ROOT_QUEUE)


def _of(short: Shortage) -> str:
    """Whose bound it is, where that is a queue's."""
    return f' of queue "{short.node}"' if short.node and short.bound in (MAXIMUM, BORROWING_LIMIT, LENDERS) else ""


def verdict(candidate: Candidate, refusal: QueueRefusal, now: float, preemption: str = "") -> Verdict:
    """What its pods are told; the value is how much the queue has left of what it lacks first."""
    text = f"{refusal.detail}. {preemption}".rstrip() if preemption else refusal.detail
    terms = TermSum()
    unit = Unit.NUMBER
    if refusal.short:
        first = refusal.short[0]
        unit = unit_of(first.cell)
        terms.add(f"{first.cell[1]} asked for", first.asked).add("lacking", first.room - first.asked)
    decision = Decision(
        candidate.subject.text, NAME, terms.value, unit, refusal.reason, terms.terms, at_seconds=now, detail=text
    )
    return Verdict(candidate.subject, decision, candidate.uids, text)


def amounts_of(candidate: Candidate) -> Mapping[Cell, int]:
    """What all its waiting pods ask for together."""
    classes, sets = candidate.classes, candidate.workload.pod_sets
    if len(classes) == len(sets) == 1:
        return cells_of(classes[0], sets[0].count)
    total: dict[Cell, int] = {}
    for pod_class, pods in zip(classes, sets, strict=True):
        add(total, cells_of(pod_class, pods.count))
    return total


def amount_of(cell: Cell, amount: int) -> str:
    """As a manifest has it: batch-cpu counts thousandths, so that 2 of it is not 2 CPUs."""
    return shown(amount, unit_of(cell))


def unit_of(cell: Cell) -> Unit:
    """The unit in which a cell's resource is counted."""
    resource = cell[1]
    if resource == CPU:
        return Unit.MILLI_CPU
    in_bytes = resource.endswith(("memory", "storage")) or resource.startswith("hugepages-")
    return Unit.BYTES if in_bytes else Unit.NUMBER
