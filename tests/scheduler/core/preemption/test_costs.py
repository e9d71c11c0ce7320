"""What of two plans is the cheaper, criterion by criterion: each decides against all that come after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from preemption_builders import NOW, Arena, node, resident
from preemption_reference import budget

from model.workload import WorkloadId
from scheduler.core.preemption.costs import GROWING, VictimCosts
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.victims import victims_of

INSIDE: dict[str, Any] = {"below_prod": True}
OLD, YOUNG = {"started_seconds": NOW - 9000}, {"started_seconds": NOW - 60}
WEB: dict[str, Any] = {"labels": {"app": "x"}}

# the pods of the cheaper plan, then of the dearer one
ORDER: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "nobody outside rather than no budget broken": ([INSIDE | WEB | {"priority": 9}], [YOUNG]),
    "no budget broken rather than a low priority": ([{"priority": 9}] * 2, [WEB | {"priority": 1}]),
    "one budget broken rather than two": ([WEB, {"priority": 9}, {}], [WEB, WEB]),
    "two of low priority rather than one of higher": ([{"priority": 1}] * 2, [{"priority": 9}]),
    "a low one outside rather than a high one outside, whatever is inside": (
        [{"priority": 1}, INSIDE | {"priority": 99}],
        [{"priority": 2}],
    ),
    "one outside rather than two, with more inside": ([{}, INSIDE, INSIDE], [{}, {}]),
    "one of the same priority rather than two": ([OLD | {"priority": 5}], [YOUNG | {"priority": 5}, YOUNG]),
    "one inside rather than two of lower priorities together": (
        [INSIDE | OLD | {"priority": 5}],
        [INSIDE | YOUNG | {"priority": 5}, INSIDE | YOUNG | {"priority": -9}],
    ),
    "two of lower priorities beside the highest": (
        [OLD | {"priority": 5}, OLD | {"priority": 1}],
        [YOUNG | {"priority": 5}, YOUNG | {"priority": 2}],
    ),
    "one node rather than two": ([YOUNG, YOUNG], [YOUNG, YOUNG | {"node_name": "n2"}]),
    "two nodes rather than two hours": ([YOUNG, YOUNG | {"node_name": "n2"}], [YOUNG, OLD]),
    "less work lost where that is no hundredth of a doubling": (
        [{"started_seconds": NOW - 9000.0, "uid": "saved 3000 s ago"}],
        [{"started_seconds": NOW - 3001.0}],
    ),
    "the younger where nothing is lost": ([{"started_seconds": NOW + 9}], [{"started_seconds": NOW + 5}]),
    "the first by name": ([{"name": "a"}], [{}]),
}


@pytest.mark.parametrize(("cheap", "dear"), ORDER.values(), ids=ORDER.keys())
def test_order(cheap: list[dict[str, Any]], dear: list[dict[str, Any]]) -> None:
    """As plans are compared two by two, and among several."""
    pods = [resident(**({"name": f"z{i}", "cpu": 1} | words)) for i, words in enumerate(cheap)]
    pods += [resident(f"y{i}", cpu=1, **words) for i, words in enumerate(dear)]
    arena = Arena([node("n1", 50), node("n2", 50)], pods)
    residents = arena.residents()
    victims = victims_of(residents, residents.rows >= 0, [0], {}, 2)
    facts = PreemptionFacts(budgets=(budget("x"),), saved={"saved 3000 s ago": NOW - 3000})
    costs = VictimCosts(victims, residents, facts, NOW)
    by_name = {costs.key(index).removeprefix("default/"): index for index in range(len(pods))}
    every = [by_name[pod.name] for pod in pods]
    one, other = frozenset(every[: len(cheap)]), frozenset(every[len(cheap) :])
    assert costs.cost(one) < costs.cost(other)
    assert costs.cheapest([other, one]) == costs.cheapest([one, other]) == one
    assert costs.cheapest([other]) == other and costs.cheapest([]) is None


def test_the_first_parts_of_a_cost_only_grow() -> None:
    """So that a search may stop where they are above the best that is known; priorities below 0 make the next smaller."""
    words: list[dict[str, Any]] = [{"priority": -5}, INSIDE, WEB, INSIDE | WEB | {"priority": 7}, {"priority": 3}]
    words += [{"group": "g", "minimum_member": True}, {"group": "g"}, {"group": "g"}]
    pods = [resident(f"p{i}", "n1", 1, **each) for i, each in enumerate(words)]
    residents = Arena([node("n1", 50)], pods).residents()
    costs = VictimCosts(
        victims_of(residents, residents.rows >= 0, [0], {WorkloadId.gang("default/g"): GangFacts(2, 3)}, 1),
        residents,
        PreemptionFacts(budgets=(budget("x", 1),)),
        NOW,
    )
    for bits in range(1 << len(pods)):
        chosen = frozenset(index for index in range(len(pods)) if bits >> index & 1)
        for index in range(len(pods)):
            assert costs.cost(chosen)[0][:GROWING] <= costs.cost(chosen | {index})[0][:GROWING]
    assert costs.cost({0})[0][GROWING] < costs.cost(())[0][GROWING]


def test_burdens_where_pods_are_counted() -> None:
    """Outside the bands where others are inside, and under a closed budget, a pod counts as very many."""
    pods = [resident(f"p{i}", cpu=1, **each) for i, each in enumerate([INSIDE, INSIDE | WEB, {}, WEB])]
    residents = Arena([node(cpu=50)], pods).residents()
    victims = victims_of(residents, residents.rows >= 0, [0], {}, 1)
    costs = VictimCosts(victims, residents, PreemptionFacts(budgets=(budget("x"),)), NOW)
    assert np.argsort(costs.burdens).tolist() == [0, 2, 1, 3]
    assert costs.burdens[0] == 1 and (np.diff(np.sort(costs.burdens)) > 1000).all()


def test_the_least_important_breaks_a_budget_that_allows_some() -> None:
    """As kube-scheduler counts: the most important of the victims uses the budget up first."""
    pods = [resident(name, cpu=1, priority=number, **WEB) for number, name in enumerate("abc")]
    residents = Arena([node()], pods).residents()
    victims = victims_of(residents, residents.rows >= 0, [0], {}, 1)
    costs = VictimCosts(victims, residents, PreemptionFacts(budgets=(budget("x", 1),)), NOW)
    assert costs.violating(range(3)) == {0, 1}
    assert costs.violating([0]) == frozenset()
