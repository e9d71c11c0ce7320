"""Exact placements, and what no placement may ever do."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import candidate, gang, in_group, members, node, pod, snapshot

from model.pod.affinity import Affinity, PodTerm, SpreadConstraint
from model.resources import BATCH_CPU
from model.selector import Operator, Requirement, Selector
from model.workload import GangSpec, PodSet, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.place import Misfit, Placed, place
from scheduler.core.placement.working_snapshot import Assignment, Nominated, WorkingSnapshot
from scheduler.core.snapshot.podclass import class_of, pod_traits_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot
from tests.pods import with_fields


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
    assert nodes_of(place(WorkingSnapshot(cluster), wanted), cluster) == expected


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
    outcome = place(WorkingSnapshot(cluster), wanted)
    assert isinstance(outcome, Misfit)
    assert outcome.fits == fits
    assert outcome.report.feasible == 0


sizes = st.integers(1, 700)
clusters = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 6), st.integers(0, 900)), min_size=1, max_size=6)


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
    outcome, again = place(WorkingSnapshot(cluster), wanted), place(WorkingSnapshot(cluster), wanted)
    assert type(outcome) is type(again)
    if isinstance(outcome, Misfit):
        assert outcome == again
        return
    assert isinstance(again, Placed)
    assert outcome.assignments == again.assignments
    assert minimum <= len(outcome.assignments) <= len(requests)
    assert len({item.uid for item in outcome.assignments}) == len(outcome.assignments)
    size_of = {item.uid: item.spec.requests[BATCH_CPU] for item in pods}
    for row, name in enumerate(cluster.names):
        here = [size_of[item.uid] for item in outcome.assignments if item.row == row]
        cpu, number = (int(before[row, cluster.resources.index(r)]) for r in (BATCH_CPU, "pods"))
        assert not here or (sum(here) <= cpu and len(here) <= number), name


def test_members_that_fit_in_one_way_only() -> None:
    """Members of four sizes that fit in one way only are placed, whatever order they came in."""
    cluster = snapshot(node("n1", amounts={"a": 4, "b": 2}), node("n2", amounts={"a": 2, "b": 4}))
    pods = [
        pod("x", requests={"b": 4}, gang=in_group(), created_seconds=0),
        pod("y", requests={"a": 2}, gang=in_group(), created_seconds=1),
        pod("z", requests={"a": 4}, gang=in_group(), created_seconds=2),
        pod("v", requests={"b": 2}, gang=in_group(), created_seconds=3),
    ]
    for order in permutations(range(4)):
        aged = [msgspec.structs.replace(pods[i], created_seconds=float(age)) for age, i in enumerate(order)]
        assert isinstance(place(WorkingSnapshot(cluster), candidate(aged, gang(4))), Placed)


def group_of(*gangs: tuple[str, list[Any], int]) -> Candidate:
    """A gang group as one candidate: (name, its pods, how many of them are needed)."""
    parts = [candidate([with_fields(p, gang=None) for p in pods][:1]) for _, pods, _ in gangs]
    sets = tuple(PodSet(name, tuple(p.uid for p in pods), pods[0].spec.requests, gang=name) for name, pods, _ in gangs)
    workload = msgspec.structs.replace(
        parts[0].workload,
        pod_sets=sets,
        gang=GangSpec(1, groups=tuple(name for name, _, _ in gangs)),
        gangs=tuple((name, needed) for name, _, needed in gangs),
    )
    member_traits = tuple(tuple(pod_traits_of(p) for p in pods) for _, pods, _ in gangs)
    return Candidate(
        WorkloadId.gang("a", "b"), workload, tuple(class_of(pods[0]) for _, pods, _ in gangs), member_traits
    )


GROUPS: dict[str, tuple[int, int, dict[str, int] | None]] = {
    "each gang its minimum, then more": (2, 2, {"a": 4, "b": 2}),
    "the second gang's minimum before the first gang's surplus": (1, 3, {"a": 3, "b": 3}),
    "one gang short of its minimum: nothing": (4, 4, None),
}


@pytest.mark.parametrize("name", GROUPS)
def test_gang_groups(name: str) -> None:
    """Each gang of a group gets what it needs, or none of them anything."""
    first, second, expected = GROUPS[name]
    wanted = group_of(("a", members(4, name="a"), first), ("b", members(4, name="b"), second))
    outcome = place(WorkingSnapshot(snapshot(node(batch_cpu=3000))), wanted)
    found = Counter(assignment.uid[4] for assignment in outcome.assignments) if isinstance(outcome, Placed) else None
    assert found == expected


def test_room_of_a_nomination_is_the_nominated_ones() -> None:
    """A gang takes the room kept for it; one of equal priority does not, and is told what is short."""
    cluster = snapshot(node("n1"), node("n2"))
    wanted = candidate(members(4), gang(4))
    assignments = tuple(Assignment(f"uid-w{i}", i // 2, wanted.classes[0]) for i in range(4))
    working = WorkingSnapshot(cluster, [Nominated(wanted.subject, 0, assignments)])
    assert isinstance(place(working, wanted), Placed)
    other = place(working, candidate([pod("other")]))
    assert isinstance(other, Misfit)
    assert other.report.refused == ((("Insufficient kubernetes.io/batch-cpu",), 2),)


APP = Selector((Requirement("app", Operator.IN, ("db",)),))
zones = st.lists(st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(0, 3)), min_size=1, max_size=7)


def zoned(shapes: list[tuple[str, int]]) -> ClusterSnapshot:
    labels = [{"zone": zone} if zone else {} for zone, _ in shapes]
    return snapshot(*(node(f"n{i}", batch_cpu=500 * shapes[i][1], labels=labels[i]) for i in range(len(shapes))))


@given(zones, st.integers(1, 4), st.integers(1, 4))
def test_members_that_keep_apart(shapes: list[tuple[str, int]], count: int, minimum: int) -> None:
    """One a zone and, as in kube-scheduler, any number where there is no zone; placed exactly where that is enough."""
    terms = Affinity(anti_pods=(PodTerm("zone", APP),))
    wanted = candidate(members(count, labels={"app": "db"}, affinity=terms), gang(min(minimum, count)))
    cluster = zoned(shapes)
    working = WorkingSnapshot(cluster)
    outcome = place(working, wanted)
    most = len({zone for zone, room in shapes if zone and room}) + sum(room for zone, room in shapes if not zone)
    assert isinstance(outcome, Placed) is (most >= min(minimum, count))
    if isinstance(outcome, Placed):
        assert len(outcome.assignments) == min(most, count)
        used = Counter(shapes[assignment.row][0] for assignment in outcome.assignments)
        assert all(number == 1 for zone, number in used.items() if zone)
    assert (working.free == cluster.free).all()
    assert not working.pod_index.counts(APP, None).any()


@given(zones, st.integers(1, 6), st.integers(1, 2))
def test_members_that_spread(shapes: list[tuple[str, int]], count: int, skew: int) -> None:
    """No zone gets more than the skew above any other, and no more are placed where a greedy choice finds no room."""
    spread = (SpreadConstraint("zone", skew, hard=True, selector=APP),)
    cluster = zoned(shapes)
    outcome = place(WorkingSnapshot(cluster), candidate(members(count, labels={"app": "db"}, spread=spread), gang(1)))
    room: Counter[str] = Counter()
    for zone, number in shapes:
        room[zone] += number
    domains = {zone: room[zone] for zone in room if zone}
    least = min(domains.values(), default=0)
    most = sum(min(number, least + skew) for number in domains.values())
    placed = outcome.assignments if isinstance(outcome, Placed) else ()
    assert len(placed) == min(count, most)
    used = Counter(shapes[assignment.row][0] for assignment in placed)
    assert all(zone and number <= min(used[other] for other in domains) + skew for zone, number in used.items())
