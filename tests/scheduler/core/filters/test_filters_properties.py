"""On random clusters the filters say of every node what the plain reference says."""

from __future__ import annotations

from typing import Any

import msgspec
from filter_builders import HOST, ZONE, asked, cluster, pod_index, told
from filter_reference import World, first_reason, node_matches, tolerated
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import at_length
from scheduler_builders import node, pod

from model.node import Taint, TaintEffect
from model.pod.affinity import Affinity, HostPort, NodeTerm, PodTerm, SpreadConstraint
from model.pod.pod import Pod
from model.pod.spec import Toleration, TolerationOperator
from model.selector import Operator, Requirement, Selector
from scheduler.core.filters.static import selected, verdicts
from scheduler.core.snapshot.podclass import class_of, pod_traits_of

KEYS = st.sampled_from((ZONE, HOST, "rack"))
PAIRS = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("a", "b")))


def requirements(keys: st.SearchStrategy[str], values: tuple[str, ...]) -> st.SearchStrategy[Requirement]:
    def build(key: str, operator: Operator, listed: list[str]) -> Requirement:
        return Requirement(key, operator, tuple(listed))

    return st.builds(build, keys, st.sampled_from(Operator), st.lists(st.sampled_from(values), min_size=1, max_size=2))


POD_OPERATORS = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
POD_REQUIREMENTS = requirements(st.sampled_from(("app", "tier")), ("a", "b")).filter(
    lambda requirement: requirement.operator in POD_OPERATORS
)
SELECTORS = st.none() | st.lists(POD_REQUIREMENTS, max_size=2).map(lambda found: Selector(tuple(found)))
TEAMS = st.sampled_from(("x", "y"))
MOVES = st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=6)
NAMESPACE_SELECTORS = (
    st.none() | st.just(Selector()) | TEAMS.map(lambda team: Selector((Requirement("team", Operator.IN, (team,)),)))
)
TERMS = st.builds(
    PodTerm,
    KEYS,
    SELECTORS,
    st.lists(st.sampled_from(("default", "other")), max_size=1).map(tuple),
    NAMESPACE_SELECTORS,
)
NODE_LABELS = st.fixed_dictionaries(
    {}, optional={ZONE: st.sampled_from(("z1", "z2")), "rack": st.sampled_from(("1", "2", "03"))}
)
TAINTS = st.lists(
    st.builds(
        Taint,
        st.sampled_from("kl"),
        st.sampled_from("vw"),
        st.sampled_from((TaintEffect.NO_SCHEDULE, TaintEffect.PREFER_NO_SCHEDULE)),
    ),
    max_size=1,
).map(tuple)
PORTS = st.lists(
    st.builds(
        HostPort,
        st.sampled_from((80, 81)),
        st.sampled_from(("TCP", "UDP")),
        st.sampled_from(("0.0.0.0", "10.0.0.1", "10.0.0.2")),
    ),
    max_size=1,
).map(tuple)
SPREAD = st.lists(
    st.builds(
        SpreadConstraint,
        KEYS,
        st.integers(1, 2),
        st.booleans(),
        SELECTORS,
        st.integers(1, 3),
        st.booleans(),
        st.booleans(),
    ),
    max_size=2,
).map(tuple)
NODE_TERMS = st.builds(
    NodeTerm,
    st.lists(requirements(KEYS, ("z1", "n1", "1", "2")), max_size=2).map(tuple),
    st.lists(
        requirements(st.just("metadata.name"), ("n0", "n1")).filter(lambda r: r.operator in POD_OPERATORS[:2]),
        max_size=1,
    ).map(tuple),
)
FEW_TERMS = st.lists(TERMS, max_size=2).map(tuple)


@st.composite
def pods(draw: Any, name: str) -> Pod:
    return pod(
        name,
        namespace=draw(st.sampled_from(("default", "default", "other"))),
        labels=draw(PAIRS),
        deleting=draw(st.booleans()),
        host_ports=draw(PORTS),
        spread=draw(SPREAD),
        affinity=Affinity(
            nodes=draw(st.none() | st.lists(NODE_TERMS, max_size=2).map(tuple)),
            pods=draw(FEW_TERMS),
            anti_pods=draw(FEW_TERMS),
        ),
        node_selector=draw(st.sampled_from(({}, {}, {ZONE: "z1"}))),
        tolerations=draw(
            st.sampled_from(
                ((), (Toleration("k", TolerationOperator.EXISTS),), (Toleration("k", TolerationOperator.EQUAL, "v"),))
            )
        ),
    )


