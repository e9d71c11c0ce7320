"""Memo of a turn: while no room is given up, what did not fit still does not."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from model.priority import PreemptionPolicy
from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.place import Misfit
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.preemption.facts import NoPreemption, PreemptionPlan
from scheduler.core.queueing.news import Need
from scheduler.core.queueing.queue_refusal import QueueRefusal
from scheduler.core.snapshot.podclass import NO_INTERPOD
from scheduler.steps.preempting import UNDER_WAY


class Lacking(msgspec.Struct, frozen=True):
    """What came of a lone pod whose queue lacks quota: `message` is what it was told, `need` what it waits for."""

    refusal: QueueRefusal
    outcome: PreemptionPlan | NoPreemption | None
    message: str
    need: Need


class Memo:
    """For one working snapshot."""

    def __init__(self, working: WorkingSnapshot) -> None:
        self._working = working
        self._unfit: dict[Hashable, Misfit] = {}
        self._refused: dict[Hashable, NoPreemption] = {}
        self._messages: dict[Hashable, str] = {}
        self._lacking: dict[Hashable, Lacking] = {}

    def misfit(self, candidate: Candidate) -> Misfit | None:
        """The outcome of an earlier workload like this one."""
        return self._unfit.get(_kind(candidate)) if self._holds(candidate) else None

    def refusal(self, candidate: Candidate) -> NoPreemption | None:
        """Why nobody went for an earlier workload like this one."""
        return self._refused.get(_kind(candidate)) if self._holds(candidate) else None

    def remember(self, candidate: Candidate, outcome: Misfit | NoPreemption) -> None:
        """What came of a candidate."""
        if not self._holds(candidate):
            return
        if isinstance(outcome, Misfit):
            self._unfit[_kind(candidate)] = outcome
        elif outcome.reason not in UNDER_WAY:
            self._refused[_kind(candidate)] = outcome

    def remember_message(self, candidate: Candidate, message: str) -> None:
        """What a lone pod was told, once both are known: that it does not fit, and that no pod is evicted for it."""
        kind = _kind(candidate)
        if candidate.workload.gang is None and kind in self._unfit and kind in self._refused:
            self._messages[kind] = message

    def message_for(self, candidate: Candidate) -> str:
        """What an earlier lone pod like this one was told; with that, all is said of this one too."""
        return self._messages.get(_kind(candidate), "") if self._messages and self._holds(candidate) else ""

    def remember_lacking(self, candidate: Candidate, local_queue: str, found: Lacking) -> None:
        """What came of a lone pod whose queue lacks quota, where nothing more comes of preemption for it."""
        lacks = found.refusal.reason is Reason.QUOTA_EXHAUSTED and candidate.workload.gang is None
        if lacks and self._holds(candidate):
            self._lacking[_kind(candidate), local_queue] = found

    def lacking(self, candidate: Candidate, local_queue: str) -> Lacking | None:
        """The same of an earlier lone pod like this one: what others took since has only made less of the quota."""
        if not self._lacking or candidate.workload.gang is not None:
            return None
        found = self._lacking.get((_kind(candidate), local_queue))
        return found if found is not None and self._holds(candidate) else None

    def line(self, candidate: Candidate, local_queue: str) -> Hashable | None:
        """What those have in common that fare as this lone pod, whose queue lacks quota; None where others may not."""
        alike = self.lacking(candidate, local_queue) is not None and candidate.workload.deadline_seconds is None
        return (_kind(candidate), local_queue) if alike else None

    def forget(self) -> None:
        """Room was given up."""
        self._messages.clear()
        self._lacking.clear()
        self._unfit.clear()
        self._refused.clear()

    def _holds(self, candidate: Candidate) -> bool:
        """Whether classes, numbers and priority alone decide on it: other pods' terms make every case its own, and so
        does where a gang has members already.
        """
        if self._working.indexed or (candidate.workload.gang is not None and candidate.workload.bound):
            return False
        if self._working.keeps_for(candidate.subject):
            return False
        return all(found.interpod is NO_INTERPOD or found.interpod == NO_INTERPOD for found in candidate.classes)


def _kind(candidate: Candidate) -> Hashable:
    """What decides; who may preempt equals has only younger ones to gain from."""
    workload = candidate.workload
    age = workload.created_seconds if workload.preemption_policy is PreemptionPolicy.ALWAYS else 0.0
    asks = (
        workload.priority,
        workload.outer_priority,
        candidate.governed_by,
        candidate.online,
        workload.preemption_policy,
        age,
    )
    if workload.gang is None:
        return (candidate.classes[0], *asks)
    place = {key: index for index, (key, _) in enumerate(workload.gangs)}
    sets = tuple(
        (found, pods.count, place.get(pods.gang, 0))
        for found, pods in zip(candidate.classes, workload.pod_sets, strict=True)
    )
    return (sets, tuple(needed for _, needed in workload.gangs), workload.topology, *asks)
