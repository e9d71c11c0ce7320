"""Fair shares of a tree, worked examples first."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queue_builders import CPU, GPU, MEMORY, cell, queue

from model.queue import ROOT_QUEUE, Queue, QuotaCell
from scheduler.core.queues.shares import (
    GuaranteeRule,
    QuotaMode,
    Share,
    ShareRules,
    brought_by_queues,
    cell_shares,
    dominant_share,
    entitled,
    entitlements,
    fair_shares,
    guarantees,
    kept,
    over_committed,
    subtree_demand,
    within,
)
from scheduler.core.queues.tree import tree_of

FLOOR = ShareRules(guarantee=GuaranteeRule.FLOOR)
BY_WEIGHT = ShareRules(mode=QuotaMode.PROPORTION)
MUCH = 10_000

Case = tuple[int, tuple[Queue, ...], dict[str, int], dict[str, int]]
ORG = (queue("sci"), queue("eng", weight=5), queue("dev", "eng", weight=3), queue("prod", "eng", weight=2))
EXAMPLES: dict[str, Case] = {
    # capacity, queues, demands of the leaves, shares
    "demands 10, 50, 80": (
        100,
        (queue("a"), queue("b"), queue("c")),
        {"a": 10, "b": 50, "c": 80},
        {"a": 10, "b": 45, "c": 45},
    ),
    "10/30/20, not Volcano's 12/36/12": (
        60,
        ORG,
        dict.fromkeys(("sci", "dev", "prod"), MUCH),
        {"sci": 10, "eng": 50, "dev": 30, "prod": 20},
    ),
    "an idle sibling's part stays in its subtree": (
        60,
        ORG,
        {"sci": MUCH, "dev": MUCH},
        {"sci": 10, "eng": 50, "dev": 50, "prod": 0},
    ),
    "a subtree that wants little leaves the rest": (
        60,
        ORG,
        {"sci": MUCH, "dev": 6, "prod": 2},
        {"sci": 52, "eng": 8, "dev": 6, "prod": 2},
    ),
    "min 40, weights 1:1:2, added": (
        100,
        (queue("a", cpu=cell(40)), queue("b"), queue("c", weight=2)),
        {"a": MUCH, "b": MUCH, "c": MUCH},
        {"a": 55, "b": 15, "c": 30},
    ),
    "an idle guarantee is kept": (
        100,
        (queue("a", cpu=cell(40)), queue("b")),
        {"b": MUCH},
        {"a": 40, "b": 60},
    ),
    "capped": (
        100,
        (queue("a", cpu=cell(maximum=20)), queue("b"), queue("c")),
        {"a": MUCH, "b": 30, "c": MUCH},
        {"a": 20, "b": 30, "c": 50},
    ),
    "an inner maximum caps its children": (
        100,
        (queue("org", weight=9, cpu=cell(maximum=30)), queue("a", "org"), queue("b", "org"), queue("c")),
        {"a": MUCH, "b": MUCH, "c": MUCH},
        {"org": 30, "a": 15, "b": 15, "c": 70},
    ),
    "a maximum of nothing": (100, (queue("a", cpu=cell(maximum=0)), queue("b")), {"a": 5, "b": 5}, {"a": 0, "b": 5}),
    "guarantees that do not fit are scaled down": (
        90,
        (queue("a", cpu=cell(80)), queue("b", cpu=cell(40)), queue("c")),
        {"a": MUCH, "b": MUCH, "c": MUCH},
        {"a": 60, "b": 30, "c": 0},
    ),
    "children's guarantees count for their parent": (
        100,
        (queue("org"), queue("a", "org", cpu=cell(70)), queue("b")),
        {"a": MUCH, "b": MUCH},
        {"org": 85, "a": 85, "b": 15},
    ),
    "nominal first, in proportion of what is missing": (
        90,
        (queue("a", cpu=cell(nominal=80)), queue("b", cpu=cell(nominal=40)), queue("c")),
        {"a": MUCH, "b": MUCH, "c": MUCH},
        {"a": 60, "b": 30, "c": 0},
    ),
    "guarantee, nominal, then weight": (
        100,
        (queue("a", cpu=cell(20, nominal=40)), queue("b", cpu=cell(nominal=20)), queue("c", weight=2)),
        {"a": MUCH, "b": MUCH, "c": MUCH},
        {"a": 50, "b": 30, "c": 20},
    ),
    "nominal that nobody wants goes to the others": (
        100,
        (queue("a", cpu=cell(nominal=60)), queue("b", cpu=cell(nominal=40))),
        {"a": 10, "b": MUCH},
        {"a": 10, "b": 90},
    ),
    "what may not be borrowed goes to the others": (
        100,
        (queue("a", cpu=cell(nominal=20, borrowing_limit=10)), queue("b", cpu=cell(nominal=20))),
        {"a": MUCH, "b": MUCH},
        {"a": 30, "b": 70},
    ),
    "what is not lent is kept": (
        100,
        (queue("a", cpu=cell(nominal=50, lending_limit=10)), queue("b")),
        {"b": MUCH},
        {"a": 40, "b": 60},
    ),
    "nobody wants anything": (100, (queue("a"), queue("b", cpu=cell(nominal=60))), {}, {"a": 0, "b": 0}),
    "no capacity": (0, (queue("a", cpu=cell(5)), queue("b")), {"a": 9, "b": 9}, {"a": 0, "b": 0}),
    "ties by name": (10, (queue("c"), queue("b"), queue("a")), {"a": 9, "b": 9, "c": 9}, {"a": 4, "b": 3, "c": 3}),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name: str) -> None:
    """Every node of the tree stores its share, the root all there is (S104)."""
    capacity, queues, demand, expected = EXAMPLES[name]
    shares = fair_shares(tree_of(queues), {CPU: capacity}, {leaf: {CPU: amount} for leaf, amount in demand.items()})
    assert {queue: shares[queue][CPU] for queue in expected} == expected
    assert shares[ROOT_QUEUE] == {CPU: capacity}
    assert shares["default"] == {CPU: 0}


def test_the_guarantee_as_a_floor() -> None:
    """YARN's reading, by a setting: 40, 20, 40 where 40 on top gives 55, 15, 30."""
    queues = (queue("a", cpu=cell(40)), queue("b"), queue("c", weight=2))
    demand = {name: {CPU: MUCH} for name in "abc"}
    shares = fair_shares(tree_of(queues), {CPU: 100}, demand, FLOOR)
    assert [shares[name][CPU] for name in "abc"] == [40, 20, 40]


