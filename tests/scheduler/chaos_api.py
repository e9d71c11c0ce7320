"""An API server, kubelets and owners in miniature, that fail when the dice say so.

It implements the scheduler's ports over a dict of objects; every change is queued for whoever watches. Owners make a
lost or evicted member anew under the same name, as a Job would.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec
from scheduler_builders import raw_group, raw_node, raw_pod

from kube import objects
from kube.informer import Change, ChangeKind
from model.fault import KubernetesFault
from model.placement import Placement
from model.resources import BATCH_CPU
from scheduler import facts
from scheduler.core.phase import GangStatus
from scheduler.ports import Named

POD_CPU = 500
OWNER = objects.OwnerReference("batch/v1", "Job", "job", "uid-job", controller=True)
_MAKERS: dict[type, Any] = {
    objects.Pod: facts.PodSeen,
    objects.Node: facts.NodeSeen,
    objects.PodGroup: facts.PodGroupSeen,
}


class ChaosApi:
    """`odds` is how often a write fails; half of those that fail without an answer were carried out all the same."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.odds = 0.0
        self.pods: dict[str, objects.Pod] = {}
        self.nodes: dict[str, objects.Node] = {}
        self.groups: dict[str, objects.PodGroup] = {}
        self.waiting: list[Change[Any]] = []
        self._serial = 0

    # What happens in the cluster

    def add_node(self, name: str, pods: int) -> None:
        self.nodes[name] = raw_node(name, batch_cpu=str(pods * POD_CPU))
        self._say(ChangeKind.ADDED, self.nodes[name])

    def lose_node(self, name: str) -> None:
        """The node and its pods go; owners make the pods anew."""
        self._say(ChangeKind.DELETED, self.nodes.pop(name))
        for pod in [pod for pod in self.pods.values() if pod.spec.node_name == name]:
            self._remove(pod)

    def add_gang(self, name: str, size: int, minimum: int, created: float) -> None:
        self.groups[name] = raw_group(name, minimum)
        self._say(ChangeKind.ADDED, self.groups[name])
        for index in range(size):
            self._create(f"{name}-{index}", name, created)

    def drop_gang(self, name: str) -> None:
        """The job is deleted, its pods with it."""
        self._say(ChangeKind.DELETED, self.groups.pop(name))
        for pod in self.members(name):
            self._say(ChangeKind.DELETED, self.pods.pop(pod.metadata.name))

    def finish_gang(self, name: str) -> None:
        """All its pods succeed, and its owner cleans up."""
        self.drop_gang(name)

    def run_kubelets(self) -> None:
        """What is being deleted ends."""
        for pod in [pod for pod in self.pods.values() if pod.metadata.deletion_timestamp is not None]:
            self._remove(pod)

    def members(self, gang: str) -> list[objects.Pod]:
        label = "pod-group.scheduling.sigs.k8s.io"
        return [pod for pod in self.pods.values() if (pod.metadata.labels or {}).get(label) == gang]

    # What the scheduler hears

    def news(self) -> list[facts.Fact]:
        changes, self.waiting = self.waiting, []
        return [_MAKERS[type(change.object)](change) for change in changes]

    def relist(self) -> list[facts.Fact]:
        """Everything there is, as a scheduler hears it that starts, or that a 410 sends back to the list."""
        self.waiting.clear()
        found: Iterable[Any] = (*self.nodes.values(), *self.groups.values(), *self.pods.values())
        return [_MAKERS[type(item)](Change(ChangeKind.ADDED, item)) for item in found]

    # scheduler.ports

    async def bind(self, placement: Placement) -> None:
        name = self._tried(placement.pod_key, placement.pod_uid)
        answer = self._dice()
        pod = self.pods[name]
        if pod.spec.node_name or placement.node not in self.nodes:
            raise KubernetesFault(name, "409 bound already", status=409)
        if answer in ("done", "lost"):
            self._put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=placement.node)))
            self._check_room(placement.node)
        self._answer(answer)

    async def bound(self, placement: Placement) -> bool:
        self._answer(self._dice())
        pod = self.pods.get(placement.pod_key.partition("/")[2])
        return pod is not None and (pod.metadata.uid, pod.spec.node_name) == (placement.pod_uid, placement.node)

    async def unscheduled(self, pod: Named, message: str, *, first: bool, nominated: str | None = None) -> None:
        name = self._tried(pod.key, pod.uid)
        self._answer(self._dice(lossy=False))
        told = [objects.Condition("PodScheduled", "False", "Unschedulable", message)]
        status = msgspec.structs.replace(self.pods[name].status, conditions=told)
        if nominated is not None:
            status = msgspec.structs.replace(status, nominated_node_name=nominated)
        self._put(msgspec.structs.replace(self.pods[name], status=status))

    async def gang_status(self, gang: Named, status: GangStatus) -> None:
        self._answer(self._dice(lossy=False))

    async def group_condition(self, gang: Named, condition: objects.Condition) -> None:
        self._answer(self._dice(lossy=False))

    async def evict(self, pod: Named, reason: str, message: str) -> None:
        name = pod.name
        if name not in self.pods or self.pods[name].metadata.uid != pod.uid:
            return
        self._answer(self._dice(lossy=False))
        told = self.pods[name]
        stamp = told.metadata.creation_timestamp
        self._put(
            msgspec.structs.replace(told, metadata=msgspec.structs.replace(told.metadata, deletion_timestamp=stamp))
        )

    # Its own affairs

    def used(self, node: str) -> int:
        return POD_CPU * sum(pod.spec.node_name == node for pod in self.pods.values())

    def _check_room(self, node: str) -> None:
        """The one thing that must never happen, whatever fails."""
        room = int(str((self.nodes[node].status.allocatable or {})[BATCH_CPU]))
        assert self.used(node) <= room, f"node {node} holds {self.used(node)} of {room}"

    def _create(self, name: str, gang: str, created: float) -> None:
        self._serial += 1
        pod = raw_pod(name, group=gang, created=created)
        metadata = msgspec.structs.replace(pod.metadata, uid=f"uid-{self._serial}", owner_references=[OWNER])
        self.pods[name] = msgspec.structs.replace(pod, metadata=metadata)
        self._say(ChangeKind.ADDED, self.pods[name])

    def _remove(self, pod: objects.Pod) -> None:
        name = pod.metadata.name
        self._say(ChangeKind.DELETED, self.pods.pop(name))
        gang = (pod.metadata.labels or {})["pod-group.scheduling.sigs.k8s.io"]
        if gang in self.groups and pod.metadata.creation_timestamp is not None:
            self._create(name, gang, pod.metadata.creation_timestamp.timestamp())

    def _put(self, pod: objects.Pod) -> None:
        self.pods[pod.metadata.name] = pod
        self._say(ChangeKind.MODIFIED, pod)

    def _say(self, kind: ChangeKind, item: Any) -> None:
        self.waiting.append(Change(kind, item))

    def _tried(self, key: str, uid: str) -> str:
        name = key.partition("/")[2]
        if name not in self.pods:
            raise KubernetesFault(key, "404", status=404)
        if self.pods[name].metadata.uid != uid:
            raise KubernetesFault(key, "409 another uid", status=409)
        return name

    def _dice(self, *, lossy: bool = True) -> str:
        if self.random.random() >= self.odds:
            return "done"
        return self.random.choice(("refused", "lost", "silent") if lossy else ("refused", "silent"))

    def _answer(self, outcome: str) -> None:
        if outcome == "refused":
            raise KubernetesFault("POST", "500 broken", status=500)
        if outcome in ("lost", "silent"):
            raise KubernetesFault("POST", "no answer", status=0)
