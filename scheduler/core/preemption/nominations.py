"""Nominations: room kept on nodes for workloads whose victims are on their way out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from model.pod import Pod
from model.workload import WorkloadId
from scheduler.core.filters.static import verdicts
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.picture.podclass import Kin, PodClass
from scheduler.core.picture.snapshot import ClusterSnapshot
from scheduler.core.placement.working_snapshot import Assignment, Nominated
from scheduler.core.preemption.facts import Plan


class Keeping(msgspec.Struct, frozen=True):
    """One pod's room on a node by name, since rows differ from snapshot to snapshot."""

    uid: str
    node: str
    pod_class: PodClass
    kin: Kin = Kin()


class Kept(msgspec.Struct, frozen=True):
    """All that is kept for one workload, until `expires_seconds` (Unix time)."""

    subject: WorkloadId
    priority: int
    keepings: tuple[Keeping, ...]
    expires_seconds: float

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(keeping.node for keeping in self.keepings)

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple(keeping.uid for keeping in self.keepings)


class Nominations:
    """By subject. What is dropped is returned, so that its pods' status.nominatedNodeName can be cleared."""

    def __init__(self) -> None:
        self._kept: dict[WorkloadId, Kept] = {}

    def get(self, subject: WorkloadId) -> Kept | None:
        return self._kept.get(subject)

    def add(self, plan: Plan, snapshot: ClusterSnapshot, expires_seconds: float) -> tuple[Kept, ...]:
        """Keep a plan's room; workloads of lower priority lose what is kept for them on the same nodes.

        A gang that loses one node loses all, since the rest is of no use to it.
        """
        nominated = plan.nominated
        keepings = tuple(
            Keeping(assignment.uid, snapshot.names[assignment.row], assignment.pod_class, assignment.kin)
            for assignment in nominated.assignments
        )
        mine = Kept(nominated.subject, nominated.priority, keepings, expires_seconds)
        lower = (kept for kept in self._kept.values() if kept.priority < mine.priority and kept.nodes & mine.nodes)
        dropped = tuple(found for kept in list(lower) if (found := self.drop(kept.subject)))
        self._kept[mine.subject] = mine
        return dropped

    def held(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """What is kept, as assignments of this snapshot; nodes that it does not have are left out."""
        return tuple(_nominated(self._kept[subject], snapshot.rows) for subject in sorted(self._kept))

    def drop(self, subject: WorkloadId) -> Kept | None:
        """The workload is gone, or gives up."""
        return self._kept.pop(subject, None)

    def sweep(self, waiting: Collection[WorkloadId], snapshot: ClusterSnapshot, now: float) -> tuple[Kept, ...]:
        """Drop what is kept for nobody, for too long, or on a node that is gone or does not admit the pod any more.

        `waiting` are the subjects that still wait.
        """
        out = [
            subject
            for subject, kept in sorted(self._kept.items())
            if subject not in waiting or now >= kept.expires_seconds or not _admitted(kept.keepings, snapshot)
        ]
        return tuple(found for subject in out if (found := self.drop(subject)))

    def restore(
        self, candidate: Candidate, pods: Mapping[str, Pod], snapshot: ClusterSnapshot, expires_seconds: float
    ) -> bool:
        """After a restart: keep what the pods' status names, where that is room for all needed and still fit."""
        named = {uid: pod.nominated_node for uid, pod in pods.items() if pod.nominated_node}
        keepings = tuple(_named(candidate, named))
        enough = 0 < candidate.needed <= len(keepings) and _admitted(keepings, snapshot)
        if candidate.subject in self._kept or not enough:
            return False
        self._kept[candidate.subject] = Kept(candidate.subject, candidate.workload.priority, keepings, expires_seconds)
        return True


def _nominated(kept: Kept, row_of: Mapping[str, int]) -> Nominated:
    assignments = tuple(
        Assignment(keeping.uid, row_of[keeping.node], keeping.pod_class, keeping.kin)
        for keeping in kept.keepings
        if keeping.node in row_of
    )
    return Nominated(kept.subject, kept.priority, assignments)


def _admitted(keepings: Iterable[Keeping], snapshot: ClusterSnapshot) -> bool:
    return all(
        keeping.node in snapshot.rows
        and bool(verdicts(snapshot.traits, keeping.pod_class.tolerance).admissible[snapshot.rows[keeping.node]])
        for keeping in keepings
    )


def _named(candidate: Candidate, named: Mapping[str, str]) -> Iterable[Keeping]:
    for pods, pod_class, kins in zip(candidate.workload.pod_sets, candidate.classes, candidate.kins, strict=True):
        for uid, kin in zip(pods.uids, kins, strict=True):
            if uid in named:
                yield Keeping(uid, named[uid], pod_class, kin)
