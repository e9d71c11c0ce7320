"""What is gone before any pod, and how amounts are cut and capped."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.lend.lending_scope import LendingScope, SystemUse, cap, lendables, node_scope, share, system_use
from model.decision import TermSum
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodemetric import HostApplicationMetric
from model.qos import PriorityBand, QoSClass
from model.report import Usage
from model.resources import CPU, MEMORY, ResourceVector
from model.strategy import CalculatePolicy, ColocationStrategy

GIB = 1 << 30
PROD, MID, BATCH, FREE, NONE = (
    PriorityBand.PROD,
    PriorityBand.MID,
    PriorityBand.BATCH,
    PriorityBand.FREE,
    PriorityBand.NONE,
)


@pytest.mark.parametrize(
    ("band", "qos", "for_batch", "for_mid"),
    [
        (PROD, QoSClass.LS, True, True),
        (MID, QoSClass.LS, True, False),
        (BATCH, QoSClass.BE, False, False),
        (FREE, QoSClass.BE, False, False),
        (NONE, QoSClass.LS, True, True),
        (NONE, QoSClass.NONE, True, True),
        (NONE, QoSClass.BE, False, False),
    ],
)
def test_host_applications_above_the_lent_class_are_system_use(
    band: PriorityBand, qos: QoSClass, for_batch: bool, for_mid: bool
) -> None:
    """Mid counts against batch only; without a priority the QoS class decides."""
    application = HostApplicationMetric("nginx", Usage(300, 2 * GIB), band, qos)
    for counted, expected in (((PROD, MID), for_batch), ((PROD,), for_mid)):
        use = system_use(Usage(100, GIB), (application,), counted)
        assert use.system == (Usage(400, 3 * GIB) if expected else Usage(100, GIB))
        assert use.host_applications == (Usage(300, 2 * GIB) if expected else Usage())


RESERVED: dict[str, tuple[dict[str, Any], int]] = {
    # allocatable and annotation in milli-CPU of a node with 8000, what is reserved
    "nothing": ({}, 0),
    "kubelet": ({"allocatable": 7500}, 500),
    "the annotation": ({"annotation": 1000}, 1000),
    "the larger: kubelet": ({"allocatable": 7500, "annotation": 200}, 500),
    "the larger: annotation": ({"allocatable": 7500, "annotation": 2000}, 2000),
    "amplified above capacity reserves nothing by itself": ({"allocatable": 12_000}, 0),
    "amplification hides no reservation": ({"allocatable": 12_000, "raw": 7500}, 500),
    "a raw amount above allocatable frees nothing": ({"allocatable": 7000, "raw": 7500}, 1000),
    "an unknown allocatable reserves all": ({"allocatable": 0}, 8000),
}


@pytest.mark.parametrize(("case", "expected"), RESERVED.values(), ids=RESERVED.keys())
def test_reserved_is_the_larger_of_kubelet_and_annotation(case: dict[str, int], expected: int) -> None:
    """Per resource; memory is not touched by a reservation of CPUs."""
    capacity = ResourceVector({CPU: 8000, MEMORY: GIB})
    node = Node("n", capacity, ResourceVector({CPU: case.get("allocatable", 8000), MEMORY: GIB}))
    colocation = NodeColocation(
        reserved=ResourceVector({CPU: case["annotation"]} if "annotation" in case else {}),
        raw_allocatable=ResourceVector({CPU: case["raw"]}) if "raw" in case else None,
    )
    cpu, memory = lendables(ColocationStrategy())
    use = SystemUse(Usage(100, 0))
    assert node_scope(cpu, node, colocation, use) == LendingScope("node/n", 8000, "node status", 100, 0, expected)
    assert node_scope(memory, node, colocation, use).reserved == 0


@pytest.mark.parametrize(
    ("amount", "pct", "expected"),
    # 5500 x 0.35 is 1924.9999… in floating point; 1001 x 0.1 = 100.1
    [(100_000, 35, 35_000), (5500, 35, 1924), (1001, 10, 100), (7, 0, 0), (7, 100, 7)],
)
def test_a_share_is_cut_as_koordinator_cuts_it(amount: int, pct: int, expected: int) -> None:
    """int64(float64(amount) x (float64(pct) / 100))."""
    assert share(amount, pct) == expected


@pytest.mark.parametrize(
    ("value", "pct", "terms"),
    [
        (500, None, {}),
        (-30, None, {"floor": 30}),
        (1400, None, {"capacity cap": -400}),
        (500, 40, {"cap batch": -100}),
        (500, 0, {"cap batch": -500}),
        (1400, 120, {"cap batch": -200, "capacity cap": -200}),
    ],
)
def test_caps_are_terms_of_the_difference_they_make(value: int, pct: int | None, terms: dict[str, int]) -> None:
    """Never below zero, never above the whole, whatever the percentage says."""
    found = TermSum().add("start", value)
    cap(found, LendingScope("node/n", 1000, "", 0, 0, 0), "batch", pct)
    assert {term.name: term.value for term in found.terms} == {"start": value, **terms}


def test_the_request_policy_is_for_memory_only() -> None:
    """Koordinator reads `request` of CPU as `usage`."""
    by_request = ColocationStrategy(cpu_policy=CalculatePolicy.REQUEST, memory_policy=CalculatePolicy.REQUEST)
    assert [resource.policy.value for resource in lendables(by_request)] == ["usage", "request"]
    larger = ColocationStrategy(cpu_policy=CalculatePolicy.MAX_USAGE_REQUEST)
    assert [resource.policy.value for resource in lendables(larger)] == ["maxUsageRequest", "usage"]
