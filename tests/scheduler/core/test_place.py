"""Exact placements, and what no placement may ever do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_builders import candidate, gang, in_group, members, node, pod, snapshot

from model.resources import BATCH_CPU
from scheduler.core.place import Misfit, Placed, pack, place


def nodes_of(outcome: Placed | Misfit, cluster: Any) -> dict[str, str]:
    assert isinstance(outcome, Placed)
    return {item.uid.removeprefix("uid-"): cluster.names[item.row] for item in outcome.assignments}


CASES: dict[str, tuple[list[Any], Any, dict[str, str]]] = {
    "lone pod to the least allocated node": (
        [node("n1", batch_cpu=1000), node("n2", batch_cpu=2000)],
        candidate([pod()]),
        {"p1": "n2"},
    ),
    "lone pod, tie by name": ([node("n2"), node("n1")], candidate([pod()]), {"p1": "n1"}),
    "gang on the fewest nodes": (
        [node("n1", batch_cpu=1000), node("n2", batch_cpu=1500)],
        candidate(members(3), gang(3)),
        {"w0": "n2", "w1": "n2", "w2": "n2"},
    ),
    "gang on the node it fills best": (
        [node("n1", batch_cpu=5000), node("n2", batch_cpu=1500)],
        candidate(members(3), gang(3)),
        {"w0": "n2", "w1": "n2", "w2": "n2"},
    ),
    "gang spills onto the node its rest fills best": (
        [node("n1", batch_cpu=1000), node("n2", batch_cpu=500), node("n3", batch_cpu=1000)],
        candidate(members(3), gang(3)),
        {"w0": "n1", "w1": "n1", "w2": "n2"},
    ),
    "elastic gang takes what room there is": (
        [node("n1", batch_cpu=1500)],
        candidate(members(5), gang(2)),
        {"w0": "n1", "w1": "n1", "w2": "n1"},
    ),
    "members of two sizes, large ones first": (
        [node("n1", batch_cpu=1000), node("n2", batch_cpu=1000)],
        candidate([*members(2, batch_cpu=500), pod("big", batch_cpu=1000, gang=in_group())], gang(3)),
        {"big": "n1", "w0": "n2", "w1": "n2"},
    ),
    "minimum reached with small members where large ones would spoil it": (
        [node("n1", batch_cpu=600)],
        candidate([pod("big", batch_cpu=500, gang=in_group()), *members(3, batch_cpu=200)], gang(3)),
        {"w0": "n1", "w1": "n1", "w2": "n1"},
    ),
    "bound members count: a restart completes the gang": (
        [node("n1", batch_cpu=1000)],
        candidate([*members(2), pod("old", gang=in_group(), node_name="n9")], gang(3)),
        {"w0": "n1", "w1": "n1"},
    ),
    "members above a met minimum go one by one": (
        [node("n1", batch_cpu=500)],
        candidate([*members(2), pod("old", gang=in_group(), node_name="n9")], gang(1)),
        {"w0": "n1"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_placements(name: str) -> None:
    """Who goes where."""
    nodes, wanted, expected = CASES[name]
    cluster = snapshot(*nodes)
    assert nodes_of(place(cluster, cluster.free, wanted), cluster) == expected


MISFITS: dict[str, tuple[list[Any], Any, int]] = {
    "gang short of one": ([node(batch_cpu=1000)], candidate(members(3), gang(3)), 2),
    "restart short of one": (
        [node(batch_cpu=500)],
        candidate([*members(2), pod("old", gang=in_group(), node_name="n9")], gang(3)),
        1,
    ),
    "elastic gang below its minimum": ([node(batch_cpu=1000)], candidate(members(5), gang(3)), 2),
    "nothing above a met minimum fits": (
        [node(batch_cpu=100)],
        candidate([*members(1), pod("old", gang=in_group(), node_name="n9")], gang(1)),
        0,
    ),
    "no nodes": ([], candidate([pod()]), 0),
}


@pytest.mark.parametrize("name", MISFITS)
def test_all_or_none(name: str) -> None:
    """Short of the minimum nothing is placed, and how many would fit is known."""
    nodes, wanted, fits = MISFITS[name]
    cluster = snapshot(*nodes)
    outcome = place(cluster, cluster.free, wanted)
    assert isinstance(outcome, Misfit)
    assert outcome.fits == fits
    assert outcome.report.feasible == 0


@pytest.mark.parametrize(
    ("room", "want", "rows"),
    [
        ([2, 3, 1], 3, [1, 1, 1]),
        ([2, 3, 1], 4, [1, 1, 1, 2]),
        ([2, 3, 1], 6, [0, 0, 1, 1, 1, 2]),
        ([2, 3, 1], 9, [0, 0, 1, 1, 1, 2]),
        ([5, 2, 2], 2, [1, 1]),
        ([1 << 60, 1 << 60], 1, [0]),
    ],
)
def test_packing(room: list[int], want: int, rows: list[int]) -> None:
    """Fewest nodes, the last one filled best, ties to the first."""
    assert pack(np.array(room, np.int64), want).tolist() == rows


sizes = st.integers(1, 700)
clusters = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 6), st.integers(0, 900)), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(clusters, st.lists(sizes, min_size=1, max_size=8), st.integers(1, 8))
def test_never_over_commits_and_never_places_part(
    shapes: list[tuple[int, int, int]], requests: list[int], minimum: int
) -> None:
    """No resource of any node is over-committed, a gang gets its minimum or nothing, and twice gives the same."""
    minimum = min(minimum, len(requests))
    nodes = [node(f"n{i}", batch_cpu=cpu, pods=pods) for i, (cpu, pods, _) in enumerate(shapes)]
    usage = {f"n{i}": {BATCH_CPU: used} for i, (_, _, used) in enumerate(shapes)}
    cluster = snapshot(*nodes, usage=usage)
    pods = [pod(f"w{i}", batch_cpu=size, gang=in_group()) for i, size in enumerate(requests)]
    wanted = candidate(pods, gang(minimum))
    before = cluster.free
    outcome, again = place(cluster, cluster.free, wanted), place(cluster, cluster.free, wanted)
    assert type(outcome) is type(again)
    if isinstance(outcome, Misfit):
        assert outcome == again
        return
    assert isinstance(again, Placed)
    assert outcome.assignments == again.assignments
    assert minimum <= len(outcome.assignments) <= len(requests)
    assert len({item.uid for item in outcome.assignments}) == len(outcome.assignments)
    size_of = {item.uid: item.requests[BATCH_CPU] for item in pods}
    for row, name in enumerate(cluster.names):
        here = [size_of[item.uid] for item in outcome.assignments if item.row == row]
        cpu, number = (int(before[row, cluster.resources.index(r)]) for r in (BATCH_CPU, "pods"))
        assert not here or (sum(here) <= cpu and len(here) <= number), name
    assert (outcome.free <= before).all()
