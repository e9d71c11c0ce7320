"""What goes together, and who is put back first where not all of them need go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from preemption_builders import NOW, Arena, node, resident
from preemption_reference import budget

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.reprieve import reprieve
from scheduler.core.preemption.victim_groups import (
    groups_of,
    least_important_first,
    most_important_first,
    put_back_first,
    spread_to_gangs,
)
from scheduler.core.preemption.victims import victims_of

INSIDE: dict[str, Any] = {"below_prod": True}
WEB: dict[str, Any] = {"labels": {"app": "x"}}
SHORT, LONG = {"started_seconds": NOW - 60}, {"started_seconds": NOW - 9000}


def costs_of(pods: list[Pod], gangs: dict[str, GangFacts] | None = None, legal: str = "") -> VictimCosts:
    """All pods may be evicted, or those whose name begins so."""
    arena = Arena([node(cpu=99)], pods)
    residents = arena.residents()
    mask = np.array([pod is not None and pod.name.startswith(legal) for pod in residents.pods])
    victims = victims_of(residents, mask, [0], arena.gangs() if gangs is None else gangs, 1)
    return VictimCosts(victims, residents, PreemptionFacts(budgets=(budget("x"),)), NOW)


def names(groups: Any, costs: VictimCosts) -> list[str]:
    return ["+".join(sorted(costs.key(index).removeprefix("default/") for index in group)) for group in groups]


# who is put back first, then the other, whose name would be put back first if all were equal
FIRST: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "who breaks a budget": (WEB | SHORT, {"priority": 9} | LONG),
    "outside the bands": (SHORT, INSIDE | LONG | {"priority": 9}),
    "the higher priority": ({"priority": 2} | SHORT, {"priority": 1} | LONG),
    "a gang rather than a lone pod": ({"group": "g"} | SHORT, LONG),
    "who loses more": (LONG, SHORT),
    "who is older where nothing is lost": ({"started_seconds": NOW + 1}, {"started_seconds": NOW + 9}),
    "the last by name": ({"name": "z"}, {}),
}


@pytest.mark.parametrize(("first", "second"), FIRST.values(), ids=FIRST.keys())
def test_who_is_put_back_first(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Each word decides against all that come after it, and whoever is put back first stays where one of them is enough."""
    pods = [resident(**({"name": "a", "cpu": 1} | first)), resident("b", cpu=1, **second)]
    costs = costs_of(pods)
    assert names(put_back_first([0, 1], costs), costs) == [pod.name for pod in pods]
    gone = reprieve([0, 1], lambda chosen: len(chosen) >= 1, costs)
    assert names([gone], costs) == ["b"]


def test_a_larger_gang_is_put_back_before_a_smaller() -> None:
    """And a gang weighs as its highest member, and by what all of them lose."""
    sizes = {"g": 3, "h": 2, "i": 2, "j": 2}
    words: dict[str, dict[str, Any]] = {"i": {"priority": 1}, "j": LONG}
    pods = [
        resident(f"{group}{i}", cpu=1, group=group, **(SHORT | (words.get(group, {}) if i == 0 else {})))
        for group, size in sizes.items()
        for i in range(size)
    ]
    costs = costs_of(pods)
    assert names(put_back_first(range(len(pods)), costs), costs) == ["i0+i1", "g0+g1+g2", "j0+j1", "h0+h1"]


def test_members_above_the_minimum_are_groups_of_their_own() -> None:
    """As long as no more of the gang goes; beyond that it is one group, and all of it goes."""
    pods = [resident(f"g{i}", cpu=1, group="g") for i in range(3)] + [resident("lone", cpu=1)]
    costs = costs_of(pods, {WorkloadId.gang("default/g"): GangFacts(2, 3)})
    of = {costs.key(index).removeprefix("default/"): index for index in range(4)}
    every = np.arange(4)
    assert names(groups_of([of["g0"], of["lone"]], costs), costs) == ["lone", "g0"]
    assert names(groups_of([of["g0"], of["g1"]], costs), costs) == ["g0+g1"]
    assert names([spread_to_gangs([of["g0"]], every, costs)], costs) == ["g0"]
    assert names([spread_to_gangs([of["g0"], of["g1"]], every, costs)], costs) == ["g0+g1+g2"]


@pytest.mark.parametrize("legal", ["", "g"], ids=["not in the pool", "not legal"])
def test_a_gang_of_which_one_must_stay_does_not_go_whole(legal: str) -> None:
    """None of it does where more than its surplus would have to."""
    pods = [resident("g0", cpu=1, group="g"), resident("g1", cpu=1, group="g"), resident("x", cpu=1, group="g")]
    costs = costs_of([*pods, resident("g-lone", cpu=1)], {WorkloadId.gang("default/g"): GangFacts(2, 3)}, legal)
    members = [index for index in range(len(costs.victims)) if costs.key(index) in ("default/g0", "default/g1")]
    pool = np.array([index for index in range(len(costs.victims)) if costs.key(index) != "default/x"])
    assert names([spread_to_gangs([*members, *pool.tolist()], pool, costs)], costs) == ["g-lone"]


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([0.0, NOW - 60, NOW - 61, NOW - 9000]), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_the_least_important_first_one_by_one(pods: list[tuple[int, float, bool]]) -> None:
    """The order of all groups of one, from its end; names decide between those that are alike."""
    costs = costs_of(
        [
            resident(f"p{number}", priority=priority, started_seconds=started, below_prod=below)
            for number, (priority, started, below) in enumerate(pods)
        ]
    )
    every = np.arange(len(costs.victims))
    ordered = most_important_first([(index,) for index in every.tolist()], frozenset(), costs)
    assert list(least_important_first(every, costs)) == [index for (index,) in reversed(ordered)]


def test_nobody_is_least_important_of_none() -> None:
    costs = costs_of([resident("a")], legal="b")
    assert list(least_important_first(np.arange(0), costs)) == []
