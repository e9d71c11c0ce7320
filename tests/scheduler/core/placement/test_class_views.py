"""Kept answers equal those worked out again, whatever happened in between."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from load_builders import NOW, arrays_of, load, measured, nodes, prod_class
from scheduler_builders import node, pod, snapshot

from model.loadlimits import UsageLimits
from model.node import Taint
from model.workload import WorkloadId
from scheduler.core.filters import fit
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.placement.working_snapshot import Assignment, Background, Nominated, Requester, WorkingSnapshot
from scheduler.core.scores.node_scores import ScoreAsk, row_scores
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.scores.relative_scores import ScoredPod
from scheduler.core.snapshot.podclass import PodClass, PodTraits, class_of
from scheduler.core.snapshot.snapshot import take

NODES = [
    node("n0", batch_cpu=3000, amounts={"cpu": 4000, "memory": 1 << 30}),
    node("n1", batch_cpu=2000, pods=4, amounts={"cpu": 2000, "memory": 1 << 31}),
    node("n2", batch_cpu=5000, amounts={"cpu": 0, "memory": 1 << 30}, taints=(Taint("full"),)),
    node("n3", batch_cpu=900, unschedulable=True, amounts={"cpu": 4000, "memory": 1 << 30}),
    *(node(f"n{i}", batch_cpu=100 * i, amounts={"cpu": 500 * i, "memory": i << 28}) for i in range(4, 9)),
]
CLASSES = [
    class_of(pod(requests={"cpu": 500})),
    class_of(pod(requests={"cpu": 300, "memory": 1 << 28})),
    class_of(pod(batch_cpu=400)),
    class_of(pod(requests={"example.com/none": 1})),
]
ASKING = Requester(WorkloadId.pod("default/me"), 5)
steps = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "look"]), st.integers(0, 8), st.integers(0, 2), st.integers(1, 9)),
    max_size=25,
)


def assignments(row: int, pod_class: PodClass, number: int) -> list[Assignment]:
    """Pods on rows from `row` on, around."""
    return [Assignment(f"u{i}", (row + i * i) % len(NODES), pod_class) for i in range(number)]


def assert_as_new(working: WorkingSnapshot) -> None:
    free = working.free_for(ASKING)
    for pod_class in CLASSES:
        assert (
            working.room(pod_class, PodTraits(), ASKING).tolist()
            == fit.counts(working.snapshot, free, pod_class).tolist()
        )
        assert working.report(pod_class, PodTraits(), ASKING) == fit.report(working.snapshot, free, pod_class)
        state: Any = working._state
        ask = ScoreAsk(working.snapshot, working.free, state.scored, pod_class)
        assert working._views.scores(pod_class, ScorePolicy()).tolist() == row_scores(ask).tolist()


@given(steps, st.booleans())
def test_kept_answers_equal_new_ones(history: list[tuple[str, int, int, int]], nominated: bool) -> None:
    """Room, reports and scores after any history of one working snapshot."""
    held = (Nominated(WorkloadId.pod("default/other"), 7, tuple(assignments(1, CLASSES[0], 3))),) if nominated else ()
    working = WorkingSnapshot(snapshot(*NODES), held)
    assert_as_new(working)
    for what, row, number, count in history:
        if what == "put":
            working.put(assignments(row, CLASSES[number], count))
        elif what == "remove":
            working.remove(assignments(row, CLASSES[number], count))
        else:
            assert_as_new(working)
    assert_as_new(working)


@given(steps, st.integers(0, 8), st.sampled_from(["use", "room", "labels", "gone"]))
def test_the_next_working_takes_over_what_is_the_same(
    history: list[tuple[str, int, int, int]], row: int, change: str
) -> None:
    """Nodes that differ from what the last working snapshot left are found, by use, by what they offer, or by being others."""
    nodes = {item.name: item for item in NODES}
    working = WorkingSnapshot(
        take(nodes, {}), (Nominated(WorkloadId.pod("default/other"), 5, tuple(assignments(1, CLASSES[0], 2))),)
    )
    assert_as_new(working)
    for _, at, number, count in history:
        working.put(assignments(at, CLASSES[number], count))
    name = f"n{row}"
    usage = {name: {"cpu": 100, "pods": 1}} if change == "use" else {}
    if change == "room":
        nodes[name] = node(name, batch_cpu=77, amounts={"cpu": 777, "memory": 7})
    elif change == "labels":
        nodes[name] = node(name, labels={"a": "b"}, amounts={"cpu": 1, "memory": 1})
    elif change == "gone":
        del nodes[name]
    kept = (Nominated(WorkloadId.pod("default/other"), 5, tuple(assignments(0, CLASSES[1], 1))),)
    assert_as_new(WorkingSnapshot(take(nodes, usage, working.snapshot, {name}), kept, following=working))


@given(st.lists(st.lists(st.integers(0, 59), max_size=20), min_size=1, max_size=6))
def test_many_changed_rows_of_more(history: list[list[int]]) -> None:
    """However many rows change at a time, out of nodes of which every seventh is cordoned."""
    sizes = [node(f"n{i:02}", batch_cpu=100 * (i % 9), pods=3 + i % 5, unschedulable=i % 7 == 0) for i in range(60)]
    working = WorkingSnapshot(snapshot(*sizes))
    assert_as_new(working)
    for rows in history:
        working.put([Assignment(f"u{row}", row, CLASSES[2]) for row in rows])
        assert_as_new(working)


def test_a_copy_is_independent() -> None:
    """What is tried in a copy leaves the working snapshot as it is, and the other way round."""
    working = WorkingSnapshot(snapshot(*NODES))
    before = working.room(CLASSES[0], PodTraits(), ASKING).tolist()
    copy = working.what_if()
    copy.put(assignments(0, CLASSES[0], 4))
    assert working.room(CLASSES[0], PodTraits(), ASKING).tolist() == before
    working.put(assignments(0, CLASSES[0], 2))
    assert_as_new(working)
    assert_as_new(copy)
    assert not np.array_equal(working.free, copy.free)


def with_load(used: list[float], now: float, expired: int = -1) -> Background:
    """Nodes that use so many CPUs; one was measured too long ago."""
    measurements = (measured(cpus, at=NOW - (10_000 if row == expired else 10)) for row, cpus in enumerate(used))
    return Background(load=arrays_of(*(load(each) for each in measurements), now=now))


def best(working: WorkingSnapshot, pod_class: PodClass) -> str:
    outlook = working.outlook(pod_class, PodTraits(), ASKING)
    return working.snapshot.names[working.best(ScoredPod(pod_class), outlook)]


def test_measured_use_decides_and_pods_placed_in_this_turn_count() -> None:
    """Scores follow the arrays of the load, what is placed on top of them, and the next arrays."""
    cluster, prod = nodes(3), prod_class()
    working = WorkingSnapshot(cluster, background=with_load([50.0, 20.0, 30.0], NOW))
    assert best(working, prod) == "n1"
    working.put([Assignment(f"u{i}", 1, prod) for i in range(2)])
    assert best(working, prod) == "n2"
    for used, now, expired in (([10.0, 20.0, 30.0], NOW, -1), ([10.0, 20.0, 30.0], NOW + 5, 0)):
        background = with_load(used, now, expired)
        working = WorkingSnapshot(cluster, background=background, following=working)
        assert best(working, prod) == best(WorkingSnapshot(cluster, background=background), prod)
        kept = working._views.scores(prod, ScorePolicy()).tolist()
        assert kept == WorkingSnapshot(cluster, background=background)._views.scores(prod, ScorePolicy()).tolist()
    assert best(WorkingSnapshot(cluster, following=working), prod) == "n0"


def test_a_load_limit_takes_room() -> None:
    """Nodes over their limit are out, others take so many as stay under it, and the report says so."""
    policy = LoadPolicy(limits=UsageLimits(cpu_pct=65))
    loads = arrays_of(load(measured(70.0), policy=policy), load(measured(30.0), policy=policy), policy=policy)
    working = WorkingSnapshot(nodes(2), background=Background(load=loads))
    prod = prod_class()
    assert working.room(prod, PodTraits(), ASKING).tolist() == [0, 2]
    assert working.report(prod, PodTraits(), ASKING).refused == ((("node(s) cpu usage exceed threshold",), 1),)
    working.put([Assignment(f"u{i}", 1, prod) for i in range(2)])
    assert working.room(prod, PodTraits(), ASKING).tolist() == [0, 0]
    assert working.what_if().room(prod, PodTraits(), ASKING).tolist() == [0, 0]
