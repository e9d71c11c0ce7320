"""Putting victims back, and the cheapest of all plans where few could go."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from preemption_builders import NOW, Arena, node, resident
from preemption_reference import budget

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.reprieve import Fits, items_of, least_cost, reprieve, reprieve_in_bulk
from scheduler.core.preemption.victims import victims_of

PODS = [
    resident("low", priority=1),
    resident("mid", priority=2),
    resident("high", priority=3),
    resident("guarded", priority=0, labels={"app": "x"}),
]
ALL = frozenset(range(len(PODS)))
LOW, MID, HIGH, GUARDED = (frozenset((index,)) for index in range(4))


def costs_of(pods: list[Pod], gangs: dict[WorkloadId, GangFacts] | None = None) -> VictimCosts:
    """All pods may be evicted; the budget of app x allows none."""
    residents = Arena([node(cpu=99)], pods).residents()
    victims = victims_of(residents, residents.rows >= 0, [0], gangs or {}, 1)
    return VictimCosts(victims, residents, PreemptionFacts(budgets=(budget("x"),)), NOW)


def asked(needed: Iterable[frozenset[int]]) -> tuple[Fits, list[frozenset[int]]]:
    """Everybody fits once all of any one of these sets are gone; and what was asked, in order."""
    plans, questions = tuple(needed), list[frozenset[int]]()

    def fits(gone: frozenset[int]) -> bool:
        questions.append(gone)
        return any(plan <= gone for plan in plans)

    return fits, questions


@pytest.mark.parametrize("put_back", [reprieve, reprieve_in_bulk])
@pytest.mark.parametrize(
    ("needed", "left"),
    [
        ([frozenset()], frozenset()),
        ([ALL], ALL),
        ([LOW | HIGH], LOW | HIGH),
        ([LOW, MID, HIGH, GUARDED], LOW),
        ([MID, HIGH, GUARDED], MID),
        ([HIGH, GUARDED], HIGH),
        ([LOW | MID, HIGH], LOW | MID),
    ],
)
def test_nobody_goes_who_can_be_put_back(put_back: object, needed: list[frozenset[int]], left: frozenset[int]) -> None:
    """Who breaks a budget is put back first, then the most important: what is left is the least important that does."""
    assert callable(put_back)
    fits, _ = asked(needed)
    assert put_back(ALL, fits, costs_of(PODS)) == left


def test_they_are_put_back_one_by_one_or_by_halves() -> None:
    """Each once; by halves, where one of many must go, with fewer questions than there are victims."""
    pods = [resident(f"p{index:02}", priority=index) for index in range(32)]
    every, costs = frozenset(range(32)), costs_of(pods)
    fits, questions = asked([frozenset((0,))])
    assert reprieve(every, fits, costs) == {0}
    assert [every - question for question in questions[:2]] == [{31}, {30, 31}] and len(questions) == 32
    fits, questions = asked([frozenset((0,))])
    assert reprieve_in_bulk(every, fits, costs) == {0}
    assert questions[0] == frozenset() and every - questions[1] == set(range(16, 32)) and len(questions) < 16


def test_the_least_cost_of_all_plans() -> None:
    """One pod of a higher priority costs more than several of a lower; without a plan none is found."""
    costs = costs_of(PODS)
    items = items_of(ALL, costs)
    assert items[0] == tuple(GUARDED) and len(items) == 4
    fits, _ = asked([HIGH, LOW | MID])
    assert least_cost(items, fits, costs, HIGH, 1_000) == LOW | MID
    assert least_cost(items, fits, costs, None, 1_000) == LOW | MID
    assert least_cost(items, asked([])[0], costs, None, 1_000) is None


def test_the_best_known_plan_stands_where_the_tries_are_up() -> None:
    """What was not compared is not taken for better."""
    costs = costs_of(PODS)
    fits, questions = asked([HIGH, LOW | MID])
    assert least_cost(items_of(ALL, costs), fits, costs, HIGH, 1) == HIGH
    assert len(questions) == 3  # two of the search, one of the plan that stands


def test_a_gang_is_one_item_and_no_member_of_it_goes_beside_it() -> None:
    """Members above the minimum are items of their own; no plan takes more of them than the gang can spare."""
    train = WorkloadId.gang("default/g")
    pods = [resident(f"g{index}", group="g", priority=index) for index in range(3)]
    costs = costs_of(pods, {train: GangFacts(2, 3)})
    assert sorted(items_of(range(3), costs)) == [(0,), (0, 1, 2), (1,), (2,)]
    fits, _ = asked([frozenset((1, 2))])
    assert least_cost(items_of(range(3), costs), fits, costs, None, 1_000) == {0, 1, 2}
    stuck = costs_of(pods, {train: GangFacts(3, 3)})
    assert items_of(range(3), stuck) == [(0, 1, 2)]
    assert items_of(range(2), stuck) == []
    assert np.array_equal(stuck.victims.surplus, [0])


def test_a_pod_of_no_gang_is_one_item_beside_a_gang() -> None:
    """And the gang one, once."""
    pods = [resident("a", priority=0), resident("g0", group="g", priority=1), resident("g1", group="g", priority=1)]
    costs = costs_of(pods, {WorkloadId.gang("default/g"): GangFacts(2, 2)})
    assert sorted(items_of(range(3), costs)) == [(0,), (1, 2)]
