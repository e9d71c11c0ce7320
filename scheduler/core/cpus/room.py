"""How many pods that ask for whole CPUs one node takes, one after the other."""

from __future__ import annotations

import msgspec

from model.cpubinding import BindPolicy, CpuRequest
from scheduler.core.cpus.free_cpus import NOT_ENOUGH, FreeCpus, asked_of
from scheduler.core.cpus.take import one_of_each_times, take, whole_cores


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
    """A preferred policy never fails while there are CPUs, nor does a required one of whole cores all of one size."""
    if not asked.required:
        return node.free.bit_count() // asked.count
    if asked.policy is BindPolicy.FULL_PCPUS and len({core.bit_count() for core in node.layout.cores}) == 1:
        return whole_cores(node.layout, node.free).bit_count() // asked.count
    if asked.policy is BindPolicy.SPREAD_BY_PCPUS:
        apart = node.layout.threads > 1
        return one_of_each_times(node, asked) if apart else node.free.bit_count() // asked.count
    number, found = 0, take(node, asked)
    while found:
        number, node = number + 1, msgspec.structs.replace(node, free=node.free & ~found)
        found = take(node, asked)
    return number
