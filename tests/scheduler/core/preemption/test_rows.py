"""Nodes full of pods of one size, too many to try every set of them: what goes costs no more than it must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import at_length
from preemption_builders import NOW, Arena, members, node, resident, victims, waiting
from preemption_reference import budget, cost, least_cost
from scheduler_builders import gang

from model.pod.pod import Pod
from scheduler.core.preemption.capacity import RoomRequest
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import NoPreemption, PreemptionFacts
from scheduler.core.preemption.rows import clear_rows
from scheduler.core.preemption.victims import victims_of

SIZE = 4
AGES = (30, 60, 61, 90, 600, 630, 3600, 3700, 9000)


@st.composite
def crowds(draw: st.DrawFn) -> list[Pod]:
    """Six to eight nodes, each with four pods of 1 CPU that leave no room; some of an app whose budget is closed."""
    mixed, guarded = draw(st.booleans()), draw(st.booleans())
    pods = []
    for number in range(SIZE * draw(st.integers(6, 8))):
        words = {
            "priority": draw(st.sampled_from([-5, 1, 2, 7])),
            "below_prod": mixed and draw(st.booleans()),
            "labels": {"app": draw(st.sampled_from(["", "", "x"])) if guarded else ""},
            "started_seconds": NOW - draw(st.sampled_from(AGES)),
        }
        pods.append(resident(f"p{number}", f"n{number // SIZE}", 1, **words))
    return pods


@settings(max_examples=40)
@given(crowds(), st.integers(1, 9), st.integers(1, 3), st.sampled_from([2, 10]))
def test_no_dearer_than_need_be(pods: list[Pod], number: int, cpu: int, priority: int) -> None:
    """By every part of the cost: bands, budgets, highest priority, numbers, priorities, nodes and lost work."""
    nodes = [node(f"n{each}", SIZE) for each in range(len(pods) // SIZE)]
    asking = members(number, cpu, priority=priority) if number > 1 else [waiting(cpu=cpu, priority=priority)]
    outcome = Arena(nodes, pods).ask(asking, gang(number) if number > 1 else None, budgets=(budget("x"),))
    expected = least_cost([pod for pod in pods if pod.spec.priority < priority], "x", number, cpu)
    if expected is None:
        assert isinstance(outcome, NoPreemption)
        return
    gone = set(victims(outcome))
    assert cost([pod for pod in pods if pod.name in gone], (budget("x"),)) == expected


test_many_no_dearer_than_need_be = at_length(
    test_no_dearer_than_need_be, crowds(), st.integers(1, 9), st.integers(1, 3), st.sampled_from([2, 10])
)


def guarded_node(name: str, number: int = 16) -> list[Pod]:
    """On a node of its own, covered by the closed budget, so that too many groups may be evicted for every set to be tried."""
    return [resident(f"z{i:02}", name, 1, labels={"app": "x"}) for i in range(number)]


ONE_NODE: dict[str, tuple[dict[str, tuple[int, dict[str, Any]]], list[str]]] = {
    "two small ones rather than one large one that breaks a budget": (
        {"a": (4, {"labels": {"app": "x"}}), "b": (3, {"started_seconds": 1.0}), "c": (2, {}), "d": (2, {})},
        ["c", "d"],
    ),
    "two inside rather than one outside": (
        {"a": (4, {}), "b": (2, {"below_prod": True}), "c": (2, {"below_prod": True})},
        ["b", "c"],
    ),
    "the younger two of four": (
        {"a": (3, {"started_seconds": 1.0}), "b": (1, {"started_seconds": 1.0}), "c": (2, {}), "d": (2, {})},
        ["c", "d"],
    ),
    "one rather than two": ({"a": (4, {"started_seconds": 1.0}), "b": (2, {}), "c": (2, {})}, ["a"]),
}


@pytest.mark.parametrize("name", ONE_NODE)
def test_pods_of_several_sizes(name: str) -> None:
    """Sets of a node's pods are compared by what they cost, not only by their number; four CPUs are asked for."""
    sizes, expected = ONE_NODE[name]
    pods = [resident(each, "n1", cpu, **({"labels": {"app": ""}} | words)) for each, (cpu, words) in sizes.items()]
    arena = Arena([node("n1", sum(cpu for cpu, _ in sizes.values())), node("n2", 16)], [*pods, *guarded_node("n2")])
    assert victims(arena.ask([waiting(cpu=4)], budgets=(budget("x"),))) == expected


