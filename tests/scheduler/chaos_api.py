"""An API server, kubelets and owners in miniature, that fail when the dice say so.

It implements the scheduler's ports over a dict of objects; every change is queued for whoever watches. Owners make a
lost or evicted member again under the same name and a rejected one under another, as a Job would.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
from scheduler_builders import marked, raw_group, raw_node, raw_pod

from kube import objects
from kube.dialects.gangs import podgroups
from kube.informer import Change, ChangeKind
from model.fault import KubernetesFault
from model.placement import Placement
from model.resources import BATCH_CPU
from model.workload import GangTimes
from scheduler.cache import facts
from scheduler.core.gangs.phase import GangStatus
from scheduler.ports import NamedObject

POD_CPU = 500
OWNER = objects.OwnerReference("batch/v1", "Job", "job", "uid-job", controller=True)
QUEUE = "sublet.dev/queue"
_JOB = "job"
_GROUPS = "gang.scheduling.koordinator.sh/groups"
_PREEMPTOR = re.compile(r"preemptor: default/(g\d+)")
_MAKERS: dict[type, Any] = {
    objects.Pod: facts.PodSeen,
    objects.Node: facts.NodeSeen,
    objects.PodGroup: facts.PodGroupSeen,
}


class Job(msgspec.Struct, frozen=True):
    """What its owner wants; a `minimum` of 0 is a lone pod, `partner` the other gang of its group, no `queue` none named."""

    name: str
    size: int
    minimum: int
    priority: int = 0
    policy: str | None = None
    notice_seconds: int = 0
    partner: str = ""
    queue: str = ""


class ChaosApi:
    """`odds` is how often a write fails; half of those that fail without an answer were carried out all the same.

    `excused` are gangs that may be bound in part: they were whole, or lost a bound member while their PodGroup did not say
    yet that they are bound in part, which looks like it.
    `evictions` counts those that were done.
    """

    def __init__(self, random: Random, clock: Callable[[], float]) -> None:
        self.random, self.clock = random, clock
        self.odds = 0.0
        self.pods: dict[str, objects.Pod] = {}
        self.nodes: dict[str, objects.Node] = {}
        self.groups: dict[str, objects.PodGroup] = {}
        self.queues: dict[str, objects.Queue] = {}
        self.jobs: dict[str, Job] = {}
        self.excused: set[str] = set()
        self.evictions = 0
        self._waiting: list[Change[Any]] = []
        self._told: dict[tuple[str, str], Any] = {}
        self._known: dict[str, Job] = {}
        self._serial = 0

    # What happens in the cluster

    def add_node(self, name: str, pods: int) -> None:
        """Also what resizes one."""
        self.nodes[name] = raw_node(name, batch_cpu=str(pods * POD_CPU))
        self._say(ChangeKind.MODIFIED, self.nodes[name])

    def lose_node(self, name: str) -> None:
        """The node and its pods go; owners make the pods again."""
        self._say(ChangeKind.DELETED, self.nodes.pop(name))
        for pod in [pod for pod in self.pods.values() if pod.spec.node_name == name]:
            self._remove(pod)

    def add_job(self, job: Job) -> None:
        self.jobs[job.name] = job
        self._known[job.name] = job
        if job.minimum:
            self.add_group(job.name)
        for index in range(job.size):
            self._create(f"{job.name}-{index}", job)

    def add_group(self, name: str) -> None:
        """The PodGroup of a job, made again where it is there."""
        job = self.jobs[name]
        listed = {_GROUPS: f'["default/{name}","default/{job.partner}"]'} if job.partner else {}
        group = raw_group(name, job.minimum, annotations=listed)
        self._serial += 1
        metadata = msgspec.structs.replace(group.metadata, uid=f"uid-{self._serial}")
        self.groups[name] = msgspec.structs.replace(group, metadata=metadata)
        self._say(ChangeKind.ADDED, self.groups[name])

    def lose_group(self, name: str) -> None:
        """What it says is lost with it."""
        self._say(ChangeKind.DELETED, self.groups.pop(name))

    def add_queue(self, name: str, spec: dict[str, Any]) -> None:
        """Also what changes one."""
        before = self.queues.get(name)
        self._serial += 1
        uid = before.metadata.uid if before else f"uid-{self._serial}"
        self.queues[name] = objects.Queue(objects.Metadata(name=name, uid=uid), spec)
        self._say(ChangeKind.MODIFIED if before else ChangeKind.ADDED, self.queues[name])

    def lose_queue(self, name: str) -> None:
        """Whatever is in it; what runs goes on."""
        self._say(ChangeKind.DELETED, self.queues.pop(name))

    def finish(self, name: str) -> None:
        """The job is deleted, its pods with it."""
        del self.jobs[name]
        if name in self.groups:
            self.lose_group(name)
        for pod in self.members(name):
            self._remove(pod)

    def run_kubelets(self) -> None:
        """What is being deleted ends; what is bound starts sooner or later, or is rejected when the dice say so."""
        for pod in list(self.pods.values()):
            if pod.metadata.deletion_timestamp is not None:
                self._remove(pod)
            elif pod.spec.node_name and pod.status.phase == "Pending":
                self._start(pod)

    def members(self, job: str) -> list[objects.Pod]:
        return [pod for pod in self.pods.values() if _job(pod) == job]

    # What the scheduler hears

    def news(self) -> list[facts.Fact]:
        changes, self._waiting = self._waiting, []
        for change in changes:
            self._told[_key(change.object)] = change.object
            if change.kind is ChangeKind.DELETED:
                del self._told[_key(change.object)]
        return [_fact(change) for change in changes]

    def relist(self, *, fresh: bool = False) -> list[facts.Fact]:
        """Everything there is, as a 410 sends the scheduler back to the list; `fresh`: to one that knows nothing yet."""
        self._waiting.clear()
        kinds = (self.nodes, self.queues, self.groups, self.pods)
        found = {_key(item): item for kind in kinds for item in kind.values()}
        before, self._told = ({} if fresh else self._told), dict(found)
        gone = [item for key, item in before.items() if key not in found or _uid(item) != _uid(found[key])]
        deleted = [_fact(Change(ChangeKind.DELETED, item)) for item in gone]
        return deleted + [_fact(Change(ChangeKind.ADDED, item)) for item in found.values()]

    # scheduler.ports

    async def bind(self, placement: Placement) -> None:
        name = self._tried(placement.pod_key, placement.pod_uid)
        answer = self._dice()
        pod = self.pods[name]
        if pod.spec.node_name or placement.node not in self.nodes:
            raise KubernetesFault(name, "409 bound already", status=409)
        if answer in ("done", "lost"):
            stamp = datetime.fromtimestamp(self.clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            told = [objects.Condition("PodScheduled", "True", last_transition_time=stamp)]
            spec = msgspec.structs.replace(pod.spec, node_name=placement.node)
            self._put(msgspec.structs.replace(pod, spec=spec, status=objects.PodStatus("Pending", conditions=told)))
            self._check_room(placement.node)
            self._check_quota(self.jobs[_job(pod)].queue)
            self._check_whole(_job(pod))
        self._answer(answer)

    async def bound(self, placement: Placement) -> bool:
        self._answer(self._dice())
        pod = self.pods.get(placement.pod_key.partition("/")[2])
        return pod is not None and (pod.metadata.uid, pod.spec.node_name) == (placement.pod_uid, placement.node)

    async def unscheduled(self, pod: NamedObject, message: str, *, first: bool, nominated: str | None = None) -> None:
        name = self._tried(pod.key, pod.uid)
        self._answer(self._dice(lossy=False))
        assert not self.pods[name].spec.node_name, f"{name} is bound, and told that it is not"
        told = [objects.Condition("PodScheduled", "False", "Unschedulable", message)]
        status = msgspec.structs.replace(self.pods[name].status, conditions=told)
        if nominated is not None:
            status = msgspec.structs.replace(status, nominated_node_name=nominated)
        self._put(msgspec.structs.replace(self.pods[name], status=status))

    async def gang_status(self, gang: NamedObject, status: GangStatus) -> None:
        self._answer(self._dice(lossy=False))
        found = self.groups.get(gang.name)
        if found is None or found.metadata.uid != gang.uid:
            raise KubernetesFault(gang.key, "409 another uid", status=409)
        self.groups[gang.name] = msgspec.structs.replace(found, status=objects.PodGroupStatus(status.phase))
        self._say(ChangeKind.MODIFIED, self.groups[gang.name])

    async def gang_times(self, gang: NamedObject, times: GangTimes) -> None:
        self._answer(self._dice(lossy=False))
        found = self.groups.get(gang.name)
        if found is None or found.metadata.uid != gang.uid:
            raise KubernetesFault(gang.key, "409 another uid", status=409)
        self.groups[gang.name] = marked(found, times)
        self._say(ChangeKind.MODIFIED, self.groups[gang.name])

    async def group_condition(self, gang: NamedObject, condition: objects.Condition) -> None:
        self._answer(self._dice(lossy=False))

    async def evict(self, pod: NamedObject, reason: str, message: str, *, require_condition: bool = True) -> None:
        found = self.pods.get(pod.name)
        if found is None or found.metadata.uid != pod.uid:
            return
        preemptor = _PREEMPTOR.search(message)
        if reason == "PreemptionByScheduler":
            assert preemptor is not None, message
            victim, other = self._known[_job(found)], self._known[preemptor[1]]
            assert victim.priority < other.priority or victim.queue != other.queue, f"{pod.name}: {message}"
        self._answer(self._dice(lossy=False))
        self.evictions += 1
        metadata = msgspec.structs.replace(found.metadata, deletion_timestamp=found.metadata.creation_timestamp)
        told = [*(found.status.conditions or []), objects.Condition("DisruptionTarget", "True", reason, message)]
        status = msgspec.structs.replace(found.status, conditions=told)
        self._put(msgspec.structs.replace(found, metadata=metadata, status=status))

    # Its own affairs

    def used(self, node: str) -> int:
        return POD_CPU * sum(pod.spec.node_name == node and not ended(pod) for pod in self.pods.values())

    def _check_room(self, node: str) -> None:
        """The one thing that must never happen, whatever fails."""
        room = int(str((self.nodes[node].status.allocatable or {})[BATCH_CPU]))
        assert self.used(node) <= room, f"node {node} holds {self.used(node)} of {room}"

    def in_queue(self, name: str) -> int:
        """What bound pods of the queue, and of those below it, take."""
        below = [child for child, queue in self.queues.items() if queue.spec.get("parent") == name]
        bound = (self.jobs[_job(pod)] for pod in self.pods.values() if pod.spec.node_name and not ended(pod))
        return POD_CPU * sum(job.queue == name for job in bound) + sum(map(self.in_queue, below))

    def _check_quota(self, name: str) -> None:
        """After each Binding: what a queue may have at most holds, as it is written by then."""
        while name in self.queues:
            spec = self.queues[name].spec
            most = spec.get("quota", {}).get("hard", {}).get("resources", {}).get(BATCH_CPU)
            assert most is None or self.in_queue(name) <= most, f"queue {name} holds {self.in_queue(name)} of {most}"
            name = spec.get("parent", "")

    def _check_whole(self, name: str) -> None:
        if sum(bool(pod.spec.node_name) and not ended(pod) for pod in self.members(name)) >= self.jobs[name].minimum:
            self.excused.add(name)

    def _start(self, pod: objects.Pod) -> None:
        fate = self.random.random()
        if self.odds and fate < 0.03:
            status = msgspec.structs.replace(pod.status, phase="Failed", reason=f"OutOf{BATCH_CPU}")
            self._put(msgspec.structs.replace(pod, status=status))
            self._create(f"{pod.metadata.name}-{self._serial}", self.jobs[_job(pod)])
        elif fate > 0.6:
            self._put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Running")))

    def _create(self, name: str, job: Job) -> None:
        self._serial += 1
        notice = {"sublet.dev/preemption-notice-seconds": str(job.notice_seconds)} if job.notice_seconds else {}
        pod = raw_pod(
            name,
            group=job.name if job.minimum else "",
            created=self.clock(),
            priority=job.priority,
            policy=job.policy,
            labels={_JOB: job.name} | ({QUEUE: job.queue} if job.queue else {}),
            annotations=notice,
        )
        metadata = msgspec.structs.replace(pod.metadata, uid=f"uid-{self._serial}", owner_references=[OWNER])
        self.pods[name] = msgspec.structs.replace(pod, metadata=metadata)
        self._say(ChangeKind.ADDED, self.pods[name])

    def _remove(self, pod: objects.Pod) -> None:
        self._say(ChangeKind.DELETED, self.pods.pop(pod.metadata.name))
        job = self.jobs.get(_job(pod))
        if job is not None and not ended(pod):
            self.excused |= {job.name} if pod.spec.node_name and not self._noted(job) else set()
            self._create(pod.metadata.name, job)

    def _noted(self, job: Job) -> bool:
        """Whether the PodGroups of a gang, or of its group, say that it is bound in part."""
        groups = [self.groups.get(name) for name in (job.name, job.partner) if name]
        return all(group is not None and podgroups.pod_group(group).partial_seconds for group in groups)

    def _put(self, pod: objects.Pod) -> None:
        self.pods[pod.metadata.name] = pod
        self._say(ChangeKind.MODIFIED, pod)

    def _say(self, kind: ChangeKind, item: Any) -> None:
        self._waiting.append(Change(kind, item))

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


def ended(pod: objects.Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _job(pod: objects.Pod) -> str:
    return (pod.metadata.labels or {})[_JOB]


def _key(item: Any) -> tuple[str, str]:
    return type(item).__name__, item.metadata.name


def _uid(item: Any) -> str:
    return str(item.metadata.uid)


def _fact(change: Change[Any]) -> facts.Fact:
    made: facts.Fact = _MAKERS.get(type(change.object), facts.ObjectSeen)(change)
    return made
