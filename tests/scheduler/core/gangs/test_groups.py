"""Gangs that go together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from scheduler_builders import SCHEDULER, gang, in_group, members, pod

from model.pod.pod import Pod
from model.reason import Reason
from model.workload import Gang, GangMode, TopologyLevel, WorkloadId
from scheduler.core.gangs.assembly import Assembly, assemble_parts, part_of
from scheduler.core.gangs.groups import GroupIndex, subject_of
from scheduler.core.gangs.roster import roster

BOTH = ("default/a", "default/b")
SUBJECT = WorkloadId.gang("default/a", "default/b")


def listed(name: str, minimum: int = 2, groups: Iterable[str] = BOTH, **more: Any) -> Gang:
    return gang(minimum, name, groups=tuple(groups), **more)


def workers(name: str, count: int, **more: Any) -> list[Pod]:
    return members(count, name=name, group=name, **more)


def assembled(pods: list[Pod], *gangs: Gang) -> Assembly:
    known = {item.key: item for item in gangs}
    parts = [
        part_of(
            key, roster([p for p in pods if p.spec.gang and p.spec.gang.key == key], (), (SCHEDULER,)), known.get(key)
        )
        for key in SUBJECT.gangs
    ]
    return assemble_parts(SUBJECT, parts)


def test_a_group_is_one_workload() -> None:
    """All gangs' members in one candidate, the minimum of each told apart; bound members count for their own gang."""
    bound = pod("a9", gang=in_group("a"), node_name="n1")
    result = assembled(
        [*workers("a", 3), bound, *workers("b", 2, priority=9)], listed("a", 3), listed("b", 2)
    ).candidate
    assert result is not None
    assert (result.subject, result.workload.key) == (SUBJECT, "default/a,default/b")
    assert result.workload.gangs == (("default/a", 2), ("default/b", 2))
    assert [(pods.gang, pods.count) for pods in result.workload.pod_sets] == [("default/a", 3), ("default/b", 2)]
    assert (result.needed, result.workload.bound, result.workload.min_total, result.workload.priority) == (4, 1, 5, 9)


def test_a_group_has_one_definition() -> None:
    """Strict where any gang is, with the longest timeout, the minimum of all together."""
    loose = listed("a", mode=GangMode.NON_STRICT, timeout_seconds=60.0)
    result = assembled([*workers("a", 2), *workers("b", 3)], loose, listed("b", 3, timeout_seconds=900.0)).candidate
    assert result is not None
    spec = result.workload.gang
    assert spec is not None
    assert (spec.mode, spec.timeout_seconds, spec.min_member) == (GangMode.STRICT, 900.0, 5)


HELD: dict[str, tuple[list[Pod], tuple[Gang, ...], Reason, str]] = {
    "a gang is missing": (
        workers("a", 2),
        (listed("a"),),
        Reason.GANG_NOT_FOUND,
        "gang default/b of group default/a,default/b does not exist",
    ),
    "a gang has no pods yet": (
        workers("a", 2),
        (listed("a"), listed("b")),
        Reason.GANG_WAITING_FOR_MEMBERS,
        "gang default/b: 0 of 2 members exist",
    ),
    "a gang has too few": (
        [*workers("a", 2), *workers("b", 1)],
        (listed("a"), listed("b")),
        Reason.GANG_WAITING_FOR_MEMBERS,
        "gang default/b: 1 of 2 members exist",
    ),
    "a gang is invalid": (
        [*workers("a", 2), *workers("b", 2)],
        (listed("a"), listed("b", problem="mend me")),
        Reason.GANG_INVALID,
        "gang default/b: mend me",
    ),
    "a gang lists another group": (
        [*workers("a", 2), *workers("b", 2)],
        (listed("a"), listed("b", groups=("default/b", "default/c"))),
        Reason.GANG_INVALID,
        "gang default/b: it is listed in group default/a,default/b but lists default/b,default/c itself; "
        "give all of them one list",
    ),
    "topologies differ": (
        [*workers("a", 2), *workers("b", 2)],
        (
            listed("a", topology=(TopologyLevel("rack", required=True),)),
            listed("b", topology=(TopologyLevel("zone", required=True),)),
        ),
        Reason.GANG_INVALID,
        "gang default/b: it asks for another topology than the gang before it in its group; give both the same",
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_a_group_is_held_whole(name: str) -> None:
    """Koordinator issue 872: no gang of a group is tried without the others; all its pods are told which is missing.

    The pods of a gang that lists another group are told nothing here: that other group is theirs.
    """
    pods, gangs, reason, detail = HELD[name]
    result = assembled(pods, *gangs)
    assert result.candidate is None
    assert [(hold.subject, hold.reason, hold.detail) for hold in result.holds] == [(SUBJECT, reason, detail)]
    own = {item.key for item in gangs if item.spec.groups == BOTH}
    assert set(result.holds[0].uids) == {item.uid for item in pods if item.spec.gang and item.spec.gang.key in own}


def test_ids() -> None:
    """Koordinator's: sorted keys joined by commas, itself included; a gang alone keeps its own key."""
    assert WorkloadId.gang("n/b", "n/c", "n/a", "n/b").name == "n/a,n/b,n/c"
    assert WorkloadId.gang("n/b").name == "n/b"
    assert WorkloadId.gang("n/a", "n/b").gangs == ("n/a", "n/b")
    assert WorkloadId.pod("n/a").gangs == ()


def test_the_index_says_which_subjects_change() -> None:
    """A definition that arrives, changes or goes concerns its old and its new subject, and those that list it."""
    index = GroupIndex()
    member = pod(gang=in_group("a"))
    assert subject_of(member, index.ids) == WorkloadId.gang("default/a")
    assert index.define("default/a", BOTH) == {WorkloadId.gang("default/a"), SUBJECT}
    assert subject_of(member, index.ids) == index.subject("default/a") == SUBJECT
    assert index.define("default/b") == {WorkloadId.gang("default/b"), SUBJECT}
    assert index.define("default/b", BOTH) == {WorkloadId.gang("default/b"), SUBJECT}
    assert index.define("default/a") == {WorkloadId.gang("default/a"), SUBJECT}
    assert index.naming("default/a") == {SUBJECT}
    index.define("default/b")
    assert (dict(index.ids), index.naming("default/a")) == ({}, set())
    assert subject_of(pod(), index.ids) == WorkloadId.pod("default/p1")
