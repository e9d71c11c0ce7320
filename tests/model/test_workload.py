"""A workload's identity: what it is made of, its text, and its place in an order."""

from __future__ import annotations

import pytest

from model.workload import GangPhase, WorkloadId


def test_identity() -> None:
    """A group is the same in whatever order its gangs are given; its text is the subject of what is said about it."""
    lone, train = WorkloadId.pod("d/p"), WorkloadId.gang("d/train")
    group = WorkloadId.gang("d/b", "d/a", "d/b")
    assert group == WorkloadId.gang("d/a", "d/b") != train
    assert [each.text for each in (lone, train, group)] == ["pod/d/p", "gang/d/train", "gang/d/a,d/b"]
    assert [each.gangs for each in (lone, train, group)] == [(), ("d/train",), ("d/a", "d/b")]
    assert [each.grouped for each in (lone, train, group)] == [False, False, True]
    assert sorted([lone, train, group]) == [group, train, lone]
    assert WorkloadId.gang("d/p") != lone


@pytest.mark.parametrize(
    ("phase", "begun", "bound", "ran"),
    [
        (GangPhase.UNSET, False, False, False),
        (GangPhase.PENDING, False, False, False),
        (GangPhase.PRE_SCHEDULING, False, False, False),
        (GangPhase.SCHEDULING, True, False, False),
        (GangPhase.SCHEDULED, True, True, False),
        (GangPhase.RUNNING, True, True, True),
        (GangPhase.FINISHED, True, True, True),
        (GangPhase.FAILED, True, False, False),
        (GangPhase.UNKNOWN, True, False, False),
    ],
)
def test_what_a_phase_proves(phase: GangPhase, begun: bool, bound: bool, ran: bool) -> None:
    """Failed and Unknown prove nothing of the minimum: it may have had too few members all along."""
    assert (phase.begun, phase.bound, phase.ran) == (begun, bound, ran)