def test_rows_of_which_the_pods_are_spared_are_looked_at_last() -> None:
    """Of more rows than are looked at closely the last ones by name are found where all others are dear."""
    nodes = [node(f"n{number:02}") for number in range(60)]
    guarded = [resident(f"g{n:02}", f"n{n:02}", 4, priority=-9, labels={"app": "x"}) for n in range(29)]
    outside = [resident(f"o{n:02}", f"n{n:02}", 4, priority=-9, labels={"app": ""}) for n in range(29, 58)]
    inside = [resident(f"i{n}", f"n{n}", 4, below_prod=True, priority=n, labels={"app": ""}) for n in (58, 59)]
    arena = Arena(nodes, [*guarded, *outside, *inside])
    assert victims(arena.ask(members(2, 4), gang(2), budgets=(budget("x"),))) == ["i58", "i59"]
    outcome = victims(arena.ask(members(4, 4), gang(4), budgets=(budget("x"),)))
    assert outcome == ["i58", "i59", "o29", "o30"]


def test_rows_with_more_room_to_gain_come_first() -> None:
    """Of more rows than are looked at closely one that takes all members is found, though it is the last by name."""
    small = [resident(f"a{n:02}", f"n{n:02}", 1) for n in range(40)]
    large = [resident(f"b{n}", "n99", 1) for n in range(4)]
    arena = Arena([*(node(f"n{n:02}", 1) for n in range(40)), node("n99", 4)], [*small, *large])
    assert victims(arena.ask(members(4, 1), gang(4))) == ["b0", "b1", "b2", "b3"]


def test_rows_of_lower_priorities_come_first() -> None:
    """Of more rows than are looked at closely, all of which need a pod of the highest level, the one with a lower beside."""
    pods = [resident(f"a{n:02}", f"n{n // 2:02}", 1, priority=5) for n in range(80)]
    pods += [resident("b0", "n99", 1, priority=5), resident("b1", "n99", 1, priority=1)]
    arena = Arena([*(node(f"n{n:02}", 2) for n in range(40)), node("n99", 2)], pods)
    assert victims(arena.ask([waiting(cpu=2)])) == ["b0", "b1"]


def test_a_nodes_price_is_that_of_its_largest_pods() -> None:
    """One large old pod is had for less than two of another node, though younger and smaller ones are beside it."""
    pods = [resident("big", "n1", 4, started_seconds=1.0, labels={"app": ""})]
    pods += [resident(f"s{i}", "n1", 1, labels={"app": ""}) for i in range(4)]
    pods += [resident(f"two{i}", "n2", 2, labels={"app": ""}) for i in range(2)]
    arena = Arena([node("n1", 8), node("n2", 4), node("n3", 16)], [*pods, *guarded_node("n3")])
    assert victims(arena.ask([waiting(cpu=4)], budgets=(budget("x"),))) == ["big"]


def cleared(pods: list[Pod], want: int, cpu: int = 4, going: tuple[str, ...] = ()) -> set[str]:
    """Names of the victims besides `going` so that `want` pods of so many CPUs fit onto nodes of 4."""
    names = sorted({pod.spec.node_name for pod in pods})
    arena = Arena([node(name, 4) for name in names], pods)
    residents = arena.residents()
    victims = victims_of(residents, residents.rows >= 0, [0], {}, len(names))
    costs = VictimCosts(victims, residents, PreemptionFacts(), NOW)
    index = {pod.name: number for number, pod in enumerate(pods)}
    gone = np.array(sorted(index[name] for name in going), np.int64)
    free = arena.snapshot.free[:, [0]] + victims.freed(gone, len(names))
    ask = RoomRequest(np.array([1000 * cpu]), np.full(len(names), 9), want)
    found = clear_rows(ask, free, np.arange(len(pods)), costs, gone.tolist())
    assert found is not None
    return {pods[number].name for number in found}


