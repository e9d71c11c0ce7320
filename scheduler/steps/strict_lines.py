"""Strict lines: who is first in queues that go strictly one after the other, and who therefore waits."""

from __future__ import annotations

from collections.abc import Callable

from model.queue import QueueOrder
from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.never_fits import most_of, never_fits
from scheduler.core.queueing.queue_refusal import QueueRefusal, never_enough
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot
from scheduler.steps.asked_amounts import AskedAmounts
from scheduler.steps.flavor_assignments import FlavorAssignments


class StrictLines:
    """Of one turn. `never_taken`: whether its queue refuses a workload for ever."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        backlog: Backlog,
        asked: AskedAmounts,
        flavors: FlavorAssignments,
        never_taken: Callable[[Candidate], bool],
    ) -> None:
        self._backlog = backlog
        self._asked = asked
        self._flavors = flavors
        self._never_taken = never_taken
        self._snapshot = snapshot
        self._most: Amounts | None = None
        self._lines: dict[str, list[Candidate]] = {}
        self._firsts: dict[str, Candidate] = {}

    def begin(self, snapshot: ClusterSnapshot) -> None:
        """Another turn."""
        self._snapshot, self._most = snapshot, None
        self._lines.clear()
        self._firsts.clear()

    def behind(self, quota: TurnQuota, candidate: Candidate) -> QueueRefusal | None:
        """In a queue that goes strictly one after the other: who is before it."""
        queue = quota.tree.queues.get(candidate.governed_by)
        if queue is None or queue.order is not QueueOrder.STRICT_FIFO:
            return None
        head = self._head(quota, queue.name)
        key = _by_priority if queue.flavor_groups else _by_time
        if head is None or key(candidate) <= key(head):
            return None
        detail = f"queue {queue.name} goes strictly one after the other, and {head.subject.text} is before it"
        return QueueRefusal(Reason.QUEUE_ORDER, detail)

    def _head(self, quota: TurnQuota, queue: str) -> Candidate | None:
        """The first of a queue that waits still; one that can never run holds up nobody."""
        first, waiting = self._firsts.get(queue), self._backlog.by_subject
        if first is not None and first.subject in waiting:
            return first
        line = self._lines.get(queue)
        if line is None:
            own = [each for each in self._backlog.candidates if each.governed_by == queue]
            key = _by_priority if self._flavors.by_flavor(queue) else _by_time
            line = self._lines[queue] = sorted(own, key=key, reverse=True)
        while line:
            first = line.pop()
            if first.subject in waiting and not self._can_never_run(quota, first):
                self._firsts[queue] = first
                return first
        return None

    def _can_never_run(self, quota: TurnQuota, candidate: Candidate) -> bool:
        """Whether its queue refuses it for ever, may never have so much, or no node holds it even where it is empty."""
        candidate, queue = self._flavors.flavored(candidate), candidate.governed_by
        if self._flavors.fits_none(candidate):
            return True
        if self._never_taken(candidate) or never_enough(quota, queue, self._asked.at_once(candidate)):
            return True
        if self._most is None:
            self._most = most_of(self._snapshot)
        members = zip(candidate.classes, self._asked.needed(candidate), strict=True)
        return never_fits(self._snapshot, self._most, members)


def _by_time(candidate: Candidate) -> tuple[float, float, str]:
    return (0, candidate.workload.eligible_seconds, candidate.workload.uid)


def _by_priority(candidate: Candidate) -> tuple[float, float, str]:
    """In Kueue those of higher priority stand before older ones, in a StrictFIFO queue as well."""
    return (-candidate.workload.priority, candidate.workload.eligible_seconds, candidate.workload.uid)