def test_by_weight_alone_nominal_is_ignored() -> None:
    """Mode `proportion`: limits of borrowing and lending count from nominal, and go with it."""
    quota = cell(nominal=80, borrowing_limit=0, lending_limit=0)
    queues = (queue("a", cpu=quota), queue("b"))
    demand = {name: {CPU: MUCH} for name in "ab"}
    shares = fair_shares(tree_of(queues), {CPU: 100}, demand, BY_WEIGHT)
    assert [shares[name][CPU] for name in "ab"] == [50, 50]
    idle = fair_shares(tree_of(queues), {CPU: 100}, {"b": {CPU: MUCH}}, BY_WEIGHT)
    assert [idle[name][CPU] for name in "ab"] == [0, 100]


def test_a_resource_may_have_a_weight_of_its_own() -> None:
    """Koordinator's shared weight is by resource; what has none goes by the queue's."""
    queues = (queue("a", weight=3, cpu=cell(weight=1)), queue("b"))
    demand = {name: {CPU: MUCH, MEMORY: MUCH} for name in "ab"}
    shares = fair_shares(tree_of(queues), {CPU: 80, MEMORY: 80}, demand)
    assert [shares[name][each] for each in (CPU, MEMORY) for name in "ab"] == [40, 40, 60, 20]


def test_a_missing_nominal_counts_as_the_larger_of_guarantee_and_share() -> None:
    """S95's manifest: weight 10, guarantee 16 of 64 GPUs, no deserved."""
    training = queue("training", weight=10, gpu=cell(16, maximum=64))
    shares = fair_shares(
        tree_of((training, queue("other", weight=10))), {GPU: 64}, {"training": {GPU: 64}, "other": {GPU: 64}}
    )
    assert shares["training"][GPU] == 40
    assert entitled(16, None, 40) == 40
    assert fair_shares(tree_of((training,)), {GPU: 64}, {})["training"][GPU] == 16


