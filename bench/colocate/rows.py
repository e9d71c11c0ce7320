"""The rows of bench/colocate: who runs beside the service, with which weights, and which agent watches.

Sources: kubelet gives besteffort cpu.shares 2; Koordinator's cpuSuppressThresholdPercent is 65 with policy cpuset or
cfsQuota (reference: slo-controller-config).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Batch(StrEnum):
    """How the batch work runs: not at all, as Burstable pods with native requests, or best effort."""

    NONE = "none"
    BURSTABLE = "burstable"
    BEST_EFFORT = "besteffort"


class Kind(msgspec.Struct, frozen=True):
    """Requests to the service: CPU time of one, and how many a second for each CPU of the machine."""

    name: str
    cpu_ms: float
    per_second_and_cpu: float


class Row(msgspec.Struct, frozen=True):
    """`service_millis` is what the service requests, None: half of the CPUs; `agent` the suppress settings, None: no
    agent.

    With `memory` the service holds memory, pods have a limit together, and the batch work is hungry for it.
    """

    name: str
    title: str
    batch: Batch
    agent: Mapping[str, Any] | None = None
    service_millis: int | None = None
    memory: bool = False


LONG = Kind("long", 0.9, 300.0)
SHORT = Kind("short", 0.09, 3000.0)
SMALL_MILLIS = 10
"""What a service requests that nobody ever sized: cpu.shares 10."""
SERVICE_MEMORY_MIB, KUBEPODS_MEMORY_MIB = 300, 1024
HOGS, PROCESSES_PER_HOG, HOG_MIB_PER_SECOND = 2, 8, 200

ALONE, BURSTABLE, NO_AGENT = "alone", "burstable", "no-agent"
CPUSET, CFS_QUOTA, ADAPTIVE = "cpuset", "cfsQuota", "adaptive"
SMALL_NO_AGENT, SMALL_ADAPTIVE, SMALL_IDLE = "small-no-agent", "small-adaptive", "small-idle"
MEMORY_ALONE, MEMORY_NO_AGENT, MEMORY_AGENT = "memory-alone", "memory-no-agent", "memory-agent"
KOORDINATOR = (CPUSET, CFS_QUOTA)

_KOORDINATOR_SETTINGS = {"threshold_pct": 65, "online_stall_pct": None, "online_throttled_pct": None}
"""Its default threshold, and nothing of ours."""

ROWS = (
    Row(ALONE, "alone", Batch.NONE),
    Row(BURSTABLE, "batch as Burstable pods, half of the requests", Batch.BURSTABLE),
    Row(NO_AGENT, "batch as BestEffort, kubelet's weight, no agent", Batch.BEST_EFFORT),
    Row(CPUSET, "Koordinator's cpuset, 65 %", Batch.BEST_EFFORT, {"policy": "cpuset", **_KOORDINATOR_SETTINGS}),
    Row(CFS_QUOTA, "Koordinator's cfsQuota, 65 %", Batch.BEST_EFFORT, {"policy": "cfsQuota", **_KOORDINATOR_SETTINGS}),
    Row(ADAPTIVE, "adaptive", Batch.BEST_EFFORT, {"policy": "adaptive"}),
)
SMALL_ROWS = (
    Row(SMALL_NO_AGENT, "small request, no agent", Batch.BEST_EFFORT, None, SMALL_MILLIS),
    Row(SMALL_ADAPTIVE, "small request, adaptive", Batch.BEST_EFFORT, {"policy": "adaptive"}, SMALL_MILLIS),
    Row(
        SMALL_IDLE,
        "small request, adaptive with cpu_idle",
        Batch.BEST_EFFORT,
        {"policy": "adaptive", "cpu_idle": True},
        SMALL_MILLIS,
    ),
)
MEMORY_ROWS = (
    Row(MEMORY_ALONE, "1 GiB for pods, alone", Batch.NONE, memory=True),
    Row(MEMORY_NO_AGENT, "1 GiB for pods, hungry batch, no agent", Batch.BEST_EFFORT, memory=True),
    Row(MEMORY_AGENT, "1 GiB for pods, hungry batch, adaptive", Batch.BEST_EFFORT, {"policy": "adaptive"}, memory=True),
)
ALL_ROWS = {row.name: row for row in (*ROWS, *SMALL_ROWS, *MEMORY_ROWS)}
GROUPS = {"main": ROWS, "small": SMALL_ROWS, "memory": MEMORY_ROWS}


def chosen(words: list[str] | None) -> list[Row]:
    """Rows by name or by group (main, small, memory), in their order; all of them without a word."""
    if not words:
        return list(ALL_ROWS.values())
    names = {row.name for word in words for row in (GROUPS[word] if word in GROUPS else (ALL_ROWS[word],))}
    return [row for row in ALL_ROWS.values() if row.name in names]


def kinds_of(row: Row) -> tuple[Kind, ...]:
    """Short requests only where the whole comparison is made."""
    return (LONG, SHORT) if row in ROWS else (LONG,)


def service_millis(row: Row, cpus: int) -> int:
    return cpus * 500 if row.service_millis is None else row.service_millis


def spinners(cpus: int) -> int:
    """More than there are CPUs, so that the batch work could fill them."""
    return 2 * cpus
