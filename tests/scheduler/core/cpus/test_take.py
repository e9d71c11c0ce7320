"""Taking CPUs: tables of cases on small machines, and what holds on machines of 2 to 256 CPUs."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from cpu_builders import cpus, machine
from hypothesis import given, settings
from hypothesis import strategies as st

from model.cpubinding import BindPolicy, CpuLayout, CpuRequest, ExclusivePolicy, NumaStrategy, cpus_in, layout_of
from model.topology import Processor, format_cpus
from scheduler.core.cpus.free_cpus import FreeCpus, asked_of
from scheduler.core.cpus.take import one_of_each, take, whole_cores

FULL, SPREAD = BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS
MOST, LEAST = NumaStrategy.MOST_ALLOCATED, NumaStrategy.LEAST_ALLOCATED
TWO = machine(2, 4, 2)
"""NUMA node 0: cores {0,8} {1,9} {2,10} {3,11}; node 1: {4,12} {5,13} {6,14} {7,15}; each a socket of its own."""
ONE_SOCKET = machine(2, 2, 2, sockets=1)
"""NUMA node 0: cores {0,4} {1,5}; node 1: {2,6} {3,7}; one socket."""
SINGLE = machine(2, 4, 1)
"""NUMA node 0: CPUs 0-3; node 1: 4-7."""
HYBRID = layout_of(Processor(cpu, core, 0, 0) for cpu, core in enumerate((0, 0, 1, 1, 2, 3)))
"""Cores {0,1} {2,3} {4} {5}."""


class Case(NamedTuple):
    """`free` CPUs of a machine, what is asked, and the list that is given."""

    free: str
    request: CpuRequest
    given: str
    layout: CpuLayout = TWO
    strategy: NumaStrategy = LEAST
    cores: str = ""
    nodes: str = ""


PCPU, NUMA = ExclusivePolicy.PCPU_LEVEL, ExclusivePolicy.NUMA_NODE_LEVEL
CASES = {
    "whole cores of the first NUMA node": Case("0-15", CpuRequest(4), "0-1,8-9"),
    "the NUMA node with most left": Case("1-15", CpuRequest(4), "4-5,12-13"),
    "the fullest NUMA node that is enough": Case("1-15", CpuRequest(4), "1-2,9-10", strategy=MOST),
    "the fullest has not enough": Case("3-15", CpuRequest(4), "4-5,12-13", strategy=MOST),
    "half of the last core": Case("0-15", CpuRequest(3), "0-1,8"),
    "more than a NUMA node, in one socket": Case("0-7", CpuRequest(6), "0-2,4-6", ONE_SOCKET),
    "more than a socket: one whole, then cores": Case("0-15", CpuRequest(10), "0-4,8-12"),
    "broken cores where whole ones are short": Case("0-7", CpuRequest(2), "0-1"),
    "broken cores of one socket": Case("0-3,12-15", CpuRequest(3), "0-2"),
    "required whole cores are not broken": Case("0-7", CpuRequest(2, FULL, True), ""),
    "required whole cores over two sockets": Case("0,4,8,12", CpuRequest(4, FULL, True), "0,4,8,12"),
    "nothing is enough": Case("0-2", CpuRequest(4), ""),
    "nothing is asked": Case("0-15", CpuRequest(0), ""),
    "one CPU of each core": Case("0-15", CpuRequest(4, SPREAD), "0-3"),
    "more than cores of the NUMA node": Case("0-15", CpuRequest(6, SPREAD), "0-3,8-9"),
    "spread, the fullest NUMA node": Case("1-15", CpuRequest(3, SPREAD), "1-3", strategy=MOST),
    "spread over broken cores, one of each": Case("0-4,12", CpuRequest(3, SPREAD), "0-2"),
    "spread over two sockets": Case("0-1,4-5", CpuRequest(3, SPREAD), "0-1,4"),
    "spread is required, cores are short": Case("0,8,4,12", CpuRequest(3, SPREAD, True), ""),
    "spread is required and over two sockets": Case("0,8,4,12", CpuRequest(2, SPREAD, True), "0,4"),
    "without threads both policies are one": Case("0-7", CpuRequest(3, SPREAD), "0-2", SINGLE),
    "without threads, of the fuller NUMA node": Case("1-7", CpuRequest(3, FULL, True), "1-3", SINGLE, MOST),
    "large cores come first": Case("0-5", CpuRequest(3), "0-2", HYBRID),
    "small cores are whole as well": Case("4-5", CpuRequest(2, FULL, True), "4-5", HYBRID),
    "cores of exclusive pods are avoided": Case("0-15", CpuRequest(2, SPREAD, exclusive=PCPU), "4-5", cores="0-1,8-9"),
    "and taken where there are no others": Case("0,8", CpuRequest(2, SPREAD, exclusive=PCPU), "0,8", cores="0,8"),
    "NUMA nodes of exclusive pods are avoided": Case(
        "1-15", CpuRequest(2, exclusive=NUMA), "4,12", strategy=MOST, nodes="0-3,8-11"
    ),
    "and taken where all have one": Case("0-15", CpuRequest(2, exclusive=NUMA), "0,8", nodes="0-15"),
    "who does not ask for it avoids nobody": Case("0-15", CpuRequest(2), "0,8", cores="0,8", nodes="0-3,8-11"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_take(case: Case) -> None:
    """The same CPUs each time."""
    node = FreeCpus(case.layout, cpus(case.free), cpus(case.cores), cpus(case.nodes), case.strategy)
    assert format_cpus(cpus_in(take(node, case.request))) == case.given


MACHINES = st.builds(
    lambda nodes, cores, threads, one: machine(nodes, cores, threads, sockets=1 if one else nodes),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
).filter(lambda layout: 2 <= sum(core.bit_count() for core in layout.cores) <= 256)
REQUESTS = st.builds(
    CpuRequest, st.integers(1, 40), st.sampled_from(BindPolicy), st.booleans(), st.sampled_from(ExclusivePolicy)
)


@settings(deadline=None, max_examples=200)
@given(MACHINES, REQUESTS, st.sampled_from(NumaStrategy), st.data())
def test_what_is_taken(layout: CpuLayout, request: CpuRequest, strategy: NumaStrategy, data: st.DataObject) -> None:
    """As many as asked for, free ones alone, by a required policy; all of it fails only where it must."""
    total = sum(core.bit_count() for core in layout.cores)
    free = data.draw(st.integers(0, (1 << total) - 1) | st.just((1 << total) - 1))
    node = FreeCpus(layout, free, data.draw(st.sampled_from([0, layout.cores[0]])), 0, strategy)
    asked = asked_of(request, node)
    if isinstance(asked, str):
        assert request.count % layout.threads
        return
    found = take(node, asked)
    assert found & ~free == 0
    assert found == take(node, asked)
    usable = free
    if asked.required:
        usable = whole_cores(layout, free) if asked.policy is FULL else one_of_each(layout, free)
    assert found.bit_count() == (request.count if request.count <= usable.bit_count() else 0)
    if asked.required:
        wanted = whole_cores(layout, found) if asked.policy is FULL else one_of_each(layout, found)
        assert wanted == found


@settings(deadline=None, max_examples=200)
@given(MACHINES, REQUESTS, st.sampled_from(NumaStrategy), st.data())
def test_one_numa_node_where_that_is_enough(
    layout: CpuLayout, request: CpuRequest, strategy: NumaStrategy, data: st.DataObject
) -> None:
    """Whatever the policy prefers, whole cores that one NUMA node has are not spread over two."""
    total = sum(core.bit_count() for core in layout.cores)
    free = data.draw(st.integers(0, (1 << total) - 1) | st.just((1 << total) - 1))
    node = FreeCpus(layout, free, strategy=strategy)
    asked = asked_of(request, node)
    whole = whole_cores(layout, free)
    if isinstance(asked, str) or not any((mask & whole).bit_count() >= request.count for _, mask in layout.nodes):
        return
    if asked.required and asked.policy is SPREAD and layout.threads > 1:
        return
    found = take(node, asked)
    assert any(found & ~mask == 0 for _, mask in layout.nodes)
