"""A gang bound in part keeps room for the rest: against those behind it, over a change of leader, as nodes come and go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from scheduler_builders import marked, raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.fault import KubernetesFault
from model.workload import GangTimes
from scheduler.settings import SchedulerSettings

SETTINGS = SchedulerSettings(concurrent_binds=1)
OWNER = objects.OwnerReference("batch/v1", "Job", "job", "uid-job", controller=True)
KINDS = ("pod group", "annotations", "upstream")
BATCH = {"koordinator.sh/qosClass": "BE"}


def member(kind: str, gang: str, index: int, minimum: int) -> objects.Pod:
    """A pod of a gang that is defined by its PodGroup of either kind, or by annotations alone."""
    name, created = f"{gang}-{index}", float(index + 1)
    if kind == "pod group":
        pod = raw_pod(name, group=gang, created=created, labels=BATCH)
    elif kind == "annotations":
        told = {
            "gang.scheduling.koordinator.sh/name": gang,
            "gang.scheduling.koordinator.sh/min-available": f"{minimum}",
        }
        pod = raw_pod(name, annotations=told, created=created, labels=BATCH)
    else:
        pod = raw_pod(name, created=created, labels=BATCH)
        spec = msgspec.structs.replace(pod.spec, scheduling_group=objects.SchedulingGroup(gang))
        pod = msgspec.structs.replace(pod, spec=spec)
    metadata = msgspec.structs.replace(pod.metadata, owner_references=[OWNER])
    return msgspec.structs.replace(pod, metadata=metadata)


def group(kind: str, gang: str, minimum: int) -> list[Any]:
    if kind == "pod group":
        return [raw_group(gang, minimum)]
    if kind == "upstream":
        metadata = objects.Metadata(name=gang, namespace="default", uid=f"uid-{gang}")
        policy = objects.SchedulingPolicy(gang=objects.GangPolicy(minimum))
        return [objects.UpstreamPodGroup(metadata, objects.UpstreamPodGroupSpec(policy))]
    return []


class Cluster:
    """Nodes of `slots`, gangs, and one scheduler after another; what is bound outlives them all."""

    def __init__(self, kind: str, *nodes: str, slots: int = 2) -> None:
        self.kind = kind
        self.nodes = {name: raw_node(name, batch_cpu=str(500 * slots)) for name in nodes}
        self.pods: dict[str, objects.Pod] = {}
        self.groups: list[Any] = []
        self.later = 0
        self.world = World(SETTINGS)
        self.world.see(*self.nodes.values())

    @property
    def bound(self) -> dict[str, str]:
        return {name: node for name, node in self.world.binder.assigned.items() if node in self.nodes}

    def size(self, gang: str) -> int:
        return sum(name.startswith(f"{gang}-") for name in self.bound)

    def submit(self, gang: str, size: int) -> None:
        made = group(self.kind, gang, size)
        self.groups += made
        pods = [member(self.kind, gang, index, size) for index in range(size)]
        self.pods |= {pod.metadata.name: pod for pod in pods}
        self.world.see(*made, *pods)

    def submit_later(self) -> None:
        """One more gang of the same priority that would fit where the first is to go."""
        self.submit(f"later{self.later}", 2)
        self.later += 1

    def turn(self, after: float = 1.0) -> None:
        """A turn, and what it bound is seen."""
        self.world.turn(after=after)
        self.world.see(*self._seen())

    def take_over(self) -> None:
        """Another process leads, and lists everything; what was told on PodGroups is there, too."""
        before, self.world = self.world, World(SETTINGS)
        self.world.clock.now, self.world.binder = before.clock.now, before.binder
        self.world.loop._publisher._binder = before.binder
        self.world.see(*self.nodes.values(), *(self._told(made, before) for made in self.groups), *self._seen())

    def lose(self, node: str) -> None:
        """The node and its pods go; their owners make those again."""
        lost = [name for name, home in self.bound.items() if home == node]
        self.world.gone(self.nodes.pop(node), *(self._as_bound(name, node) for name in lost))
        for name in lost:
            del self.world.binder.assigned[name]
            created = datetime.fromtimestamp(self.world.clock.now, UTC)
            uid = f"{self.pods[name].metadata.uid}-again"
            metadata = msgspec.structs.replace(self.pods[name].metadata, uid=uid, creation_timestamp=created)
            self.pods[name] = msgspec.structs.replace(self.pods[name], metadata=metadata)
            self.world.see(self.pods[name])

    def add(self, node: str) -> None:
        self.nodes[node] = raw_node(node)
        self.world.see(self.nodes[node])

    def _told(self, made: Any, before: World) -> Any:
        """A PodGroup with what the scheduler before wrote on it."""
        name = made.metadata.name
        if self.kind == "upstream" and name in before.writer.groups:
            status = objects.UpstreamPodGroupStatus([before.writer.groups[name]])
            return msgspec.structs.replace(made, status=status)
        if self.kind == "pod group" and name in before.writer.statuses:
            status = objects.PodGroupStatus(before.writer.statuses[name].phase)
            times = before.writer.times.get(name, [GangTimes()])[-1]
            return msgspec.structs.replace(marked(made, times), status=status)
        return made

    def _seen(self) -> list[objects.Pod]:
        return [self._as_bound(name, self.bound.get(name, "")) for name in self.pods]

    def _as_bound(self, name: str, node: str) -> objects.Pod:
        pod = self.pods[name]
        if not node:
            return pod
        told = [objects.Condition("PodScheduled", "True", last_transition_time="1970-01-01T00:16:40Z")]
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        return msgspec.structs.replace(pod, spec=spec, status=objects.PodStatus("Pending", conditions=told))


def refused(cluster: Cluster) -> None:
    cluster.world.binder.failures["train-2"] = KubernetesFault("POST", "403 forbidden", status=403)


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Four members on three nodes of two slots, the third of whom is refused: two are bound."""
    made = Cluster(request.param, "n1", "n2", "n3")
    made.submit("train", 4)
    refused(made)
    made.turn()
    assert made.size("train") == 2
    return made


