"""Taking CPUs of one node for a pod: from one NUMA node, else from one socket, else from as few as possible.

Source: Koordinator pkg/scheduler/plugins/nodenumaresource/cpu_accumulator.go. Ties go to the lowest number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from model.cpubinding import BindPolicy, CpuLayout, CpuRequest, NumaStrategy
from scheduler.core.cpus.free_cpus import FreeCpus


def take(node: FreeCpus, request: CpuRequest) -> int:
    """The mask of CPUs for the request; 0 where the node has not enough that keep to a required policy.

    `request` is what `asked_of` made of the pod's.
    """
    layout, count, full = node.layout, request.count, request.policy is BindPolicy.FULL_PCPUS
    free = _usable(layout, node.free, request)
    if not 0 < count <= free.bit_count():
        return 0
    barred = node.barred(request.exclusive)
    if full or layout.threads == 1:
        found = _whole_cores(node, count, free, barred)
    else:
        found = _spread_cores(node, count, free, barred)
    if found.bit_count() < count:
        found |= _anywhere(node, count - found.bit_count(), free & ~found, (barred, found))
    return found if not request.required or _keeps(layout, found, request.policy) else 0


def whole_cores(layout: CpuLayout, free: int) -> int:
    """The CPUs of cores that are free as a whole."""
    found = 0
    for core in layout.cores:
        found |= core if core & free == core else 0
    return found


def one_of_each(layout: CpuLayout, free: int) -> int:
    """The lowest free CPU of each core."""
    found = 0
    for core in layout.cores:
        left = core & free
        found |= left & -left
    return found


def _usable(layout: CpuLayout, free: int, request: CpuRequest) -> int:
    if not request.required:
        return free
    return whole_cores(layout, free) if request.policy is BindPolicy.FULL_PCPUS else one_of_each(layout, free)


def _keeps(layout: CpuLayout, cpus: int, policy: BindPolicy) -> bool:
    """Whether CPUs are whole cores, or one of each."""
    wanted = whole_cores if policy is BindPolicy.FULL_PCPUS else one_of_each
    return wanted(layout, cpus) == cpus


def _whole_cores(node: FreeCpus, count: int, free: int, barred: int) -> int:
    """Whole cores, of the last one what is needed; fewer CPUs than asked for where cores are short."""
    layout, whole = node.layout, whole_cores(node.layout, free)
    for usable in dict.fromkeys((whole & ~barred, whole)):
        domain = _first(_nodes(node, usable), usable, count)
        if domain:
            return _lowest(_by_size(layout, usable & domain), count)
    domain = _first(_sockets(node, whole), whole, count)
    return _lowest(_by_size(layout, whole & domain), count) if domain else _across_sockets(node, whole, count)


def _across_sockets(node: FreeCpus, whole: int, count: int) -> int:
    """The fullest sockets as a whole while that is not too much, then cores of those with the fewest."""
    found = 0
    masks = sorted((mask & whole for _, mask in node.layout.sockets), key=int.bit_count, reverse=True)
    for mask in masks:
        if found.bit_count() + mask.bit_count() <= count:
            found |= mask
    for mask in reversed(masks):
        for core in node.layout.cores:
            if core & mask & ~found and found.bit_count() + core.bit_count() <= count:
                found |= core
    return found


def _spread_cores(node: FreeCpus, count: int, free: int, barred: int) -> int:
    """One CPU of each core where one NUMA node or socket has as many, else any of one; 0 where none has enough."""
    apart = one_of_each(node.layout, free & ~barred)
    for domains in (_nodes, _sockets):
        for usable in (apart, free):
            domain = _first(domains(node, usable), usable, count)
            if domain:
                left = (core & usable & domain for core in node.layout.cores)
                return _lowest(_in_rounds(sorted(left, key=lambda core: core & -core), usable), count)
    return 0


def _anywhere(node: FreeCpus, count: int, free: int, about: tuple[int, int]) -> int:
    """So many more, near those `found` already; `about` is (barred, found)."""
    barred, found = about
    more = 0
    for usable in (free & ~barred, free):
        left = usable & ~more
        cores = sorted((core for core in node.layout.cores if core & left), key=_Nearness(node, left, found))
        more |= _lowest(_in_rounds(cores, left), count - more.bit_count())
    return more


class _Nearness:
    """Order of cores: most CPUs of the pod on the socket, the strategy's socket and NUMA node, the fullest core."""

    def __init__(self, node: FreeCpus, left: int, found: int) -> None:
        self._layout, self._left, self._found = node.layout, left, found
        self._sign = _sign(node.strategy)

    def __call__(self, core: int) -> tuple[int, ...]:
        number, socket = _holding(self._layout.sockets, core)
        _, numa = _holding(self._layout.nodes, core)
        return (
            -(socket & self._found).bit_count(),
            self._sign * (socket & self._left).bit_count(),
            self._sign * (numa & self._left).bit_count(),
            (core & self._left).bit_count(),
            number,
            core & -core,
        )


def _nodes(node: FreeCpus, usable: int) -> Iterator[int]:
    """NUMA nodes as the strategy takes them: by their usable CPUs, then by those of their socket."""
    sign, layout = _sign(node.strategy), node.layout

    def rank(numa: tuple[int, int]) -> tuple[int, ...]:
        _, socket = _holding(layout.sockets, numa[1])
        return sign * (numa[1] & usable).bit_count(), sign * (socket & node.free).bit_count(), numa[0]

    return (mask for _, mask in sorted(layout.nodes, key=rank))


def _sockets(node: FreeCpus, usable: int) -> Iterator[int]:
    sign = _sign(node.strategy)
    ranked = sorted(node.layout.sockets, key=lambda each: (sign * (each[1] & usable).bit_count(), each[0]))
    return (mask for _, mask in ranked)


def _sign(strategy: NumaStrategy) -> int:
    return 1 if strategy is NumaStrategy.MOST_ALLOCATED else -1


def _first(domains: Iterable[int], usable: int, count: int) -> int:
    """The first of the domains that has as many usable CPUs, 0 for none."""
    return next((mask for mask in domains if (mask & usable).bit_count() >= count), 0)


def _holding(groups: Sequence[tuple[int, int]], cpus: int) -> tuple[int, int]:
    return next((each for each in groups if each[1] & cpus), (0, 0))


def _by_size(layout: CpuLayout, cpus: int) -> Iterator[int]:
    """Masks of single CPUs, core by core, the largest cores first."""
    for core in sorted((core & cpus for core in layout.cores if core & cpus), key=int.bit_count, reverse=True):
        yield from _bits(core)


def _in_rounds(cores: Iterable[int], cpus: int) -> Iterator[int]:
    """Masks of single CPUs: one of each core, then one more of each, and so on."""
    left = [core & cpus for core in cores if core & cpus]
    while left:
        yield from (core & -core for core in left)
        left = [core & (core - 1) for core in left if core & (core - 1)]


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield mask & -mask
        mask &= mask - 1


def _lowest(bits: Iterator[int], count: int) -> int:
    """The first `count` of them together."""
    found = 0
    for _ in range(count):
        found |= next(bits, 0)
    return found
