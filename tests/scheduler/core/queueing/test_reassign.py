"""Assignments moved to where there is room now."""

from __future__ import annotations

import msgspec
import pytest
from scheduler_builders import candidate, gang, in_group, node, pod, snapshot

from model.pod.affinity import HostPort
from model.resources import BATCH_CPU
from model.workload import TopologyLevel, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.working_snapshot import Assignment, Nominated, WorkingSnapshot
from scheduler.core.queueing.reassign import reassign

NODES = [node(name, batch_cpu=4000) for name in ("n0", "n1", "n2")]


def item(count: int = 3, **more: object) -> Candidate:
    pods = [pod(f"w{i}", batch_cpu=1000, gang=in_group(), **more) for i in range(count)]
    return candidate(pods, gang(count))


def assigned(found: Candidate, rows: list[int]) -> tuple[Assignment, ...]:
    return tuple(Assignment(uid, row, found.classes[0]) for uid, row in zip(found.uids, rows, strict=True))


def working(free: tuple[int, int, int], nominated: tuple[Nominated, ...] = ()) -> WorkingSnapshot:
    """So many members fit into each node at this moment."""
    names = ("n0", "n1", "n2")
    usage = {name: {BATCH_CPU: 4000 - 1000 * number} for name, number in zip(names, free, strict=True)}
    return WorkingSnapshot(snapshot(*NODES, usage=usage), nominated)


CASES: dict[str, tuple[tuple[int, int, int], list[int], list[int]]] = {
    "nothing is free": ((0, 0, 0), [0, 0, 0], [0, 0, 0]),
    "room for one elsewhere": ((0, 1, 0), [0, 0, 0], [0, 0, 1]),
    "room for more than there are": ((0, 4, 0), [0, 0, 0], [1, 1, 1]),
    "what fits stays": ((2, 4, 0), [0, 0, 0], [0, 0, 1]),
    "the row that misses most is left first": ((0, 0, 1), [0, 0, 1], [0, 1, 2]),
    "all fit where they are": ((3, 4, 4), [0, 0, 0], [0, 0, 0]),
}


@pytest.mark.parametrize("name", CASES)
def test_reassign(name: str) -> None:
    """An assignment is exchanged for a place only if it does not fit where it is; its members are the same."""
    free, before, after = CASES[name]
    found = item()
    moved = reassign(working(free), found, assigned(found, before))
    assert sorted(assignment.row for assignment in moved) == after
    assert {assignment.uid for assignment in moved} == set(found.uids)


def test_room_kept_for_others_is_not_room() -> None:
    """Another's nomination of the same priority counts, its own does not."""
    found = item(1)
    own, other = (
        Nominated(name, 0, assigned(found, [1])) for name in (found.subject, WorkloadId.gang("default/other"))
    )
    assert reassign(working((0, 1, 0), (own,)), found, assigned(found, [0]))[0].row == 1
    assert reassign(working((0, 1, 0), (other,)), found, assigned(found, [0]))[0].row == 0


def test_two_sizes_do_not_share_one_place() -> None:
    """The second class finds what the first left."""
    pods = [pod(name, batch_cpu=size, gang=in_group()) for name, size in (("a", 1000), ("b", 900))]
    found = candidate(pods, gang(2))
    before = tuple(Assignment(uid, 0, pod_class) for uid, pod_class in zip(found.uids, found.classes, strict=True))
    assert [assignment.row for assignment in reassign(working((0, 1, 0)), found, before)] == [1, 0]


def test_members_that_belong_together_stay() -> None:
    """A topology, and terms about who else is there."""
    ports = item(host_ports=(HostPort(80),))
    level = (TopologyLevel("rack", required=True),)
    racked = item()
    racked = msgspec.structs.replace(racked, workload=msgspec.structs.replace(racked.workload, topology=level))
    for found in (ports, racked):
        assert reassign(working((0, 4, 0)), found, assigned(found, [0, 0, 0])) == assigned(found, [0, 0, 0])
