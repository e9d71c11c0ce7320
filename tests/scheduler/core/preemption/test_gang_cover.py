"""Whole gangs as victims: the one that gains most for each pod lost, then single pods for what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from preemption_builders import NOW, Arena, node, resident

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.preemption.capacity import Capacity, RoomRequest
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.gang_cover import cover_with_gangs
from scheduler.core.preemption.victims import victims_of

NODES = [node("n1"), node("n2"), node("n3")]


def of(group: str, *places: str, cpu: float = 2) -> list[Pod]:
    """A gang with a member on each of these nodes."""
    return [resident(f"{group}{i}", on, cpu, group=group) for i, on in enumerate(places)]


def covered(pods: list[Pod], *wants: tuple[int, int]) -> str | None:
    """Names of those that go for these (number, CPUs); gangs go whole."""
    arena = Arena(NODES, pods)
    residents = arena.residents()
    sizes = {pod.spec.gang.key: 0 for pod in pods if pod.spec.gang}
    for pod in pods:
        if pod.spec.gang:
            sizes[pod.spec.gang.key] += 1
    gangs = {WorkloadId.gang(key): GangFacts(size, size, whole=True) for key, size in sizes.items()}
    victims = victims_of(residents, residents.rows >= 0, [0], gangs, 3)
    costs = VictimCosts(victims, residents, PreemptionFacts(gangs=gangs), NOW)
    free = arena.snapshot.free[:, [0]]
    asks = tuple(RoomRequest(np.array([1000 * cpu]), np.full(3, 99, np.int64), number) for number, cpu in wants)
    keys = {index: costs.key(index).removeprefix("default/") for index in range(len(victims))}
    singles = np.array([index for index, key in keys.items() if key.startswith("single")], np.int64)
    found = cover_with_gangs(Capacity(asks, np.ascontiguousarray(free)), np.arange(len(victims)), singles, costs)
    return None if found is None else " ".join(sorted(keys[index] for index in found))


SINGLES = [resident("single1", "n1"), resident("single2", "n2")]
CASES: dict[str, tuple[list[Pod], list[tuple[int, int]], str | None]] = {
    "the gang that gains most for its size": (
        [*of("a", "n1", "n2"), resident("fixed1", "n1", 2), resident("fixed2", "n2", 2), *of("c", "n3", cpu=4)],
        [(1, 2)],
        "c0",
    ),
    "two gangs where one is not enough": (
        [*of("a", "n1", "n1"), *of("b", "n2", "n2"), resident("fixed", "n3")],
        [(2, 4)],
        "a0 a1 b0 b1",
    ),
    "single pods for what is missing": (
        [*of("a", "n1", "n1"), resident("single2", "n2"), resident("fixed", "n3")],
        [(2, 4)],
        "a0 a1 single2",
    ),
    "not enough": ([*of("a", "n1", "n1"), resident("fixed", "n2"), resident("fixed3", "n3")], [(2, 4)], None),
    "no gang helps a lone ask": ([*SINGLES, *of("a", "n3", cpu=1), resident("fixed", "n3", cpu=3)], [(1, 4)], None),
    "of equals the first by row": (
        [*of("b", "n1", "n1"), *of("a", "n2", "n2"), resident("fixed", "n3")],
        [(1, 4)],
        "b0 b1",
    ),
    "two asks: each is covered": (
        [*of("a", "n1", "n1"), *of("b", "n2", "n2", cpu=1), resident("rest", "n2", 2), resident("fixed", "n3")],
        [(1, 4), (1, 2)],
        "a0 a1 b0 b1",
    ),
}


@pytest.mark.parametrize(("pods", "wants", "gone"), CASES.values(), ids=CASES)
def test_who_goes(pods: list[Pod], wants: list[tuple[int, int]], gone: str | None) -> None:
    """By name; a gang goes whole or not at all."""
    assert covered(pods, *wants) == gone
