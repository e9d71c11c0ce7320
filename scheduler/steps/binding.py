"""Workloads that have nodes: charged in the cache as assumed, with whole CPUs, and their bindings as one batch."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kube.dialects.koordinator.cpubinding import resource_status
from kube.dialects.koordinator.labels import ANNOTATION_RESOURCE_STATUS
from kube.dialects.queues.placed_flavors import ANNOTATION_FLAVORS, flavors_text
from kube.dialects.sublet.pod_annotations import ANNOTATION_CHARGED_QUEUE
from model.cpubinding import BoundCpus
from model.placement import Placement
from model.workload import GangMode
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.charge import Charge
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, WorkingSnapshot
from scheduler.core.queueing.backlog import Backlog
from scheduler.steps.turn import Bind, BindingBatch, Turn


class Placing(NamedTuple):
    """All that follows from a workload's assignments, made before any of it is taken in."""

    assignments: tuple[Assignment, ...]
    charges: tuple[Charge, ...]
    binds: tuple[Bind, ...]


class Binding:
    """Charges the cache; a workload is left alone in the backlog until its bindings are through."""

    def __init__(self, cache: ClusterCache, backlog: Backlog) -> None:
        self._cache = cache
        self._backlog = backlog

    def prepared(self, candidate: Candidate, outcome: Placed, working: WorkingSnapshot) -> Placing:
        """What is to be charged and bound; nothing changes.

        Raises LookupError for a pod that is not in the cache, or for which its node has no CPUs.
        """
        names, cpus = working.snapshot.names, _cpus_of(outcome.assignments, working)
        found = [(each, names[each.row], cpus.get(each.uid)) for each in outcome.assignments]
        return Placing(
            outcome.assignments,
            tuple(self._charge(each, node, candidate, own) for each, node, own in found),
            tuple(self._bind(each, node, own, working) for each, node, own in found),
        )

    def assume(self, working: WorkingSnapshot, candidate: Candidate, placing: Placing, now: float) -> Turn:
        """Charge the pods, and bind them."""
        self._cache.charges.assume(placing.charges, now)
        working.put(placing.assignments)
        self._backlog.binding_started(candidate.subject)
        gang = candidate.workload.gang
        strict = gang is not None and gang.mode is GangMode.STRICT and candidate.needed > 0
        return Turn(batches=[BindingBatch(candidate.subject, strict, placing.binds)])

    def _charge(self, assignment: Assignment, node: str, candidate: Candidate, cpus: BoundCpus | None) -> Charge:
        record = self._cache.pods.record(assignment.uid)
        pod = record.pod if record else None
        priority = self._cache.gangs.priority_of(pod) if pod else None
        return Charge(
            assignment.uid,
            node,
            assignment.pod_class,
            assignment.pod_traits,
            pod,
            candidate.workload.queue,
            subject=candidate.subject,
            gang_priority=priority,
            cpus=cpus,
        )

    def _bind(self, assignment: Assignment, node: str, cpus: BoundCpus | None, working: WorkingSnapshot) -> Bind:
        uid = assignment.uid
        record = self._cache.pods.record(uid)
        if record is None:
            raise LookupError(f"pod {uid} was placed but is not in the cache")
        placement = Placement(record.pod.key, uid, node)
        annotations: list[tuple[str, str]] = []
        if cpus is not None:
            told = resource_status(working.cpus.layout(assignment.row), cpus.cpus)
            annotations.append((ANNOTATION_RESOURCE_STATUS, told))
        if assignment.pod_class.flavors:
            annotations.append((ANNOTATION_FLAVORS, flavors_text(assignment.pod_class.flavors)))
        if record.made is not None or record.pod.spec.gang is not None or self._cache.queues.queues():
            # Others may give it a queue: their word may be another, or gone, when the next process leads. Of a pod
            # without gang they may, too, once somebody writes an owner into it.
            by_others = record.workload is not None or record.group_queue == record.pod.spec.queue
            annotations.append((ANNOTATION_CHARGED_QUEUE, record.pod.spec.queue if by_others else ""))
        if annotations:
            placement = msgspec.structs.replace(placement, annotations=tuple(annotations))
        return Bind(record.named, placement, record.pod.created_seconds)


def _cpus_of(assignments: tuple[Assignment, ...], working: WorkingSnapshot) -> dict[str, BoundCpus]:
    """By uid, whole CPUs of those that ask for some, as `working.put` will give them. Raises LookupError."""
    asking = [(each, each.pod_class.cpus) for each in assignments if each.pod_class.cpus is not None]
    table, found = working.cpus.copy() if asking else working.cpus, dict[str, BoundCpus]()
    for each, request in asking:
        cpus = table.put(each.row, each.uid, request)
        if not cpus:
            raise LookupError(f"pod {each.uid} was placed on {working.snapshot.names[each.row]} without CPUs for it")
        found[each.uid] = BoundCpus(cpus, request.exclusive)
    return found