def test_others_get_what_it_has_no_use_for_alone(cluster: Cluster) -> None:
    """While it rests after the refusal: the two slots beyond its own, not those of its other two members."""
    for _ in range(2):
        cluster.submit_later()
    cluster.turn(after=0.01)
    cluster.turn(after=0.01)
    assert (cluster.size("train"), cluster.size("later0"), cluster.size("later1")) == (2, 2, 0)
    cluster.turn(after=2.0)
    assert cluster.size("train") == 4


def test_a_change_of_leader_gives_nothing_away(cluster: Cluster) -> None:
    """The next one knows it from its pods: its assignments are kept before anybody else is placed."""
    for _ in range(3):
        cluster.submit_later()
        cluster.take_over()
        refused(cluster)
        cluster.turn()
        assert cluster.size("train") == 2 and cluster.size("later1") == cluster.size("later2") == 0
    cluster.world.binder.failures.clear()
    for _ in range(3):
        cluster.turn(after=5.0)
    assert cluster.size("train") == 4


def test_nodes_that_go_and_come_are_its_own_first(cluster: Cluster) -> None:
    """A refused binding, a leader that dies, the node with the kept assignments gone: no later gang passes it, for as long."""
    refused(cluster)
    for _ in range(3):
        cluster.submit_later()
        cluster.turn(after=0.01)
    cluster.take_over()
    refused(cluster)
    cluster.turn()
    home = {node for name, node in cluster.bound.items() if name.startswith("train")}
    free = next(node for node in cluster.nodes if node not in cluster.bound.values())
    cluster.lose(free)
    for _ in range(3):
        cluster.submit_later()
        cluster.turn(after=5.0)
    assert cluster.size("train") == 2 and home <= set(cluster.nodes)
    placed = sum(cluster.size(f"later{number}") for number in range(cluster.later))
    cluster.take_over()
    cluster.add("n4")
    cluster.turn()
    assert cluster.size("train") == 4
    assert sum(cluster.size(f"later{number}") for number in range(cluster.later)) == placed


def test_it_is_given_back_in_the_end(cluster: Cluster) -> None:
    """Refused again and again: after two minutes its members go, counted over the leaders, and the next in line is placed."""
    cluster.submit_later()
    cluster.submit_later()
    for number in range(70):
        refused(cluster)
        if number == 20:
            cluster.take_over()
        cluster.turn(after=2.0)
        if cluster.world.evictor.evicted:
            break
    assert set(cluster.world.evictor.evicted) == {"train-0", "train-1"}
    assert 118.0 <= cluster.world.clock.now - 1000.0 <= 126.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_and_a_lost_member_do_not_make_it_look_whole(kind: str) -> None:
    """The PodGroup says that it never was, so what is left of it is given back; a gang without one is left alone."""
    cluster = Cluster(kind, "n1", "n2", "n3", "n4", slots=1)
    cluster.submit("train", 4)
    refused(cluster)
    cluster.turn()
    assert cluster.size("train") == 2
    home = cluster.bound["train-0"]
    cluster.lose(home)
    cluster.take_over()
    for _ in range(70):
        refused(cluster)
        cluster.turn(after=2.0)
        if cluster.world.evictor.evicted:
            break
    assert set(cluster.world.evictor.evicted) == (set() if kind == "annotations" else {"train-1"})


def test_a_gang_that_is_bound_in_one_go_is_marked_once() -> None:
    """With its first binding; from then on the phase of its status says enough."""
    cluster = Cluster("pod group", "n1", "n2")
    cluster.submit("train", 4)
    for _ in range(3):
        cluster.turn()
    assert cluster.size("train") == 4
    assert [times.whole_seconds for times in cluster.world.writer.times["train"]] == [0.0]
    assert cluster.world.writer.statuses["train"].phase == "Scheduled"
