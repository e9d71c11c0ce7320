"""Settings of jobs that wait whole, and what is known beside a job and its Workload."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

_Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]


class RequeueTime(StrEnum):
    """By which time a job is in its queue again whose pods were not ready in time."""

    EVICTION = "Eviction"
    CREATION = "Creation"


class ReadyPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long an admitted job may take until its pods are ready (Kueue's waitForPodsReady)."""

    enabled: Annotated[
        bool, Meta(description="Evict an admitted job whose pods are not all ready in time, and queue it again.")
    ] = False
    timeout_seconds: Annotated[
        float, Meta(gt=0, le=31_536_000, description="From its admission until all its pods are ready.")
    ] = 300.0
    recovery_timeout_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=31_536_000)] | None,
        Meta(description="How long a pod that was ready may be missing; null: for ever."),
    ] = None
    block_admission: Annotated[
        bool,
        Meta(
            description="While pods of an admitted job are not all ready no other job is admitted (Kueue's "
            "blockAdmission). Without `enabled` it has no effect."
        ),
    ] = False
    timestamp: Annotated[
        RequeueTime, Meta(description="Its place in the queue again: by its eviction, or by its creation.")
    ] = RequeueTime.EVICTION
    backoff_base_seconds: Annotated[
        _Seconds, Meta(description="It rests so long after the first such eviction, twice as long after each further.")
    ] = 60.0
    backoff_max_seconds: Annotated[_Seconds, Meta(description="It never rests longer.")] = 3600.0
    backoff_limit_count: Annotated[
        Annotated[int, Meta(ge=0, lt=1 << 31)] | None,
        Meta(description="After so many such evictions the next one deactivates it; null: never."),
    ] = None

    @property
    def by_creation(self) -> bool:
        """Whether one that was not ready in time has its old place in its queue."""
        return self.timestamp is RequeueTime.CREATION


class SuspendedPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How jobs that wait whole are held and admitted."""

    enabled: Annotated[
        bool,
        Meta(
            description="Hold jobs that name a LocalQueue of Kueue until it has quota and nodes have room for all of "
            "them, where the definition of Workloads is annotated sublet.dev/controlled: true, which Kueue's own is "
            "not."
        ),
    ] = True
    ready: ReadyPolicy = ReadyPolicy()
    seat_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=86_400,
            description="How long seats on nodes are kept for pods of an admitted job that have not come, and a tenth "
            "of a second more for each of its pods; its quota counts on.",
        ),
    ] = 60.0


class PriorityFound(msgspec.Struct, frozen=True):
    """The priority of a job, and the class that says so; `problem` where it names one that does not exist."""

    value: int = 0
    name: str = ""
    of_workloads: bool = False
    problem: str = ""


class FlavorPlace(msgspec.Struct, frozen=True):
    """What pods of a flavour get: labels of its nodes, and tolerations as they are written."""

    node_labels: Mapping[str, str] = {}
    tolerations: tuple[Mapping[str, Any], ...] = ()


class SuspendedFacts(msgspec.Struct, frozen=True):
    """Classes by name with their values; `usual` is the PriorityClass of pods that name none. Flavours by name."""

    workload_classes: Mapping[str, int] = {}
    pod_classes: Mapping[str, int] = {}
    usual: str = ""
    flavors: Mapping[str, FlavorPlace] = {}
