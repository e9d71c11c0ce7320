"""Up to which level victims are looked for: the lowest that helps, a higher one only to break fewer budgets."""

from __future__ import annotations

import pytest
from preemption_builders import NOW, Arena, node, resident
from preemption_reference import budget

from scheduler.core.preemption.choose import lowest
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import PreemptionFacts
from scheduler.core.preemption.victims import OUTSIDE, victims_of

# level -> the pods that go: x… break the closed budget, p… do not, o… are outside the bands
LEVELS: dict[str, tuple[dict[int, str], str]] = {
    "the lowest that helps": ({1: "", 2: "p2", 3: "p1"}, "p2"),
    "none": ({1: "", 2: ""}, ""),
    "a higher one that breaks no budget": ({1: "x1", 2: "x2", 3: "p3", 4: "p4"}, "p3"),
    "the lowest of those that break fewest": ({1: "x1 x2", 2: "x1 x2", 3: "x1 p1", 4: "x1 p2", 5: "x1 p3"}, "x1 p1"),
    "the lowest of the few that break fewest": ({1: "x1 x2", 2: "x1 x2", 3: "x1 x2", 4: "x1 p1", 5: "x1 p2"}, "x1 p1"),
    "the lowest where none breaks fewer": ({1: "x1", 2: "x2", 3: "x3"}, "x1"),
    "not the highest where that breaks more": ({1: "x1", 2: "x1", 3: "x1 x2"}, "x1"),
    "no level outside the bands for the sake of a budget": ({1: "x1", 2: "x2", OUTSIDE: "o1"}, "x1"),
    "a higher one below those outside the bands": ({1: "x1", 2: "p1", OUTSIDE: "o1"}, "p1"),
    "a higher one outside where all that help are": ({1: "", OUTSIDE: "x1 o1", OUTSIDE + 1: "o2"}, "o2"),
    "only one level": ({1: "x1"}, "x1"),
}


@pytest.mark.parametrize(("plans", "expected"), LEVELS.values(), ids=LEVELS.keys())
def test_level(plans: dict[int, str], expected: str) -> None:
    pods = [
        resident(f"{kind}{i}", cpu=1, priority=i, below_prod=kind != "o", labels={"app": kind})
        for kind in "xpo"
        for i in range(1, 5)
    ]
    residents = Arena([node(cpu=99)], pods).residents()
    victims = victims_of(residents, residents.rows >= 0, [0], {}, 1)
    costs = VictimCosts(victims, residents, PreemptionFacts(budgets=(budget("x"),)), NOW)
    of = {costs.key(index).removeprefix("default/"): index for index in range(len(victims))}

    def up_to(level: int) -> frozenset[int] | None:
        return frozenset(of[name] for name in plans[level].split()) or None

    found = lowest(sorted(plans), up_to, costs)
    assert (found or frozenset()) == frozenset(of[name] for name in expected.split())
