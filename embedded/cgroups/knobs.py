"""The control files a kubelet writes and reads, by cgroup version: pure text in, text out.

Sources: kernel Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/; shares to weight as runc and the kubelet turn
them (opencontainers/cgroups ConvertCPUSharesToCgroupV2Value before 1.3, kubernetes pkg/kubelet/cm/helpers_linux.go).
"""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

import msgspec

from embedded.cgroups.ceilings import PERIOD_US, Ceiling

_LEAST_SHARES, _MOST_SHARES, _MOST_WEIGHT = 2, 262_144, 10_000


class Write(NamedTuple):
    """One control file below a controller's hierarchy (which v2 does not tell apart), and what goes into it."""

    controller: str
    file: str
    text: str


class Use(msgspec.Struct, frozen=True):
    """What a cgroup and all below it have used of the CPU, and hold of memory.

    `working_set_bytes` is `memory_bytes` less the page cache that nobody touched lately, as the kubelet counts it.
    """

    cpu_ns: int
    memory_bytes: int
    working_set_bytes: int


class Knobs(Protocol):
    """Names and forms of one cgroup version."""

    # Each file that a Use is made of: (controller, file).
    use_files: tuple[tuple[str, str], tuple[str, str], tuple[str, str]]
    oom_file: tuple[str, str]
    shares_file: tuple[str, str]

    def ceiling(self, ceiling: Ceiling) -> list[Write]: ...
    def shares(self, shares: int) -> Write: ...
    def container(self) -> list[Write]:
        """What a container's cgroup gets besides its ceiling."""

    def use(self, cpu: str, memory: str, stat: str) -> Use: ...


class V1:
    """A hierarchy for each controller."""

    use_files = (("cpuacct", "cpuacct.usage"), ("memory", "memory.usage_in_bytes"), ("memory", "memory.stat"))
    oom_file = ("memory", "memory.oom_control")
    shares_file = ("cpu", "cpu.shares")

    def ceiling(self, ceiling: Ceiling) -> list[Write]:
        writes = [self.shares(ceiling.cpu_shares)]
        if ceiling.cpu_quota_us is not None:
            writes.append(Write("cpu", "cpu.cfs_period_us", str(PERIOD_US)))
            writes.append(Write("cpu", "cpu.cfs_quota_us", str(ceiling.cpu_quota_us)))
        if ceiling.memory_limit_bytes is not None:
            writes.append(Write("memory", "memory.limit_in_bytes", str(ceiling.memory_limit_bytes)))
        return writes

    def shares(self, shares: int) -> Write:
        return Write(*self.shares_file, str(shares))

    def container(self) -> list[Write]:
        return []

    def use(self, cpu: str, memory: str, stat: str) -> Use:
        """Raises ValueError."""
        return _use(int(cpu), int(memory), number_of("total_inactive_file", stat))


class V2:
    """One hierarchy."""

    use_files = (("cpu", "cpu.stat"), ("memory", "memory.current"), ("memory", "memory.stat"))
    oom_file = ("memory", "memory.events")
    shares_file = ("cpu", "cpu.weight")

    def ceiling(self, ceiling: Ceiling) -> list[Write]:
        writes = [self.shares(ceiling.cpu_shares)]
        if ceiling.cpu_quota_us is not None:
            writes.append(Write("cpu", "cpu.max", f"{ceiling.cpu_quota_us} {PERIOD_US}"))
        if ceiling.memory_limit_bytes is not None:
            writes.append(Write("memory", "memory.max", str(ceiling.memory_limit_bytes)))
        return writes

    def shares(self, shares: int) -> Write:
        return Write(*self.shares_file, str(weight(shares)))

    def container(self) -> list[Write]:
        """All of a container dies of an OOM kill together (the kubelet's default, singleProcessOOMKill false)."""
        return [Write("memory", "memory.oom.group", "1")]

    def use(self, cpu: str, memory: str, stat: str) -> Use:
        """Raises ValueError."""
        return _use(number_of("usage_usec", cpu) * 1000, int(memory), number_of("inactive_file", stat))


KNOBS: dict[int, Knobs] = {1: V1(), 2: V2()}
"""By cgroup version."""


def weight(shares: int) -> int:
    """cpu.weight (1 to 10000) for v1's cpu.shares (2 to 262144)."""
    bounded = min(max(shares, _LEAST_SHARES), _MOST_SHARES)
    return 1 + (bounded - _LEAST_SHARES) * (_MOST_WEIGHT - 1) // (_MOST_SHARES - _LEAST_SHARES)


def number_of(name: str, table: str) -> int:
    """The number on the line `name NUMBER` of a flat keyed file. Raises ValueError where there is none."""
    found = re.search(rf"^{re.escape(name)} (\d+)$", table, re.MULTILINE)
    if found is None:
        raise ValueError(f"no {name} in {table[:60]!r}")
    return int(found[1])


def _use(cpu_ns: int, memory_bytes: int, inactive_file_bytes: int) -> Use:
    return Use(cpu_ns, memory_bytes, max(memory_bytes - inactive_file_bytes, 0))
