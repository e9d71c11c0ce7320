"""The rows of bench/colocate: who runs beside the service, with which weights, and which agent watches.

Sources: kubelet gives besteffort cpu.shares 2; Koordinator's cpuSuppressThresholdPercent is 65 with policy cpuset or
cfsQuota (reference: slo-controller-config).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

SERVICE_MEMORY_MIB, KUBEPODS_MEMORY_MIB = 300, 1024
HOGS, PROCESSES_PER_HOG = 2, 8
PLENTY_MIB = 8 * KUBEPODS_MEMORY_MIB
"""More than the hungry pods come to in a run of 16 seconds."""


class BatchKind(StrEnum):
    """How the batch work runs: not at all, as Burstable pods with native requests, or best effort."""

    NONE = "none"
    BURSTABLE = "burstable"
    BEST_EFFORT = "besteffort"


class RequestKind(msgspec.Struct, frozen=True):
    """Requests to the service: CPU time of one (0 where the server is not ours), and how many a second for each CPU of
    the machine.
    """

    name: str
    cpu_ms: float
    per_second_and_cpu: float


class KernelSettings(msgspec.Struct, frozen=True):
    """What the kernel is told directly, whatever agent runs: candidates for what the agent could do.

    `idle_root` is cpu.idle of the best-effort class, `idle_tasks` SCHED_IDLE of the batch threads; slices are those
    that sched_setattr gives the threads (Linux >= 6.12), of the batch work, of the server and of the agent.
    """

    idle_root: bool = False
    idle_tasks: bool = False
    batch_slice_us: int | None = None
    server_slice_us: int | None = None
    agent_slice_us: int | None = None


class HogGrowth(msgspec.Struct, frozen=True):
    """Of each hungry batch pod: so fast, and so far; what it has touched once it keeps and touches no more."""

    mib_per_second: int = 200
    most_mib: int = PLENTY_MIB


class ColocationRow(msgspec.Struct, frozen=True):
    """`service_millis` is what the service requests, None: half of the CPUs; `agent` the suppress settings, None: no
    agent; `eviction` those of evictions.

    With `memory` the service holds memory, pods have a limit together of `pods_memory_mib`, and batch pods of that
    `growth` come beside; with `lock` the service writes to a file to which the batch work writes, too. `hogs` is how
    many batch processes run, None: two a CPU. `stand_in_ms` is for how long a second a process computes that does
    nothing else, in the agent's cgroup. `agent_folder` is the checkout whose agent it is, None: this one.
    """

    name: str
    title: str
    batch: BatchKind
    agent: Mapping[str, Any] | None = None
    service_millis: int | None = None
    memory: bool = False
    pods_memory_mib: int = KUBEPODS_MEMORY_MIB
    growth: HogGrowth = HogGrowth()
    lock: bool = False
    kernel: KernelSettings = KernelSettings()
    hogs: int | None = None
    eviction: Mapping[str, Any] = {}
    stand_in_ms: float = 0.0
    agent_folder: Path | None = None


LONG = RequestKind("long", 0.9, 300.0)
SHORT = RequestKind("short", 0.09, 3000.0)
RARE = RequestKind("rare", 0.9, 30.0)
"""Where pods that end are counted and not how fast the service is: an emulated CPU can do these, too."""
LOCK = RequestKind("lock", 0.0, 50.0)
"""Writes of a byte, at even times."""
SMALL_MILLIS = 10
"""What a service requests that nobody ever sized: cpu.shares 10."""

ALONE, BURSTABLE, NO_AGENT = "alone", "burstable", "no-agent"
CPUSET, CFS_QUOTA, ADAPTIVE = "cpuset", "cfsQuota", "adaptive"
SMALL_NO_AGENT, SMALL_ADAPTIVE, SMALL_IDLE = "small-no-agent", "small-adaptive", "small-idle"
MEMORY_ALONE, MEMORY_NO_AGENT, MEMORY_AGENT = "memory-alone", "memory-no-agent", "memory-agent"
MEMORY_PLENTY, MEMORY_COLD, MEMORY_COLD_NO_SHRINK = "memory-plenty", "memory-cold", "memory-cold-no-shrink"
LOCK_ALONE, LOCK_BURSTABLE, LOCK_NO_AGENT = "lock-alone", "lock-burstable", "lock-no-agent"
LOCK_IDLE, LOCK_ADAPTIVE, LOCK_STAND_IN = "lock-idle", "lock-adaptive", "lock-stand-in"
KOORDINATOR = (CPUSET, CFS_QUOTA)

STAND_IN = "stand-in"
"""What any program costs the service that computes as long as the agent does beside nginx: 1.8 % of a core."""

LONGEST_SLICE_US, SHORTEST_SLICE_US = 100_000, 100
"""The kernel's bounds of a slice (kernel/sched/syscalls.c: __setparam_fair)."""

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
_COLD = HogGrowth(30, 300)
"""Both and the service come to 900 MiB of 1,024, slowly enough to be reclaimed at 64 MiB a second."""
COLD_ROWS = (
    ColocationRow(
        MEMORY_COLD,
        "1 GiB for pods, batch with cold memory, adaptive",
        BatchKind.BEST_EFFORT,
        {"policy": "adaptive"},
        memory=True,
        growth=_COLD,
    ),
    ColocationRow(
        MEMORY_COLD_NO_SHRINK,
        "the same, nothing reclaimed",
        BatchKind.BEST_EFFORT,
        {"policy": "adaptive"},
        memory=True,
        growth=_COLD,
        eviction={"shrink_margin_pct": None},
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
    ColocationRow(
        MEMORY_PLENTY,
        "memory for all, the same batch, no agent",
        BatchKind.BEST_EFFORT,
        memory=True,
        pods_memory_mib=PLENTY_MIB,
    ),
    *COLD_ROWS,
)
LOCK_ROWS = (
    ColocationRow(LOCK_ALONE, "nobody else takes the lock", BatchKind.NONE, lock=True),
    ColocationRow(LOCK_BURSTABLE, "a Burstable pod takes it", BatchKind.BURSTABLE, lock=True, hogs=1),
    ColocationRow(LOCK_NO_AGENT, "best effort takes it, kubelet's weight", BatchKind.BEST_EFFORT, lock=True, hogs=1),
    ColocationRow(
        LOCK_IDLE,
        "best effort takes it, cpu.idle",
        BatchKind.BEST_EFFORT,
        lock=True,
        kernel=KernelSettings(idle_root=True),
        hogs=1,
    ),
    ColocationRow(
        LOCK_ADAPTIVE,
        "best effort takes it, adaptive",
        BatchKind.BEST_EFFORT,
        {"policy": "adaptive"},
        lock=True,
        hogs=1,
    ),
    ColocationRow(
        LOCK_STAND_IN,
        "best effort takes it, no agent, a process that computes as long",
        BatchKind.BEST_EFFORT,
        lock=True,
        hogs=1,
        stand_in_ms=16.0,
    ),
)
CANDIDATES = (
    ColocationRow("idle-root", "no agent, cpu.idle of best effort", BatchKind.BEST_EFFORT, kernel=KernelSettings(True)),
    ColocationRow(
        "idle-tasks",
        "no agent, batch threads SCHED_IDLE",
        BatchKind.BEST_EFFORT,
        kernel=KernelSettings(idle_tasks=True),
    ),
    ColocationRow(
        "long-slices",
        "no agent, batch threads' slices 100 ms",
        BatchKind.BEST_EFFORT,
        kernel=KernelSettings(batch_slice_us=LONGEST_SLICE_US),
    ),
    ColocationRow(
        "short-slices",
        "no agent, the server's slices 0.1 ms",
        BatchKind.BEST_EFFORT,
        kernel=KernelSettings(server_slice_us=SHORTEST_SLICE_US),
    ),
    ColocationRow(
        "adaptive-idle", "adaptive with cpu_idle", BatchKind.BEST_EFFORT, {"policy": "adaptive", "cpu_idle": True}
    ),
    ColocationRow(
        "adaptive-slices",
        "adaptive, batch threads' slices 100 ms",
        BatchKind.BEST_EFFORT,
        {"policy": "adaptive"},
        kernel=KernelSettings(batch_slice_us=LONGEST_SLICE_US),
    ),
    ColocationRow(
        "agent-slices",
        "adaptive, the agent's slices 0.1 ms",
        BatchKind.BEST_EFFORT,
        {"policy": "adaptive"},
        kernel=KernelSettings(agent_slice_us=SHORTEST_SLICE_US),
    ),
    ColocationRow(STAND_IN, "no agent, a process that computes as long", BatchKind.BEST_EFFORT, stand_in_ms=18.0),
)
"""For real servers alone: what could bring their latency down."""
ALL_ROWS = {row.name: row for row in (*ROWS, *SMALL_ROWS, *MEMORY_ROWS, *LOCK_ROWS)}
GROUPS = {"main": ROWS, "small": SMALL_ROWS, "memory": MEMORY_ROWS, "lock": LOCK_ROWS}
SERVER_ROWS = {row.name: row for row in (*ROWS, *CANDIDATES)}
SERVER_GROUPS = {"main": ROWS, "candidates": CANDIDATES}


def chosen(words: list[str] | None) -> list[ColocationRow]:
    """Rows by name or by group (main, small, memory, lock), in their order; all of them without a word."""
    if not words:
        return list(ALL_ROWS.values())
    names = {row.name for word in words for row in (GROUPS[word] if word in GROUPS else (ALL_ROWS[word],))}
    return [row for row in ALL_ROWS.values() if row.name in names]


def chosen_for_servers(words: list[str] | None, hogs: Sequence[int]) -> list[ColocationRow]:
    """Rows by name or by group (main, candidates), the main ones without a word; each with so many hogs, those without
    batch work once.
    """
    names = {
        row.name
        for word in words or ["main"]
        for row in (SERVER_GROUPS[word] if word in SERVER_GROUPS else (SERVER_ROWS[word],))
    }
    rows = [row for row in SERVER_ROWS.values() if row.name in names]
    alone = [row for row in rows if row.batch is BatchKind.NONE]
    return [*alone, *(_with_hogs(row, count) for count in hogs for row in rows if row.batch is not BatchKind.NONE)]


def _with_hogs(row: ColocationRow, count: int) -> ColocationRow:
    title = f"{row.title}; {count} batch process{'es' if count > 1 else ''}"
    return msgspec.structs.replace(row, name=hogs_name(row.name, count), title=title, hogs=count)


def hogs_name(name: str, count: int) -> str:
    """What the row of that name is called with so many batch processes."""
    return f"{name} {count}"


def with_other_agent(rows: Sequence[ColocationRow], folder: Path) -> list[ColocationRow]:
    """After each row that has an agent the same one with the agent of another checkout."""
    found = []
    for row in rows:
        found.append(row)
        if row.agent is not None:
            title = f"{row.title}, the other agent"
            found.append(msgspec.structs.replace(row, name=other_name(row.name), title=title, agent_folder=folder))
    return found


def other_name(name: str) -> str:
    """What the row of that name is called with the other agent."""
    return f"{name}-other"


def kinds_of(row: ColocationRow) -> tuple[RequestKind, ...]:
    """Short requests only where the whole comparison is made."""
    if row.lock:
        return (LOCK,)
    if row.growth is _COLD:
        return (RARE,)
    return (LONG,) if row.memory or row.service_millis is not None else (LONG, SHORT)


def at_rate(rate: float | None, kinds: Sequence[RequestKind]) -> tuple[RequestKind, ...]:
    """So many requests a second and CPU of each kind; None: as many as it says."""
    return tuple(kind if rate is None else msgspec.structs.replace(kind, per_second_and_cpu=rate) for kind in kinds)


def service_millis(row: ColocationRow, cpus: int) -> int:
    return cpus * 500 if row.service_millis is None else row.service_millis


def spinners(row: ColocationRow, cpus: int) -> int:
    """More than there are CPUs, so that the batch work could fill them, unless the row says how many."""
    if row.batch is BatchKind.NONE:
        return 0
    return 2 * cpus if row.hogs is None else row.hogs