def pair(on: str, *, priority: int = 0, age: float = 600.0) -> list[Pod]:
    """Two pods that fill a node."""
    words = {"priority": priority, "started_seconds": NOW - age}
    return [resident(f"{on}{half}", on, 2, **words) for half in "xy"]


PRICES: dict[str, tuple[list[Pod], int, int, tuple[str, ...], set[str]]] = {
    "the lower priority": ([*pair("a", priority=2), *pair("b", priority=1)], 1, 4, (), {"bx", "by"}),
    "the lower sum of priorities": (
        [resident("ah", "a", 2, priority=5), resident("al", "a", 2), *pair("b", priority=2)],
        1,
        4,
        (),
        {"bx", "by"},
    ),
    "the younger, of the same priority": ([*pair("a", age=9000), *pair("b", age=60)], 1, 4, (), {"bx", "by"}),
    "one rather than two, however old": (
        [*pair("a", age=60), resident("b", "b", 4, started_seconds=1.0)],
        1,
        4,
        (),
        {"b"},
    ),
    "two of one node rather than one each of two": (
        [*pair("a", age=600), *pair("b", age=600)],
        2,
        2,
        (),
        {"ax", "ay"},
    ),
    "of two nodes where that loses much less work": (
        [
            resident("ax", "a", 2, started_seconds=NOW - 1),
            resident("ay", "a", 2, started_seconds=NOW - 9000),
            resident("bx", "b", 2, started_seconds=NOW - 1),
            resident("by", "b", 2, started_seconds=NOW - 9000),
        ],
        2,
        2,
        (),
        {"ax", "bx"},
    ),
    "the node that loses pods already": (
        [*pair("a", age=600), *pair("b", age=600)],
        2,
        2,
        ("by",),
        {"bx"},
    ),
    "the node that loses pods already costs less than a little more work elsewhere": (
        [*pair("a", age=300), *pair("b", age=600)],
        2,
        2,
        ("by",),
        {"bx"},
    ),
}


@pytest.mark.parametrize("name", PRICES)
def test_the_price_of_a_victim(name: str) -> None:
    """Priority, numbers, then work lost and nodes that lose pods, each only where those before it are equal."""
    pods, want, cpu, going, expected = PRICES[name]
    assert cleared(pods, want, cpu, going) == expected


def test_a_row_counts_for_no_more_than_it_holds() -> None:
    """36 members of one node each: of 40 nodes not only the most promising are looked at."""
    pods = [resident(f"v{n:02}", f"n{n:02}", 4) for n in range(40)]
    assert len(cleared(pods, 36)) == 36


def test_only_rows_that_gain_are_compared() -> None:
    """Nodes with room already take their members for nothing, and no price a member is that of none."""
    pods = [resident(f"s{n:02}", f"a{n:02}", 1) for n in range(20)]
    pods += [resident(f"v{n:02}", f"b{n:02}", 4, priority=int(n != 7)) for n in range(20)]
    with np.errstate(divide="raise", invalid="raise"):
        assert cleared(pods, 21, cpu=3) == {"v07"}


def test_rows_are_looked_at_by_the_share_of_their_pods_that_is_spared() -> None:
    """One of four rather than one of two: not by how many they are."""
    nodes, pods = [], []
    for number in range(40):
        small = 3 if number >= 38 else 1
        nodes.append(node(f"n{number:02}", 4 + small))
        app = {"labels": {"app": ""}}
        pods.append(resident(f"z{number:02}", f"n{number:02}", 1, labels={"app": "x"}))
        pods += [
            resident(f"v{number:02}", f"n{number:02}", 4, started_seconds=NOW - (60 if number >= 38 else 9000), **app)
        ]
        pods += [resident(f"w{number:02}-{n}", f"n{number:02}", 1, **app) for n in range(small - 1)]
    arena = Arena(nodes, pods)
    assert victims(arena.ask(members(2, 4), gang(2), budgets=(budget("x"),))) == ["v38", "v39"]
