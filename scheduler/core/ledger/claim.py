"""Claim: room kept on nodes for a workload, by nomination or by reservation, in the name of its queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from model.queue import DEFAULT_QUEUE
from model.workload import WorkloadId
from scheduler.core.snapshot.assignment import Assignment, Nominated
from scheduler.core.snapshot.podclass import PodClass, PodTraits


class ClaimKind(StrEnum):
    """NOMINATED waits for victims that are terminating, RESERVED for what ends by itself, ADMITTED for the pods of a
    job that was admitted whole.
    """

    ADMITTED = "admitted"
    NOMINATED = "nominated"
    RESERVED = "reserved"


class ClaimedPod(msgspec.Struct, frozen=True, gc=False):
    """One pod's room on a node by name, since rows differ from snapshot to snapshot."""

    uid: str
    node: str
    pod_class: PodClass
    pod_traits: PodTraits = PodTraits()


class Claim(msgspec.Struct, frozen=True):
    """All that is kept for one workload by one kind of claim; for `spares_online` see `Nominated`."""

    kind: ClaimKind
    subject: WorkloadId
    priority: int
    pods: tuple[ClaimedPod, ...]
    queue: str = DEFAULT_QUEUE
    spares_online: bool = False

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(pod.node for pod in self.pods)

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple(pod.uid for pod in self.pods)

    def on(self, rows: Mapping[str, int]) -> Nominated:
        """As assignments to rows, by node name; nodes without a row are left out."""
        found = (Assignment(p.uid, rows[p.node], p.pod_class, p.pod_traits) for p in self.pods if p.node in rows)
        return Nominated(self.subject, self.priority, tuple(found), self.spares_online)


class ClaimChange(msgspec.Struct, frozen=True, gc=False):
    """So much is kept for the workload from now on by this kind of claim; None: nothing."""

    kind: ClaimKind
    subject: WorkloadId
    claim: Claim | None


def claimed(assignments: Iterable[Assignment], names: tuple[str, ...]) -> tuple[ClaimedPod, ...]:
    """Assignments to rows by the names of their nodes."""
    return tuple(ClaimedPod(each.uid, names[each.row], each.pod_class, each.pod_traits) for each in assignments)
