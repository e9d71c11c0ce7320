"""Stand-in pods: of each job that waits whole the pods that it would have, among the pods of the cache."""

from __future__ import annotations

import msgspec

from kube import objects
from kube.dialects.suspended.stand_ins import stand_ins
from kube.informer import ChangeKind
from model.priority import PriorityClass
from model.suspended.workload import ConditionName, WorkloadAdmission, WorkloadObject
from model.workload import WorkloadId
from scheduler.cache.pod_feed import PodFeed
from scheduler.cache.pod_reader import PodReader
from scheduler.cache.pod_record import CacheChanges
from scheduler.cache.pods import Pods
from scheduler.cache.refusals import Refusals
from scheduler.cache.related_objects import RelatedObjectsCache
from scheduler.cache.stand_in_limit import MOST, StandInLimit
from scheduler.cache.suspended_cache import SuspendedCache, gang_key, named_object
from scheduler.core.queueing.news import News, NewsKind
from scheduler.core.snapshot.podclass import PodClass, class_of


class StandInPods:
    """`late_by_creation`: a job whose pods were not ready in time has its old place in its queue."""

    def __init__(
        self,
        suspended: SuspendedCache,
        related: RelatedObjectsCache,
        pods: Pods,
        reader: PodReader,
        feed: PodFeed,
        refusals: Refusals,
        changes: CacheChanges,
        *,
        late_by_creation: bool,
    ) -> None:
        self._suspended = suspended
        self._related = related
        self._pods = pods
        self._reader = reader
        self._feed = feed
        self._refusals = refusals
        self._changes = changes
        self._late_by_creation = late_by_creation
        self._limit = StandInLimit()
        self._known: dict[str, tuple[WorkloadObject, set[str]]] = {}

    def admit(self, key: str, admission: WorkloadAdmission, now: float) -> None:
        """A Workload (`namespace/name`) is about to be admitted: nothing stands in for it any more."""
        self._suspended.assume(key, admission)
        self.look(key, now)

    def class_of(self, workload: WorkloadObject, pod_set: str) -> PodClass:
        """What one pod of a set takes."""
        only = tuple(msgspec.structs.replace(each, count=1) for each in workload.pod_sets if each.name == pod_set)
        (source,) = stand_ins(msgspec.structs.replace(workload, pod_sets=only), self._priority_class, 0.0)
        return class_of(self._reader.alone(source))

    def look(self, key: str, now: float) -> None:
        """Stand-ins of a Workload while it waits and its namespace has not too many, and none else."""
        self._look(key, now)
        self._go_on(key.partition("/")[0], now)

    def go_on(self, now: float) -> None:
        """Those that had to wait since their namespace had many made, once it is time."""
        for namespace in self._limit.waiting():
            self._go_on(namespace, now)

    def next_due(self) -> float | None:
        """Unix time at which `go_on` makes some, None where none waits for it."""
        return self._limit.next_due()

    def _go_on(self, namespace: str, now: float) -> None:
        while (other := self._limit.next(namespace, now)) is not None:
            self._look(other, now)

    def _look(self, key: str, now: float) -> None:
        workload, (before, uids) = self._suspended.get(key), self._known.get(key, (None, set()))
        waits = workload is not None and self._suspended.waits(key)
        if before is not None and (not waits or workload is None or _asks(workload) != _asks(before)):
            del self._known[key]
            self._limit.give_back(key)
            for uid in sorted(uids):
                self._pods.remove(uid)
        if not waits or workload is None:
            self._limit.give_back(key)
        elif key not in self._known and not self._limit.take(key, workload.count, now):
            if not self._limit.fits(key, workload.count):
                self._refuse(workload)
        elif key not in self._known:
            self._refusals.settled(f"Workload {key}")
            self._make(workload, now)
        self._changes.subjects.add(WorkloadId.gang(gang_key(key)))
        self._changes.news |= News(NewsKind.JOBS)

    def _refuse(self, workload: WorkloadObject) -> None:
        told = f"its namespace has jobs of {MOST} pods that wait; it is looked at once there are fewer"
        metadata = objects.Metadata(workload.name, workload.namespace, workload.uid)
        self._refusals.add(f"Workload {workload.key}", metadata, told, named_object(workload), counts=True)

    def _make(self, workload: WorkloadObject, now: float) -> None:
        queued = workload.queued_seconds(by_creation=self._late_by_creation)
        found = stand_ins(workload, self._priority_class, queued)
        self._known[workload.key] = workload, {each.metadata.uid for each in found}
        waited = workload.status.conditions.get(ConditionName.QUOTA_RESERVED)
        message = waited.message if waited is not None and not waited.holds else ""
        first: objects.Pod | None = None
        for each in found:
            if first is not None and each.spec is first.spec:
                self._like(first, each, now)
                continue
            first = each
            self._feed.seen(ChangeKind.ADDED, each, now)
            record = self._pods.record(each.metadata.uid)
            if message and record is not None:
                record.condition_message = message

    def _like(self, first: objects.Pod, source: objects.Pod, now: float) -> None:
        """Those of a pod set differ by name alone: thousands are read once."""
        known = self._pods.record(first.metadata.uid)
        if known is not None:
            pod = msgspec.structs.replace(known.pod, name=source.metadata.name, uid=source.metadata.uid)
            self._pods.put(msgspec.structs.replace(known, pod=pod), None, now)

    def _priority_class(self, name: str) -> PriorityClass | None:
        """That of pods which name it; without a name the one of pods which name none."""
        classes = self._related.classes
        return classes.get(name) if name else next((each for each in classes.values() if each.global_default), None)


def _asks(workload: WorkloadObject) -> tuple[object, ...]:
    """What of a Workload its stand-ins depend on."""
    return (workload.uid, workload.queue, workload.pod_sets)
