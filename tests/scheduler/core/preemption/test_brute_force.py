"""Against every subset of pods: who goes is never dearer than need be, and never in vain."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import at_length
from preemption_builders import Arena, members, node, resident, victims, waiting
from scheduler_builders import gang

from model.pod import Pod
from scheduler.core.preemption.facts import GangFacts, NoPreemption, Plan

NODES = ("n1", "n2", "n3")


@st.composite
def clusters(draw: st.DrawFn, gangs: bool = False) -> tuple[list[Pod], dict[str, GangFacts]]:
    """Up to 8 pods of 1–3 CPUs, priorities 1–3, on three nodes of 4 CPUs, never more than there is room for."""
    pods: list[Pod] = []
    left = dict.fromkeys(NODES, 4)
    groups = st.sampled_from(["", "a", "b"]) if gangs else st.just("")
    for number in range(draw(st.integers(0, 8))):
        on, cpu = draw(st.sampled_from(NODES)), draw(st.integers(1, 3))
        if cpu > left[on]:
            continue
        left[on] -= cpu
        group = draw(groups)
        priority = {"a": 1, "b": 2}.get(group) or draw(st.integers(1, 3))
        started = float(draw(st.integers(1, 9)) * 100)
        pods.append(resident(f"p{number}", on, cpu, priority=priority, group=group, started_seconds=started))
    facts = {}
    for group in ("a", "b"):
        size = sum(1 for pod in pods if pod.gang and pod.gang.name == group)
        if size:
            facts[f"gang/default/{group}"] = GangFacts(draw(st.integers(1, size)), size, draw(st.booleans()))
    return pods, facts


def free_of(pods: list[Pod], gone: frozenset[str]) -> dict[str, int]:
    """Whole CPUs left on each node."""
    left = dict.fromkeys(NODES, 4)
    for pod in pods:
        if pod.name not in gone:
            left[pod.node_name] -= pod.requests.amounts["cpu"] // 1000
    return left


def allowed(pods: list[Pod], gone: frozenset[str], facts: dict[str, GangFacts], priority: int) -> bool:
    """Everybody who goes is of lower priority, and no gang is left under its minimum."""
    if any(pod.priority >= priority for pod in pods if pod.name in gone):
        return False
    for subject, gang_facts in facts.items():
        own = [pod.name for pod in pods if pod.gang and f"gang/{pod.gang.key}" == subject]
        lost = sum(1 for name in own if name in gone)
        if lost and lost < len(own) and (gang_facts.whole or lost > gang_facts.bound - gang_facts.min_member):
            return False
    return True


def best(pods: list[Pod], facts: dict[str, GangFacts], ask: tuple[int, int, int]) -> tuple[int, int, int] | None:
    """(highest priority, number, sum of priorities) of the cheapest set that helps `ask` = (number, CPUs, priority)."""
    number, cpu, priority = ask
    costs = []
    for size in range(len(pods) + 1):
        for chosen in combinations(pods, size):
            gone = frozenset(pod.name for pod in chosen)
            fits = sum(left // cpu for left in free_of(pods, gone).values()) >= number
            if fits and allowed(pods, gone, facts, priority):
                levels = [pod.priority for pod in chosen]
                costs.append((max(levels, default=0), size, sum(levels)))
    return min(costs, default=None)


def check(pods: list[Pod], facts: dict[str, GangFacts], ask: tuple[int, int, int]) -> None:
    number, cpu, priority = ask
    if sum(left // cpu for left in free_of(pods, frozenset()).values()) >= number:
        return
    preemptors = members(number, cpu, priority=priority) if number > 1 else [waiting(cpu=cpu, priority=priority)]
    arena = Arena([node(name) for name in NODES], pods)
    outcome = arena.ask(preemptors, gang(number) if number > 1 else None, gangs=facts)
    expected = best(pods, facts, ask)
    if expected is None:
        assert isinstance(outcome, NoPreemption)
        return
    assert isinstance(outcome, Plan), (outcome, expected)
    gone = frozenset(victims(outcome))
    levels = [pod.priority for pod in pods if pod.name in gone]
    assert allowed(pods, gone, facts, priority)
    assert (max(levels), len(levels), sum(levels)) == expected
    turned = Arena([node(name) for name in reversed(NODES)], reversed(pods))
    assert turned.ask(preemptors, gang(number) if number > 1 else None, gangs=facts) == outcome


asks = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))


@settings(max_examples=40, deadline=None)
@given(clusters(), asks)
def test_pods(cluster: tuple[list[Pod], dict[str, GangFacts]], ask: tuple[int, int, int]) -> None:
    """Lone pods as victims: the same cost as the best of all subsets, whatever the order of nodes and pods."""
    check(*cluster, ask)


@settings(max_examples=40, deadline=None)
@given(clusters(gangs=True), asks)
def test_gangs(cluster: tuple[list[Pod], dict[str, GangFacts]], ask: tuple[int, int, int]) -> None:
    """Gangs as victims, with and without members to spare: as above, and no gang is left under its minimum."""
    check(*cluster, ask)


test_many_pods = at_length(test_pods, clusters(), asks, examples=1000)
test_many_gangs = at_length(test_gangs, clusters(gangs=True), asks, examples=1000)
