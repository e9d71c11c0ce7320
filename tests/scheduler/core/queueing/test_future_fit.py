"""Where a workload will fit once what runs there has ended."""

from __future__ import annotations

import msgspec
import pytest
from reservation_world import SLOTS, World, big, small
from scheduler_builders import candidate, gang, in_group, members, node, pod

from model.pod.affinity import Affinity, PodTerm
from model.pod.pod import Pod
from model.selector import Selector
from model.workload import Gang, TopologyLevel
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.future_fit import future_fit, minimum_of

RACK = "rack"


def racks() -> World:
    """Two racks of two nodes, all full; rack b is the nearer to being free."""
    world = World(0)
    for name, rack in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        world.nodes[name] = node(name, batch_cpu=SLOTS * 1000, pods=1000, labels={RACK: rack, "host": name})
        for slot in range(SLOTS if rack == "a" else SLOTS - 2):
            world.put(small(f"{name}-{slot}"), name, 100.0)
    return world


def rows(world: World, item: Candidate) -> list[str] | None:
    """The nodes of its assignments."""
    working = world.working()
    assignments = future_fit(working, item, world.ledger.residents(working.snapshot))
    return None if assignments is None else sorted(working.snapshot.names[assignment.row] for assignment in assignments)


def workers(count: int, group: Gang | None = None, **more: object) -> Candidate:
    pods = [pod(f"w{i}", batch_cpu=1000, gang=in_group(), **more) for i in range(count)]
    return candidate(pods, group or gang(count))


def apart() -> Affinity:
    """Not where another of the same job is."""
    return Affinity(anti_pods=(PodTerm("host", Selector()),))


CASES: dict[str, tuple[Candidate, list[str] | None]] = {
    "the least missing room, on as few rows as will do": (workers(4), ["b1"] * 4),
    "one rack for all": (
        workers(4, gang(4, topology=(TopologyLevel(RACK, required=True),))),
        ["b1"] * 4,
    ),
    "no rack holds all": (workers(17, gang(17, topology=(TopologyLevel(RACK, required=True),))), None),
    "where its selector lets it": (workers(2, node_selector={RACK: "a"}), ["a1", "a1"]),
    "nowhere": (workers(2, node_selector={RACK: "c"}), None),
    "more than all nodes have": (workers(4 * SLOTS + 1), None),
    "the members of the minimum alone, where one fits best": (workers(5, gang(1)), ["b2"]),
}


@pytest.mark.parametrize("name", CASES)
def test_future_fit(name: str) -> None:
    """Assignments for the needed members by all filters, a row that is nearly free before one that is full."""
    item, expected = CASES[name]
    assert rows(racks(), item) == expected


def test_members_with_terms_about_each_other() -> None:
    """One a host: the resident pods that match the term leave too."""
    world = racks()
    found = rows(world, workers(3, affinity=apart()))
    assert found is not None
    assert (len(found), len(set(found))) == (3, 3)
    assert rows(world, workers(5, affinity=apart())) is None


def test_minimum_of() -> None:
    """The first members of each gang of a group; sets that give none are left out."""
    item = candidate([*members(3), pod("big", batch_cpu=900, gang=in_group(), created_seconds=9.0)], gang(2))
    least = minimum_of(item)
    assert (least.uids, len(least.classes), [len(member_traits) for member_traits in least.member_traits]) == (
        ("uid-w0", "uid-w1"),
        1,
        [2],
    )
    pairs = tuple(
        msgspec.structs.replace(pods, gang=name) for pods, name in zip(item.workload.pod_sets, "ab", strict=True)
    )
    grouped = msgspec.structs.replace(item.workload, pod_sets=pairs, gangs=(("a", 1), ("b", 1)))
    assert minimum_of(msgspec.structs.replace(item, workload=grouped)).uids == ("uid-w0", "uid-big")
    lone: Pod = pod()
    assert minimum_of(candidate([lone])).uids == (lone.uid,)
    assert minimum_of(big(3)).pending == 3
