"""What one pass over the node saw: raw counters and levels with one timestamp, absences included."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from agent.core.parse import CpuThrottling
from model.node import Node
from model.pod import Pod
from model.report import Pressure


class Absence(StrEnum):
    """Why there is no reading."""

    GONE = "gone"
    UNREADABLE = "unreadable"


class Missing(msgspec.Struct, frozen=True):
    """No reading from `path`, and why."""

    path: str
    absence: Absence
    detail: str = ""


class CgroupSample(msgspec.Struct, frozen=True):
    """CPU time used since the cgroup exists (ns) and memory that cannot be dropped (bytes)."""

    cpu_ns: int
    memory_bytes: int
    throttling: CpuThrottling | None = None


class NodeSample(msgspec.Struct, frozen=True):
    """CPU time used by everything since boot (ns), memory in use (bytes), CPUs the kernel shows."""

    cpu_ns: int
    memory_used_bytes: int
    cpus: int


class Knob(msgspec.Struct, frozen=True, order=True):
    """One control file: the cgroup below its controller's mount, the controller, the file's name."""

    cgroup: str
    controller: str
    file: str

    @property
    def subject(self) -> str:
        return f"cgroup{self.cgroup}"


class KnobReading(msgspec.Struct, frozen=True):
    """What the kernel holds now, and what we wrote last (None before our first write since the start)."""

    kernel: int | Missing
    ours: int | None = None


class Observation(msgspec.Struct, frozen=True):
    """One pass. `at_seconds` is Unix time, `monotonic_seconds` never steps; rates use the latter.

    `pods` holds a sample or an absence for every listed pod that should have a cgroup, by uid. `listed` is None until
    the pod list was read once. `brake_cuts` counts the brake's writes since the start, `last_cut_monotonic` dates the
    newest; both belong to the same instant as `knobs`.
    """

    at_seconds: float
    monotonic_seconds: float
    node_sample: NodeSample | Missing
    kubepods: CgroupSample | Missing
    best_effort: CgroupSample | Missing
    pods: Mapping[str, CgroupSample | Missing] = {}
    knobs: Mapping[Knob, KnobReading] = {}
    pressure: Pressure | None = None
    node: Node | None = None
    listed: tuple[Pod, ...] | None = None
    brake_cuts: int = 0
    last_cut_monotonic: float | None = None
