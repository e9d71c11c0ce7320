"""Memo of a turn: while no room is given up, what did not fit still does not."""

from __future__ import annotations

from collections.abc import Hashable

from model.priority import PreemptionPolicy
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.place import Misfit
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.preemption.facts import NoPreemption
from scheduler.core.snapshot.podclass import NO_INTERPOD
from scheduler.steps.preempting import UNDER_WAY


class Memo:
    """For one working snapshot."""

    def __init__(self, working: WorkingSnapshot) -> None:
        self._working = working
        self._unfit: dict[Hashable, Misfit] = {}
        self._refused: dict[Hashable, NoPreemption] = {}
        self._messages: dict[Hashable, str] = {}

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

    def forget(self) -> None:
        """Room was given up."""
        self._messages.clear()
        self._unfit.clear()
        self._refused.clear()

    def _holds(self, candidate: Candidate) -> bool:
        """Whether classes, numbers and priority alone decide on it: other pods' terms make every case its own, and so
        does where a gang has members already.
        """
        if self._working.indexed or (candidate.workload.gang is not None and candidate.workload.bound):
            return False
        return all(found.interpod == NO_INTERPOD for found in candidate.classes) and not self._named(candidate)

    def _named(self, candidate: Candidate) -> bool:
        """Whether room is kept for it."""
        return any(held.subject == candidate.subject for held in self._working.nominated)


def _kind(candidate: Candidate) -> Hashable:
    """What decides; who may preempt equals has only younger ones to gain from."""
    workload = candidate.workload
    age = workload.created_seconds if workload.preemption_policy is PreemptionPolicy.ALWAYS else 0.0
    asks = (workload.priority, candidate.governed_by, candidate.online, workload.preemption_policy, age)
    if workload.gang is None:
        return (candidate.classes[0], *asks)
    place = {key: index for index, (key, _) in enumerate(workload.gangs)}
    sets = tuple(
        (found, pods.count, place.get(pods.gang, 0))
        for found, pods in zip(candidate.classes, workload.pod_sets, strict=True)
    )
    return (sets, tuple(needed for _, needed in workload.gangs), workload.topology, *asks)
