"""Each cause for which batch pods are evicted reaches the victim's record under a code of its own."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.evict.decide import Evictions
from model.pod.colocation import EvictionTerms
from model.pod.spec import Container
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, ResourceVector
from model.strategy import EvictionStrategy
from tests.agent.core.evict.evicting import GIB, Holding, Play, batch, names, node, online, steady, usage

BY_REQUEST = {"allocatable_priority_threshold": 5999}


def strategy(**fields: Any) -> EvictionStrategy:
    return EvictionStrategy(**{"memory_threshold_pct": None, **fields})


def asking(name: str, cpu: int, memory: int) -> Holding:
    """For batch resources, and it may be evicted for what it asks for."""
    requests = ResourceVector({BATCH_CPU: cpu, BATCH_MEMORY: memory})
    return batch(
        name,
        requests=requests,
        containers=(Container("main", requests),),
        eviction=EvictionTerms(enabled=True),
    )


def memory_pressure() -> Evictions:
    """Three quarters of the node's 10 GiB are in use."""
    return Play(batch("job"), online("web")).tick(7680)


def starved() -> Evictions:
    """Best effort may use a quarter of the CPU it asked for, and uses it up."""
    pods = (asking("job", 4000, GIB), online("web"))
    rule = strategy(cpu_satisfaction_lower_pct=30, cpu_satisfaction_upper_pct=60)
    return Play(*pods, strategy=rule).tick(5000, usage=usage(*pods, best_effort=steady(1000)), best_effort_millis=1000)


def cpu_oversold() -> Evictions:
    """4000m are asked for where 3000m are lent."""
    rule = strategy(cpu_allocatable_threshold_pct=100, cpu_allocatable_lower_pct=80, **BY_REQUEST)
    return Play(asking("job", 4000, GIB), strategy=rule).tick(5000, node=node(batch_cpu=3000, batch_memory=9 * GIB))


def memory_oversold() -> Evictions:
    """2 GiB are asked for where one is lent."""
    rule = strategy(memory_allocatable_threshold_pct=100, memory_allocatable_lower_pct=80, **BY_REQUEST)
    return Play(asking("job", 100, 2 * GIB), strategy=rule).tick(5000, node=node(batch_cpu=3000, batch_memory=GIB))


CAUSES = {
    "node memory": (memory_pressure, Reason.BE_MEMORY_EVICT),
    "too little CPU left of what was promised": (starved, Reason.BE_CPU_EVICT),
    "CPU oversold": (cpu_oversold, Reason.CPU_ALLOCATABLE_EVICT),
    "memory oversold": (memory_oversold, Reason.MEMORY_ALLOCATABLE_EVICT),
}


@pytest.mark.parametrize(("happens", "expected"), CAUSES.values(), ids=CAUSES.keys())
def test_the_victim_is_told_the_cause(happens: Any, expected: Reason) -> None:
    found = happens()
    assert names(found) == ["evict job"]
    assert found.requests[0].decision.reason is expected


def test_the_causes_are_told_apart() -> None:
    reasons = [happens().requests[0].decision.reason for happens, _ in CAUSES.values()]
    assert len(set(reasons)) == len(CAUSES)
