"""The cluster as the scheduler knows it: objects of the API server as model values, and the Ledger over them.

Changes are applied in order by `apply`; what they touched is collected until the cycle takes it with `take_touched`.
An object that cannot be read is told once per version and left out; everything else goes on.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import msgspec

from kube import objects
from kube.dialects.gangs.makers import ALL as MAKERS
from kube.dialects.gangs.makers import Maker
from kube.dialects.gangs.membership import USUAL, GangDefaults
from kube.dialects.queues.dialect import ALL, QueueDialect
from kube.dialects.suspended.stand_ins import is_stand_in
from kube.dialects.upstream import core_objects
from kube.informer import Change, ChangeKind
from model.fault import ConfigurationFault
from model.node import Node
from model.placement import PlacementState
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.followed_words import FollowedWords
from scheduler.cache.gang_cache import AnyPodGroup, GangCache
from scheduler.cache.maker_cache import MakerCache
from scheduler.cache.measured import MeasuredLoads
from scheduler.cache.offers import Offers
from scheduler.cache.pod_charges import PodCharges
from scheduler.cache.pod_feed import PodFeed
from scheduler.cache.pod_reader import PodReader
from scheduler.cache.pod_record import CacheChanges, PodRecord
from scheduler.cache.pods import Pods
from scheduler.cache.queue_cache import QueueCache
from scheduler.cache.refusals import Refusals, of_ours
from scheduler.cache.related_objects import RelatedObjectsCache
from scheduler.cache.saved_work import SavedWork
from scheduler.cache.stand_in_pods import StandInPods
from scheduler.cache.suspended_cache import SuspendedCache, gang_key, named_object
from scheduler.core.estimates.run_book import RunBook
from scheduler.core.estimates.start_book import StartBook
from scheduler.core.gangs.assembly import Assembly, assemble, assemble_parts
from scheduler.core.gangs.minimum import GangPart
from scheduler.core.gangs.roster import Roster
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.queueing.news import News, NewsKind, node_news
from scheduler.core.snapshot.podclass import KnownClasses
from scheduler.core.snapshot.snapshot import ClusterSnapshot, SnapshotContext, take
from scheduler.ports import NamedObject

_MOVED_SECONDS, _GROUPED_SECONDS = 5e-5, 5e-6
"""What a word takes for each pod whose maker, or PodGroup, says something new."""


class ClusterCache:
    """`schedulers` are the spec.schedulerName values that are ours, `plain` those whose pods are placed plainly.

    `offers` knows what of a node's offer is not believed, which counts as 0 in `nodes`; `ratio` is its setting.
    `late_by_creation` is as StandInPods has it.
    `work` is what of jobs' work is saved and lost, `saved` the moment of a pod's newest saved state, as there.
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
        *,
        late_by_creation: bool = False,
    ) -> None:
        self.schedulers = frozenset(schedulers)
        self.ledger = Ledger()
        self.live_index = LivePodIndex(self.ledger)
        self.nodes: dict[str, Node] = {}
        self.gangs = GangCache(defaults)
        self.loads = MeasuredLoads(load or LoadPolicy(), self.ledger)
        self.work = SavedWork()
        self.saved = self.work.saved
        self.suspended = SuspendedCache()
        self.runs = RunBook()
        self.starts = StartBook()
        self.gangs.workloads = self.suspended.gang
        self._refusals = Refusals()
        refuse = self._refusals.add
        self.queues = QueueCache(refuse, self._refusals.settled, dialects, partial(refuse, counts=True))
        self.offers = Offers(self._refusals, ratio)
        self.related = RelatedObjectsCache(refuse)
        self._makers, self._classes, self._changes = MakerCache(makers), KnownClasses(), CacheChanges()
        changes, charges = self._changes, PodCharges(self.ledger, self.loads, self.gangs, self.nodes, self._changes)
        self.charges = charges
        self.pods = Pods(schedulers, charges, self.gangs, self._makers, self.runs, changes, self._forget)
        reader = PodReader(
            *(plain, self.gangs, self._makers, self.queues, self.suspended), charges, self._classes, self.nodes
        )
        self._feed = feed = PodFeed(schedulers, self.pods, reader, charges, self.suspended, self._refusals, changes)
        self.stand_ins = StandInPods(
            *(self.suspended, self.related, self.pods, reader, feed, self._refusals, changes),
            late_by_creation=late_by_creation,
        )
        self._words = FollowedWords()
        self._surplus: dict[str, int] = {}
        self._changed_nodes: set[str] = set()
        self._closed: frozenset[str] = frozenset()
        self._label_keys: frozenset[str] | None = None
        self._snapshot: ClusterSnapshot | None = None

    def apply(self, fact: facts.Fact, now: float = 0.0) -> None:
        """Take in one fact at Unix time `now`."""
        match fact:
            case facts.PodSeen(change):
                if change.kind is ChangeKind.DELETED:
                    self.runs.left(change.object.metadata.uid, now)
                    self.work.forget(change.object.metadata.uid)
                self._feed.seen(change.kind, change.object, now)
            case facts.NodeSeen(change):
                self._node_seen(change.kind, change.object)
            case facts.PodGroupSeen(change) | facts.ObjectSeen(change):
                followed = isinstance(change.object, AnyPodGroup) or self._makers.reads(change.object)
                if not (followed and self._words.keep(change, now)):
                    self._told(change, now)
            case facts.BindingReleased():
                self._released(fact)
            case facts.AdmissionFailed(key):
                self.suspended.unassume(key)
                self.stand_ins.look(key, now)
            case facts.PodConditionFailed(uid):
                record = self.pods.record(uid)
                if record is not None:
                    record.condition_message, record.nominated = "", record.pod.status.nominated_node

    def go_on(self, now: float) -> None:
        """What had to wait since too much was asked for at once, where it is time."""
        self.stand_ins.go_on(now)
        for change in self._words.take(now):
            self._told(change, now)

    def next_due(self) -> float | None:
        """Unix time at which `go_on` has something to do, None where nothing waits for it."""
        found = (self.stand_ins.next_due(), self._words.next_due())
        return min((due for due in found if due is not None), default=None)

    def configure(self, load: LoadPolicy, defaults: GangDefaults, now: float) -> bool:
        """Other settings hold; whether gangs must be told again, since they were read by other defaults."""
        self.loads.configure(load, now)
        changed, self.gangs.defaults = self.gangs.defaults != defaults, defaults
        return changed and bool(len(self.pods) or self.gangs.keys)

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
            self._feed.queue_again(self.pods.all)
        touched = self._changes.take()
        touched.refusals, touched.unserved = self._refusals.take(), self._feed.unserved.take(self.queues.words)
        self._surplus.clear()
        return touched

    def snapshot(self) -> ClusterSnapshot:
        """The cluster now, taken over from the last snapshot where nothing changed."""
        known, closed = self._snapshot.names if self._snapshot else (), self._refusals.closed
        changed = (self._changed_nodes | (closed ^ self._closed)) & (self.nodes.keys() | set(known))
        around = SnapshotContext(closed, self.related.view)
        self._snapshot = take(self.nodes, self.ledger.nodes, self._snapshot, changed, around)
        self._changed_nodes.clear()
        self._closed = closed
        return self._snapshot

    def leaves_as(self, record: PodRecord) -> NamedObject:
        """What is evicted where a pod has to go: the Workload of an admitted job, whose pods go with it."""
        workload = self.suspended.get(record.workload.key) if record.workload is not None else None
        if record.workload is None or workload is None:
            return record.named
        goes = workload.status.evicting or self.suspended.admission(workload.key) is not None
        return record.workload if goes else record.named

    def job_limit(self, pod: Pod) -> float | None:
        """How long the job that a pod belongs to may run at most; None without end, or where that is not known."""
        record = self.pods.record(pod.uid)
        if record is None:
            return None
        if record.workload is not None:
            workload = self.suspended.get(record.workload.key)
            most = workload.max_seconds if workload is not None else None
            return float(most) if most is not None else None
        return self._makers.limit_seconds(record.made) if record.made is not None else None

    def parts(self, subject: WorkloadId) -> tuple[GangPart, ...]:
        """The gangs of a subject, as they stand."""
        return self.gangs.parts(subject, self._members, self.pods.counted, self._node_labels)

    def _members(self, key: str) -> Roster:
        """The pods of a gang; those of a job that waits whole wait for its admission, and are no part of that."""
        found, workload = self.pods.members(key), self.suspended.waiting(key)
        if workload is None:
            return found
        pending = tuple(pod for pod in found.pending if is_stand_in(pod.uid, workload))
        return found if len(pending) == len(found.pending) else msgspec.structs.replace(found, pending=pending)

    def assembly(self, subject: WorkloadId, parts: tuple[GangPart, ...]) -> Assembly:
        """What a subject's pods amount to; `parts` are those of a gang's."""
        if not parts:
            return assemble(subject, self.pods.roster(subject), None, self._classes.of)
        return assemble_parts(subject, parts, self._classes.of)

    def surplus(self, key: str) -> int:
        """How many placed members a gang has above its minimum; sorted out once a turn, however many nodes ask."""
        if key not in self._surplus:
            (part,) = self.parts(WorkloadId.gang(key))
            over = part.counted - part.spec.min_member
            self._surplus[key] = 0 if part.spec.problem else max(0, over)
        return self._surplus[key]

    def _node_labels(self) -> frozenset[str]:
        if self._label_keys is None:
            self._label_keys = frozenset(key for node in self.nodes.values() for key in node.labels)
        return self._label_keys

    def _forget(self) -> None:
        """Answers about nodes that are kept by what pods say of themselves."""
        self.ledger.restart_table()
        self.live_index.forget()
        if self._snapshot is not None:
            self._snapshot.traits.forget()
            self._snapshot = None

    def _workload_seen(self, change: Change[objects.Workload], now: float) -> None:
        key = f"{change.object.metadata.namespace}/{change.object.metadata.name}"
        before = self.suspended.get(key)
        found = self.suspended.apply(change)
        where, metadata = f"Workload {found.key}", change.object.metadata
        if change.kind is ChangeKind.DELETED:
            self._refusals.settled(where)
        elif found.unreadable:
            self._refusals.add(where, metadata, found.unreadable)
        elif not found.owner:
            told = "no job controls it, so nobody is admitted by it; delete it, or name its job as its controller"
            self._refusals.add(where, metadata, told, named_object(found), counts=True)
        if before is None:
            self._feed.joined(found, now)
        self.stand_ins.look(found.key, now)
        if before is not None and before.counts_as != found.counts_as:
            self._recharge(gang_key(found.key))

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
        self._label_keys = None
        if self.nodes.pop(name, None) is not None:
            self.charges.recount(self.pods.on_node(name))

    def _judged(self, node: Node) -> None:
        before = self.nodes.get(node.name)
        self.nodes[node.name] = node
        if before is None or before.labels != node.labels:
            self._label_keys = None
        self._changed_nodes.add(node.name)
        self._changes.news |= node_news(before, node, lambda: self.ledger.nodes.get(node.name, {}))
        if before is None or before.allocatable.amounts.keys() != node.allocatable.amounts.keys():
            self.charges.recount(self.pods.on_node(node.name))
        if (before is None or before.labels != node.labels) and self.queues.kueue.flavors:
            self._feed.queue_again(self.pods.on_node(node.name))

    def _told(self, change: Change[Any], now: float) -> None:
        """An object that we fail on is left out as any other that cannot be read."""
        try:
            self._seen(change, now)
        except Exception as error:
            metadata = change.object.metadata
            where = f"{type(change.object).__name__} {metadata.namespace}/{metadata.name}"
            self._refusals.add(where, metadata, str(of_ours(where, error)))

    def _pod_group_seen(self, change: Change[Any], now: float) -> None:
        key = f"{change.object.metadata.namespace}/{change.object.metadata.name}"
        before, queue = self.gangs.job(key), self.gangs.queue(key)
        subjects, invalid = self.gangs.seen(change)
        # Of those that it lists, or that list it, none is in another group by this.
        self._changes.subjects |= subjects
        if self.gangs.job(key) != before:
            self._recharge(key)
        if self.gangs.queue(key) != queue:
            self._feed.queue_again(self.pods.of_gang(key))
        if self.gangs.job(key) != before or self.gangs.queue(key) != queue:
            took = len(self.pods.of_gang(key)) * _GROUPED_SECONDS
            self._words.went_through(change.object.metadata.namespace, took, now)
        if invalid is not None:
            self._changes.invalid_gangs.append((invalid.named, invalid.gang.spec.problem))

    def _regrouped(self, subjects: set[WorkloadId]) -> None:
        """Gangs that may be in other groups by now, and the placed members of those."""
        self._changes.subjects |= subjects
        for key in sorted({key for subject in subjects if subject.grouped for key in subject.gangs}):
            self._recharge(key)

    def _recharge(self, key: str) -> None:
        """The gang is in another group or has another priority, and its placed members with it."""
        self.charges.regrouped(key, self.pods.of_gang(key))

    def _seen(self, change: Change[Any], now: float) -> None:
        """Any other kind of object."""
        item = change.object
        if isinstance(item, AnyPodGroup):
            self._pod_group_seen(change, now)
        elif self.queues.reads(item):
            self.queues.apply(change)
        elif isinstance(item, objects.Workload):
            self._workload_seen(change, now)
        elif isinstance(item, objects.CompositePodGroup):
            self.gangs.composite(change)
        elif self._makers.reads(item):
            moved = self._makers.apply(change)
            self._feed.moved(moved, now)
            self._words.went_through(item.metadata.namespace, len(moved) * _MOVED_SECONDS, now)
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
            self._changes.news |= News(NewsKind.CPUS if cpus else NewsKind.VOLUMES | NewsKind.PODS)
            if self.gangs.layers != self.related.layers:
                self.gangs.layers = self.related.layers
                self._changes.subjects |= {self.gangs.index.subject(key) for key in self.pods.gang_keys()}

    def _class_seen(self, change: Change[Any]) -> None:
        """Gangs that take their priority from a class by its name have another one, and their placed members too."""
        if self.related.apply(change):
            self.gangs.classes = self.related.classes
            for key in sorted(self.gangs.of_class()):
                self._changes.subjects.add(self.gangs.index.subject(key))
                self._recharge(key)

    def _metric_seen(self, kind: ChangeKind, source: objects.NodeMetric, now: float) -> None:
        try:
            self.loads.metric(source, now, gone=kind is ChangeKind.DELETED)
        except ConfigurationFault as fault:
            self._refusals.add(f"NodeMetric {source.metadata.name}", source.metadata, str(fault))
        self._changes.news |= News(NewsKind.LOAD)

    def _released(self, fact: facts.BindingReleased) -> None:
        charge = self.ledger.charge(fact.uid)
        if charge is not None and charge.state is PlacementState.ASSUMED:
            self.charges.free(fact.uid)
        self._changes.subjects.add(fact.subject)
        record = self.pods.record(fact.uid)
        if record is not None:
            # By its maker's word it may be in another gang since.
            self.pods.touch(record.pod)
