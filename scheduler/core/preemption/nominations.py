"""Nominations: room kept on nodes for workloads whose victims are terminating."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.filters.static import verdicts
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import Claim, ClaimedPod, ClaimKind, claimed
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.placement.working_snapshot import Nominated
from scheduler.core.preemption.facts import PreemptionPlan
from scheduler.core.snapshot.snapshot import ClusterSnapshot

_KIND = ClaimKind.NOMINATED


class _AsNominated(msgspec.Struct, frozen=True, eq=False):
    """Claims by identity, and what they are in a snapshot of these rows."""

    rows: Mapping[str, int]
    by_claim: Mapping[int, tuple[Claim, Nominated]]


class Nominations:
    """Claims in the ledger, and until when (Unix time) each of them holds.

    What is dropped is returned, so that its pods' status.nominatedNodeName can be cleared.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._expires: dict[WorkloadId, float] = {}
        self._as_nominated = _AsNominated({}, {})

    def get(self, subject: WorkloadId) -> Claim | None:
        return self._ledger.claim(_KIND, subject)

    def add(
        self, plan: PreemptionPlan, snapshot: ClusterSnapshot, expires_seconds: float, queue: str
    ) -> tuple[Claim, ...]:
        """Keep a plan's room; workloads of lower priority lose what is kept for them on the same nodes.

        A gang that loses one node loses all, since the rest is of no use to it.
        """
        nominated = plan.nominated
        pods = claimed(nominated.assignments, snapshot.names)
        mine = Claim(_KIND, nominated.subject, nominated.priority, pods, queue, nominated.spares_online)
        others = self._ledger.claims(_KIND)
        lower = [claim.subject for claim in others if claim.priority < mine.priority and claim.nodes & mine.nodes]
        dropped = tuple(found for subject in lower if (found := self.drop(subject)))
        self._keep(mine, expires_seconds)
        return dropped

    def as_nominated(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """What is kept, as assignments of this snapshot; nodes that it does not have are left out."""
        before, claims = self._as_nominated, self._ledger.claims(_KIND)
        known = before.by_claim if before.rows is snapshot.rows else {}
        found = {id(claim): known.get(id(claim)) or (claim, claim.on(snapshot.rows)) for claim in claims}
        self._as_nominated = _AsNominated(snapshot.rows, found)
        return tuple([nominated for _, nominated in found.values()])

    def drop(self, subject: WorkloadId) -> Claim | None:
        """The workload is gone, or gives up."""
        claim = self.get(subject)
        self._ledger.give_up(_KIND, subject)
        self._expires.pop(subject, None)
        return claim

    def expired(self, now: float) -> frozenset[WorkloadId]:
        """Those whose room has not come in time."""
        return frozenset(subject for subject, end in self._expires.items() if end <= now)

    def expires_seconds(self, subject: WorkloadId) -> float:
        """Unix time until which its room is kept, 0 where none is."""
        return self._expires.get(subject, 0.0)

    def next_due(self) -> float | None:
        """Unix time at which the next one's time is over."""
        return min(self._expires.values(), default=None)

    def sweep(self, waiting: Collection[WorkloadId], snapshot: ClusterSnapshot, now: float) -> tuple[Claim, ...]:
        """Drop what is kept for nobody, for too long, or on a node that is gone or does not admit the pod any more.

        `waiting` are the subjects that still wait.
        """
        out = [
            claim.subject
            for claim in self._ledger.claims(_KIND)
            if claim.subject not in waiting
            or now >= self._expires[claim.subject]
            or not _admitted(claim.pods, snapshot)
        ]
        return tuple(found for subject in out if (found := self.drop(subject)))

    def restore(
        self, candidate: Candidate, pods: Mapping[str, Pod], snapshot: ClusterSnapshot, expires_seconds: float
    ) -> bool:
        """After a restart: keep what the pods' status names, where that is room for all needed and still fit."""
        named = {uid: pod.status.nominated_node for uid, pod in pods.items() if pod.status.nominated_node}
        found = tuple(_named(candidate, named))
        enough = 0 < candidate.needed <= len(found) and _admitted(found, snapshot)
        if self.get(candidate.subject) is not None or not enough:
            return False
        workload = candidate.workload
        claim = Claim(
            _KIND, candidate.subject, workload.outer_priority, found, candidate.governed_by, not candidate.online
        )
        self._keep(claim, expires_seconds)
        return True

    def _keep(self, claim: Claim, expires_seconds: float) -> None:
        self._ledger.keep(claim)
        self._expires[claim.subject] = expires_seconds


def _admitted(pods: Iterable[ClaimedPod], snapshot: ClusterSnapshot) -> bool:
    return all(
        pod.node in snapshot.rows
        and bool(verdicts(snapshot.traits, pod.pod_class.tolerance).admissible[snapshot.rows[pod.node]])
        for pod in pods
    )


def _named(candidate: Candidate, named: Mapping[str, str]) -> Iterable[ClaimedPod]:
    for pods, pod_class, member_traits in zip(
        candidate.workload.pod_sets, candidate.classes, candidate.member_traits, strict=True
    ):
        for uid, pod_traits in zip(pods.uids, member_traits, strict=True):
            if uid in named:
                yield ClaimedPod(uid, named[uid], pod_class, pod_traits)
