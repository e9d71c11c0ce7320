"""CPU binding: whole CPUs that a pod asks for, the CPUs that a node has for that, and those that a pod got.

Sets of CPUs are bit masks: bit n is CPU n. Source: Koordinator apis/extension/{resource,numa_aware}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from model.topology import Processor, cpu_ranges

CPUS_LIMIT = 8_192
"""CPUs are numbered below it; Linux counts to as many at most (NR_CPUS)."""


class BindPolicy(StrEnum):
    """How CPUs lie on physical cores: whole cores, or one CPU of each."""

    FULL_PCPUS = "FullPCPUs"
    SPREAD_BY_PCPUS = "SpreadByPCPUs"


class ExclusivePolicy(StrEnum):
    """What a pod would rather not share with pods of the same policy."""

    NONE = "None"
    PCPU_LEVEL = "PCPULevel"
    NUMA_NODE_LEVEL = "NUMANodeLevel"


class NumaStrategy(StrEnum):
    """Which NUMA node is taken first: the one with the fewest CPUs left that is enough, or that with most."""

    MOST_ALLOCATED = "MostAllocated"
    LEAST_ALLOCATED = "LeastAllocated"


class CpuRequest(msgspec.Struct, frozen=True, cache_hash=True):
    """`count` whole CPUs for one pod. Where `required`, a node that cannot keep to the policy is none for it.

    `problem` is why no node can serve it, empty where some may.
    """

    count: int
    policy: BindPolicy = BindPolicy.FULL_PCPUS
    required: bool = False
    exclusive: ExclusivePolicy = ExclusivePolicy.NONE
    problem: str = ""


class CpuLayout(msgspec.Struct, frozen=True, cache_hash=True):
    """The CPUs of a node as masks: physical `cores` by lowest CPU, NUMA `nodes` and `sockets` by number."""

    cores: tuple[int, ...] = ()
    nodes: tuple[tuple[int, int], ...] = ()
    sockets: tuple[tuple[int, int], ...] = ()

    @property
    def threads(self) -> int:
        """CPUs of the largest core."""
        return max((core.bit_count() for core in self.cores), default=1)


class NodeCpus(msgspec.Struct, frozen=True, cache_hash=True):
    """CPUs of one node that may be given to pods: all of the layout less those `kept` by somebody else.

    `policy` is one that the kubelet keeps to. An empty layout is one that nobody told, or that says nonsense.
    """

    layout: CpuLayout = CpuLayout()
    kept: int = 0
    policy: BindPolicy | None = None


class CpuRules(msgspec.Struct, frozen=True, cache_hash=True):
    """What a Node's labels say: a policy for every pod there, and which NUMA node is taken first.

    `most` is how many CPUs the Node has by its kubelet's word, None where that is not told.
    """

    policy: BindPolicy | None = None
    strategy: NumaStrategy = NumaStrategy.LEAST_ALLOCATED
    most: int | None = None


class BoundCpus(msgspec.Struct, frozen=True):
    """CPUs (a mask) that a pod has on its node, and what it would rather not share."""

    cpus: int
    exclusive: ExclusivePolicy = ExclusivePolicy.NONE


def layout_of(processors: Iterable[Processor]) -> CpuLayout:
    """The layout of these CPUs, each numbered below CPUS_LIMIT."""
    cores, nodes, sockets = dict[int, int](), dict[int, int](), dict[int, int]()
    for each in processors:
        bit = 1 << each.cpu
        cores[each.core] = cores.get(each.core, 0) | bit
        nodes[each.node] = nodes.get(each.node, 0) | bit
        sockets[each.socket] = sockets.get(each.socket, 0) | bit
    by_lowest = sorted(cores.values(), key=lambda core: core & -core)
    return CpuLayout(tuple(by_lowest), tuple(sorted(nodes.items())), tuple(sorted(sockets.items())))


def mask_of(cpus: Iterable[int]) -> int:
    """The mask of CPU numbers; those of no machine are left out."""
    mask = 0
    for cpu in cpus:
        mask |= 1 << cpu if cpu < CPUS_LIMIT else 0
    return mask


def mask_of_list(text: str) -> int:
    """The mask of a Linux CPU list, at a cost by its length, however many CPUs it names. Raises ValueError."""
    mask = 0
    for first, last in cpu_ranges(text):
        end = min(last + 1, CPUS_LIMIT)
        mask |= (1 << end) - (1 << first) if first < end else 0
    return mask


def cpus_in(mask: int) -> Iterator[int]:
    """CPU numbers of a mask, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
