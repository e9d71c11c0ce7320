"""mid-cpu and mid-memory in both modes, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.lend.lending_scope import LendingScope, lendables
from agent.core.lend.mid import MidFacts, mid
from model.decision import Decision
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import PriorityBand
from model.report import Usage
from model.resources import CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from model.strategy import ColocationStrategy, MidMode
from tests.pods import make_pod

GIB = 1 << 30
CAPACITY = 120_000


def pod(cpu: int = 24_000, band: PriorityBand = PriorityBand.PROD, phase: PodPhase = PodPhase.RUNNING) -> Pod:
    return make_pod("d", "web", "u", ResourceVector({CPU: cpu}), band=band, phase=phase)


def lend(
    reclaimable: int | None = 12_000,
    *,
    node: int = 20_000,
    system: int = 6000,
    reserved: int = 0,
    exclusive_idle: int = 0,
    beside_system: int | None = None,
    pods: tuple[Pod, ...] = (pod(),),
    **strategy: Any,
) -> Decision:
    settings = ColocationStrategy(**strategy)
    pods_used = Usage(max(node - system, 0) if beside_system is None else beside_system, 0)
    facts = MidFacts(
        Usage(node, 0), pods_used, None if reclaimable is None else Usage(reclaimable, 0), pods, exclusive_idle
    )
    room = LendingScope("node/n", CAPACITY, "node status", system, 0, reserved)
    return mid(lendables(settings)[0], room, facts, settings, 100.0)


PREDICTION: dict[str, tuple[dict[str, Any], int]] = {
    # capacity 120000; by default prod reclaimable 12000, node used 20000, system 6000, production requests 24000
    "what the prediction says": ({}, 12_000),
    "no more than is unused": ({"node": 112_000}, 8000),
    "no more than is unused and not reserved": ({"node": 112_000, "reserved": 8000}, 6000),
    "no more than is unused and nobody's own": ({"node": 112_000, "exclusive_idle": 3000}, 5000),
    # 120000 - (40000 + 60000): the node's 60000 and the system's 30000 are of different times
    "what pods use is not the node's less the system's": (
        {"reclaimable": 50_000, "node": 60_000, "system": 30_000, "reserved": 40_000, "beside_system": 60_000},
        20_000,
    ),
    "a full node": ({"node": 130_000}, 0),
    "nothing predicted": ({"reclaimable": 0}, 0),
    "no prediction": ({"reclaimable": None}, 0),
    # 120000 - 6000 - 24000 = 90000 unallocated
    "a share of what is unallocated": ({"mid_unallocated_pct": 10}, 12_000 + 9000),
    "unallocated without a prediction": ({"reclaimable": None, "mid_unallocated_pct": 10}, 9000),
    "unallocated on a full node": ({"node": 130_000, "mid_unallocated_pct": 10}, 9000),
    # 120000 - 16000 - 24000 = 80000
    "a reservation is not unallocated": ({"reserved": 16_000, "mid_unallocated_pct": 10}, 12_000 + 8000),
    "overbooked": ({"pods": (pod(130_000),), "mid_unallocated_pct": 10}, 12_000),
    # 20 % of 120000, of 12000 + 18000
    "capped": ({"mid_cpu_threshold_pct": 20, "mid_unallocated_pct": 20}, 24_000),
    "capped to nothing": ({"mid_cpu_threshold_pct": 0}, 0),
    # 33 % of 90000 = 29700
    "percent of a share": ({"reclaimable": None, "mid_unallocated_pct": 33}, 29_700),
}


@pytest.mark.parametrize(("case", "expected"), PREDICTION.values(), ids=PREDICTION.keys())
def test_prediction(case: dict[str, Any], expected: int) -> None:
    """min(reclaimable, capacity - used) + unallocated share, capped."""
    found = lend(**case)
    assert (found.value, found.policy, found.name, found.subject) == (expected, "prediction", MID_CPU, "node/n")


@pytest.mark.parametrize(
    ("one", "unallocated"),
    [
        (pod(), 90_000),
        (pod(band=PriorityBand.NONE), 90_000),
        (pod(phase=PodPhase.PENDING), 90_000),
        (pod(band=PriorityBand.MID), 90_000),
        (pod(band=PriorityBand.BATCH), 90_000),
        (pod(band=PriorityBand.FREE), 90_000),
        (pod(phase=PodPhase.SUCCEEDED), 114_000),
    ],
)
def test_requests_are_allocated(one: Pod, unallocated: int) -> None:
    """Whoever asks for the resource itself is promised it, whatever its class; lent amounts have other names."""
    assert lend(0, pods=(one,), mid_unallocated_pct=100).value == unallocated


def test_terms() -> None:
    """Every step is a term, and a missing prediction says so."""
    full = {
        term.name: term.value for term in lend(node=112_000, mid_unallocated_pct=10, mid_cpu_threshold_pct=10).terms
    }
    assert full == {
        "prod reclaimable": 12_000,
        "cap node unused": -4000,
        "unallocated share": 9000,
        "cap midCPUThresholdPercent": -5000,
    }
    blind = lend(None)
    assert blind.terms[0].value == 0 and "no prediction" in blind.terms[0].note
    assert blind.detail and not lend().detail


@pytest.mark.parametrize(
    ("strategy", "expected"),
    # 15 % of 120000; capped at 10 %
    [
        ({}, 0),
        ({"mid_static_cpu_reserved_pct": 15}, 18_000),
        ({"mid_static_cpu_reserved_pct": 15, "mid_cpu_threshold_pct": 10}, 12_000),
    ],
)
def test_static(strategy: dict[str, int], expected: int) -> None:
    """A fixed share, whatever is used or predicted."""
    for reclaimable in (None, 12_000):
        found = lend(reclaimable, node=130_000, mid_mode=MidMode.STATIC, **strategy)
        assert (found.value, found.policy, found.detail) == (expected, "static", "")


@pytest.mark.parametrize(("pct", "capped_pct", "expected"), [(25, 100, 16), (25, 10, 6.4), (0, 100, 0)])
def test_static_memory(pct: int, capped_pct: int, expected: float) -> None:
    """A share of 64 GiB, whatever is used; midStaticCPUReservedPercent has nothing to do with it."""
    settings = ColocationStrategy(
        mid_mode=MidMode.STATIC,
        mid_static_cpu_reserved_pct=50,
        mid_static_memory_reserved_pct=pct,
        mid_memory_threshold_pct=capped_pct,
    )
    facts = MidFacts(Usage(0, 60 * GIB), Usage(), None, ())
    room = LendingScope("node/n", 64 * GIB, "node status", 4 * GIB, 0, 0)
    found = mid(lendables(settings)[1], room, facts, settings, 0.0)
    assert (found.name, found.value, found.policy) == (MID_MEMORY, int(expected * GIB), "static")


def test_memory() -> None:
    """Bytes: min(30 GiB, 64 - 40 GiB) + 50 % of (64 - 4 - 20) GiB = 44 GiB, capped at 50 % = 32 GiB."""
    settings = ColocationStrategy(mid_unallocated_pct=50, mid_memory_threshold_pct=50)
    one = make_pod("d", "web", "u", ResourceVector({MEMORY: 20 * GIB}), phase=PodPhase.RUNNING)
    facts = MidFacts(Usage(0, 40 * GIB), Usage(), Usage(0, 30 * GIB), (one,))
    room = LendingScope("node/n", 64 * GIB, "node status", 4 * GIB, 0, 0)
    found = mid(lendables(settings)[1], room, facts, settings, 0.0)
    assert (found.name, found.value) == (MID_MEMORY, 32 * GIB)
    assert [term.value // GIB for term in found.terms] == [30, -6, 20, -12]
