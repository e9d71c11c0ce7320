"""Pod reader: a pod as the API server has it, with the gang and the queue that it is in by the word of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from kube import objects
from kube.dialects.gangs.makers import MadePod
from kube.dialects.suspended.stand_ins import belongs, is_stand_in
from kube.dialects.upstream import core_objects
from model.node import Node
from model.pod.colocation import LoadTerms
from model.pod.pod import Pod
from model.suspended.job import POD_SET, WORKLOAD
from model.suspended.workload import WorkloadObject
from scheduler.cache.gang_cache import GangCache
from scheduler.cache.maker_cache import MakerCache
from scheduler.cache.pod_charges import PodCharges
from scheduler.cache.pod_record import PodRecord
from scheduler.cache.queue_cache import QueueCache
from scheduler.cache.suspended_cache import SuspendedCache, named_object
from scheduler.core.snapshot.podclass import KnownClasses, pod_traits_of


class PodReader:
    """`plain` are the spec.schedulerName values whose pods are placed as kube-scheduler does; `nodes` those of the
    cluster by name.
    """

    def __init__(
        self,
        plain: Collection[str],
        gangs: GangCache,
        makers: MakerCache,
        queues: QueueCache,
        suspended: SuspendedCache,
        charges: PodCharges,
        classes: KnownClasses,
        nodes: Mapping[str, Node],
    ) -> None:
        self._plain = frozenset(plain)
        self._gangs = gangs
        self._makers = makers
        self._queues = queues
        self._suspended = suspended
        self._charges = charges
        self._classes = classes
        self._nodes = nodes

    def read(self, source: objects.Pod, before: PodRecord | None) -> PodRecord:
        """As it is now; `before` is how it was. Raises ConfigurationFault."""
        metadata, pod = source.metadata, self.alone(source)
        own_local = pod.spec.local_queue
        workload = self._workload_of(metadata, pod)
        pod = self._held(pod, metadata) if workload is None else self._in_workload(pod, workload)
        made = self._made(pod, metadata) if workload is None else None
        pod, group_queue = self._in_queue(self._in_gang(pod, made), made, before)
        return PodRecord(
            pod,
            self._classes.of(pod),
            pod_traits_of(pod),
            nominated=pod.status.nominated_node,
            group_queue=group_queue,
            own_local=own_local,
            made=made,
            workload=named_object(workload) if workload is not None else None,
            stand_in=workload is not None and is_stand_in(pod.uid, workload),
        )

    def alone(self, source: objects.Pod) -> Pod:
        """By its own word. Of what kube-scheduler does not know, a pod that is placed as it does says nothing."""
        pod = core_objects.pod(source, self._gangs.defaults)
        if pod.spec.scheduler_name not in self._plain:
            return pod
        spec = msgspec.structs.replace(pod.spec, gang=None, plain=True)
        colocation = msgspec.structs.replace(pod.colocation, load=LoadTerms(), cpus=None)
        return msgspec.structs.replace(pod, spec=spec, colocation=colocation)

    def joined(self, before: PodRecord, workload: WorkloadObject) -> PodRecord:
        """A pod of a job whose Workload was not known yet."""
        pod, group_queue = self._in_queue(self._in_workload(before.pod, workload), None, None)
        changed = {"pod": pod, "pod_class": self._classes.of(pod), "group_queue": group_queue}
        return msgspec.structs.replace(before, **changed, made=None, workload=named_object(workload))

    def moved(self, before: PodRecord) -> PodRecord:
        """By what its maker says now; the same record where nothing changed."""
        pod, group_queue = self._in_queue(self._in_gang(self._by_itself(before), before.made), before.made, before)
        same = pod is before.pod or pod == before.pod
        return before if same else msgspec.structs.replace(before, pod=pod, group_queue=group_queue)

    def queued(self, record: PodRecord) -> bool:
        """Put a pod into the queue that its PodGroup or its namespace says now; whether that is another."""
        before = record.pod
        record.pod, record.group_queue = self._in_queue(self._by_itself(record), record.made, record)
        if record.pod.spec.flavors != before.spec.flavors:
            record.pod_class = self._classes.of(record.pod)
        return record.pod is not before and record.pod != before

    def _by_itself(self, record: PodRecord) -> Pod:
        """Without the LocalQueue that its maker named, which may name another by now, unless it is charged there."""
        pod, own = record.pod, record.own_local
        if record.made is None or pod.spec.local_queue == own or self._charges.has(pod.uid):
            return pod
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, local_queue=own))

    def _made(self, pod: Pod, metadata: objects.Metadata) -> MadePod | None:
        """What it says of its maker, where it names no gang itself; one that others place is waited for, too."""
        own = pod.spec.gang is not None or pod.spec.plain
        return None if own else self._makers.made(metadata, self._gangs.defaults)

    def _workload_of(self, metadata: objects.Metadata, pod: Pod) -> WorkloadObject | None:
        """That of the suspended job that it belongs to."""
        found = self._suspended.get(named_workload(metadata))
        return found if found is not None and is_of(metadata, pod, found) else None

    def _held(self, pod: Pod, metadata: objects.Metadata) -> Pod:
        """One of a job that waits whole, made though nobody admitted that, gets no node."""
        owner = next((each.uid for each in metadata.owner_references or () if each.controller), "")
        gang = self._suspended.held(owner)
        if gang is None:
            return pod
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, gang=gang))

    def _in_workload(self, pod: Pod, workload: WorkloadObject) -> Pod:
        """In its gang and in its queue, whatever else it says; but for one that was bound by its own word, since
        anybody may give a pod a job as its owner.
        """
        gang = self._suspended.membership(workload.namespace, workload.name)
        spec = msgspec.structs.replace(pod.spec, gang=gang, task=pod.labels.get(POD_SET, ""))
        if spec.charged_queue != "":
            spec = msgspec.structs.replace(spec, named_queue="", local_queue=workload.queue)
        return msgspec.structs.replace(pod, spec=spec)

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

    def _in_queue(self, pod: Pod, made: MadePod | None, record: PodRecord | None) -> tuple[Pod, str]:
        """With the queue that it waits in, and what its PodGroup or its maker says of it; its namespace may, too.

        A pod that is charged keeps the queue that it and its PodGroup named when that began, as its `record` has it:
        else quota that it uses were given back by a word. Whoever leads next finds that word of its PodGroup on the
        pod.
        """
        group, spec = self._gangs.queue(pod.spec.gang.key) if pod.spec.gang else "", pod.spec
        known = record if record is not None and self._charges.has(pod.uid) else None
        if made is not None:
            told = self._makers.queue(made)
            group = self._queues.named(told, pod.namespace)
            if told.local and spec.charged_queue != "" and not (spec.named_queue or spec.local_queue):
                spec = msgspec.structs.replace(spec, local_queue=told.local)
                pod = msgspec.structs.replace(pod, spec=spec)
        if known is not None:
            # What is being bound is settled already, though the pod does not say so yet.
            group = known.group_queue if not spec.node_name else known.group_queue or group
            settled = known.pod.spec
            if (spec.named_queue, spec.local_queue) != (settled.named_queue, settled.local_queue):
                spec = msgspec.structs.replace(spec, named_queue=settled.named_queue, local_queue=settled.local_queue)
                pod = msgspec.structs.replace(pod, spec=spec)
        group = group if spec.charged_queue is None else spec.charged_queue
        queue = self._queues.queue_of(_without_words(pod) if spec.charged_queue else pod, group)
        flavors = self._flavors(pod, queue)
        if (queue, flavors) != (spec.queue, spec.flavors):
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, queue=queue, flavors=flavors))
        return pod, group

    def _flavors(self, pod: Pod, queue: str) -> tuple[tuple[str, str], ...]:
        """What its amounts count to; one that waits gets its flavours with its node."""
        if not pod.spec.node_name:
            return ()
        node = self._nodes.get(pod.spec.node_name)
        return self._queues.flavors_of(pod, queue, node.labels if node is not None else None)


def is_of(metadata: objects.Metadata, pod: Pod, workload: WorkloadObject) -> bool:
    """Whether a pod that names the Workload is of its job, or was as it was bound: which Workload it names is settled
    by then, and its author may take its owner away.
    """
    return bool(pod.spec.charged_queue) or belongs(metadata, workload)


def _without_words(pod: Pod) -> Pod:
    """The queue that another named for it when it was bound is written on it, and counts before its own."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, named_queue="", local_queue=""))


def named_workload(metadata: objects.Metadata) -> str:
    """The key of the Workload that a pod says it belongs to; empty where it says nothing."""
    name = (metadata.annotations or {}).get(WORKLOAD)
    return f"{metadata.namespace}/{name}" if name else ""
