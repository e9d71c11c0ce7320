"""CPUs, NUMA nodes and who may run where: the content of Koordinator's NodeResourceTopology, in base units."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from itertools import groupby

import msgspec

from model.resources import ResourceVector

_LARGEST_CPU = 65_535
"""Linux counts to 8192 at most; beyond this a text is garbage, not a machine."""
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


class Processor(msgspec.Struct, frozen=True, gc=False):
    """One logical CPU. `core` is the lowest CPU of its physical core, so that it is unique on the machine."""

    cpu: int
    core: int
    socket: int
    node: int


class NumaNode(msgspec.Struct, frozen=True):
    """One NUMA node; `cpus` is empty where it has memory only."""

    id: int
    cpus: tuple[int, ...]
    memory_bytes: int


class CpuBasics(msgspec.Struct, frozen=True):
    """What the machine's CPUs are. `turbo` is False where that cannot be told, `l3_mask` empty without resctrl."""

    model: str = ""
    vendor: str = ""
    hyper_threading: bool = False
    turbo: bool = False
    l3_mask: str = ""


class KubeletPolicy(StrEnum):
    """What the kubelet's CPU manager does: `static` gives whole CPUs to containers that nobody else then runs on."""

    NONE = "none"
    STATIC = "static"


class PodCpus(msgspec.Struct, frozen=True):
    """CPUs the kubelet's static policy gave one pod; `uid` names its cgroup, names are empty where it is not listed."""

    uid: str
    cpus: tuple[int, ...]
    namespace: str = ""
    name: str = ""


class CpuInfo(msgspec.Struct, frozen=True):
    """The machine's online CPUs by number and its NUMA nodes by id; `isolated` are balanced onto by nobody, those in
    `given_away` the kubelet gave to single pods."""

    basics: CpuBasics
    processors: tuple[Processor, ...]
    numa: tuple[NumaNode, ...]
    isolated: tuple[int, ...] = ()
    given_away: tuple[PodCpus, ...] = ()
    policy: KubeletPolicy = KubeletPolicy.NONE

    @property
    def shared(self) -> tuple[Processor, ...]:
        """The CPUs that work is spread over."""
        apart = {*self.isolated, *(cpu for pod in self.given_away for cpu in pod.cpus)}
        return tuple(processor for processor in self.processors if processor.cpu not in apart)


class Zone(msgspec.Struct, frozen=True):
    """A NUMA node as schedulers see it: `name` is `node-ID`."""

    id: int
    name: str
    allocatable: ResourceVector
    capacity: ResourceVector = ResourceVector()


class SharePool(msgspec.Struct, frozen=True):
    """CPUs of one NUMA node that pods without CPUs of their own share."""

    socket: int
    node: int
    cpus: tuple[int, ...]


class SharePools(msgspec.Struct, frozen=True):
    """`online` is for LS pods; `best_effort` also has the CPUs of LSR pods."""

    online: tuple[SharePool, ...] = ()
    best_effort: tuple[SharePool, ...] = ()


class KubeletCpus(msgspec.Struct, frozen=True):
    """What the kubelet's CPU manager does."""

    policy: str = "none"
    pods: tuple[PodCpus, ...] = ()


class NodeTopology(msgspec.Struct, frozen=True):
    """All that is published of one node's topology; `kubelet` is None where its state file cannot be read."""

    cpu: CpuInfo
    zones: tuple[Zone, ...]
    pools: SharePools
    kubelet: KubeletCpus | None = None


def cpu_ranges(text: str) -> list[tuple[int, int]]:
    """The first and last CPU of each range of a Linux CPU list such as `0-3,8`, as they stand there; none for an empty
    one. Raises ValueError.

    Source: cpuset(7), List format.
    """
    found: list[tuple[int, int]] = []
    named = 0
    for part in text.strip().split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        named += last - first + 1
        if first > last or last > _LARGEST_CPU or named > _LARGEST_CPU + 1:
            raise ValueError(f"{text[:60]!r} is not a CPU list; write numbers and ranges such as 0-3,8")
        found.append((first, last))
    return found


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a Linux CPU list, ascending; none for an empty one. Raises ValueError."""
    found: set[int] = set()
    for first, last in cpu_ranges(text):
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Iterable[int]) -> str:
    """The shortest Linux CPU list: (0, 1, 2, 8) → `0-2,8`."""
    ordered = sorted(set(cpus))
    runs = [[cpu for _, cpu in run] for _, run in groupby(enumerate(ordered), lambda pair: pair[1] - pair[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
