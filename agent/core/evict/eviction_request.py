"""Eviction requests, their outcomes, and the record that survives a restart."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.decision import Decision
from model.pod.colocation import StandingNotice
from model.reason import Reason
from model.resources import BATCH_CPU, CPU, MEMORY

USED_CPU = f"used {CPU}"
USED_MEMORY = f"used {MEMORY}"
"""What a pod's end frees of the CPU and memory in use; what it frees of requests has the resource's own name."""
RUNNING_BATCH_CPU = f"running {BATCH_CPU}"
"""Of a pod's requests for batch-cpu, those of containers that run side by side: no init container that is over."""


class EvictionRequestKind(StrEnum):
    """Tell a pod that it will be evicted, evict it, or tell one that was told that it stays."""

    NOTIFY = "notify"
    EVICT = "evict"
    SPARE = "spare"


class EvictionRequest(msgspec.Struct, frozen=True):
    """`decision` is about pod/NAMESPACE/NAME and its value is what the pod's end frees of `resource`.

    `resource` is a resource's name where its request counts, else one of the names above. `grace_seconds` is None
    where the pod's own grace holds; `deadline_seconds` (Unix time) is when a notified pod goes. `notice` is what the
    pod shows of that, None where it shows nothing, or another's that is sooner.
    """

    kind: EvictionRequestKind
    uid: str
    namespace: str
    name: str
    decision: Decision
    resource: str = ""
    grace_seconds: int | None = None
    deadline_seconds: float | None = None
    notice: StandingNotice | None = None


class OutcomeKind(StrEnum):
    """What became of a request: BLOCKED by a disruption budget, GONE already, FAILED for now (API server away)."""

    NOTIFIED = "notified"
    SPARED = "spared"
    CHECKPOINTED = "checkpointed"
    EVICTED = "evicted"
    BLOCKED = "blocked"
    GONE = "gone"
    FAILED = "failed"


class EvictionOutcome(msgspec.Struct, frozen=True):
    """`retry_after_seconds` is how long the API server asked to wait; 0 where it did not say."""

    uid: str
    kind: OutcomeKind
    at_seconds: float
    detail: str = ""
    retry_after_seconds: float = 0.0


class PendingVictim(msgspec.Struct, frozen=True):
    """A terminating pod: what it frees, since when it is ordered out, and until when (Unix time) that is believed.

    `notified_until_seconds` is set as long as it was only told so. `resource` is what was missing and `reason` the
    rule that chose it; `hurried` tells that its grace was shortened, `accepted` that the API server has agreed.
    `notice` is what the pod shows, as in the request.
    """

    frees: Mapping[str, int]
    since_seconds: float
    until_seconds: float
    notified_until_seconds: float | None = None
    resource: str = ""
    reason: Reason = Reason.COMPUTED
    hurried: bool = False
    accepted: bool = False
    notice: StandingNotice | None = None


class EvictionRecord(msgspec.Struct, frozen=True):
    """Kept in the state file: when the last evictions were (Unix time) and which pods terminate, by uid."""

    cpu_at_seconds: float | None = None
    memory_at_seconds: float | None = None
    pending: Mapping[str, PendingVictim] = {}
