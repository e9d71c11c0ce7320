"""Eviction rules that are asked for and off all the same."""

from __future__ import annotations

import pytest

from kube.dialects.coverage.rules import flaws
from kube.dialects.koordinator.nodeslo import EvictionFields

PRIORITY = "evictEnabledPriorityThreshold"
ALLOCATABLE = "allocatableEvictPriorityThreshold"
UPPER = "cpuEvictBESatisfactionUpperPercent"
LOWER = "cpuEvictBESatisfactionLowerPercent"
# what is asked for -> field, what it lacks, whether Koordinator's webhook refuses it
CASES: dict[str, tuple[EvictionFields, list[tuple[str, str, bool]]]] = {
    "nothing": (EvictionFields(), []),
    "memory, which needs its threshold alone": (EvictionFields(memory_threshold_pct=70), []),
    "cpu for nobody": (EvictionFields(cpu_threshold_pct=70), [("cpuEvictThresholdPercent", PRIORITY, False)]),
    "cpu down to no threshold": (
        EvictionFields(cpu_lower_pct=60),
        [("cpuEvictLowerPercent", "cpuEvictThresholdPercent", False)],
    ),
    "cpu": (EvictionFields(cpu_threshold_pct=70, cpu_lower_pct=60, priority_threshold=5999), []),
    "allocatable cpu, two things missing": (
        EvictionFields(cpu_allocatable_threshold_pct=80),
        [("cpuAllocatableEvictThresholdPercent", f"cpuAllocatableEvictLowerPercent and {ALLOCATABLE}", False)],
    ),
    "allocatable memory, one thing missing": (
        EvictionFields(memory_allocatable_threshold_pct=80, memory_allocatable_lower_pct=70),
        [("memoryAllocatableEvictThresholdPercent", f"without {ALLOCATABLE}", False)],
    ),
    "allocatable memory": (
        EvictionFields(
            memory_allocatable_threshold_pct=80, memory_allocatable_lower_pct=70, allocatable_priority_threshold=5999
        ),
        [],
    ),
    "a satisfaction without its upper bound": (
        EvictionFields(cpu_satisfaction_lower_pct=40),
        [(LOWER, f"without {UPPER}", True)],
    ),
    "without its lower bound": (EvictionFields(cpu_satisfaction_upper_pct=80), [(UPPER, f"without {LOWER}", True)]),
    "bounds that are equal": (
        EvictionFields(cpu_satisfaction_lower_pct=40, cpu_satisfaction_upper_pct=40),
        [(LOWER, "write a lower one below", True)],
    ),
    "the highest that are in force": (
        EvictionFields(cpu_satisfaction_lower_pct=60, cpu_satisfaction_upper_pct=99),
        [],
    ),
    "a lower one that is too high": (
        EvictionFields(cpu_satisfaction_lower_pct=61, cpu_satisfaction_upper_pct=99),
        [(LOWER, "switches its rule off", False)],
    ),
    "an upper one that is too high": (
        EvictionFields(cpu_satisfaction_lower_pct=60, cpu_satisfaction_upper_pct=100),
        [(UPPER, "switches its rule off", False)],
    ),
    "a satisfaction of 0": (EvictionFields(cpu_satisfaction_lower_pct=0, cpu_satisfaction_upper_pct=0), []),
}


@pytest.mark.parametrize(("fields", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_missing(fields: EvictionFields, expected: list[tuple[str, str, bool]]) -> None:
    """Each rule that is off is told once, with what it needs."""
    found = flaws(fields)
    assert [(flaw.field, flaw.refused) for flaw in found] == [(field, refused) for field, _, refused in expected]
    assert all(told in flaw.why for flaw, (_, told, _) in zip(found, expected, strict=True))
