"""A workload's identity: what it is made of, its text, and its place in an order."""

from __future__ import annotations

from model.workload import WorkloadId


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
