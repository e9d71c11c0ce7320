"""How many pods that ask for whole CPUs one node takes for certain, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from model.cpubinding import BindPolicy, CpuLayout, CpuRequest
from scheduler.core.cpus.free_cpus import NOT_ENOUGH, FreeCpus, asked_of
from scheduler.core.cpus.take import take, whole_cores

_REMEMBERED = 16_384
"""Nodes, by the CPUs that are free there."""


def room(node: FreeCpus, request: CpuRequest) -> tuple[int, str]:
    """(so many pods, why not one more where there is room for none)."""
    asked = asked_of(request, node)
    if isinstance(asked, str):
        return 0, asked
    number = _room(node, asked)
    return number, "" if number else NOT_ENOUGH


def chosen(node: FreeCpus, request: CpuRequest) -> int:
    """The mask of CPUs that the next pod gets, 0 for none."""
    asked = asked_of(request, node)
    return 0 if isinstance(asked, str) else take(node, asked)


def _room(node: FreeCpus, asked: CpuRequest) -> int:
    """A preferred policy never fails while there are CPUs, nor does a required one of whole cores all of one size.

    Else it is at least so many, whichever CPUs each of them takes, and at least one where one fits: to take them one
    after the other would cost each pod that waits as much as a node has CPUs, squared.
    """
    if not asked.required:
        return node.free.bit_count() // asked.count
    cores = _cores(node.layout, node.free)
    if asked.policy is BindPolicy.SPREAD_BY_PCPUS:
        return _on_cores_apart(cores.by_free, asked.count)
    if cores.of_one_size:
        return cores.whole.bit_count() // asked.count
    in_sockets = sum((mask & cores.whole).bit_count() // asked.count for _, mask in node.layout.sockets)
    return in_sockets or int(take(node, asked) != 0)


class _Cores(NamedTuple):
    """Of a node's cores: the CPUs of those that are free as a whole, how many have so many free CPUs (ascending, none
    left out but those without any), and whether all are of one size."""

    whole: int
    by_free: tuple[tuple[int, int], ...]
    of_one_size: bool


@lru_cache(maxsize=_REMEMBERED)
def _cores(layout: CpuLayout, free: int) -> _Cores:
    left = Counter((core & free).bit_count() for core in layout.cores)
    del left[0]
    return _Cores(
        whole_cores(layout, free),
        tuple(sorted(left.items())),
        len({core.bit_count() for core in layout.cores}) == 1,
    )


def _on_cores_apart(by_free: Iterable[tuple[int, int]], count: int) -> int:
    """How many pods get `count` CPUs, each of a core of its own, however badly these are chosen.

    The next one fails once fewer cores than `count` have a free CPU. Until then all CPUs of so many others were taken,
    at the worst of those with the fewest, and each pod took one of each of them at most.
    """
    emptied = sum(cores for _, cores in by_free) - count + 1
    if emptied <= 0:
        return 0
    taken, left = 0, emptied
    for free, cores in by_free:
        taken, left = taken + free * min(cores, left), left - min(cores, left)
    return -(-taken // min(count, emptied))