@st.composite
def worlds(draw: Any) -> World:
    nodes = []
    for i in range(draw(st.integers(1, 5))):
        host = {HOST: f"n{i}"} if draw(st.integers(0, 9)) else {}
        nodes.append(node(f"n{i}", labels=draw(NODE_LABELS) | host, taints=draw(TAINTS)))
    names = st.sampled_from([each.name for each in nodes])
    residents = [(draw(pods(f"r{i}")), draw(names)) for i in range(draw(st.integers(0, 6)))]
    return World(nodes, residents, {"default": {"team": "x"}, "other": {"team": draw(TEAMS)}})


@settings(max_examples=12)
@given(worlds(), pods("new"))
def test_every_node_is_judged_as_by_the_reference(world: World, wanted: Pod) -> None:
    """Ports, spread, affinity both ways: the first reason of each node; and the node filters beside them."""
    wanted = msgspec.structs.replace(wanted, deleting=False)
    seen = cluster(*world.nodes, namespaces=world.namespaces)
    found = asked(seen, pod_index(seen, world.residents), wanted)
    assert told(found) == [first_reason(world, wanted, each) for each in world.nodes]
    tolerance = class_of(wanted).tolerance
    assert selected(seen.traits, tolerance).tolist() == [node_matches(wanted, each) for each in world.nodes]
    admissible = [node_matches(wanted, each) and tolerated(wanted, each) for each in world.nodes]
    assert verdicts(seen.traits, tolerance).admissible.tolist() == admissible


@settings(max_examples=12)
@given(worlds(), pods("new"), st.data())
def test_limits_and_apartness_are_true(world: World, wanted: Pod, data: st.DataObject) -> None:
    """Where the answer is not `apart`, one more pod changes it for no other row, and for its own row as `most` says."""
    wanted = msgspec.structs.replace(wanted, deleting=False)
    seen = cluster(*world.nodes, namespaces=world.namespaces)
    there = pod_index(seen, world.residents)
    before = asked(seen, there, wanted)
    open_rows = [row for row, reason in enumerate(told(before)) if not reason]
    if before.apart or not open_rows:
        return
    row = data.draw(st.sampled_from(open_rows))
    there.put(pod_traits_of(wanted), row)
    after = told(asked(seen, there, wanted))
    expected = told(before)
    assert after[:row] + after[row + 1 :] == expected[:row] + expected[row + 1 :]
    full = before.most is not None and before.most[row] == 1
    assert bool(after[row]) == full


@settings(max_examples=12)
@given(worlds(), pods("new"), MOVES)
def test_coming_and_going_leaves_what_is_there(world: World, wanted: Pod, moves: list[tuple[int, bool]]) -> None:
    """Asked between the changes or afterwards, on the pod index or on a copy: the same, and a copy changes nothing."""
    seen = cluster(*world.nodes, namespaces=world.namespaces)
    there = pod_index(seen, world.residents)
    residents = list(world.residents)
    asked(seen, there, wanted)
    for index, copied in moves:
        before = told(asked(seen, there, wanted))
        trial = there.copy()
        (trial if copied else there).put(pod_traits_of(wanted), 0)
        if residents and not copied:
            gone, name = residents.pop(index % len(residents))
            there.remove(pod_traits_of(gone), seen.names.index(name))
        if not copied:
            residents.append((wanted, seen.names[0]))
        else:
            assert told(asked(seen, there, wanted)) == before
            assert told(asked(seen, trial, wanted)) == told(
                asked(seen, pod_index(seen, [*residents, (wanted, seen.names[0])]), wanted)
            )
    assert told(asked(seen, there, wanted)) == told(asked(seen, pod_index(seen, residents), wanted))


test_every_node_of_many_worlds = at_length(test_every_node_is_judged_as_by_the_reference, worlds(), pods("new"))
test_limits_of_many_worlds = at_length(test_limits_and_apartness_are_true, worlds(), pods("new"), st.data())
test_coming_and_going_in_many_worlds = at_length(
    test_coming_and_going_leaves_what_is_there, worlds(), pods("new"), MOVES
)
