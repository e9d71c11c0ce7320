"""Reports of a node agent to the scheduler, and what the scheduler sends back."""

from __future__ import annotations

import msgspec

from model.decision import Decision


class Usage(msgspec.Struct, frozen=True):
    """CPU in milli-CPU (a rate), memory in bytes (a level)."""

    cpu_millis: int = 0
    memory_bytes: int = 0


class Pressure(msgspec.Struct, frozen=True):
    """Pressure stall averages over 10 s, in percent of wall time."""

    cpu_some_avg10_pct: float = 0.0
    memory_some_avg10_pct: float = 0.0
    memory_full_avg10_pct: float = 0.0


class BestEffortPodUsage(msgspec.Struct, frozen=True):
    """One best-effort pod; `throttled_ratio` is throttled periods of all periods, 0 to 1."""

    namespace: str
    name: str
    uid: str
    usage: Usage
    throttled_ratio: float = 0.0


class NodeReport(msgspec.Struct, frozen=True):
    """A node's newest facts; `observed_at_seconds` is Unix time; `degraded_reason` is empty when healthy."""

    observed_at_seconds: float
    node: Usage
    system: Usage
    online: Usage
    best_effort: Usage
    reclaimable: tuple[Decision, ...] = ()
    pods: tuple[BestEffortPodUsage, ...] = ()
    pressure: Pressure | None = None
    degraded_reason: str = ""


class AgentHello(msgspec.Struct, frozen=True):
    """The first message of a link; `boot_id` is new each time the agent starts."""

    node: str
    agent_version: str
    boot_id: str


class CheckpointSaved(msgspec.Struct, frozen=True):
    """A training process says that a checkpoint is complete, since `saved_at_seconds`.

    `begun_seconds` is the moment of the saved state, 0 where it was not said; `checkpoint` its id in the storage. Times
    are Unix time.
    """

    namespace: str
    pod: str
    pod_uid: str
    saved_at_seconds: float
    step: int = 0
    begun_seconds: float = 0.0
    checkpoint: str = ""
    size_bytes: int = 0

    @property
    def state_seconds(self) -> float:
        """From when on work is lost: a save that was under way at a notice is none that was made for it."""
        return self.begun_seconds or self.saved_at_seconds


class EvictionCost(msgspec.Struct, frozen=True):
    """What losing a batch pod costs its job; `checkpoint_age_seconds` is None where no checkpoint is known."""

    pod_uid: str
    gang: str = ""
    members_above_minimum: int = 0
    checkpoint_age_seconds: float | None = None


class PreemptionNotice(msgspec.Struct, frozen=True):
    """A pod is about to be preempted; `deadline_seconds` is Unix time."""

    pod_uid: str
    deadline_seconds: float
    reason: str
