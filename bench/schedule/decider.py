"""The scheduler's own decision, as its cycle makes it: place, charge, let it stand, explain; timed one by one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import msgspec

from model.decision import Decision
from model.node import Node
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.ledger import Charge, Ledger, charge_of
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.placement import explain
from scheduler.core.placement.place import Misfit, Placed, place
from scheduler.core.placement.working_snapshot import Background, WorkingSnapshot
from scheduler.core.scores.policy import PROFILES, SchedulerProfile
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take


class DecisionTimes(msgspec.Struct, frozen=True):
    """What a run of decisions took: each one's nanoseconds, and how many pods got a node."""

    nanoseconds: tuple[int, ...]
    pods: int

    @property
    def seconds(self) -> float:
        return sum(self.nanoseconds) / 1e9


class Decider:
    """A cluster of model values with everything the cycle keeps for a turn."""

    def __init__(
        self, nodes: Iterable[Node], pods: Iterable[Pod] = (), profiles: tuple[SchedulerProfile, ...] = PROFILES
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.ledger = Ledger()
        self._profiles = profiles
        for pod in pods:
            charge = charge_of(pod)
            if charge is not None:
                self.ledger.confirm(charge)
        self.snapshot: ClusterSnapshot = take(self.nodes, self.ledger.nodes)
        self.ledger.residents(self.snapshot)  # as the cycle does on its first turn
        self.working = self._working(None)
        self.decisions: list[Decision] = []
        self.where: dict[WorkloadId, tuple[str, ...]] = {}

    def decide(self, candidate: Candidate) -> Placed | Misfit:
        """Filters, scores, placement, bookkeeping and the record that explains it."""
        outcome = place(self.working, candidate)
        if isinstance(outcome, Misfit):
            self.decisions.append(explain.misfit(candidate, outcome, 0.0).decision)
            return outcome
        names, queue = self.snapshot.names, candidate.workload.queue
        self.ledger.assume(
            Charge(
                assignment.uid,
                names[assignment.row],
                assignment.pod_class,
                assignment.pod_traits,
                None,
                queue,
                subject=candidate.subject,
            )
            for assignment in outcome.assignments
        )
        self.working.put(outcome.assignments)
        self.decisions.append(explain.placed(candidate, outcome.report, outcome, self.snapshot, 0.0))
        return outcome

    def run(self, candidates: Sequence[Candidate]) -> DecisionTimes:
        """Decide on each, the clock read around each."""
        taken, pods = [], 0
        for candidate in candidates:
            begun = time.perf_counter_ns()
            outcome = self.decide(candidate)
            taken.append(time.perf_counter_ns() - begun)
            if isinstance(outcome, Placed):
                pods += len(outcome.assignments)
                self.where[candidate.subject] = tuple(assignment.uid for assignment in outcome.assignments)
        return DecisionTimes(tuple(taken), pods)

    def forget(self, uids: Iterable[str]) -> None:
        """These pods are gone; the next turn's snapshot is taken."""
        for uid in uids:
            self.ledger.forget(uid)
        self.renew()

    def renew(self) -> None:
        """The next turn's snapshot."""
        self.snapshot = take(self.nodes, self.ledger.nodes, self.snapshot)
        self.working = self._working(self.working)

    def _working(self, before: WorkingSnapshot | None) -> WorkingSnapshot:
        background = Background(LivePodIndex(self.ledger), profiles=self._profiles)
        return WorkingSnapshot(self.snapshot, (), background, before)
