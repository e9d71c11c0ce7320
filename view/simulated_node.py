"""Decisions of an agent about one node at its first tick, as `sublet simulate node` found them."""

from __future__ import annotations

import msgspec

from model.decision import Decision
from model.reason import Reason


class SimulatedZone(msgspec.Struct, frozen=True):
    """batch-cpu and batch-memory of one NUMA zone, as computed and as written; `prepared` is empty for a reset."""

    name: str
    decisions: tuple[Decision, ...]
    prepared: tuple[Decision, ...] = ()


class SimulatedLimit(msgspec.Struct, frozen=True):
    """What one control file would hold; `written` is whether that differs from what an untouched node holds."""

    cgroup: str
    file: str
    value: int | str
    decision: Decision
    written: bool = True


class SimulatedEviction(msgspec.Struct, frozen=True):
    """A pod that would be evicted, as NAMESPACE/NAME; its decision's value is what its end frees of `resource`.

    `notice_seconds` is how long before that it is told, None where it is not told; `grace_seconds` None its own grace.
    """

    pod: str
    decision: Decision
    resource: str = ""
    notice_seconds: float | None = None
    grace_seconds: int | None = None


class NodeDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """A node and all that is decided about it at Unix time `at_seconds`.

    `measured_seconds` is of its NodeMetric, None without one; one older than `degrade_seconds` lends nothing.
    `reclaimable` is batch-cpu, batch-memory, mid-cpu, mid-memory; `prepared` is what is written of that to the Node,
    empty where its keys are removed, and `kept` what stands there instead while running pods request more.
    `ceiling` is what holds the CPU of best effort, whose cgroup is `root`; `limits` begin with those of `root`, then go
    by cgroup and file. `needs` are what each rule that evicts is missing. A CPU quota is of `period_us`.
    """

    node: str
    at_seconds: float
    measured_seconds: float | None
    degrade_seconds: float
    reclaimable: tuple[Decision, ...]
    degraded: Reason | None = None
    zones: tuple[SimulatedZone, ...] = ()
    prepared: tuple[Decision, ...] = ()
    kept: tuple[Decision, ...] = ()
    root: str
    ceiling: Decision
    period_us: int
    limits: tuple[SimulatedLimit, ...] = ()
    needs: tuple[Decision, ...] = ()
    evictions: tuple[SimulatedEviction, ...] = ()