ENTITLED: dict[str, tuple[tuple[int, int | None, int], int]] = {
    "no nominal: the share": ((10, None, 30), 30),
    "nominal below the share": ((10, 20, 30), 20),
    "a share below nominal": ((10, 40, 30), 30),
    "never below the guarantee": ((10, 40, 5), 10),
    "over-committed: what there is": ((10, None, 7), 7),
}


@pytest.mark.parametrize("name", ENTITLED)
def test_what_nobody_takes_back(name: str) -> None:
    given_, expected = ENTITLED[name]
    assert entitled(*given_) == expected


def test_demand_is_counted_once_and_clipped_on_the_way_up() -> None:
    """S105: an inner queue's demand is its own and its children's, nothing twice."""
    tree = tree_of((queue("org", cpu=cell(maximum=50)), queue("a", "org", cpu=cell(maximum=20)), queue("b", "org")))
    demand = {"a": {CPU: 30}, "b": {CPU: 25}, "org": {CPU: 1}}
    assert subtree_demand(tree, demand, CPU) == {"a": 20, "b": 25, "org": 46, ROOT_QUEUE: 46}
    assert subtree_demand(tree, {"a": {CPU: 30}, "b": {CPU: 90}}, CPU)["org"] == 50


def test_guarantees_of_a_tree() -> None:
    """An inner queue's is at least its children's; none is above its maximum. What is not lent is kept beside."""
    queues = (
        queue("org", cpu=cell(5)),
        queue("a", "org", cpu=cell(8, maximum=6)),
        queue("b", "org", cpu=cell(3, nominal=10, lending_limit=4)),
    )
    tree = tree_of(queues)
    assert guarantees(tree, CPU) == {"a": 6, "b": 3, "org": 9}
    assert kept(tree, CPU) == {"a": 6, "b": 6, "org": 12}
    assert kept(tree, CPU, BY_WEIGHT) == {"a": 6, "b": 3, "org": 9}


WITHIN = {
    "there is enough": (24, {"org": 12, "a": 6, "b": 6, "c": 12}),
    "without bound": (None, {"org": 12, "a": 6, "b": 6, "c": 12}),
    "half of it is there": (12, {"org": 6, "a": 3, "b": 3, "c": 6}),
    "rounded down": (7, {"org": 3, "a": 1, "b": 1, "c": 3}),
    "nothing is there": (0, {"org": 0, "a": 0, "b": 0, "c": 0}),
}


@pytest.mark.parametrize("name", WITHIN)
def test_what_can_be_kept(name: str) -> None:
    """In proportion where that is less than what all keep, down the tree."""
    capacity, expected = WITHIN[name]
    queues = (queue("org"), queue("a", "org", cpu=cell(6)), queue("b", "org", cpu=cell(6)), queue("c", cpu=cell(12)))
    tree = tree_of(queues)
    assert within(tree, kept(tree, CPU), capacity) == expected


def test_over_committed() -> None:
    """Where children are guaranteed more than their parent's share."""
    tree = tree_of(
        (queue("org", cpu=cell(maximum=20)), queue("a", "org", cpu=cell(15)), queue("b", "org", cpu=cell(15)))
    )
    demand = {"a": {CPU: 50}, "b": {CPU: 50}}
    assert over_committed(tree, fair_shares(tree, {CPU: 100}, demand)) == (("org", CPU),)
    assert over_committed(tree, fair_shares(tree, {CPU: 10}, demand)) == (("", CPU), ("org", CPU))


def test_an_unbounded_cell_gives_everybody_what_is_demanded() -> None:
    """A resource that neither nodes nor quotas bound."""
    shares = fair_shares(tree_of((queue("a"), queue("b"))), {}, {"a": {MEMORY: 7}, "b": {MEMORY: 1 << 50}})
    assert (shares["a"][MEMORY], shares["b"][MEMORY], shares[ROOT_QUEUE][MEMORY]) == (7, 1 << 50, (1 << 50) + 7)


