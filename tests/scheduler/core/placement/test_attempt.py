"""One attempt: all members, or those needed and as many more as there is room for, or nobody, and why."""

from __future__ import annotations

from typing import Any

import pytest
from filter_builders import HOST, apart, term
from scheduler_builders import candidate, gang, in_group, members, node, pod, snapshot

from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.ledger import ChargeChange, Ledger, charge_of
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.placement.attempt import attempt, misfit, party_of
from scheduler.core.placement.fill import FillOptions
from scheduler.core.placement.pack import pack
from scheduler.core.placement.working_snapshot import Background, WorkingSnapshot
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.snapshot.snapshot import take


def working(*sizes: int) -> WorkingSnapshot:
    return WorkingSnapshot(snapshot(*(node(f"n{i}", batch_cpu=size) for i, size in enumerate(sizes))))


def how(wanted: Candidate) -> FillOptions:
    return FillOptions(wanted.requester, ScorePolicy(), pack)


def two_sizes(large: int, small: int, minimum: int) -> Candidate:
    big = [pod(f"l{i}", batch_cpu=1000, gang=in_group(), created_seconds=9.0 + i) for i in range(large)]
    return candidate([*members(small), *big], gang(minimum))


CASES: dict[str, tuple[tuple[int, ...], Candidate, int]] = {
    "all": ((1000, 500), candidate(members(3), gang(3)), 3),
    "one too few": ((1000,), candidate(members(3), gang(3)), 0),
    "elastic: as many as fit": ((1500, 500), candidate(members(6), gang(3)), 4),
    "elastic: fewer than needed": ((1000,), candidate(members(6), gang(3)), 0),
    "the largest first": ((1000, 1000), two_sizes(1, 2, 3), 3),
    "elastic of two sizes": ((1000,), two_sizes(1, 2, 2), 2),
    "two sizes, too few": ((1000,), two_sizes(1, 2, 3), 0),
}


@pytest.mark.parametrize(("sizes", "wanted", "placed"), CASES.values(), ids=CASES)
def test_attempt(sizes: tuple[int, ...], wanted: Candidate, placed: int) -> None:
    """How many sit; the working snapshot is as it was."""
    on = working(*sizes)
    before = on.free.tolist()
    found = attempt(on, party_of(on, wanted), how(wanted))
    assert (len(found.assignments) if found else 0) == placed
    assert on.free.tolist() == before
    if found is not None:
        taken: dict[int, int] = {}
        for assignment in found.assignments:
            taken[assignment.row] = taken.get(assignment.row, 0) + assignment.pod_class.request[0][1]
        assert all(amount <= sizes[row] for row, amount in taken.items())
        assert len({assignment.uid for assignment in found.assignments}) == placed


def test_the_report_is_of_before() -> None:
    """As the first class found it."""
    wanted = candidate(members(3), gang(3))
    on = working(1000, 500, 100)
    found = attempt(on, party_of(on, wanted), how(wanted))
    assert found is not None and (found.report.nodes, found.report.feasible) == (3, 2)


def test_a_misfit_is_about_the_next_member() -> None:
    """How many fit, what the next one is short of, and of which class it is."""
    wanted = two_sizes(1, 3, 4)
    on = working(1000, 600)
    found = misfit(on, party_of(on, wanted), how(wanted))
    assert (found.fits, found.cause) == (2, Reason.INSUFFICIENT_BATCH)
    assert found.short == wanted.classes[0] and found.report.feasible == 0
    assert dict(found.report.refused) == {("Insufficient kubernetes.io/batch-cpu",): 2}


def test_a_party_is_counted_by_gang() -> None:
    """What each needs, how many wait, and whether fewer will do."""
    on = working(1000)
    exact, elastic = party_of(on, candidate(members(3), gang(3))), party_of(on, candidate(members(5), gang(3)))
    assert (dict(exact.needs), dict(exact.counts), exact.elastic) == ({"default/train": 3}, {"default/train": 3}, False)
    assert (dict(elastic.counts), elastic.elastic) == ({"default/train": 5}, True)
    lone = party_of(on, candidate([pod()]))
    assert (dict(lone.needs), dict(lone.counts)) == ({"": 1}, {"": 1})


def test_members_that_residents_tell_apart_are_groups_of_their_own() -> None:
    """A resident that keeps away from index=1 concerns one member alone."""
    ledger = Ledger()
    shy: Any = pod("shy", node_name="n0", affinity=apart(term(HOST, index="1")))
    ledger.apply([ChargeChange(shy.uid, charge_of(shy))])
    nodes = {name: node(name, labels={HOST: name}) for name in ("n0", "n1")}
    on = WorkingSnapshot(take(nodes, ledger.nodes), (), Background(LivePodIndex(ledger)))
    pods = [pod(f"w{i}", gang=in_group(), labels={"index": str(i)}, created_seconds=float(i)) for i in range(3)]
    groups = party_of(on, candidate(pods, gang(3))).groups
    assert sorted(group.uids for group in groups) == [("uid-w0", "uid-w2"), ("uid-w1",)]
