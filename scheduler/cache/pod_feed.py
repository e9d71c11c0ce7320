"""Pod feed: pods as they come from the API server, read and kept, or refused where they cannot be read.

What an unreadable pod takes of its node is not known, so that node gets no new pods while the pod is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kube import objects
from kube.informer import ChangeKind
from model.condition import ConditionStatus, ConditionType
from model.fault import ConfigurationFault
from model.pod.status import PodPhase
from model.suspended.workload import WorkloadObject
from scheduler.cache.pod_charges import PodCharges
from scheduler.cache.pod_reader import PodReader, is_of, named_workload
from scheduler.cache.pod_record import CacheChanges, PodRecord
from scheduler.cache.pods import Pods
from scheduler.cache.refusals import Refusals, of_ours
from scheduler.cache.suspended_cache import SuspendedCache
from scheduler.cache.unserved_words import UnservedWords, named_by
from scheduler.core.queueing.news import News, NewsKind
from scheduler.ports import NamedObject


class PodFeed:
    """`schedulers` are the spec.schedulerName values that are ours; `changes` hears of what is to be looked at."""

    def __init__(
        self,
        schedulers: Collection[str],
        pods: Pods,
        reader: PodReader,
        charges: PodCharges,
        suspended: SuspendedCache,
        refusals: Refusals,
        changes: CacheChanges,
    ) -> None:
        self.unserved = UnservedWords()
        self._schedulers = frozenset(schedulers)
        self._pods = pods
        self._reader = reader
        self._charges = charges
        self._suspended = suspended
        self._refusals = refusals
        self._changes = changes
        self._naming: dict[str, dict[str, objects.Metadata]] = {}

    def seen(self, kind: ChangeKind, source: objects.Pod, now: float) -> None:
        """The API server's word on a pod at Unix time `now`."""
        key, uid = f"{source.metadata.namespace}/{source.metadata.name}", source.metadata.uid
        before = self._pods.record(uid)
        if kind is ChangeKind.DELETED:
            self._refusals.settled(f"Pod {key}")
            self._reopen(uid)
            if before is not None:
                self._unnamed(before.named_workload, uid)
            self._pods.remove(uid)
            return
        try:
            record = self._reader.read(source, before)
        except ConfigurationFault as fault:
            self._refuse(key, source, fault)
            return
        except Exception as error:
            self._refuse(key, source, of_ours(f"Pod {key}", error))
            return
        self._reopen(uid)
        if before is None or before.pod != record.pod:
            if before is not None:
                record.condition_message, record.named_workload = before.condition_message, before.named_workload
            self._pods.put(record, before, now)
            self._name_unserved(record, source)
        else:
            record = before
        self._name(record, source.metadata)
        record.condition_message = _condition_message(source) or record.condition_message

    def joined(self, workload: WorkloadObject, now: float) -> None:
        """Pods of its job that were seen before it: after a restart nobody knows which comes first."""
        for uid, metadata in sorted(self._naming.pop(workload.key, {}).items()):
            before = self._pods.record(uid)
            if before is not None and is_of(metadata, before.pod, workload):
                self._pods.put(self._reader.joined(before, workload), before, now)

    def queue_again(self, records: Iterable[PodRecord]) -> None:
        """Pods that may be in another queue by what their PodGroup or their namespace says, and their charges."""
        for record in records:
            if self._reader.queued(record):
                self._pods.touch(record.pod)
                self._charges.requeued(record)

    def moved(self, uids: Iterable[str], now: float) -> None:
        """Pods that may be in another gang or queue by what their maker says, and their charges."""
        for uid in uids:
            before = self._pods.record(uid)
            record = self._reader.moved(before) if before is not None else None
            if record is not None and record is not before:
                self._pods.put(record, before, now)
                self._charges.moved(record.pod)

    def _name_unserved(self, record: PodRecord, source: objects.Pod) -> None:
        """What the pod names that nobody serves or reads; told of pods that wait for us."""
        record.unserved, pod = named_by(source.metadata), record.pod
        if not (pod.spec.node_name or pod.terminal) and pod.spec.scheduler_name in self._schedulers:
            self.unserved.tell(record.named, record.unserved)

    def _name(self, record: PodRecord, metadata: objects.Metadata) -> None:
        """The Workload that a pod names now; one that is not known yet may come."""
        before, key = record.named_workload, named_workload(metadata)
        if before != key:
            self._unnamed(before, metadata.uid)
        if key and self._suspended.get(key) is None:
            self._naming.setdefault(key, {})[metadata.uid] = metadata
        record.named_workload = key

    def _unnamed(self, key: str, uid: str) -> None:
        found = self._naming.get(key, {})
        found.pop(uid, None)
        if not found:
            self._naming.pop(key, None)

    def _refuse(self, key: str, source: objects.Pod, fault: ConfigurationFault) -> None:
        metadata, node = source.metadata, source.spec.node_name
        if node and source.status.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            self._refusals.close(metadata.uid, node)
            self._refusals.add(f"Pod {key}", metadata, f"{fault}; node {node} gets no new pods while this one is there")
            return
        self._reopen(metadata.uid)
        ours = not node and metadata.deletion_timestamp is None and source.spec.scheduler_name in self._schedulers
        named = NamedObject(metadata.namespace, metadata.name, metadata.uid, source.spec.scheduler_name)
        told = _condition_message(source) == str(fault)
        self._refusals.add(f"Pod {key}", metadata, str(fault), named if ours and not told else None)

    def _reopen(self, uid: str) -> None:
        """The pod can be read, or is not there any more: its node is judged by amounts again."""
        if self._refusals.reopen(uid) is not None:
            self._changes.news |= News(NewsKind.NODE_CHANGED)


def _condition_message(source: objects.Pod) -> str:
    """The message of PodScheduled=False, empty where the pod has no such condition."""
    for condition in source.status.conditions or []:
        if condition.type == ConditionType.POD_SCHEDULED and condition.status == ConditionStatus.FALSE:
            return condition.message
    return ""
