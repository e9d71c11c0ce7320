"""Against every subset of pods: no set of victims costs more than need be, and none is in vain."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import at_length
from preemption_builders import NOW, Arena, members, node, resident, victims, waiting
from preemption_reference import Budgets, Cost, budget, cost
from scheduler_builders import gang

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.preemption.facts import GangFacts, NoPreemption, PreemptionPlan

NODES = ("n1", "n2", "n3")
Ask = tuple[int, int, int, bool]
"""How many members of how many CPUs each, their priority, and whether they are inside the bands."""


@st.composite
def budgets(draw: st.DrawFn) -> Budgets:
    """Of apps `x` and `y`, each allowing up to two, and none at all in half of all cases."""
    if draw(st.booleans()):
        return ()
    return tuple(budget(app, draw(st.integers(0, 2))) for app in "xy")


@st.composite
def clusters(draw: st.DrawFn, gangs: bool = False) -> tuple[list[Pod], dict[str, GangFacts]]:
    """Up to 8 pods of 1–3 CPUs, priorities 1–3, on three nodes of 4 CPUs, never more than there is room for.

    Some are of the mid, batch or free band, some of app `x` or `y`; they have run for minutes or for hours.
    """
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
        started = NOW - float(draw(st.sampled_from([60, 61, 70, 200, 3600, 3660, 9000])))
        words = {"below_prod": draw(st.booleans()), "labels": {"app": draw(st.sampled_from(["", "x", "y"]))}}
        own = {"priority": priority, "group": group, "started_seconds": started}
        own["minimum_member"] = bool(group) and draw(st.booleans())
        pods.append(resident(f"p{number}", on, cpu, **own, **words))
    facts = {}
    for group in ("a", "b"):
        size = sum(1 for pod in pods if pod.spec.gang and pod.spec.gang.name == group)
        if size:
            facts[WorkloadId.gang(f"default/{group}")] = GangFacts(
                draw(st.integers(1, size)), size, draw(st.booleans())
            )
    return pods, facts


def free_of(pods: list[Pod], gone: frozenset[str]) -> dict[str, int]:
    """Whole CPUs left on each node."""
    left = dict.fromkeys(NODES, 4)
    for pod in pods:
        if pod.name not in gone:
            left[pod.spec.node_name] -= pod.spec.requests.amounts["cpu"] // 1000
    return left


def allowed(pods: list[Pod], gone: frozenset[str], facts: dict[str, GangFacts], priority: int, inside: bool) -> bool:
    """Everybody who goes is of lower priority, for work inside the bands inside them; no gang falls under its minimum, or
    loses one of its minimum alone.
    """
    if any(
        pod.spec.priority >= priority or (inside and not pod.colocation.below_prod) for pod in pods if pod.name in gone
    ):
        return False
    for subject, gang_facts in facts.items():
        own = [pod.name for pod in pods if pod.spec.gang and WorkloadId.gang(pod.spec.gang.key) == subject]
        lost = sum(1 for name in own if name in gone)
        needed = any(pod.colocation.minimum_member for pod in pods if pod.name in gone and pod.name in own)
        if lost and lost < len(own) and (needed or lost > gang_facts.surplus):
            return False
    return True


def best(pods: list[Pod], facts: dict[str, GangFacts], kept: Budgets, ask: Ask) -> Cost | None:
    """The cost of the cheapest set of victims that helps."""
    number, cpu, priority, inside = ask
    costs = []
    for size in range(len(pods) + 1):
        for chosen in combinations(pods, size):
            gone = frozenset(pod.name for pod in chosen)
            fits = sum(left // cpu for left in free_of(pods, gone).values()) >= number
            if fits and allowed(pods, gone, facts, priority, inside):
                costs.append(cost(chosen, kept, facts))
    return min(costs, default=None)


def check(pods: list[Pod], facts: dict[str, GangFacts], kept: Budgets, ask: Ask) -> None:
    number, cpu, priority, inside = ask
    if sum(left // cpu for left in free_of(pods, frozenset()).values()) >= number:
        return
    own = {"priority": priority, "below_prod": inside}
    preemptors = members(number, cpu, **own) if number > 1 else [waiting(cpu=cpu, **own)]
    more = {"gangs": facts, "budgets": kept}
    outcome = Arena([node(name) for name in NODES], pods).ask(preemptors, gang(number) if number > 1 else None, **more)
    expected = best(pods, facts, kept, ask)
    if expected is None:
        assert isinstance(outcome, NoPreemption)
        return
    assert isinstance(outcome, PreemptionPlan), (outcome, expected)
    gone = frozenset(victims(outcome))
    assert allowed(pods, gone, facts, priority, inside)
    assert cost([pod for pod in pods if pod.name in gone], kept, facts) == expected
    turned = Arena([node(name) for name in reversed(NODES)], reversed(pods))
    assert turned.ask(preemptors, gang(number) if number > 1 else None, **more) == outcome


asks = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.booleans())


@settings(max_examples=60)
@given(clusters(), budgets(), asks)
def test_pods(cluster: tuple[list[Pod], dict[str, GangFacts]], kept: Budgets, ask: Ask) -> None:
    """Lone pods as victims: the same cost as the best of all subsets, whatever the order of nodes and pods."""
    check(*cluster, kept, ask)


@settings(max_examples=60)
@given(clusters(gangs=True), budgets(), asks)
def test_gangs(cluster: tuple[list[Pod], dict[str, GangFacts]], kept: Budgets, ask: Ask) -> None:
    """Gangs as victims, with and without members to spare: as above, and no gang is left under its minimum."""
    check(*cluster, kept, ask)


test_many_pods = at_length(test_pods, clusters(), budgets(), asks, examples=1000)
test_many_gangs = at_length(test_gangs, clusters(gangs=True), budgets(), asks, examples=1000)
