"""The cluster as the scheduler knows it: objects of the API server as model values, and the Ledger over them.

Changes are applied in order by `apply`; what they touched is collected until the cycle takes it with `take_touched`.
An object that cannot be read is told once per version and left out; everything else goes on. What an unreadable pod
takes of its node is not known, so that node gets no new pods while the pod is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from kube import objects
from kube.dialects import koordinator, upstream
from kube.informer import ChangeKind
from model.fault import ConfigurationFault
from model.node import Node
from model.placement import PlacementState
from model.pod import Pod, PodPhase
from model.queue import DEFAULT_QUEUE
from model.workload import Gang
from scheduler import facts
from scheduler.core import gang as gangs
from scheduler.core.ledger import Charge, Ledger, charge_of
from scheduler.core.phase import GangStatus
from scheduler.core.snapshot import ClusterSnapshot, take
from scheduler.ports import Named


class PodRecord(msgspec.Struct):
    """A pod, and the message its PodScheduled=False condition carries as far as we know."""

    pod: Pod
    told: str = ""


class GangRecord(msgspec.Struct):
    """A PodGroup, and its status as far as we know."""

    gang: Gang
    told: GangStatus


class Refusal(msgspec.Struct, frozen=True):
    """An object that cannot be read; `pod` where its owner can be told on the object itself."""

    kind: str
    message: str
    pod: Named | None = None


class Touched(msgspec.Struct):
    """What changed since the last cycle; `roomier` when parked workloads may fit now."""

    subjects: set[str] = msgspec.field(default_factory=set)
    roomier: bool = False
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    invalid_gangs: list[tuple[Named, str]] = msgspec.field(default_factory=list)


class ClusterCache:
    """`schedulers` are the spec.schedulerName values that are ours."""

    def __init__(self, schedulers: Collection[str]) -> None:
        self.schedulers = frozenset(schedulers)
        self.ledger = Ledger()
        self.nodes: dict[str, Node] = {}
        self.gangs: dict[str, GangRecord] = {}
        self._pods: dict[str, PodRecord] = {}
        self._uids: dict[str, str] = {}
        self._members: dict[str, set[str]] = {}
        self._on_node: dict[str, set[str]] = {}
        self._refused: dict[str, str] = {}
        self._unread: dict[str, str] = {}
        self._surplus: dict[str, int] = {}
        self._touched = Touched()
        self._changed_nodes: set[str] = set()
        self._snapshot: ClusterSnapshot | None = None

    def apply(self, fact: facts.Fact) -> None:
        """Take in one fact."""
        match fact:
            case facts.PodSeen(change):
                self._pod_seen(change.kind, change.object)
            case facts.NodeSeen(change):
                self._node_seen(change.kind, change.object)
            case facts.PodGroupSeen(change):
                self._pod_group_seen(change.kind, change.object)
            case facts.BindingReleased():
                self._released(fact)
            case facts.NoteFailed(uid):
                if uid in self._pods:
                    self._pods[uid].told = ""

    def take_touched(self) -> Touched:
        """What `apply` touched since the last call."""
        touched, self._touched = self._touched, Touched()
        self._surplus.clear()
        return touched

    def snapshot(self) -> ClusterSnapshot:
        """The cluster now, taken over from the last snapshot where nothing changed."""
        known = self._snapshot.names if self._snapshot else ()
        touched = self._changed_nodes | {name for name in self.ledger.changed_nodes if name in self.nodes}
        changed = touched & (self.nodes.keys() | set(known))
        closed = frozenset(self._unread.values())
        self._snapshot = take(self.nodes, self.ledger.nodes, self._snapshot, changed, closed)
        self._changed_nodes.clear()
        self.ledger.changed_nodes.clear()
        return self._snapshot

    def record(self, uid: str) -> PodRecord | None:
        """A pod by uid, with what it was told."""
        return self._pods.get(uid)

    def find(self, namespace: str, name: str) -> PodRecord | None:
        """A pod by name."""
        return self._pods.get(self._uids.get(f"{namespace}/{name}", ""))

    def roster(self, subject: str) -> gangs.Roster:
        """The pods of a subject by how they count."""
        uids = self._members.get(subject, set())
        assumed = {uid for uid in uids if self.ledger.charge(uid) is not None}
        return gangs.roster((self._pods[uid].pod for uid in uids), assumed, self.schedulers)

    def surplus(self, subject: str) -> int:
        """How many placed members a gang has above its minimum; sorted out once a turn, however many nodes ask."""
        if subject not in self._surplus:
            self._surplus[subject] = self._surplus_of(subject)
        return self._surplus[subject]

    def _surplus_of(self, subject: str) -> int:
        record = self.gangs.get(subject.removeprefix("gang/"))
        members = self.roster(subject)
        spec = gangs.spec_of(members, record.gang if record else None)
        return 0 if spec.problem else max(0, members.satisfied - spec.min_member)

    def exists(self, subject: str) -> bool:
        """Whether any pod of the subject is left; also asked of single members, as `pod/namespace/name`."""
        return subject in self._members or subject.removeprefix("pod/") in self._uids

    def subjects(self) -> Iterable[str]:
        """All gangs and lone pods that have pods."""
        return self._members.keys()

    def on_node(self, node: str) -> tuple[Pod, ...]:
        """The pods the API server has bound to a node."""
        return tuple(self._pods[uid].pod for uid in self._on_node.get(node, ()))

    def _pod_seen(self, kind: ChangeKind, source: objects.Pod) -> None:
        key = f"{source.metadata.namespace}/{source.metadata.name}"
        if kind is ChangeKind.DELETED:
            self._refused.pop(f"Pod {key}", None)
            self._reopen(source.metadata.uid)
            self._remove_pod(source.metadata.uid)
            return
        try:
            pod = upstream.pod(source)
        except ConfigurationFault as fault:
            self._refuse_pod(key, source, fault)
            return
        self._reopen(pod.uid)
        record = self._pods.get(pod.uid)
        told = _condition_message(source)
        if record is None or record.pod != pod:
            self._set_pod(pod, record)
        self._pods[pod.uid].told = told or self._pods[pod.uid].told

    def _set_pod(self, pod: Pod, before: PodRecord | None) -> None:
        if before is not None:
            self._unindex(before.pod)
        self._pods[pod.uid] = PodRecord(pod, before.told if before else "")
        self._uids[pod.key] = pod.uid
        subject = gangs.subject_of(pod)
        self._members.setdefault(subject, set()).add(pod.uid)
        if pod.node_name:
            self._on_node.setdefault(pod.node_name, set()).add(pod.uid)
        self._touched.subjects.add(subject)
        charge = charge_of(pod, DEFAULT_QUEUE)
        if charge is not None:
            undo = self.ledger.confirm(charge)
            self._touched.roomier |= any(_frees(change.charge, charge) for change in undo)
        elif pod.terminal:
            self._touched.roomier |= bool(self.ledger.forget(pod.uid))

    def _remove_pod(self, uid: str) -> None:
        record = self._pods.pop(uid, None)
        if record is None:
            return
        self._unindex(record.pod)
        self._uids.pop(record.pod.key, None)
        self._touched.subjects.add(f"pod/{record.pod.key}")
        self._touched.roomier |= bool(self.ledger.forget(uid))

    def _unindex(self, pod: Pod) -> None:
        subject = gangs.subject_of(pod)
        self._touched.subjects.add(subject)
        for index, key in ((self._members, subject), (self._on_node, pod.node_name)):
            if key in index:
                index[key].discard(pod.uid)
                if not index[key]:
                    del index[key]

    def _refuse_pod(self, key: str, source: objects.Pod, fault: ConfigurationFault) -> None:
        metadata, node = source.metadata, source.spec.node_name
        if node and source.status.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            self._unread[metadata.uid] = node
            self._changed_nodes.add(node)
            self._refuse(f"Pod {key}", metadata, f"{fault}; node {node} gets no new pods while this one is there")
            return
        self._reopen(metadata.uid)
        ours = not node and metadata.deletion_timestamp is None and source.spec.scheduler_name in self.schedulers
        named = Named(metadata.namespace, metadata.name, metadata.uid)
        told = _condition_message(source) == str(fault)
        self._refuse(f"Pod {key}", metadata, str(fault), named if ours and not told else None)

    def _reopen(self, uid: str) -> None:
        """The pod can be read, or is not there any more: its node is judged by amounts again."""
        node = self._unread.pop(uid, None)
        if node is not None:
            self._changed_nodes.add(node)
            self._touched.roomier = True

    def _refuse(self, where: str, metadata: objects.Metadata, message: str, pod: Named | None = None) -> None:
        """Once per version; our own condition write makes a new version with the same message, which is told too."""
        version = f"{metadata.uid} {message}"
        if self._refused.get(where) != version:
            self._refused[where] = version
            self._touched.refusals.append(Refusal(where.partition(" ")[0], message, pod))

    def _node_seen(self, kind: ChangeKind, source: objects.Node) -> None:
        name = source.metadata.name
        self._changed_nodes.add(name)
        if kind is ChangeKind.DELETED:
            self.nodes.pop(name, None)
            self._refused.pop(f"Node {name}", None)
            return
        try:
            node = upstream.node(source)
        except ConfigurationFault as fault:
            self.nodes.pop(name, None)
            self._refuse(f"Node {name}", source.metadata, str(fault))
            return
        before = self.nodes.get(name)
        self.nodes[name] = node
        self._touched.roomier |= before is None or _roomier(before, node)

    def _pod_group_seen(self, kind: ChangeKind, source: objects.PodGroup) -> None:
        gang = koordinator.pod_group(source)
        before = self.gangs.pop(gang.key, None)
        if kind is ChangeKind.DELETED:
            self._touched.subjects.add(f"gang/{gang.key}")
            return
        self.gangs[gang.key] = GangRecord(gang, _status(source))
        if before is None or (before.gang.spec, before.gang.uid) != (gang.spec, gang.uid):
            self._touched.subjects.add(f"gang/{gang.key}")
            if gang.spec.problem:
                self._touched.invalid_gangs.append((Named(gang.namespace, gang.name, gang.uid), gang.spec.problem))

    def _released(self, fact: facts.BindingReleased) -> None:
        charge = self.ledger.charge(fact.uid)
        if charge is not None and charge.state is PlacementState.ASSUMED:
            self.ledger.forget(fact.uid)
            self._touched.roomier = True
        self._touched.subjects.add(fact.subject)


def _frees(before: Charge | None, after: Charge) -> bool:
    """Whether a pod takes less of some node than it was charged for: it landed elsewhere, or shrank."""
    if before is None:
        return False
    kept = dict(after.pod_class.request) if before.node == after.node else {}
    return any(amount > kept.get(resource, 0) for resource, amount in before.pod_class.request)


def _roomier(before: Node, after: Node) -> bool:
    """Whether something may fit now that did not: any amount grew, or what filters read changed."""
    if (before.labels, before.taints, before.unschedulable) != (after.labels, after.taints, after.unschedulable):
        return True
    return any(after.allocatable[name] > before.allocatable[name] for name in after.allocatable)


def _condition_message(source: objects.Pod) -> str:
    """The message of PodScheduled=False, empty where the pod has no such condition."""
    for condition in source.status.conditions or []:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""


def _status(source: objects.PodGroup) -> GangStatus:
    status = source.status or objects.PodGroupStatus()
    return GangStatus(status.phase, status.scheduled, status.running, status.succeeded, status.failed)
