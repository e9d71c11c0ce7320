"""Which residents of other queues may be taken back: as many as their queue may lose, whole gangs, the cheapest first."""

from __future__ import annotations

import numpy as np
import pytest
from preemption_builders import Arena, node, queue_rules, resident

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.preemption.facts import GangFacts, Preemptor
from scheduler.core.preemption.queue_rules import QueueRules
from scheduler.core.preemption.reclaim import beyond, verdict

FOUR = [resident(name, cpu=1, started_seconds=1000.0 + index) for index, name in enumerate("abcd")]


PREEMPTOR = Preemptor(WorkloadId.pod("default/preemptor"), 5500)


def reclaimed(pods: list[Pod], rules: QueueRules | None, surplus: int | None = None) -> str:
    """Names of those that may be taken back."""
    arena = Arena([node(cpu=99)], pods)
    residents = arena.residents()
    gangs = (
        arena.gangs()
        if surplus is None
        else {key: GangFacts(each.bound - surplus, each.bound) for key, each in arena.gangs().items()}
    )
    may = verdict(residents, rules, PREEMPTOR).reclaimable
    left = may & ~beyond(residents, may, rules, gangs)
    return "".join(sorted(pod.name for slot, pod in enumerate(residents.pods) if pod is not None and left[slot]))


def test_without_rules_nobody_is_reclaimed() -> None:
    """Nor kept."""
    residents = Arena([node(cpu=99)], FOUR).residents()
    found = verdict(residents, None, PREEMPTOR)
    assert not found.reclaimable.any() and not found.kept.any()
    assert not beyond(residents, np.ones(4, bool), None, {}).any()


@pytest.mark.parametrize(
    ("own", "guaranteed", "expected"),
    [(2000, 0, "cd"), (3000, 0, "d"), (3500, 0, "d"), (4000, 0, ""), (0, 0, "abcd"), (1000, 1000, "bcd")],
)
def test_as_many_as_the_queue_may_lose(own: int, guaranteed: int, expected: str) -> None:
    """It goes on losing while it has more than its own, the youngest first; never below its guarantee."""
    rules = queue_rules("p", {"p": 4000 - own, "q": own}, used=4000, guaranteed=guaranteed, asks=4000 - own or 1)
    assert reclaimed(FOUR, rules) == expected


def test_lower_priority_goes_first() -> None:
    """Whatever its age."""
    pods = [resident("a", cpu=1, priority=1), resident("b", cpu=1, priority=9, started_seconds=2000.0)]
    assert reclaimed(pods, queue_rules("p", {"p": 4000, "q": 1000}, used=2000)) == "a"


def test_a_gang_goes_whole_or_not_at_all() -> None:
    """Unless it has members to spare."""
    gang = [resident(name, cpu=1, group="train") for name in "xyz"]
    assert reclaimed(gang, queue_rules("p", {"p": 4000, "q": 2000}, used=3000)) == "xyz"
    assert reclaimed(gang, queue_rules("p", {"p": 4000, "q": 2000}, used=3000, guaranteed=2000)) == ""
    assert reclaimed(gang, queue_rules("p", {"p": 4000, "q": 2000}, used=3000, guaranteed=2000), surplus=1) != ""
