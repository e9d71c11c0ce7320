"""The rows of bench/colocate: who runs beside the service, with which weights, and which agent watches.

Sources: kubelet gives besteffort cpu.shares 2; Koordinator's cpuSuppressThresholdPercent is 65 with policy cpuset or
cfsQuota (reference: slo-controller-config).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


class BatchKind(StrEnum):
    """How the batch work runs: not at all, as Burstable pods with native requests, or best effort."""

    NONE = "none"
    BURSTABLE = "burstable"
    BEST_EFFORT = "besteffort"


class RequestKind(msgspec.Struct, frozen=True):
    """Requests to the service: CPU time of one, and how many a second for each CPU of the machine."""

    name: str
    cpu_ms: float
    per_second_and_cpu: float


class ColocationRow(msgspec.Struct, frozen=True):
    """`service_millis` is what the service requests, None: half of the CPUs; `agent` the suppress settings, None: no
    agent.

    With `memory` the service holds memory, pods have a limit together, and the batch work is hungry for it.
    """

    name: str
    title: str
    batch: BatchKind
    agent: Mapping[str, Any] | None = None
    service_millis: int | None = None
    memory: bool = False


LONG = RequestKind("long", 0.9, 300.0)
SHORT = RequestKind("short", 0.09, 3000.0)
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
    ColocationRow(ALONE, "alone", BatchKind.NONE),
    ColocationRow(BURSTABLE, "batch as Burstable pods, half of the requests", BatchKind.BURSTABLE),
    ColocationRow(NO_AGENT, "batch as BestEffort, kubelet's weight, no agent", BatchKind.BEST_EFFORT),
    ColocationRow(
        CPUSET, "Koordinator's cpuset, 65 %", BatchKind.BEST_EFFORT, {"policy": "cpuset", **_KOORDINATOR_SETTINGS}
    ),
    ColocationRow(
        CFS_QUOTA,
        "Koordinator's cfsQuota, 65 %",
        BatchKind.BEST_EFFORT,
        {"policy": "cfsQuota", **_KOORDINATOR_SETTINGS},
    ),
    ColocationRow(ADAPTIVE, "adaptive", BatchKind.BEST_EFFORT, {"policy": "adaptive"}),
)
SMALL_ROWS = (
    ColocationRow(SMALL_NO_AGENT, "small request, no agent", BatchKind.BEST_EFFORT, None, SMALL_MILLIS),
    ColocationRow(
        SMALL_ADAPTIVE, "small request, adaptive", BatchKind.BEST_EFFORT, {"policy": "adaptive"}, SMALL_MILLIS
    ),
    ColocationRow(
        SMALL_IDLE,
        "small request, adaptive with cpu_idle",
        BatchKind.BEST_EFFORT,
        {"policy": "adaptive", "cpu_idle": True},
        SMALL_MILLIS,
    ),
)
MEMORY_ROWS = (
    ColocationRow(MEMORY_ALONE, "1 GiB for pods, alone", BatchKind.NONE, memory=True),
    ColocationRow(MEMORY_NO_AGENT, "1 GiB for pods, hungry batch, no agent", BatchKind.BEST_EFFORT, memory=True),
    ColocationRow(
        MEMORY_AGENT,
        "1 GiB for pods, hungry batch, adaptive",
        BatchKind.BEST_EFFORT,
        {"policy": "adaptive"},
        memory=True,
    ),
)
ALL_ROWS = {row.name: row for row in (*ROWS, *SMALL_ROWS, *MEMORY_ROWS)}
GROUPS = {"main": ROWS, "small": SMALL_ROWS, "memory": MEMORY_ROWS}


def chosen(words: list[str] | None) -> list[ColocationRow]:
    """Rows by name or by group (main, small, memory), in their order; all of them without a word."""
    if not words:
        return list(ALL_ROWS.values())
    names = {row.name for word in words for row in (GROUPS[word] if word in GROUPS else (ALL_ROWS[word],))}
    return [row for row in ALL_ROWS.values() if row.name in names]


def kinds_of(row: ColocationRow) -> tuple[RequestKind, ...]:
    """Short requests only where the whole comparison is made."""
    return (LONG, SHORT) if row in ROWS else (LONG,)


def service_millis(row: ColocationRow, cpus: int) -> int:
    return cpus * 500 if row.service_millis is None else row.service_millis


def spinners(cpus: int) -> int:
    """More than there are CPUs, so that the batch work could fill them."""
    return 2 * cpus
