"""Gangs in one domain of their topology."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import candidate, gang, in_group, members, node, pod

from model.reason import Reason
from model.workload import TopologyLevel
from scheduler.core.filters.fit import fit_error
from scheduler.core.ledger.ledger import Ledger, charge_of
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.placement import topology
from scheduler.core.placement.attempt import attempt
from scheduler.core.placement.place import Misfit, Placed, place
from scheduler.core.placement.working_snapshot import Background, WorkingSnapshot
from scheduler.core.queueing.news import News, NewsKind, freed, need_of
from scheduler.core.snapshot.snapshot import take

BLOCK, RACK = TopologyLevel("block", required=True), TopologyLevel("rack", required=True)
RATHER = TopologyLevel("rack", required=False)


def gathered(wanted: Any, *levels: TopologyLevel) -> Any:
    return msgspec.structs.replace(wanted, workload=msgspec.structs.replace(wanted.workload, topology=levels))


def host(name: str, batch_cpu: int, rack: str = "", block: str = "") -> Any:
    labels = {key: value for key, value in (("rack", rack), ("block", block)) if value}
    return node(name, batch_cpu=batch_cpu, labels=labels)


TWO_RACKS = [
    host("n1", 1000, "r1", "b1"),
    host("n2", 1000, "r1", "b1"),
    host("n3", 1000, "r2", "b1"),
    host("n4", 500, "r2", "b1"),
]
CASES: dict[str, tuple[list[Any], Any, str]] = {
    "the domain with least to spare": (TWO_RACKS, gathered(candidate(members(3), gang(3)), RACK), "n3 n3 n4"),
    "the only domain that holds all": (TWO_RACKS, gathered(candidate(members(4), gang(4)), RACK), "n1 n1 n2 n2"),
    "ties by name": (
        [host("n1", 1000, "r2"), host("n2", 1000, "r1")],
        gathered(candidate(members(2), gang(2)), RACK),
        "n2 n2",
    ),
    "preferred, possible": (TWO_RACKS, gathered(candidate(members(4), gang(4)), BLOCK, RATHER), "n1 n1 n2 n2"),
    "preferred, not possible": (
        TWO_RACKS,
        gathered(candidate(members(5), gang(5)), BLOCK, RATHER),
        "n1 n1 n2 n2 n4",
    ),
    "preferred alone, not possible, nodes without a label too": (
        [host("n1", 1000, "r1"), host("n2", 500)],
        gathered(candidate(members(3), gang(3)), RATHER),
        "n1 n1 n2",
    ),
    "a rack's name counts within its block": (
        [host("n1", 500, "r1", "b1"), host("n2", 500, "r1", "b2"), host("n3", 500, "r1", "b2")],
        gathered(candidate(members(2), gang(2)), BLOCK, RACK),
        "n2 n3",
    ),
    "elastic: more than the minimum where the domain holds more": (
        [host("n1", 1000, "r1"), host("n2", 1500, "r2"), host("n3", 500, "r1")],
        gathered(candidate(members(5), gang(2)), RACK),
        "n1 n1 n3",
    ),
    "members of two sizes": (
        [host("n1", 900, "r1"), host("n2", 1000, "r2"), host("n3", 500, "r2")],
        gathered(candidate([pod("big", batch_cpu=1000, gang=in_group()), *members(1)], gang(2)), RACK),
        "n2 n3",
    ),
    "in multiples": (
        [host("n1", 1500, "r1"), host("n2", 1500, "r1"), host("n3", 1000, "r1")],
        gathered(
            candidate(members(6), gang(6)), RACK, TopologyLevel("kubernetes.io/hostname", required=False, multiple=2)
        ),
        "n1 n1 n2 n2 n3 n3",
    ),
}


def named(nodes: list[Any]) -> dict[str, Any]:
    """With their own name as a label, as the kubelet puts it there."""
    return {
        item.name: msgspec.structs.replace(item, labels={**item.labels, "kubernetes.io/hostname": item.name})
        for item in nodes
    }


@pytest.mark.parametrize("name", CASES)
def test_domains(name: str) -> None:
    """Which nodes the members get."""
    nodes, wanted, expected = CASES[name]
    snapshot = take(named(nodes), {})
    outcome = place(WorkingSnapshot(snapshot), wanted)
    assert isinstance(outcome, Placed)
    assert " ".join(sorted(snapshot.names[assignment.row] for assignment in outcome.assignments)) == expected


OUTSIDE = ("node(s) were outside the domain that holds most of the gang",)
SHORT = ("Insufficient kubernetes.io/batch-cpu",)
NOWHERE: dict[str, tuple[list[Any], tuple[TopologyLevel, ...], int, dict[tuple[str, ...], int]]] = {
    "a rack is too small": (TWO_RACKS, (RACK,), 4, {SHORT: 2, OUTSIDE: 2}),
    "and a node is in none": (
        [*TWO_RACKS, host("n5", 9000)],
        (RACK,),
        4,
        {SHORT: 2, OUTSIDE: 2, ("node(s) have no label rack",): 1},
    ),
    "a node without the outer label is in no rack": (
        [*TWO_RACKS, host("n5", 9000, "r9"), host("n6", 9000, "", "b1")],
        (BLOCK, RACK),
        4,
        {SHORT: 2, OUTSIDE: 2, ("node(s) have no label block",): 1, ("node(s) have no label rack",): 1},
    ),
    "no node has the label": (
        [host("n1", 9000, "r1"), host("n2", 9000)],
        (BLOCK,),
        0,
        {("no node has label block",): 2},
    ),
    "no node has the outer label": (
        [host("n1", 9000, "r1")],
        (BLOCK, RACK),
        0,
        {("no node has label block",): 1},
    ),
    "no node has both labels": (
        [host("n1", 9000, "r1"), host("n2", 9000, "", "b1")],
        (BLOCK, RACK),
        0,
        {("node(s) have no label block",): 1, ("node(s) have no label rack",): 1},
    ),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_nowhere_is_told_of_the_best_domain(name: str) -> None:
    """How many fit there, what the next one lacks there, that the rest is outside, or which label it lacks."""
    nodes, levels, fits, refused = NOWHERE[name]
    outcome = place(WorkingSnapshot(take(named(nodes), {})), gathered(candidate(members(5), gang(5)), *levels))
    assert isinstance(outcome, Misfit)
    assert (outcome.fits, outcome.report.feasible) == (fits, 0)
    assert dict(outcome.report.refused) == refused


def test_a_label_that_no_node_carries() -> None:
    """Said as such, with what may help; a text of an annotation is no longer than a label can be."""
    nodes, wanted = {"n": host("n", 9000)}, candidate(members(2), gang(2))
    outcome = place(WorkingSnapshot(take(nodes, {})), gathered(wanted, BLOCK))
    assert isinstance(outcome, Misfit)
    assert fit_error(outcome.report) == "0/1 nodes are available: no node has label block."
    assert outcome.cause is Reason.NODE_SELECTOR_MISMATCH
    need = need_of(outcome.report)
    assert need.served_by(News(NewsKind.NODE_CHANGED)) and not need.served_by(freed(["kubernetes.io/batch-cpu"]))
    long = place(WorkingSnapshot(take(nodes, {})), gathered(wanted, TopologyLevel("k" * 200_000, required=True)))
    assert isinstance(long, Misfit) and len(long.report.ahead) < 400
    empty = place(WorkingSnapshot(take({}, {})), gathered(wanted, BLOCK))
    assert isinstance(empty, Misfit) and fit_error(empty.report) == "no nodes available to schedule pods"


def test_members_that_are_there_bind_the_rest() -> None:
    """Where a level is required the rest joins them or waits; where it is preferred it goes elsewhere if it must."""
    ledger = Ledger()
    old = pod("old", gang=in_group(), node_name="n4")
    charge = charge_of(old)
    assert charge is not None
    ledger.confirm(charge)
    working = WorkingSnapshot(take(named(TWO_RACKS), ledger.nodes), background=Background(LivePodIndex(ledger)))
    for count, level, expected in ((2, RACK, "n3 n3"), (3, RACK, None), (3, RATHER, "n1 n1 n2")):
        outcome = place(working, gathered(candidate([*members(count), old], gang(count + 1)), level))
        found = (
            " ".join(sorted(working.snapshot.names[s.row] for s in outcome.assignments))
            if isinstance(outcome, Placed)
            else None
        )
        assert found == expected


clusters = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", ""]), st.sampled_from("xy")), max_size=7)


@given(clusters, st.integers(1, 8), st.integers(1, 8))
def test_fits_exactly_where_one_domain_holds_the_minimum(
    shapes: list[tuple[int, str, str]], count: int, minimum: int
) -> None:
    """A required level is never left, and the gang is placed if and only if a domain holds its minimum."""
    minimum = min(count, minimum)
    nodes = named([host(f"n{i}", 500 * number, rack, block) for i, (number, rack, block) in enumerate(shapes)])
    snapshot = take(nodes, {})
    working = WorkingSnapshot(snapshot)
    before = working.free.copy()
    outcome = place(working, gathered(candidate(members(count), gang(minimum)), BLOCK, RACK))
    assert np.array_equal(working.free, before)
    held: dict[tuple[str, str], int] = {}
    for number, rack, block in shapes:
        if rack:
            held[block, rack] = held.get((block, rack), 0) + number
    best = max(held.values(), default=0)
    assert isinstance(outcome, Placed) is (best >= minimum)
    if isinstance(outcome, Placed):
        assert len(outcome.assignments) == min(best, count)
        assert len({shapes[int(snapshot.names[s.row][1:])][1:] for s in outcome.assignments}) == 1
    elif nodes:
        assert outcome.fits == best


def two_sizes(each: int, *levels: TopologyLevel, minimum: int = 2) -> Any:
    """A member of that size, and one a little larger."""
    pods = [*members(1, batch_cpu=each), *members(1, batch_cpu=each + 1, name="x")]
    return gathered(candidate(pods, gang(minimum)), *levels)


def tried(monkeypatch: pytest.MonkeyPatch, nodes: list[Any], wanted: Any) -> tuple[bool, int]:
    """Whether it is placed, and in how many domains that was tried."""
    calls = []

    def counted(*asked: Any) -> Any:
        calls.append(asked)
        return attempt(*asked)

    monkeypatch.setattr(topology, "attempt", counted)
    working = WorkingSnapshot(take({each.name: each for each in nodes}, {}))
    return isinstance(place(working, wanted), Placed), len(calls)


def test_a_domain_that_has_not_enough_for_all_sizes_together_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size by itself fits every one of these racks, and whoever makes a gang may make it so."""
    racks = [host(f"n{number}", 1000, f"r{number:03}") for number in range(300)]
    assert tried(monkeypatch, racks, two_sizes(600, RACK)) == (False, 0)
    assert tried(monkeypatch, [*racks, host("roomy", 1300, "s")], two_sizes(600, RACK)) == (True, 1)


def test_of_domains_in_which_unlike_members_may_fit_not_all_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The amounts would do, but lie on three nodes each."""
    racks = [host(f"n{number}", 450, f"r{number // 3:03}") for number in range(900)]
    found, number = tried(monkeypatch, racks, two_sizes(600, RATHER, minimum=2))
    assert (found, number <= 16 + 2) == (False, True)
    large = gathered(candidate([*members(2, batch_cpu=300), *members(1, batch_cpu=301, name="x")], gang(3)), RACK)
    narrow = [host(f"n{number}", 455, f"r{number // 2:03}") for number in range(600)]
    found, number = tried(monkeypatch, narrow, large)
    assert (found, number) == (False, 128)


def test_a_gang_of_unlike_members_that_wants_one_domain_counts_as_many_attempts() -> None:
    alike = gathered(candidate(members(3), gang(3)), RACK)
    assert (alike.asks, two_sizes(600).asks, two_sizes(600, RACK).asks) == (1, 2, 514)
