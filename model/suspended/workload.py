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
    """What a pod set got: a flavour by resource, and `usage`, the amounts of all `count` pods as text."""

    name: str
    count: int
    flavors: Mapping[str, str] = {}
    usage: Mapping[str, str] = {}


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
    """A Workload: `owner` is the uid of its job. `unreadable` says why it cannot be acted on, empty where it can."""

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
    def waiting(self) -> bool:
        """Whether it may be admitted as far as it depends on itself."""
        status = self.status
        return self.active and not (status.finished or status.reserving or status.resting or self.unreadable)
