"""Workload object: what a suspended job asks its queue for, and what became of that.

Fields and words are Kueue's: https://kueue.sigs.k8s.io/docs/concepts/workload/ and
https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1/. Times are Unix seconds, 0 without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.suspended.job import PodTemplate


class ConditionName(StrEnum):
    """Types of a Workload's conditions."""

    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    PODS_READY = "PodsReady"
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    REQUEUED = "Requeued"
    FINISHED = "Finished"
    DEACTIVATION_TARGET = "DeactivationTarget"


class EvictionReason(StrEnum):
    """Why an admitted job goes: reasons of condition Evicted."""

    PREEMPTED = "Preempted"
    PODS_READY_TIMEOUT = "PodsReadyTimeout"
    DEACTIVATED = "Deactivated"
    QUEUE_STOPPED = "ClusterQueueStopped"
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped"


class WorkloadCondition(msgspec.Struct, frozen=True):
    """One condition: whether it holds, and since when."""

    holds: bool
    reason: str
    message: str = ""
    since_seconds: float = 0.0


class PodSetAssignment(msgspec.Struct, frozen=True):
    """What a pod set got: a flavour by resource, and `usage`, the amounts of all `count` pods as text.

    `seats` is how many of them have room on which node, by host name; none where quota alone was given.
    """

    name: str
    count: int
    flavors: Mapping[str, str] = {}
    usage: Mapping[str, str] = {}
    seats: Mapping[str, int] = {}


class WorkloadAdmission(msgspec.Struct, frozen=True):
    """The ClusterQueue whose quota is charged, and for what."""

    queue: str
    assignments: tuple[PodSetAssignment, ...] = ()


class WorkloadStatus(msgspec.Struct, frozen=True):
    """`requeues` counts evictions whose back-off grows, `requeue_seconds` is until when it rests.

    `reclaimable` are pods by pod set that are not made again. `past_seconds` is how long it ran before it was evicted.
    """

    conditions: Mapping[ConditionName, WorkloadCondition] = {}
    admission: WorkloadAdmission | None = None
    requeues: int = 0
    requeue_seconds: float = 0.0
    reclaimable: Mapping[str, int] = {}
    past_seconds: int = 0

    def holds(self, name: ConditionName) -> bool:
        """Whether a condition is there and true."""
        found = self.conditions.get(name)
        return found is not None and found.holds

    def since(self, name: ConditionName) -> float:
        """Since when a condition is as it is."""
        found = self.conditions.get(name)
        return found.since_seconds if found is not None else 0.0

    @property
    def finished(self) -> bool:
        return self.holds(ConditionName.FINISHED)

    @property
    def reserving(self) -> bool:
        """Whether its quota is charged."""
        return self.holds(ConditionName.QUOTA_RESERVED) and self.admission is not None and not self.finished

    @property
    def evicting(self) -> bool:
        """Whether it was told to go and its quota is not given back yet."""
        return self.reserving and self.holds(ConditionName.EVICTED)

    @property
    def admitted(self) -> bool:
        """Whether its pods may run."""
        return self.reserving and self.holds(ConditionName.ADMITTED) and not self.evicting

    @property
    def resting(self) -> bool:
        """Whether it was evicted and is not to be tried yet."""
        found = self.conditions.get(ConditionName.REQUEUED)
        return found is not None and not found.holds


class WorkloadObject(msgspec.Struct, frozen=True):
    """A Workload: `owner` is the uid of its job. `unreadable` says why it cannot be acted on, empty where it can.

    `boost` is what somebody adds to its priority; nothing else of it is the job's word.
    """

    namespace: str
    name: str
    uid: str = ""
    version: str = ""
    owner: str = ""
    owner_name: str = ""
    owner_kind: str = ""
    created_seconds: float = 0.0
    queue: str = ""
    priority: int = 0
    boost: int = 0
    priority_class: str = ""
    active: bool = True
    max_seconds: int | None = None
    pod_sets: tuple[PodTemplate, ...] = ()
    status: WorkloadStatus = WorkloadStatus()
    unreadable: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def count(self) -> int:
        """How many pods it asks for."""
        return sum(pods.count for pods in self.pod_sets)

    @property
    def counts_as(self) -> int:
        """Its priority where it waits, and where it may be evicted."""
        return self.priority + self.boost

    @property
    def least(self) -> int:
        """With how many pods it may start."""
        return sum(pods.least for pods in self.pod_sets)

    def queued_seconds(self, *, by_creation: bool) -> float:
        """Its place in its queue: by its creation, or by an eviction because its pods were not ready in time."""
        found = self.status.conditions.get(ConditionName.EVICTED)
        late = found is not None and found.holds and found.reason == EvictionReason.PODS_READY_TIMEOUT.value
        return self.created_seconds if found is None or by_creation or not late else found.since_seconds

    @property
    def waiting(self) -> bool:
        """Whether it may be admitted as far as it depends on itself; one without a job starts nothing."""
        status = self.status
        kept = status.finished or status.reserving or status.resting
        return self.active and self.owner != "" and not (kept or self.unreadable)