BROUGHT: dict[str, tuple[tuple[Queue, ...], dict[str, int]]] = {
    "nominal": ((queue("a", cpu=cell(1, nominal=5, maximum=9)), queue("b", cpu=cell(nominal=7))), {"cpu": 12}),
    "else maximum": ((queue("a", cpu=cell(1, maximum=9)),), {"cpu": 9}),
    "else guaranteed": ((queue("a", cpu=cell(4)),), {"cpu": 4}),
    "else what is below": (
        (queue("org"), queue("a", "org", cpu=cell(nominal=4)), queue("b", "org", cpu=cell(2))),
        {"cpu": 6},
    ),
    "one says nothing": ((queue("a", cpu=cell(4)), queue("b")), {}),
    "one below says nothing": ((queue("org"), queue("a", "org", cpu=cell(4)), queue("b", "org")), {}),
    "a default that somebody wrote": ((queue("a", cpu=cell(4)), queue("default", source="Queue/default")), {}),
    "nobody": ((), {}),
}


@pytest.mark.parametrize("name", BROUGHT)
def test_capacity_without_nodes(name: str) -> None:
    """The queue `default` that nobody wrote brings nothing, and unbounds nothing."""
    queues, expected = BROUGHT[name]
    assert brought_by_queues(tree_of(queues)) == {("", resource): amount for resource, amount in expected.items()}


DOMINANT: dict[str, tuple[dict[str, int], dict[str, int], int, Share]] = {
    "the larger share": ({"cpu": 3, "memory": 12}, {"cpu": 9, "memory": 18}, 1, Share(Fraction(2, 3), "memory")),
    "bytes do not win over GPUs": (
        {"memory": 64 << 30, "nvidia.com/gpu": 4},
        {"memory": 1 << 40, "nvidia.com/gpu": 8},
        1,
        Share(Fraction(1, 2), "nvidia.com/gpu"),
    ),
    "by weight": ({"cpu": 6}, {"cpu": 9}, 2, Share(Fraction(1, 3), "cpu")),
    "a total of nothing does not count": ({"cpu": 1, "gpu": 5}, {"cpu": 4, "gpu": 0}, 1, Share(Fraction(1, 4), "cpu")),
    "nor does what the cluster lacks": ({"gpu": 5}, {"cpu": 9}, 1, Share()),
    "a tie by name": ({"b": 1, "a": 1}, {"a": 2, "b": 2}, 1, Share(Fraction(1, 2), "a")),
    "nothing used": ({}, {"cpu": 9}, 1, Share()),
    "a weight that nobody may write": ({"cpu": 3}, {"cpu": 9}, 0, Share(Fraction(1, 3), "cpu")),
}


@pytest.mark.parametrize("name", DOMINANT)
def test_dominant_share(name: str) -> None:
    """S98 and S106: exact, no zero total or weight divides, ratios and never raw amounts are compared."""
    used, totals, weight, expected = DOMINANT[name]
    assert dominant_share(used, totals, weight) == expected


quotas = st.builds(
    QuotaCell,
    guaranteed=st.integers(0, 15),
    nominal=st.none() | st.integers(0, 40),
    maximum=st.none() | st.integers(0, 60),
    borrowing_limit=st.none() | st.integers(0, 20),
    lending_limit=st.none() | st.integers(0, 20),
)
PARENTS = {"A": "", "B": "", "a1": "A", "a2": "A", "b1": "B", "b2": "B", "c": "", "A3": "A", "a31": "A3", "a32": "A3"}
LEAVES = ("a1", "a2", "b1", "b2", "c", "a31", "a32")
trees = st.fixed_dictionaries({name: st.tuples(st.integers(1, 4), st.none() | quotas) for name in PARENTS}).map(
    lambda drawn: [
        queue(name, PARENTS[name], weight, cpu=quota, source="Queue/" + name) for name, (weight, quota) in drawn.items()
    ]
)
demands = st.dictionaries(st.sampled_from(LEAVES), st.integers(0, 80).map(lambda amount: {CPU: amount}))
rules = st.builds(ShareRules, mode=st.sampled_from(QuotaMode), guarantee=st.sampled_from(GuaranteeRule))


