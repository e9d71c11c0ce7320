"""The batch formula of each policy, of nodes and of zones, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.lend.batch import batch, batch_in_zones
from agent.core.lend.high_priority import KeptAmount, KeptByPod
from agent.core.lend.lending_scope import Lendable, LendingScope, lendables
from model.reason import Reason
from model.resources import BATCH_CPU, CPU, MEMORY, ResourceVector
from model.strategy import CalculatePolicy, ColocationStrategy
from model.topology import Zone

GIGA = 10**9


def cpu(**strategy: Any) -> Lendable:
    return lendables(ColocationStrategy(**strategy))[0]


def memory(**strategy: Any) -> Lendable:
    return lendables(ColocationStrategy(**strategy))[1]


def room(capacity: int = 2000, system: int = 100, hosts: int = 0, reserved: int = 0) -> LendingScope:
    return LendingScope("node/n", capacity, "node status", system, hosts, reserved)


def used(amount: int = 0) -> tuple[KeptAmount, ...]:
    return (KeptAmount("high-priority used", amount, 1),)


FORMULA: dict[str, tuple[dict[str, Any], LendingScope, int, dict[str, int]]] = {
    # strategy, room, kept, terms; margin of 2000 at 60 % is 800
    "by usage": (
        {},
        room(),
        400,
        {"capacity": 2000, "safety margin": -800, "system used": -100, "high-priority used": -400},
    ),
    "reserved is larger": (
        {},
        room(reserved=300),
        400,
        {"capacity": 2000, "safety margin": -800, "reserved": -300, "high-priority used": -400},
    ),
    "never below zero": (
        {},
        room(),
        1900,
        {"capacity": 2000, "safety margin": -800, "system used": -100, "high-priority used": -1900, "floor": 800},
    ),
    "capped by its threshold": (
        {"batch_cpu_threshold_pct": 10},
        room(),
        400,
        {
            "capacity": 2000,
            "safety margin": -800,
            "system used": -100,
            "high-priority used": -400,
            "cap batchCPUThresholdPercent": -500,
        },
    ),
    "a margin below zero lends no more than there is": (
        {"cpu_reclaim_threshold_pct": 190},
        room(),
        400,
        {
            "capacity": 2000,
            "safety margin": 1800,
            "system used": -100,
            "high-priority used": -400,
            "capacity cap": -1300,
        },
    ),
    "a node without capacity lends nothing": (
        {},
        room(0, system=5),
        7,
        {"capacity": 0, "safety margin": 0, "system used": -5, "high-priority used": -7, "floor": 12},
    ),
}


@pytest.mark.parametrize(("strategy", "space", "kept", "terms"), FORMULA.values(), ids=FORMULA.keys())
def test_the_formula(strategy: dict[str, Any], space: LendingScope, kept: int, terms: dict[str, int]) -> None:
    """capacity - margin - max(system, reserved) - kept, between 0 and the caps, each as a term."""
    found = batch(cpu(**strategy), space, used(kept), 100.0)
    assert {term.name: term.value for term in found.terms} == terms
    assert (found.subject, found.name, found.reason, found.at_seconds) == ("node/n", BATCH_CPU, Reason.COMPUTED, 100.0)
    assert found.value == sum(terms.values())


@pytest.mark.parametrize(("pct", "value"), [(None, 53), (50, 53), (25, 40), (0, 0)])
def test_the_cap_of_memory(pct: int | None, value: int) -> None:
    """batchMemoryThresholdPercent of 160 GB, where 53 GB are free: the cap is a term of the difference it makes."""
    found = batch(memory(batch_memory_threshold_pct=pct), room(160 * GIGA, 14 * GIGA), used(37 * GIGA), 0.0)
    capped = {term.name: term.value // GIGA for term in found.terms}.get("cap batchMemoryThresholdPercent", 0)
    assert (found.value // GIGA, capped) == (value, value - 53)


COMPATIBLE: dict[str, tuple[Lendable, LendingScope, int, int]] = {
    # A node of 120 CPUs or 160 GB; the numbers are what Koordinator's controller computes for the same inputs.
    "CPU at 65 %": (cpu(cpu_reclaim_threshold_pct=65), room(120_000, 9000), 41_000, 28_000),
    "CPU at 70 %": (cpu(cpu_reclaim_threshold_pct=70), room(120_000, 9000), 41_000, 34_000),
    "CPU, annotation above system": (cpu(cpu_reclaim_threshold_pct=65), room(120_000, 9000, 0, 16_000), 41_000, 21_000),
    "CPU, host applications": (cpu(cpu_reclaim_threshold_pct=65), room(120_000, 12_000, 3000), 41_000, 25_000),
    "memory at 65 %": (memory(), room(160 * GIGA, 14 * GIGA), 37 * GIGA, 53 * GIGA),
    "memory at 80 %": (memory(memory_reclaim_threshold_pct=80), room(160 * GIGA, 14 * GIGA), 37 * GIGA, 77 * GIGA),
    # 99 - 100 = -1: the margin is cut towards zero, int64(3 x -0.01) = 0
    "a negative margin is cut towards zero": (cpu(cpu_reclaim_threshold_pct=101), room(3, 1), 0, 2),
}


@pytest.mark.parametrize(("resource", "space", "kept", "expected"), COMPATIBLE.values(), ids=COMPATIBLE.keys())
def test_koordinators_numbers(resource: Lendable, space: LendingScope, kept: int, expected: int) -> None:
    """To the integer, in milli-CPU and bytes."""
    assert batch(resource, space, used(kept), 0.0).value == expected


@pytest.mark.parametrize(
    ("reserved", "expected"),
    # 160 - 32 - reserved - 70: system use of 14 does not count where requests are kept free
    [(0, 58), (6, 52), (20, 38)],
)
def test_by_request_ignores_system_use(reserved: int, expected: int) -> None:
    """byRequest is about promises: capacity - margin - reserved - requests."""
    resource = memory(memory_reclaim_threshold_pct=80, memory_policy=CalculatePolicy.REQUEST)
    space = room(160 * GIGA, 14 * GIGA, 0, reserved * GIGA)
    found = batch(resource, space, (KeptAmount("high-priority requested", 70 * GIGA, 3),), 0.0)
    assert (found.value, found.policy) == (expected * GIGA, "request")


def test_by_maximum_counts_system_use() -> None:
    """byMaxUsageRequest differs from byUsage in what pods keep only: 120000 - 42000 - 9000 - 50000."""
    resource = cpu(cpu_reclaim_threshold_pct=65, cpu_policy=CalculatePolicy.MAX_USAGE_REQUEST)
    found = batch(resource, room(120_000, 9000), (KeptAmount("high-priority used or requested", 50_000, 3),), 0.0)
    assert (found.value, found.policy) == (19_000, "maxUsageRequest")


@pytest.mark.parametrize(
    ("capacity", "pct", "margin"),
    [(2000, 60, 800), (5500, 65, 1924), (1000, 60, 400), (1001, 60, 400), (1000, 100, 0), (1000, 0, 1000)],
)
def test_margin_rounds_as_koordinator_does(capacity: int, pct: int, margin: int) -> None:
    """float64(capacity) x (float64(100 - pct) / 100), cut to an integer: 5500 at 65 % is 1924, not 1925."""
    found = batch(cpu(cpu_reclaim_threshold_pct=pct), room(capacity), used(), 0.0)
    assert found.terms[1].name == "safety margin" and found.terms[1].value == -margin


@pytest.mark.parametrize(
    ("space", "note"),
    [
        (room(system=100, reserved=30), "outside pods; reserved is 30m"),
        (room(system=100, hosts=40), "outside pods, 40m by host applications; reserved is 0"),
        (room(system=100, reserved=300), "kubelet, annotation or limits of kubepods; system used is 100m"),
    ],
)
def test_the_note_tells_what_did_not_count(space: LendingScope, note: str) -> None:
    """Only the larger of system use and reservation is a term."""
    assert batch(cpu(), space, used(), 0.0).terms[2].note == note


def zones(*capacities: int) -> tuple[Zone, ...]:
    return tuple(
        Zone(number, f"node-{number}", ResourceVector({CPU: capacity, MEMORY: capacity}))
        for number, capacity in enumerate(capacities)
    )


def test_zones_use_the_same_formula() -> None:
    """Zone 0: 1000 - 400 - 51 - 100 - 201; zone 1: 900 - 360 - 51 - 100, where 101 is split up and 401 is shared."""
    claimed = [KeptByPod("high-priority used", 401, ()), KeptByPod("high-priority used", 101, (0,))]
    found = batch_in_zones(
        cpu(), room(2000, 101), [*claimed[:1], KeptByPod("dangling metrics", 3, ())], zones(1000, 900), 7.0
    )
    assert [d.subject for d in found] == ["node/n/zone/node-0", "node/n/zone/node-1"]
    # 1000 - 400 - 51 - 201 - 2 and 900 - 360 - 51 - 201 - 2
    assert [d.value for d in found] == [346, 286]
    pinned = batch_in_zones(cpu(), room(2000, 101), claimed, zones(1000, 900), 7.0)
    # 1000 - 400 - 51 - (201 + 101) and 900 - 360 - 51 - 201
    assert [d.value for d in pinned] == [247, 288]
    assert {term.name: term.value for term in pinned[0].terms} == {
        "capacity": 1000,
        "safety margin": -400,
        "system used": -51,
        "high-priority used": -302,
    }


def test_zones_are_floored_and_capped_one_by_one() -> None:
    """A full zone does not make another one lend less, and each is capped by its own size."""
    claimed = [KeptByPod("high-priority used", 900, (0,))]
    found = batch_in_zones(cpu(batch_cpu_threshold_pct=50), room(2000, 0), claimed, zones(1000, 1000), 0.0)
    assert [d.value for d in found] == [0, 500]


def test_reservation_is_shared_by_zones() -> None:
    """ceil(301 / 2) = 151 is larger than ceil(100 / 2)."""
    found = batch_in_zones(memory(), room(2000, 100, 0, 301), [], zones(1000, 1000), 0.0)
    assert [d.value for d in found] == [1000 - 350 - 151] * 2
