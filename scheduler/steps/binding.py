"""Workloads that have nodes: charged in the cache as assumed, and their bindings as one batch."""

from __future__ import annotations

from typing import NamedTuple

from model.placement import Placement
from model.workload import GangMode
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.gangs.groups import group_of
from scheduler.core.ledger.charge import Charge
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, WorkingSnapshot
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.snapshot.snapshot import ClusterSnapshot
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

    def prepared(self, candidate: Candidate, outcome: Placed, snapshot: ClusterSnapshot) -> Placing:
        """What is to be charged and bound; nothing changes. Raises LookupError for a pod that is not in the cache."""
        found = [(each, snapshot.names[each.row]) for each in outcome.assignments]
        return Placing(
            outcome.assignments,
            tuple(self._charge(each, node, candidate) for each, node in found),
            tuple(self._bind(each.uid, node) for each, node in found),
        )

    def assume(self, working: WorkingSnapshot, candidate: Candidate, placing: Placing, now: float) -> Turn:
        """Charge the pods, and bind them."""
        self._cache.assume(placing.charges, now)
        working.put(placing.assignments)
        self._backlog.binding_started(candidate.subject)
        gang = candidate.workload.gang
        strict = gang is not None and gang.mode is GangMode.STRICT and candidate.needed > 0
        return Turn(batches=[BindingBatch(candidate.subject, strict, placing.binds)])

    def _charge(self, assignment: Assignment, node: str, candidate: Candidate) -> Charge:
        record = self._cache.record(assignment.uid)
        pod = record.pod if record else None
        priority = self._cache.gangs.priority(pod.spec.gang.key) if pod and pod.spec.gang else None
        return Charge(
            assignment.uid,
            node,
            assignment.pod_class,
            assignment.pod_traits,
            pod,
            candidate.workload.queue,
            subject=group_of(candidate.subject),
            gang_priority=priority,
        )

    def _bind(self, uid: str, node: str) -> Bind:
        record = self._cache.record(uid)
        if record is None:
            raise LookupError(f"pod {uid} was placed but is not in the cache")
        return Bind(record.named, Placement(record.pod.key, uid, node), record.pod.created_seconds)
