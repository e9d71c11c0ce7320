"""What PodGroups of both kinds are told: a status that differs, once; conditions; and Events."""

from __future__ import annotations

from typing import Any

import msgspec
from scheduler_builders import SCHEDULER, raw_group, raw_node, raw_pod

from kube import objects
from kube.informer import Change, ChangeKind
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Hold
from scheduler.steps.gang_status import GangStatuses
from scheduler.steps.turn import Turn

GANG = WorkloadId.gang("default/train")


class Told:
    """A cache with these objects, and what is told of gang `train`."""

    def __init__(self, *found: Any) -> None:
        self.cache = ClusterCache((SCHEDULER,))
        self.see(raw_node(), *found)
        self.statuses = GangStatuses(self.cache)

    def see(self, *found: Any) -> None:
        for each in found:
            kinds = {objects.Pod: facts.PodSeen, objects.Node: facts.NodeSeen}
            self.cache.apply(kinds.get(type(each), facts.PodGroupSeen)(Change(ChangeKind.MODIFIED, each)))

    def turn(self, since: float = 0.0, now: float = 100.0) -> Turn:
        (part,) = self.cache.parts(GANG)
        return self.statuses.status(part, since, now)


def upstream(minimum: int = 2) -> objects.UpstreamPodGroup:
    metadata = objects.Metadata(name="train", namespace="default", uid="uid-train")
    policy = objects.SchedulingPolicy(gang=objects.GangPolicy(minimum))
    return objects.UpstreamPodGroup(metadata, objects.UpstreamPodGroupSpec(policy))


def member(index: int, kind: Any = None, **more: Any) -> objects.Pod:
    if kind is None:
        return raw_pod(f"t{index}", group="train", **more)
    pod = raw_pod(f"t{index}", **more)
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, scheduling_group=objects.SchedulingGroup("train"))
    )


def test_a_status_is_told_where_it_differs() -> None:
    """Once; with the counts of its pods."""
    world = Told(raw_group("train", 2), *(member(i, node_name="n1", phase="Running") for i in range(2)))
    (note,) = world.turn().gang_statuses
    assert (note.gang.name, note.status.phase, note.status.running, note.status.scheduled) == ("train", "Running", 2, 2)
    assert world.turn().gang_statuses == []
    world.see(member(1, node_name="n1", phase="Failed"))
    (again,) = world.turn().gang_statuses
    assert (again.status.running, again.status.failed) == (1, 1)


def test_a_gang_bound_in_part_is_marked() -> None:
    """Since when, before its phase could hide it; and not any more once it is whole."""
    world = Told(raw_group("train", 2), member(0, node_name="n1"), member(1))
    (note,) = world.turn(since=50.0).gang_statuses
    assert note.times is not None and note.times.partial_seconds == 50.0
    assert world.turn(since=50.0).gang_statuses == []


def test_a_gang_without_an_object_is_told_nothing() -> None:
    """There is nothing to write to."""
    world = Told(raw_group("train", 2), member(0))
    world.cache.apply(facts.PodGroupSeen(Change(ChangeKind.DELETED, raw_group("train", 2))))
    (part,) = world.cache.parts(GANG)
    assert world.statuses.status(part, 0.0, 100.0) == Turn()
    assert world.statuses.unplaced("default/train", "full", 100.0) == []


def test_an_upstream_group_has_conditions() -> None:
    """That it does not fit, then that it was placed; each once, and no status of the other kind."""
    world = Told(upstream(), member(0, "upstream"), member(1, "upstream"))
    (waiting,) = world.statuses.unplaced("default/train", "0/1 nodes", 100.0)
    assert (waiting.condition.status, waiting.condition.message) == ("False", "0/1 nodes")
    assert world.statuses.unplaced("default/train", "0/1 nodes", 100.0) == []
    world.see(*(member(i, "upstream", node_name="n1") for i in range(2)))
    told = world.turn()
    assert [each.condition.status for each in told.conditions if each.condition.type == waiting.condition.type] == [
        "True"
    ]
    assert told.gang_statuses == [] and world.turn().conditions == []
    plain = Told(raw_group("train", 2))
    assert plain.statuses.unplaced("default/train", "0/1 nodes", 100.0) == []


def test_members_that_have_ended_count_as_placed() -> None:
    """One runs, one has succeeded: the group was placed."""
    world = Told(upstream())
    world.see(
        member(0, "upstream", node_name="n1", phase="Running"), member(1, "upstream", node_name="n1", phase="Succeeded")
    )
    assert "True" in [each.condition.status for each in world.turn().conditions]


def test_an_event_on_each_group_concerned() -> None:
    """Of those that exist."""
    world = Told(raw_group("train", 2))
    subject = WorkloadId.gang("default/train", "default/none")
    (event,) = world.statuses.announced(Hold(subject, Reason.GANG_INVALID, "mend it", ()))
    assert (event.gang.name, event.reason, event.message) == ("train", Reason.GANG_INVALID.value, "mend it")


def volcanos(phase: str = "", **spec: Any) -> objects.VolcanoPodGroup:
    metadata = objects.Metadata(name="train", namespace="default", uid="uid-train")
    return objects.VolcanoPodGroup(metadata, {"minMember": 2, **spec}, objects.VolcanoPodGroupStatus(phase))


def of_volcano(index: int, **more: Any) -> objects.Pod:
    return raw_pod(f"t{index}", annotations={"scheduling.k8s.io/group-name": "train"}, **more)


def test_a_group_of_volcano_from_pending_to_running() -> None:
    """Pending, Inqueue once its queue admits it, whoever its pods are; Running with counts; each told once."""
    world, room = Told(volcanos(queue="research")), list[str]()
    world.statuses = GangStatuses(world.cache, lambda gang: gang.queue in room)
    (note,) = world.turn().gang_statuses
    assert (note.gang.group, note.status.phase) == ("scheduling.volcano.sh", "Pending")
    assert world.statuses.admitted().gang_statuses == world.turn().gang_statuses == []
    room.append("research")
    (note,) = world.statuses.admitted().gang_statuses
    assert note.status.phase == "Inqueue" and world.statuses.admitted().gang_statuses == []
    world.see(*(of_volcano(i, node_name="n1", phase="Running") for i in range(2)))
    (note,) = world.turn().gang_statuses
    assert (note.status.phase, note.status.running, note.times) == ("Running", 2, None)
    assert world.turn().gang_statuses == []


def test_a_group_of_volcano_with_a_problem_is_not_admitted() -> None:
    """Its pods wait for its mending."""
    world = Told(volcanos(minMember=-1))
    assert world.statuses.admitted().gang_statuses == []
    world.see(volcanos("Pending"))
    assert [note.status.phase for note in world.statuses.admitted().gang_statuses] == ["Inqueue"]
