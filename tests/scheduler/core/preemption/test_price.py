"""Prices as numbers: their sums compare as what they stand for, however wide that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preemption_builders import NOW, Arena, node, resident
from preemption_reference import budget

from model.pod.pod import Pod
from scheduler.core.preemption.costs import NODE, VictimCosts
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.price import Prices, prices
from scheduler.core.preemption.victims import victims_of


def costs_of(pods: Sequence[Pod]) -> VictimCosts:
    arena = Arena([node(cpu=100)], pods)
    residents = arena.residents()
    gangs = {job: GangFacts(0, facts.bound) for job, facts in arena.gangs().items()}
    victims = victims_of(residents, residents.rows >= 0, [0], gangs, 1)
    return VictimCosts(victims, residents, PreemptionFacts(budgets=(budget("x"),)), NOW)


def priced(pods: Sequence[Pod], most: int) -> Prices:
    costs = costs_of(pods)
    pool = np.arange(len(pods))
    return prices(pool, costs.ranks(pool), costs, most)


victims = st.builds(
    lambda number, priority, below, app, age, group: resident(
        f"p{number}",
        cpu=1,
        priority=priority,
        below_prod=below,
        labels={"app": app},
        started_seconds=NOW - age,
        group=group,
    ),
    st.integers(0, 1 << 30),
    st.sampled_from([-(1 << 31), -1, 0, 5000, 5500, (1 << 31) - 1]),
    st.booleans(),
    st.sampled_from(["", "x"]),
    st.integers(1, 9000),
    st.sampled_from(["", "g"]),
)
pools = st.lists(victims, min_size=2, max_size=9, unique_by=lambda pod: pod.name)


def told(pods: Sequence[Pod], costs: VictimCosts, chosen: Sequence[int]) -> tuple[int, ...]:
    """Who breaks a budget, who is outside the bands and whose job does not go on, who is outside, whose job does not go
    on, how many they are, their priorities, what they lose.
    """
    own = [pods[index] for index in chosen]
    return (
        sum(pod.labels["app"] == "x" for pod in own),
        sum(not pod.colocation.below_prod and pod.spec.gang is None for pod in own),
        sum(not pod.colocation.below_prod for pod in own),
        sum(pod.spec.gang is None for pod in own),
        len(own),
        sum(pod.spec.priority for pod in own),
        int(costs.losses(list(chosen)).sum()),
    )


@settings(max_examples=150)
@given(pools, st.data(), st.sampled_from([0, 1, 1000]))
def test_sums_compare_as_what_they_stand_for(pods: list[Pod], data: st.DataObject, wider: int) -> None:
    """Of any two sets; equal in all of that are only those between which ties decide. `wider` makes room for more pods."""
    found, costs = priced(pods, len(pods) + wider), costs_of(pods)
    sets = st.sets(st.sampled_from(range(len(pods))))
    one, other = sorted(data.draw(sets)), sorted(data.draw(sets))
    first, second = (told(pods, costs, chosen) for chosen in (one, other))
    left, right = (sum(map(int, found.each[chosen])) for chosen in (one, other))
    if first != second:
        assert (left < right) == (first < second)
    assert max(left, right) + len(pods) * found.node < found.never


@pytest.mark.parametrize(("priorities", "kind"), [((0, 1), np.int64), ((0, (1 << 31) - 1), object)])
def test_numbers_are_as_wide_as_needed(priorities: tuple[int, int], kind: type) -> None:
    """A thousand victims of priorities far apart are more than 64 bits hold."""
    pods = [resident(f"p{number}", cpu=1, priority=priority) for number, priority in enumerate(priorities * 2)]
    pods[0] = resident("p0", cpu=1, priority=1)
    assert priced(pods, 1000).each.dtype == kind


def test_a_node_is_worth_a_doubling_of_lost_work() -> None:
    """From the first minute on; what is lost within it counts less."""
    pods = [resident(f"p{age}", cpu=1, started_seconds=NOW - age) for age in (60, 180, 420, 7620)]
    assert costs_of(pods).losses(np.arange(4)).tolist() == [NODE, 2 * NODE, 3 * NODE, 7 * NODE]
    found = priced(pods, 4)
    step = int(found.each[1] - found.each[0])
    assert abs(step - found.node) < found.node // NODE


INSIDE, SPARE, BREAKS = {"below_prod": True}, {"group": "g"}, {"labels": {"app": "x"}}
WORDS = {
    "nobody": ({}, {}, [0, 0]),
    "outside": ({}, INSIDE, [1, 0]),
    "a budget": (BREAKS, {}, [1, 0]),
    "both": (BREAKS, INSIDE, [1, 0]),
    "one each": (BREAKS | INSIDE, {}, [2, 1]),
    "everybody": (BREAKS, BREAKS, [0, 0]),
    "everybody, one outside": (BREAKS, BREAKS | INSIDE, [0, 0]),
    "whose job ends": (INSIDE, INSIDE | SPARE, [1, 0]),
    "whose job ends outside": ({}, SPARE, [1, 0]),
    "outside, and whose job ends": (SPARE, INSIDE, [2, 1]),
    "whose job ends, and a budget": (INSIDE, INSIDE | SPARE | BREAKS, [1, 2]),
    "whose job ends where both break a budget": (BREAKS, SPARE | BREAKS, [0, 0]),
    "what gangs can spare": (SPARE, SPARE, [0, 0]),
}


@pytest.mark.parametrize(("first", "second", "expected"), WORDS.values(), ids=WORDS.keys())
def test_who_is_dear(first: dict[str, object], second: dict[str, object], expected: list[int]) -> None:
    """Where it is not all of them."""
    pods = [
        resident("a", cpu=1, **({"labels": {"app": ""}} | first)),
        resident("b", cpu=1, **({"labels": {"app": ""}} | second)),
    ]
    assert priced(pods, 2).dear.tolist() == expected


OLD, YOUNG = {"started_seconds": NOW - 9000}, {"started_seconds": NOW - 60}
ORDER: dict[str, tuple[list[dict[str, object]], list[dict[str, object]]]] = {
    "three outside rather than a broken budget": ([{}] * 3, [{"labels": {"app": "x"}, "below_prod": True}]),
    "one outside rather than three inside where all break a budget": (
        [{"labels": {"app": "x"}}],
        [{"labels": {"app": "x"}, "below_prod": True}] * 3,
    ),
    "three inside rather than one outside": ([{"below_prod": True, "priority": 9} | OLD] * 3, [YOUNG]),
    "one rather than two": ([{"priority": 9} | OLD], [YOUNG] * 2),
    "two that a gang can spare rather than a lone one": (
        [SPARE | INSIDE | {"priority": 9} | OLD] * 2,
        [INSIDE | YOUNG],
    ),
    "one rather than two where a gang can spare all": ([SPARE | OLD], [SPARE | YOUNG] * 2),
    "two outside that a gang can spare rather than a lone one": ([SPARE | OLD] * 2, [YOUNG]),
    "one that a gang can spare rather than two": ([SPARE | OLD], [SPARE | YOUNG] * 2),
    "a lone one inside rather than one outside that a gang can spare": ([INSIDE | OLD], [SPARE | YOUNG]),
    "the lower priority": ([OLD], [{"priority": 9} | YOUNG]),
    "less lost": ([YOUNG], [OLD]),
    "the least important where all is equal": ([{}], [{}]),
}


@pytest.mark.parametrize(("cheap", "dear"), ORDER.values(), ids=ORDER.keys())
def test_order(cheap: list[dict[str, object]], dear: list[dict[str, object]]) -> None:
    """Each digit weighs more than all after it."""
    words = [{"labels": {"app": ""}} | each for each in (*cheap, *dear)]
    pods = [resident(f"p{i}", cpu=1, **each) for i, each in enumerate(words)]
    each = priced(pods, len(pods)).each
    costs = costs_of(pods)
    named = sorted(range(len(pods)), key=costs.key)
    one, other = named[: len(cheap)], named[len(cheap) :]
    assert each[one].sum() < each[other].sum()
