"""What a turn has found out already: while no room is given up, what did not fit still does not."""

from __future__ import annotations

from collections.abc import Hashable

from model.priority import PreemptionPolicy
from scheduler.core.gang import Candidate
from scheduler.core.place import Misfit
from scheduler.core.podclass import ALONE
from scheduler.core.preemption.facts import NoPreemption
from scheduler.core.scene import Scene
from scheduler.preempting import UNDER_WAY


class Memo:
    """For one scene; `plans` counts the preemptions of the turn."""

    def __init__(self, scene: Scene) -> None:
        self.plans = 0
        self._scene = scene
        self._unfit: dict[Hashable, Misfit] = {}
        self._refused: dict[Hashable, NoPreemption] = {}

    def misfit(self, candidate: Candidate) -> Misfit | None:
        """The outcome of an earlier lone pod like this one."""
        return self._unfit.get(_kind(candidate)) if self._holds(candidate) else None

    def refusal(self, candidate: Candidate) -> NoPreemption | None:
        """Why nobody went for an earlier lone pod like this one."""
        return self._refused.get(_kind(candidate)) if self._holds(candidate) else None

    def remember(self, candidate: Candidate, outcome: Misfit | NoPreemption) -> None:
        """What came of a candidate."""
        if not self._holds(candidate):
            return
        if isinstance(outcome, Misfit):
            self._unfit[_kind(candidate)] = outcome
        elif outcome.reason not in UNDER_WAY:
            self._refused[_kind(candidate)] = outcome

    def forget(self) -> None:
        """Room was given up."""
        self._unfit.clear()
        self._refused.clear()

    def _holds(self, candidate: Candidate) -> bool:
        """Whether class and priority alone decide on it: a gang, or other pods' terms, make every case its own."""
        lone = candidate.workload.gang is None and not self._scene.crowded
        return lone and candidate.classes[0].company == ALONE and not self._named(candidate)

    def _named(self, candidate: Candidate) -> bool:
        """Whether room is kept for it."""
        return any(held.subject == candidate.subject for held in self._scene.nominated)


def _kind(candidate: Candidate) -> Hashable:
    """What decides; who may preempt equals has only younger ones to gain from."""
    workload = candidate.workload
    age = workload.created_seconds if workload.preemption_policy is PreemptionPolicy.ALWAYS else 0.0
    return (candidate.classes[0], workload.priority, workload.preemption_policy, age)
