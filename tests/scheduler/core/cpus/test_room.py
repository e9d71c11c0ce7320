"""How many pods a node takes: as many as get their CPUs one after the other."""

from __future__ import annotations

import sys
from types import FrameType

import msgspec
import pytest
from cpu_builders import cpus, machine
from hypothesis import given, settings
from hypothesis import strategies as st

from model.cpubinding import BindPolicy, CpuLayout, CpuRequest, ExclusivePolicy, NumaStrategy, layout_of
from model.topology import Processor
from scheduler.core.cpus.free_cpus import INVALID_TOPOLOGY, NOT_ENOUGH, FreeCpus
from scheduler.core.cpus.room import chosen, room

FULL, SPREAD = BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS
TWO = machine(2, 2, 2)
EXCLUSIVE = tuple(ExclusivePolicy)
ODD = layout_of(Processor(cpu, core, 0, 0) for cpu, core in enumerate((0, 0, 1, 1, 2, 3)))
CASES = {
    "any CPUs": (TWO, "0-6", CpuRequest(2), (3, "")),
    "whole cores": (TWO, "0-6", CpuRequest(2, FULL, True), (3, "")),
    "one of each core": (TWO, "0-7", CpuRequest(4, SPREAD, True), (2, "")),
    "one of each core, some broken": (TWO, "0-4", CpuRequest(4, SPREAD, True), (1, "")),
    "cores of two sizes": (ODD, "0-5", CpuRequest(2, FULL, True), (3, "")),
    "none left": (TWO, "0", CpuRequest(2), (0, NOT_ENOUGH)),
    "no core left": (TWO, "0-3", CpuRequest(2, FULL, True), (0, NOT_ENOUGH)),
    "no layout": (CpuLayout(), "", CpuRequest(2), (0, INVALID_TOPOLOGY)),
}


@pytest.mark.parametrize(("layout", "free", "request_", "expected"), CASES.values(), ids=CASES)
def test_room(layout: CpuLayout, free: str, request_: CpuRequest, expected: tuple[int, str]) -> None:
    """With Koordinator's words where there is none."""
    assert room(FreeCpus(layout, cpus(free)), request_) == expected


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from([TWO, ODD, machine(1, 8, 4), machine(4, 3, 1)]),
    st.builds(CpuRequest, st.integers(1, 6), st.sampled_from(BindPolicy), st.booleans(), st.sampled_from(EXCLUSIVE)),
    st.sampled_from(NumaStrategy),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, 255),
)
def test_room_is_what_can_be_taken(
    layout: CpuLayout, request: CpuRequest, strategy: NumaStrategy, free: int, exclusive: int
) -> None:
    """So many pods get CPUs one after the other, none has another's, and where one fits there is room."""
    every = sum(mask for _, mask in layout.nodes)
    cores = sum(mask for index, mask in enumerate(layout.cores) if exclusive >> index & 1)
    numa = sum(mask for number, mask in layout.nodes if exclusive >> number & 1)
    node = FreeCpus(layout, free & every, cores, numa, strategy)
    number, why = room(node, request)
    assert bool(why) == (number == 0) == (chosen(node, request) == 0)
    for _ in range(number):
        found = chosen(node, request)
        assert found.bit_count() == request.count
        node = msgspec.structs.replace(node, free=node.free & ~found)
    exact = not request.required or (request.policy is FULL and layout is not ODD) or layout.threads == 1
    assert chosen(node, request) == 0 or not exact


def test_a_large_machine_is_counted_in_few_steps() -> None:
    """Its room is asked for of each node by each pod that may go there: no step looks at every core again."""
    node, calls = FreeCpus(large := machine(8, 16, 2), sum(mask for _, mask in large.nodes)), 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found = room(node, CpuRequest(1, SPREAD, True))
    finally:
        sys.setprofile(None)
    assert found == (256, "") and calls < 256
