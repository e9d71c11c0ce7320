"""Control files of a cgroup's sample, on v1 and v2, and how their parts are combined.

Source: reference node-agent §3.2, §3.3; the pressure files of a v1 host are those of its `unified` mount.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Any

import msgspec

from agent.core.observe import parse
from agent.core.observe.knobs import quota_per_period
from agent.core.observe.observation import CgroupPressure, MemoryEvents, Stall

_NUMBER_BYTES = 32
_STAT_BYTES = 512
_TABLE_BYTES = 4096
_DEVICES_BYTES = 16_384
_STEP_BYTES = 4 << 20
_STEP_SHIFT = 6

_NONE = (None, None)

Stalls = tuple[Stall, Stall | None]
"""Some and full of one resource."""


class FilePart(StrEnum):
    """What a file tells of its cgroup."""

    CPU = "CPU time"
    LEVEL = "all memory charged"
    MEMORY = "memory by kind"
    THROTTLING = "throttling"
    CPUS = "CPUs allowed"
    QUOTA = "CPU quota"
    PERIOD = "period of the CPU quota"
    CPU_PRESSURE = "CPU pressure"
    MEMORY_PRESSURE = "memory pressure"
    IO_PRESSURE = "I/O pressure"
    OOM = "OOM kills"
    FAILURES = "charges refused"
    DISK = "disk bytes"
    MEMORY_LIMIT = "memory limit"
    LIMIT_HITS = "charges stopped at its own limits"
    PIDS = "processes and threads"
    PIDS_LIMIT = "most processes and threads"


NEEDED = frozenset((FilePart.CPU, FilePart.MEMORY))
"""Without these there is no sample; any other part may be unknown to a kernel."""


_OF_ROOTS = frozenset(
    {FilePart.CPUS, FilePart.QUOTA, FilePart.PERIOD, FilePart.MEMORY_LIMIT, FilePart.LIMIT_HITS}
    | {FilePart.PIDS, FilePart.PIDS_LIMIT}
)


HELD = frozenset((FilePart.CPUS, FilePart.QUOTA, FilePart.PERIOD, FilePart.MEMORY_LIMIT))
"""What bounds all pods: its last word holds while the file cannot be read, so that no more is lent meanwhile."""


class Role(StrEnum):
    """How closely a cgroup is watched."""

    ROOT = "root"
    BEST_EFFORT_POD = "best-effort pod"
    POD = "pod"
    CONTAINER = "container"


class Cadence(StrEnum):
    """When a file is read: each pass, twice a round of slow turns, when the memory level moved and on the slow turn, on
    the slow turn, never."""

    EVERY_PASS = "every pass"
    TWICE_A_ROUND = "twice a round"
    WHEN_MOVED = "when moved"
    SLOW_TURN = "slow turn"
    NEVER = "never"


class Watched(msgspec.Struct, frozen=True):
    """Cgroups of which one pass reads more than is due: how long they waited for CPU, or CPU time and throttling."""

    waiting: Collection[str] = ()
    using: Collection[str] = ()

    def of(self, part: FilePart) -> Collection[str]:
        """Those of which such a file is read."""
        if part is FilePart.CPU_PRESSURE:
            return self.waiting
        return self.using if part in (FilePart.CPU, FilePart.THROTTLING) else ()


NO_MORE = Watched()
"""Nothing but what is due."""


class FileKind(msgspec.Struct, frozen=True):
    """One kind of control file: below which controller's mount (empty on v2), its name, how many bytes to ask for.

    `leaf_file` serves containers where the kernel lacks `file`: it counts a cgroup without its descendants.
    """

    part: FilePart
    controller: str
    file: str
    parse: Callable[[bytes], Any]
    size: int = _STAT_BYTES
    leaf_file: str = ""


def _pressure_files(controller: str) -> tuple[FileKind, ...]:
    parts = ((FilePart.CPU_PRESSURE, "cpu"), (FilePart.MEMORY_PRESSURE, "memory"), (FilePart.IO_PRESSURE, "io"))
    return tuple(FileKind(part, controller, f"{name}.pressure", parse.stalls) for part, name in parts)


def _pids_files(controller: str) -> tuple[FileKind, ...]:
    current = FileKind(FilePart.PIDS, controller, "pids.current", parse.counter, _NUMBER_BYTES)
    return current, FileKind(FilePart.PIDS_LIMIT, controller, "pids.max", parse.pids_limit, _NUMBER_BYTES)


V1_FILES = (
    FileKind(FilePart.CPU, "cpuacct", "cpuacct.usage", parse.v1_cpu_time, _NUMBER_BYTES),
    FileKind(FilePart.LEVEL, "memory", "memory.usage_in_bytes", parse.counter, _NUMBER_BYTES),
    FileKind(FilePart.MEMORY, "memory", "memory.stat", parse.v1_memory, _TABLE_BYTES),
    FileKind(FilePart.MEMORY_LIMIT, "memory", "memory.limit_in_bytes", parse.memory_limit, _NUMBER_BYTES),
    FileKind(FilePart.THROTTLING, "cpu", "cpu.stat", parse.v1_throttling),
    FileKind(FilePart.CPUS, "cpuset", "cpuset.cpus", parse.cpu_count, _TABLE_BYTES),
    FileKind(FilePart.QUOTA, "cpu", "cpu.cfs_quota_us", parse.whole_number, _NUMBER_BYTES),
    FileKind(FilePart.PERIOD, "cpu", "cpu.cfs_period_us", parse.counter, _NUMBER_BYTES),
    *_pressure_files("unified"),
    FileKind(FilePart.OOM, "memory", "memory.oom_control", parse.v1_oom_kills),
    FileKind(FilePart.FAILURES, "memory", "memory.failcnt", parse.counter, _NUMBER_BYTES),
    FileKind(
        FilePart.DISK,
        "blkio",
        "blkio.throttle.io_service_bytes_recursive",
        parse.v1_disk,
        _DEVICES_BYTES,
        leaf_file="blkio.throttle.io_service_bytes",
    ),
    *_pids_files("pids"),
)

V2_FILES = (
    FileKind(FilePart.CPU, "", "cpu.stat", parse.v2_cpu_time),
    FileKind(FilePart.LEVEL, "", "memory.current", parse.counter, _NUMBER_BYTES),
    FileKind(FilePart.MEMORY, "", "memory.stat", parse.v2_memory, _TABLE_BYTES),
    FileKind(FilePart.MEMORY_LIMIT, "", "memory.max", parse.memory_limit, _NUMBER_BYTES),
    FileKind(FilePart.CPUS, "", "cpuset.cpus.effective", parse.cpu_count, _TABLE_BYTES),
    FileKind(FilePart.QUOTA, "", "cpu.max", quota_per_period, _NUMBER_BYTES),
    *_pressure_files(""),
    FileKind(FilePart.OOM, "", "memory.events", parse.v2_memory_events),
    FileKind(FilePart.LIMIT_HITS, "", "memory.events.local", parse.v2_limit_hits),
    FileKind(FilePart.DISK, "", "io.stat", parse.v2_disk, _DEVICES_BYTES),
    *_pids_files(""),
)

FILES = {1: V1_FILES, 2: V2_FILES}
"""By cgroup version."""


def cpu_pressure_file(version: int, cgroup: str) -> str:
    """Below the mount, the file that tells how long tasks of a cgroup waited for CPU."""
    kind = next(kind for kind in FILES[version] if kind.part is FilePart.CPU_PRESSURE)
    return f"{kind.controller}{cgroup}/{kind.file}".lstrip("/")


def cadence(part: FilePart, role: Role) -> Cadence:
    """memory.stat is half the cost of reading everything, so it follows the cheap level (reference kernel.md §3).
    Containers are two thirds of all cgroups, and nothing is decided by what one uses unless it is `Watched`."""
    pod = role in (Role.POD, Role.BEST_EFFORT_POD)
    if part in _OF_ROOTS:
        return Cadence.EVERY_PASS if role is Role.ROOT else Cadence.NEVER
    if part is FilePart.LEVEL:
        return Cadence.EVERY_PASS if pod or role is Role.ROOT else Cadence.NEVER
    if part is FilePart.MEMORY and pod:
        return Cadence.WHEN_MOVED
    if part is FilePart.CPU and role is Role.CONTAINER:
        return Cadence.TWICE_A_ROUND
    watched = (
        role is Role.ROOT or part is FilePart.CPU or (part is FilePart.THROTTLING and role is Role.BEST_EFFORT_POD)
    )
    return Cadence.EVERY_PASS if watched else Cadence.SLOW_TURN


def moved(level_bytes: int, read_at_bytes: int) -> bool:
    """The level is more than 4 MiB, or 1/64 where that is more, away from where memory.stat was read last."""
    return abs(level_bytes - read_at_bytes) > max(_STEP_BYTES, level_bytes >> _STEP_SHIFT)


def pressure(cpu: Stalls | None, memory: Stalls | None, io: Stalls | None) -> CgroupPressure | None:
    """None where the kernel keeps no pressure at all."""
    if cpu is None and memory is None and io is None:
        return None
    (cpu_some, cpu_full), (memory_some, memory_full), (io_some, io_full) = cpu or _NONE, memory or _NONE, io or _NONE
    return CgroupPressure(cpu_some, cpu_full, memory_some, memory_full, io_some, io_full)


def memory_events(oom: MemoryEvents | int | None, failures: int | None) -> MemoryEvents | None:
    """v2 has one file for all; v1 one for OOM kills and one for charges the limit refused."""
    if isinstance(oom, MemoryEvents) or (oom is None and failures is None):
        return oom if isinstance(oom, MemoryEvents) else None
    return MemoryEvents(maximum=failures or 0, oom_kill=oom or 0)