@given(queues=trees, capacity=st.integers(0, 200), demand=demands, by=rules)
def test_a_parents_share_is_divided_and_nothing_is_left_that_a_child_could_use(
    queues: list[Queue], capacity: int, demand: dict[str, dict[tuple[str, str], int]], by: ShareRules
) -> None:
    """Σ children = min(parent's share, Σ of what each may have): never more, and nothing idle while one could use it."""
    tree = tree_of(queues)
    shares = cell_shares(tree, capacity, demand, CPU, by)
    bases, wants = kept(tree, CPU, by), subtree_demand(tree, demand, CPU, by)
    for parent, children in tree.children.items():
        caps = {name: max(bases.get(name, 0), wants.get(name, 0)) for name in children}
        assert sum(shares[name] for name in children) == min(shares[parent], sum(caps.values()))
        assert all(shares[name] <= caps[name] for name in children)
        if sum(bases.get(name, 0) for name in children) <= shares[parent]:
            assert all(shares[name] >= bases.get(name, 0) for name in children)


@given(queues=trees, capacity=st.integers(0, 200), demand=demands, by=rules)
def test_children_are_entitled_to_no_more_than_their_parent(
    queues: list[Queue], capacity: int, demand: dict[str, dict[tuple[str, str], int]], by: ShareRules
) -> None:
    """But where more is guaranteed than there is; and nobody is entitled to more than its share."""
    tree = tree_of(queues)
    shares = cell_shares(tree, capacity, demand, CPU, by)
    due, bases, promised = entitlements(tree, shares, CPU, by), kept(tree, CPU, by), guarantees(tree, CPU)
    assert all(due[name] <= max(shares[name], promised.get(name, 0)) for name in tree.top_down)
    for parent, children in tree.children.items():
        if sum(bases.get(name, 0) for name in children) <= min(due[parent], shares[parent]):
            assert sum(due[name] for name in children) <= due[parent]


@given(queues=trees, capacity=st.integers(0, 200), demand=demands, by=rules, which=st.sampled_from(sorted(PARENTS)))
def test_more_weight_never_gives_less(
    queues: list[Queue], capacity: int, demand: dict[str, dict[tuple[str, str], int]], by: ShareRules, which: str
) -> None:
    heavier = [
        queue(one.name, one.parent, one.weight + (one.name == which), one.cells.get(CPU), source=one.source)
        for one in queues
    ]
    before = cell_shares(tree_of(queues), capacity, demand, CPU, by)
    assert cell_shares(tree_of(heavier), capacity, demand, CPU, by)[which] >= before[which]


@given(queues=trees, capacity=st.integers(0, 200), demand=demands, chance=st.randoms(use_true_random=False))
def test_the_order_of_queues_does_not_matter(
    queues: list[Queue], capacity: int, demand: dict[str, dict[tuple[str, str], int]], chance: object
) -> None:
    mixed = list(queues)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    reordered = dict(reversed(demand.items()))
    assert cell_shares(tree_of(queues), capacity, demand, CPU) == cell_shares(tree_of(mixed), capacity, reordered, CPU)


@given(
    queues=trees,
    capacity=st.integers(0, 200),
    demand=demands,
    by=rules,
    leaf=st.sampled_from(LEAVES),
    more=st.integers(1, 50),
)
def test_asking_for_more_than_is_needed_gives_no_more_of_it(
    queues: list[Queue],
    capacity: int,
    demand: dict[str, dict[tuple[str, str], int]],
    by: ShareRules,
    leaf: str,
    more: int,
) -> None:
    """Flat queues: what a claim beyond the need brings is beyond the need."""
    flat = [queue(one.name, "", one.weight, one.cells.get(CPU)) for one in queues]
    need = demand.get(leaf, {}).get(CPU, 0)
    lied = {**demand, leaf: {CPU: need + more}}
    honest, got = (cell_shares(tree_of(flat), capacity, said, CPU, by)[leaf] for said in (demand, lied))
    assert min(need, got) <= min(need, honest)
