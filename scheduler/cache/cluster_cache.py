"""The cluster as the scheduler knows it: objects of the API server as model values, and the Ledger over them.

Changes are applied in order by `apply`; what they touched is collected until the cycle takes it with `take_touched`.
An object that cannot be read is told once per version and left out; everything else goes on. What an unreadable pod
takes of its node is not known, so that node gets no new pods while the pod is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, TypeVar

import msgspec

from kube import objects
from kube.dialects.gangs.makers import ALL as MAKERS
from kube.dialects.gangs.makers import MadePod, Maker
from kube.dialects.gangs.membership import USUAL, GangDefaults
from kube.dialects.queues.dialect import ALL, QueueDialect
from kube.dialects.suspended.stand_ins import is_stand_in, stand_ins
from kube.dialects.upstream import core_objects
from kube.informer import Change, ChangeKind
from model.condition import ConditionStatus, ConditionType
from model.fault import ConfigurationFault
from model.node import Node
from model.placement import PlacementState
from model.pod.colocation import LoadTerms
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.suspended.job import WORKLOAD
from model.suspended.workload import ConditionName, WorkloadAdmission, WorkloadObject
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.gang_cache import AnyPodGroup, GangCache
from scheduler.cache.maker_cache import MakerCache
from scheduler.cache.measured import MeasuredLoads
from scheduler.cache.offers import Offers
from scheduler.cache.pod_record import CacheChanges, PodRecord
from scheduler.cache.queue_cache import QueueCache
from scheduler.cache.refusals import Refusals, of_ours
from scheduler.cache.related_objects import RelatedObjectsCache
from scheduler.cache.suspended_cache import SuspendedCache, gang_key, named_object
from scheduler.cache.unserved_words import UnservedWords, named_by
from scheduler.core.gangs.assembly import Assembly, assemble, assemble_parts
from scheduler.core.gangs.groups import group_of
from scheduler.core.gangs.minimum import GangPart
from scheduler.core.gangs.roster import Roster, age, roster
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.charge import ChargeChange as LedgerChange
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.ledger.taken import taken_of
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.queueing.news import News, NewsKind, freed, freed_by, node_news, released
from scheduler.core.snapshot.podclass import KnownClasses, PodClass, class_of, pod_traits_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot, SnapshotContext, take
from scheduler.ports import NamedObject

_Key = TypeVar("_Key", WorkloadId, str)
_MOST_HISTORY_CHARACTERS = 16 << 20
"""As text; decoded, and in the answers that are kept, it is some four times as much."""


class ClusterCache:
    """`schedulers` are the spec.schedulerName values that are ours, `plain` those whose pods are placed plainly.

    `offers` knows what of a node's offer is not believed, which counts as 0 in `nodes`; `ratio` is its setting.
    `saved` is when a pod (by uid) last saved a checkpoint, in Unix seconds, as its agent says.
    """

    def __init__(
        self,
        schedulers: Collection[str],
        load: LoadPolicy | None = None,
        defaults: GangDefaults = USUAL,
        ratio: float = 1.0,
        plain: Collection[str] = (),
        dialects: Collection[QueueDialect] = ALL,
        makers: Collection[Maker] = MAKERS,
    ) -> None:
        self.schedulers = frozenset(schedulers)
        self._plain = frozenset(plain)
        self.ledger = Ledger()
        self.live_index = LivePodIndex(self.ledger)
        self.nodes: dict[str, Node] = {}
        self.gangs = GangCache(defaults)
        self._makers = MakerCache(makers)
        self._refusals = Refusals()
        self.queues = QueueCache(
            self._refusals.add, self._refusals.settled, dialects, partial(self._refusals.add, counts=True)
        )
        self.offers = Offers(self._refusals, ratio)
        self.related = RelatedObjectsCache(self._refusals.add)
        self.loads = MeasuredLoads(load or LoadPolicy(), self.ledger)
        self.saved: dict[str, float] = {}
        self.suspended = SuspendedCache()
        self.gangs.workloads = self.suspended.gang
        self._stand_ins: dict[str, tuple[WorkloadObject, set[str]]] = {}
        self._pods: dict[str, PodRecord] = {}
        self._uids: dict[str, str] = {}
        self._members: dict[WorkloadId, set[str]] = {}
        self._on_node: dict[str, set[str]] = {}
        self._surplus: dict[str, int] = {}
        self._touched = CacheChanges()
        self._unserved = UnservedWords()
        self._changed_nodes: set[str] = set()
        self._snapshot: ClusterSnapshot | None = None
        self._classes = KnownClasses()
        self._history_characters = 0

    def apply(self, fact: facts.Fact, now: float = 0.0) -> None:
        """Take in one fact at Unix time `now`."""
        match fact:
            case facts.PodSeen(change):
                self._pod_seen(change.kind, change.object, now)
            case facts.NodeSeen(change):
                self._node_seen(change.kind, change.object)
            case facts.PodGroupSeen(change) | facts.ObjectSeen(change):
                try:
                    self._seen(change, now)
                except Exception as error:
                    metadata = change.object.metadata
                    where = f"{type(change.object).__name__} {metadata.namespace}/{metadata.name}"
                    self._refusals.add(where, metadata, str(of_ours(where, error)))
            case facts.BindingReleased():
                self._released(fact)
            case facts.AdmissionFailed(key):
                self.suspended.unassume(key)
                self._workload_stands(key, now)
            case facts.PodConditionFailed(uid):
                if uid in self._pods:
                    self._pods[uid].condition_message, self._pods[uid].nominated = (
                        "",
                        self._pods[uid].pod.status.nominated_node,
                    )

    def configure(self, load: LoadPolicy, defaults: GangDefaults, now: float) -> bool:
        """Other settings hold; whether gangs must be told again, since they were read by other defaults."""
        self.loads.configure(load, now)
        changed, self.gangs.defaults = self.gangs.defaults != defaults, defaults
        return changed and bool(self._pods or self.gangs.keys)

    def refused_config(self, metadata: objects.Metadata, problem: str) -> None:
        """A ConfigMap for this scheduler that cannot be read."""
        self._refusals.add(f"ConfigMap {metadata.namespace}/{metadata.name}", metadata, problem)

    def take_touched(self) -> CacheChanges:
        """What `apply` touched since the last call; of many queues, or nested groups, that come at once all are looked
        at once.
        """
        self._regrouped(self.gangs.nest_again())
        if self.queues.moved:
            self.queues.moved = False
            self._queue_again(list(self._pods.values()))
        touched, self._touched = self._touched, CacheChanges()
        touched.refusals, touched.unserved = self._refusals.take(), self._unserved.take(self.queues.words)
        self._surplus.clear()
        return touched

    def snapshot(self) -> ClusterSnapshot:
        """The cluster now, taken over from the last snapshot where nothing changed."""
        known = self._snapshot.names if self._snapshot else ()
        changed = self._changed_nodes & (self.nodes.keys() | set(known))
        around = SnapshotContext(self._refusals.closed, self.related.view)
        self._snapshot = take(self.nodes, self.ledger.nodes, self._snapshot, changed, around)
        self._changed_nodes.clear()
        return self._snapshot

    def record(self, uid: str) -> PodRecord | None:
        """A pod by uid, with what it was told."""
        return self._pods.get(uid)

    def find(self, namespace: str, name: str) -> PodRecord | None:
        """A pod by name."""
        return self._pods.get(self._uids.get(f"{namespace}/{name}", ""))

    def owned_by(self, controller: str) -> tuple[Pod, ...]:
        """The pods of a controller (`namespace/name`), oldest first."""
        found = (record.pod for record in self._pods.values() if record.pod.owner == controller)
        return tuple(sorted(found, key=age))

    def made_by(self, maker: str) -> tuple[Pod, ...]:
        """The pods that objects of this name (`namespace/name`) had made, by whichever controller; oldest first."""
        return tuple(sorted((self._pods[uid].pod for uid in self._makers.pods_of(maker)), key=age))

    def subject_of(self, pod: Pod) -> WorkloadId:
        """Its gang group or gang, or the pod alone."""
        return self.gangs.index.subject(pod.spec.gang.key) if pod.spec.gang else WorkloadId.pod(pod.key)

    def members(self, key: str) -> Roster:
        """The pods of a gang (`namespace/name`) by how they count."""
        return self._roster(WorkloadId.gang(key))

    def parts(self, subject: WorkloadId) -> tuple[GangPart, ...]:
        """The gangs of a subject, as they stand."""
        return self.gangs.parts(subject, self.members, self._node_labels)

    def assembly(self, subject: WorkloadId, parts: tuple[GangPart, ...]) -> Assembly:
        """What a subject's pods amount to; `parts` are those of a gang's."""
        if not parts:
            return assemble(subject, self._roster(subject), None)
        return assemble_parts(subject, parts)

    def surplus(self, key: str) -> int:
        """How many placed members a gang has above its minimum; sorted out once a turn, however many nodes ask."""
        if key not in self._surplus:
            (part,) = self.gangs.parts(WorkloadId.gang(key), self.members, self._node_labels)
            over = part.counted - part.spec.min_member
            self._surplus[key] = 0 if part.spec.problem else max(0, over)
        return self._surplus[key]

    def exists(self, subject: WorkloadId) -> bool:
        """Whether any pod of the subject is left."""
        if subject.gangs:
            return any(WorkloadId.gang(key) in self._members for key in subject.gangs)
        return subject.name in self._uids

    def gang_keys(self) -> frozenset[str]:
        """All gangs that have pods."""
        return frozenset(key for workload in self._members for key in workload.gangs)

    def on_node(self, node: str) -> tuple[Pod, ...]:
        """The pods the API server has bound to a node."""
        return tuple(self._pods[uid].pod for uid in self._on_node.get(node, ()))

    def assume(self, charges: Iterable[Charge], now: float) -> None:
        """These pods are about to be bound."""
        charges = tuple(charges)
        self.ledger.assume(charges)
        self._add_news(News(NewsKind.PLACED))
        for charge in charges:
            self.loads.put(charge, now)

    def _roster(self, workload: WorkloadId) -> Roster:
        uids = self._members.get(workload, set())
        assumed = {uid for uid in uids if self.ledger.charge(uid) is not None}
        return roster((self._pods[uid].pod for uid in uids), assumed, self.schedulers)

    def _node_labels(self) -> Iterable[str]:
        return (key for node in self.nodes.values() for key in node.labels)

    def _pod_seen(self, kind: ChangeKind, source: objects.Pod, now: float) -> None:
        key = f"{source.metadata.namespace}/{source.metadata.name}"
        if kind is ChangeKind.DELETED:
            self._refusals.settled(f"Pod {key}")
            self._reopen(source.metadata.uid)
            self._remove_pod(source.metadata.uid)
            return
        try:
            read = self._as_placed(core_objects.pod(source, self.gangs.defaults))
            workload = self._workload_of(source.metadata)
            made = self._made(read, source.metadata) if workload is None else None
            read = read if workload is None else self._in_workload(read, workload)
            pod, group_queue = self._in_queue(self._in_gang(read, made), made)
            pod_class, pod_traits = self._classes.shared(class_of(pod)), pod_traits_of(pod)
        except ConfigurationFault as fault:
            self._refuse_pod(key, source, fault)
            return
        except Exception as error:
            self._refuse_pod(key, source, of_ours(f"Pod {key}", error))
            return
        self._reopen(pod.uid)
        record = self._pods.get(pod.uid)
        told = _condition_message(source)
        if record is None or record.pod != pod:
            told_before = record.condition_message if record is not None else ""
            before, record = record, PodRecord(pod, pod_class, pod_traits, told_before, pod.status.nominated_node)
            record.group_queue = group_queue
            record.made = made
            record.workload = named_object(workload) if workload is not None else None
            record.stand_in = workload is not None and is_stand_in(pod.uid, workload)
            self._set_pod(record, before, now)
            self._name_unserved(record, source)
        record.condition_message = told or record.condition_message

    def _as_placed(self, pod: Pod) -> Pod:
        """Of what kube-scheduler does not know, a pod that is placed as it does says nothing."""
        if pod.spec.scheduler_name not in self._plain:
            return pod
        spec = msgspec.structs.replace(pod.spec, gang=None, plain=True)
        colocation = msgspec.structs.replace(pod.colocation, load=LoadTerms(), cpus=None)
        return msgspec.structs.replace(pod, spec=spec, colocation=colocation)

    def _made(self, pod: Pod, metadata: objects.Metadata) -> MadePod | None:
        """What it says of its maker, where it names no gang itself; one that others place is waited for, too."""
        own = pod.spec.gang is not None or pod.spec.plain
        return None if own else self._makers.made(metadata, self.gangs.defaults)

    def _workload_of(self, metadata: objects.Metadata) -> WorkloadObject | None:
        """That of the suspended job that it says it belongs to."""
        name = (metadata.annotations or {}).get(WORKLOAD)
        return self.suspended.get(f"{metadata.namespace}/{name}") if name else None

    def _in_workload(self, pod: Pod, workload: WorkloadObject) -> Pod:
        """In its gang and in its queue, whatever else it says."""
        gang = self.suspended.membership(workload.namespace, workload.name)
        spec = msgspec.structs.replace(pod.spec, gang=gang, named_queue="", local_queue=workload.queue)
        return msgspec.structs.replace(pod, spec=spec)

    def _workload_seen(self, change: Change[objects.Workload], now: float) -> None:
        found = self.suspended.apply(change)
        if found.unreadable and change.kind is not ChangeKind.DELETED:
            self._refusals.add(f"Workload {found.key}", change.object.metadata, found.unreadable)
        self._workload_stands(found.key, now)

    def admit(self, key: str, admission: WorkloadAdmission, now: float) -> None:
        """A Workload is about to be admitted: nothing stands in for it any more."""
        self.suspended.assume(key, admission)
        self._workload_stands(key, now)

    def class_of_stand_in(self, workload: WorkloadObject, pod_set: str) -> PodClass:
        """What one pod of a set takes."""
        only = tuple(msgspec.structs.replace(each, count=1) for each in workload.pod_sets if each.name == pod_set)
        (source,) = stand_ins(msgspec.structs.replace(workload, pod_sets=only), self._priority_of_class)
        return class_of(self._as_placed(core_objects.pod(source, self.gangs.defaults)))

    def _priority_of_class(self, name: str) -> int | None:
        found = self.related.classes.get(name)
        return found.value if found is not None else None

    def _workload_stands(self, key: str, now: float) -> None:
        """Stand-ins while it waits, and none else."""
        workload, (before, uids) = self.suspended.get(key), self._stand_ins.get(key, (None, set()))
        waits = workload is not None and self.suspended.waits(key)
        if before is not None and (not waits or workload is None or _asks(workload) != _asks(before)):
            del self._stand_ins[key]
            for uid in sorted(uids):
                self._remove_pod(uid)
        if waits and workload is not None and key not in self._stand_ins:
            found = stand_ins(workload, self._priority_of_class)
            self._stand_ins[key] = workload, {each.metadata.uid for each in found}
            for each in found:
                self._pod_seen(ChangeKind.ADDED, each, now)
            told = workload.status.conditions.get(ConditionName.QUOTA_RESERVED)
            for each in found if told is not None and not told.holds else ():
                self._pods[each.metadata.uid].condition_message = told.message if told is not None else ""
        self._touched.subjects.add(WorkloadId.gang(gang_key(key)))
        self._add_news(News(NewsKind.JOBS))

    def _in_gang(self, pod: Pod, made: MadePod | None) -> Pod:
        """In the gang that its maker says."""
        if made is None:
            return pod
        gang = self._makers.gang(made)
        return (
            pod
            if gang == pod.spec.gang
            else msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, gang=gang))
        )

    def _in_queue(self, pod: Pod, made: MadePod | None) -> tuple[Pod, str]:
        """With the queue that it waits in, and what its PodGroup or its maker says of it; its namespace may, too.

        A pod that is charged keeps the queue that it and its PodGroup named when that began: else quota that it uses
        were given back by a word. Whoever leads next finds that word of its PodGroup on the pod.
        """
        group, record = self.gangs.queue(pod.spec.gang.key) if pod.spec.gang else "", self._pods.get(pod.uid)
        spec = pod.spec
        if made is not None:
            told = self._makers.queue(made)
            group = self.queues.named(told, pod.namespace)
            if told.local and not (spec.named_queue or spec.local_queue):
                spec = msgspec.structs.replace(spec, local_queue=told.local)
                pod = msgspec.structs.replace(pod, spec=spec)
        if record is not None and self.ledger.charge(pod.uid) is not None:
            group, settled = record.group_queue or group, record.pod.spec
            if (spec.named_queue, spec.local_queue) != (settled.named_queue, settled.local_queue):
                spec = msgspec.structs.replace(spec, named_queue=settled.named_queue, local_queue=settled.local_queue)
                pod = msgspec.structs.replace(pod, spec=spec)
        group = group if spec.charged_queue is None else spec.charged_queue
        queue = self.queues.queue_of(pod, group)
        flavors = self._flavors(pod, queue)
        if (queue, flavors) != (spec.queue, spec.flavors):
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, queue=queue, flavors=flavors))
        return pod, group

    def _flavors(self, pod: Pod, queue: str) -> tuple[tuple[str, str], ...]:
        """What its amounts count to; one that waits gets its flavours with its node."""
        if not pod.spec.node_name:
            return ()
        node = self.nodes.get(pod.spec.node_name)
        return self.queues.flavors_of(pod, queue, node.labels if node is not None else None)

    def _queue_again(self, records: Iterable[PodRecord]) -> None:
        """Pods that may be in another queue by what their PodGroup or their namespace says, and their charges."""
        for record in records:
            pod, record.group_queue = self._in_queue(record.pod, record.made)
            if pod is record.pod:
                continue
            if pod.spec.flavors != record.pod.spec.flavors:
                record.pod_class = self._classes.shared(class_of(pod))
            record.pod = pod
            self._touch(pod)
            charge = self.ledger.charge(pod.uid)
            if charge is not None:
                own = record.pod_class if pod.spec.node_name else charge.pod_class
                taken = charge.taken if own == charge.pod_class else None
                after = self._as_taken(
                    msgspec.structs.replace(charge, pod=pod, queue=pod.spec.queue, pod_class=own, taken=taken)
                )
                self.ledger.apply([LedgerChange(pod.uid, after)])

    def _made_again(self, uids: Iterable[str], now: float) -> None:
        """Pods that may be in another gang or queue by what their maker says, and their charges."""
        for uid in uids:
            before = self._pods[uid]
            pod, group_queue = self._in_queue(self._in_gang(before.pod, before.made), before.made)
            if pod is before.pod:
                continue
            self._set_pod(msgspec.structs.replace(before, pod=pod, group_queue=group_queue), before, now)
            charge = self.ledger.charge(uid)
            if charge is not None:
                subject, priority = self._job(pod.spec.gang.key) if pod.spec.gang else (None, None)
                after = msgspec.structs.replace(
                    charge, pod=pod, queue=pod.spec.queue, subject=subject, gang_priority=priority
                )
                self.ledger.apply([LedgerChange(uid, after)])

    def _name_unserved(self, record: PodRecord, source: objects.Pod) -> None:
        """What the pod names that nobody serves or reads; told of pods that wait for us."""
        record.unserved, pod = named_by(source.metadata), record.pod
        if not (pod.spec.node_name or pod.terminal) and pod.spec.scheduler_name in self.schedulers:
            self._unserved.tell(record.named, record.unserved)

    def _set_pod(self, record: PodRecord, before: PodRecord | None, now: float) -> None:
        if before is not None:
            self._unindex(before.pod)
            if (before.pod_class, before.pod_traits) != (record.pod_class, record.pod_traits):
                self._past(before)
            if before.made is not None and before.made != record.made:
                self._makers.forget(before.pod.uid, before.made)
        pod = record.pod
        if record.made is not None:
            self._makers.keep(pod.uid, record.made)
        self._pods[pod.uid] = record
        self._uids[pod.key] = pod.uid
        members = self._members.setdefault(pod.own_workload, set())
        self._touch(pod, first=not members)
        members.add(pod.uid)
        if pod.spec.node_name:
            self._on_node.setdefault(pod.spec.node_name, set()).add(pod.uid)
        if pod.spec.node_name and not pod.terminal:
            self._confirm(record, now)
        elif pod.terminal:
            self._free(pod.uid)

    def _confirm(self, record: PodRecord, now: float) -> None:
        """The API server says where the pod is, and what it takes there."""
        pod = record.pod
        subject = group_of(self.gangs.index.subject(pod.spec.gang.key)) if pod.spec.gang else None
        own = (
            pod.uid,
            pod.spec.node_name,
            record.pod_class,
            record.pod_traits,
            pod,
            pod.spec.queue,
            PlacementState.BOUND,
        )
        priority = self.gangs.priority_of(pod)
        charge = self._as_taken(Charge(*own, subject, priority, pod.colocation.bound_cpus))
        undo = self.ledger.confirm(charge)
        self.loads.put(charge, now)
        for change in undo:
            if change.charge is None or change.charge.pod_traits != charge.pod_traits:
                self._add_news(News(NewsKind.PODS))
            if change.charge is not None:
                self._add_news(freed(released(change.charge, charge)))
                if change.charge.cpus not in (None, charge.cpus):
                    self._add_news(News(NewsKind.CPUS))

    def _as_taken(self, charge: Charge) -> Charge:
        """With what of it counts to queues."""
        taken = taken_of(charge, self.ledger.charge(charge.uid), self.nodes.get(charge.node), self.ledger.nodes)
        return charge if taken == charge.taken else msgspec.structs.replace(charge, taken=taken)

    def _recount(self, node: str) -> None:
        """The node came, went or lists other resources: what its pods take of the cluster is another amount."""
        for uid in sorted(self._on_node.get(node, ())):
            charge = self.ledger.charge(uid)
            if charge is None or (after := self._as_taken(charge)) == charge:
                continue
            self.ledger.apply([LedgerChange(uid, after)])
            self._add_news(freed_by(charge.counted))

    def _free(self, uid: str) -> None:
        for change in self.ledger.forget(uid):
            if change.charge is not None:
                self._add_news(freed_by(change.charge.pod_class) | News(NewsKind.PODS))
                if change.charge.cpus is not None:
                    self._add_news(News(NewsKind.CPUS))
        self.loads.remove(uid)

    def _remove_pod(self, uid: str) -> None:
        record = self._pods.pop(uid, None)
        if record is None:
            return
        self._unindex(record.pod)
        if record.made is not None:
            self._makers.forget(uid, record.made)
        if self._uids.get(record.pod.key) == uid:
            del self._uids[record.pod.key]
        self._touched.subjects.add(WorkloadId.pod(record.pod.key))
        self.saved.pop(uid, None)
        self._free(uid)
        self._past(record)

    def _past(self, record: PodRecord) -> None:
        """A class and traits that no pod has any more.

        Answers about nodes are kept by what pods say of themselves, which is as much as their author likes: so they are
        forgotten by its size, and not by their number alone.
        """
        self._history_characters += len(repr((record.pod_class, record.pod_traits)))
        if self._history_characters < _MOST_HISTORY_CHARACTERS:
            return
        self._history_characters = 0
        self.ledger.restart_table()
        self.live_index.forget()
        if self._snapshot is not None:
            self._snapshot.traits.forget()
            self._snapshot = None

    def _unindex(self, pod: Pod) -> None:
        _discard(self._members, pod.own_workload, pod.uid)
        _discard(self._on_node, pod.spec.node_name, pod.uid)
        self._touch(pod)
        if pod.spec.gang is not None and pod.own_workload not in self._members:
            self.gangs.emptied(pod.spec.gang.key)

    def _touch(self, pod: Pod, *, first: bool = False) -> None:
        """Whatever this pod belongs to is to be looked at again."""
        if pod.spec.gang is None:
            self._touched.subjects.add(WorkloadId.pod(pod.key))
        else:
            self._touched.subjects |= self.gangs.joined(pod.spec.gang, first=first)

    def _add_news(self, news: News) -> None:
        self._touched.news |= news

    def _refuse_pod(self, key: str, source: objects.Pod, fault: ConfigurationFault) -> None:
        metadata, node = source.metadata, source.spec.node_name
        if node and source.status.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            self._refusals.close(metadata.uid, node)
            self._changed_nodes.add(node)
            self._refusals.add(f"Pod {key}", metadata, f"{fault}; node {node} gets no new pods while this one is there")
            return
        self._reopen(metadata.uid)
        ours = not node and metadata.deletion_timestamp is None and source.spec.scheduler_name in self.schedulers
        named = NamedObject(metadata.namespace, metadata.name, metadata.uid, source.spec.scheduler_name)
        told = _condition_message(source) == str(fault)
        self._refusals.add(f"Pod {key}", metadata, str(fault), named if ours and not told else None)

    def _reopen(self, uid: str) -> None:
        """The pod can be read, or is not there any more: its node is judged by amounts again."""
        node = self._refusals.reopen(uid)
        if node is not None:
            self._changed_nodes.add(node)
            self._add_news(News(NewsKind.NODE_CHANGED))

    def _node_seen(self, kind: ChangeKind, source: objects.Node) -> None:
        name = source.metadata.name
        self._changed_nodes.add(name)
        if kind is ChangeKind.DELETED:
            self._without_node(name)
            self._refusals.settled(f"Node {name}")
            self.loads.forget(name)
            return
        try:
            node = self.offers.judged(core_objects.node(source), source.metadata)
        except ConfigurationFault as fault:
            self._refuse_node(source, fault)
            return
        except Exception as error:
            self._refuse_node(source, of_ours(f"Node {name}", error))
            return
        self._judged(node)
        try:
            self.loads.node(node)
        except ConfigurationFault as fault:
            self._refusals.add(f"Node {name}", source.metadata, str(fault))

    def _refuse_node(self, source: objects.Node, fault: ConfigurationFault) -> None:
        self._without_node(source.metadata.name)
        self._refusals.add(f"Node {source.metadata.name}", source.metadata, str(fault))

    def _without_node(self, name: str) -> None:
        self.offers.forget(name)
        if self.nodes.pop(name, None) is not None:
            self._recount(name)

    def _judged(self, node: Node) -> None:
        before = self.nodes.get(node.name)
        self.nodes[node.name] = node
        self._changed_nodes.add(node.name)
        self._add_news(node_news(before, node, lambda: self.ledger.nodes.get(node.name, {})))
        if before is None or before.allocatable.amounts.keys() != node.allocatable.amounts.keys():
            self._recount(node.name)
        if (before is None or before.labels != node.labels) and self.queues.kueue.flavors:
            self._queue_again([self._pods[uid] for uid in sorted(self._on_node.get(node.name, ()))])

    def _pod_group_seen(self, change: Change[Any]) -> None:
        key = f"{change.object.metadata.namespace}/{change.object.metadata.name}"
        before, queue = self._job(key), self.gangs.queue(key)
        subjects, invalid = self.gangs.seen(change)
        self._regrouped(subjects)
        if self._job(key) != before:
            self._recharge(key)
        if self.gangs.queue(key) != queue:
            uids = sorted(self._members.get(WorkloadId.gang(key), ()))
            self._queue_again([self._pods[uid] for uid in uids])
        if invalid is not None:
            self._touched.invalid_gangs.append((invalid.named, invalid.gang.spec.problem))

    def _regrouped(self, subjects: set[WorkloadId]) -> None:
        """Gangs that may be in other groups by now, and the placed members of those."""
        self._touched.subjects |= subjects
        for key in sorted({key for subject in subjects if subject.grouped for key in subject.gangs}):
            self._recharge(key)

    def _job(self, key: str) -> tuple[WorkloadId | None, int | None]:
        """The group that a gang is in, None for itself alone, and its own word on priority."""
        return group_of(self.gangs.index.subject(key)), self.gangs.priority(key)

    def _recharge(self, key: str) -> None:
        """The gang is in another group or has another priority, and its placed members with it."""
        subject, _ = self._job(key)
        for uid in sorted(self._members.get(WorkloadId.gang(key), ())):
            charge, priority = self.ledger.charge(uid), self.gangs.priority_of(self._pods[uid].pod)
            if charge is not None:
                after = msgspec.structs.replace(charge, subject=subject, gang_priority=priority)
                self.ledger.apply([LedgerChange(uid, after)])

    def _seen(self, change: Change[Any], now: float) -> None:
        """Any other kind of object."""
        item = change.object
        if isinstance(item, AnyPodGroup):
            self._pod_group_seen(change)
        elif self.queues.reads(item):
            self.queues.apply(change)
        elif isinstance(item, objects.Workload):
            self._workload_seen(change, now)
        elif isinstance(item, objects.CompositePodGroup):
            self.gangs.composite(change)
        elif self._makers.reads(item):
            self._made_again(self._makers.apply(change), now)
        elif isinstance(item, objects.NodeMetric):
            self._metric_seen(change.kind, item, now)
        elif isinstance(item, objects.ConfigMap):
            for node in self.offers.configured(change):
                self._judged(node)
        elif isinstance(item, objects.PriorityClass):
            self._class_seen(change)
        elif self.related.reads(item) and self.related.apply(change):
            if isinstance(item, objects.Namespace):
                self.queues.labelled(item.metadata.name, self.related.view.namespaces.get(item.metadata.name))
            cpus = isinstance(item, objects.NodeResourceTopology)
            self._add_news(News(NewsKind.CPUS if cpus else NewsKind.VOLUMES | NewsKind.PODS))
            if self.gangs.layers != self.related.layers:
                self.gangs.layers = self.related.layers
                self._touched.subjects |= {self.gangs.index.subject(key) for key in self.gang_keys()}

    def _class_seen(self, change: Change[Any]) -> None:
        """Gangs that take their priority from a class by its name have another one, and their placed members too."""
        if self.related.apply(change):
            self.gangs.classes = self.related.classes
            for key in sorted(self.gangs.of_class()):
                self._touched.subjects.add(self.gangs.index.subject(key))
                self._recharge(key)

    def _metric_seen(self, kind: ChangeKind, source: objects.NodeMetric, now: float) -> None:
        try:
            self.loads.metric(source, now, gone=kind is ChangeKind.DELETED)
        except ConfigurationFault as fault:
            self._refusals.add(f"NodeMetric {source.metadata.name}", source.metadata, str(fault))
        self._add_news(News(NewsKind.LOAD))

    def _released(self, fact: facts.BindingReleased) -> None:
        charge = self.ledger.charge(fact.uid)
        if charge is not None and charge.state is PlacementState.ASSUMED:
            self._free(fact.uid)
        self._touched.subjects.add(fact.subject)
        if fact.uid in self._pods:
            # By its maker's word it may be in another gang since.
            self._touch(self._pods[fact.uid].pod)


def _discard(index: dict[_Key, set[str]], key: _Key, uid: str) -> None:
    """One uid less under the key, which goes with its last."""
    uids = index.get(key, set())
    uids.discard(uid)
    if not uids:
        index.pop(key, None)


def _asks(workload: WorkloadObject) -> tuple[object, ...]:
    """What of a Workload its stand-ins depend on."""
    return (workload.uid, workload.queue, workload.pod_sets)


def _condition_message(source: objects.Pod) -> str:
    """The message of PodScheduled=False, empty where the pod has no such condition."""
    for condition in source.status.conditions or []:
        if condition.type == ConditionType.POD_SCHEDULED and condition.status == ConditionStatus.FALSE:
            return condition.message
    return ""
