"""Answers of an agent and a scheduler about a node, a limit, a pod or a gang."""

from __future__ import annotations

import msgspec

from model.decision import Decision
from model.placement import Scored
from model.queue import QuotaShortage
from model.report import Usage


class NodeAnswer(msgspec.Struct, frozen=True):
    """What an agent says about its node; `observed_at_seconds` is Unix time, 0 before the first observation."""

    node: str
    agent_version: str
    observed_at_seconds: float
    capacity: Usage
    usage: Usage
    system: Usage
    online: Usage
    best_effort: Usage
    ready_reason: str
    link_connected: bool
    ticks: int
    late_ticks: int
    brake_cuts: int
    brake_mechanism: str
    reclaimable: tuple[Decision, ...]
    cgroups: str = ""
    best_effort_limit_millis: int | None = None
    best_effort_request_millis: int = 0
    host_applications: dict[str, Usage] = {}
    ready_message: str = ""
    wakes: dict[str, int] = {}
    mode: str = ""


class LimitAnswer(msgspec.Struct, frozen=True):
    """A limit as decided, the strategy that owns its control file, and what that holds at this moment."""

    decision: Decision
    path: str
    kernel_value: str
    matches: bool
    decided_value: str = ""
    owner: str = ""


class PendingAnswer(msgspec.Struct, frozen=True):
    """A terminating pod; times are Unix seconds, `frees` is milli-CPU and bytes by resource."""

    pod_uid: str
    frees: dict[str, int]
    since_seconds: float
    until_seconds: float
    notified_until_seconds: float | None = None


class EvictionsAnswer(msgspec.Struct, frozen=True):
    """What each rule that evicts is missing, which pods terminate, and which were evicted, oldest first."""

    needs: tuple[Decision, ...]
    pending: tuple[PendingAnswer, ...]
    past: tuple[Decision, ...]


class PodAnswer(msgspec.Struct, frozen=True):
    """What the scheduler says about a pod; `node` is empty while it waits, `queue_position` 0 when not queued.

    `scored` is why a lone pod has its node, None where that is not known any more. `stage` is where it waits, and
    `shortages` are those of its queue's quota.
    """

    namespace: str
    name: str
    node: str
    gang: str
    queue_position: int
    message: str
    decision: Decision | None
    preemption: Decision | None = None
    nearest: str = ""
    nominated_node: str = ""
    unserved: tuple[str, ...] = ()
    scored: Scored | None = None
    queue: str = ""
    stage: str = ""
    shortages: tuple[QuotaShortage, ...] = ()


class GangAnswer(msgspec.Struct, frozen=True):
    """A gang as the scheduler knows it; `problem` is empty where its specification is sound.

    `reason` is why members wait, a code; empty where none does.
    """

    namespace: str
    name: str
    min_member: int
    members: int
    scheduled: int
    problem: str
    reason: str = ""


class GangExplained(msgspec.Struct, frozen=True):
    """What the scheduler says about a gang; `nominated_nodes` are pod → node, `stage` and `shortages` as of a pod."""

    gang: GangAnswer
    queue_position: int
    message: str
    decision: Decision | None
    preemption: Decision | None
    nearest: str
    nominated_nodes: dict[str, str]
    queue: str = ""
    stage: str = ""
    shortages: tuple[QuotaShortage, ...] = ()
