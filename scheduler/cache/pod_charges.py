"""Pod charges: what pods with a node take of it and of their queue, kept in the Ledger as pods, gangs, nodes change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from model.node import Node
from model.placement import PlacementState
from model.pod.pod import Pod
from scheduler.cache.gang_cache import GangCache
from scheduler.cache.measured import MeasuredLoads
from scheduler.cache.pod_record import CacheChanges, PodRecord
from scheduler.core.gangs.groups import group_of
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.charge import ChargeChange as LedgerChange
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.ledger.taken import taken_of
from scheduler.core.queueing.news import News, NewsKind, freed, freed_by, released


class PodCharges:
    """`nodes` are those of the cluster by name; `changes` hears of what becomes free."""

    def __init__(
        self,
        ledger: Ledger,
        loads: MeasuredLoads,
        gangs: GangCache,
        nodes: Mapping[str, Node],
        changes: CacheChanges,
    ) -> None:
        self._ledger = ledger
        self._loads = loads
        self._gangs = gangs
        self._nodes = nodes
        self._changes = changes

    def has(self, uid: str) -> bool:
        """Whether a pod is charged."""
        return self._ledger.charge(uid) is not None

    def assume(self, charges: Iterable[Charge], now: float) -> None:
        """These pods are about to be bound."""
        charges = tuple(charges)
        self._ledger.assume(charges)
        self._changes.news |= News(NewsKind.PLACED)
        for charge in charges:
            self._loads.put(charge, now)

    def confirm(self, record: PodRecord, now: float) -> None:
        """The API server says where the pod is, and what it takes there."""
        pod = record.pod
        subject = group_of(self._gangs.index.subject(pod.spec.gang.key)) if pod.spec.gang else None
        own = (
            pod.uid,
            pod.spec.node_name,
            record.pod_class,
            record.pod_traits,
            pod,
            pod.spec.queue,
            PlacementState.BOUND,
        )
        priority = self._gangs.priority_of(pod)
        charge = self._as_taken(Charge(*own, subject, priority, pod.colocation.bound_cpus))
        undo = self._ledger.confirm(charge)
        self._loads.put(charge, now)
        for change in undo:
            if change.charge is None or change.charge.pod_traits != charge.pod_traits:
                self._changes.news |= News(NewsKind.PODS)
            if change.charge is not None:
                self._changes.news |= freed(released(change.charge, charge))
                if change.charge.cpus not in (None, charge.cpus):
                    self._changes.news |= News(NewsKind.CPUS)

    def free(self, uid: str) -> None:
        """The pod takes nothing any more."""
        for change in self._ledger.forget(uid):
            if change.charge is not None:
                self._changes.news |= freed_by(change.charge.pod_class) | News(NewsKind.PODS)
                if change.charge.cpus is not None:
                    self._changes.news |= News(NewsKind.CPUS)
        self._loads.remove(uid)

    def recount(self, records: Iterable[PodRecord]) -> None:
        """Their node came, went or lists other resources: what they take of the cluster is another amount."""
        for record in records:
            charge = self._ledger.charge(record.pod.uid)
            if charge is None or (after := self._as_taken(charge)) == charge:
                continue
            self._ledger.apply([LedgerChange(charge.uid, after)])
            self._changes.news |= freed_by(charge.counted)

    def requeued(self, record: PodRecord) -> None:
        """The pod is in another queue, or counts to other flavours of it."""
        pod, charge = record.pod, self._ledger.charge(record.pod.uid)
        if charge is not None:
            own = record.pod_class if pod.spec.node_name else charge.pod_class
            taken = charge.taken if own == charge.pod_class else None
            after = msgspec.structs.replace(charge, pod=pod, queue=pod.spec.queue, pod_class=own, taken=taken)
            self._ledger.apply([LedgerChange(pod.uid, self._as_taken(after))])

    def moved(self, pod: Pod) -> None:
        """The pod is in another gang, or in another queue, by its maker's word."""
        charge = self._ledger.charge(pod.uid)
        if charge is not None:
            subject, priority = self._gangs.job(pod.spec.gang.key) if pod.spec.gang else (None, None)
            after = msgspec.structs.replace(
                charge, pod=pod, queue=pod.spec.queue, subject=subject, gang_priority=priority
            )
            self._ledger.apply([LedgerChange(pod.uid, after)])

    def regrouped(self, key: str, members: Iterable[PodRecord]) -> None:
        """The gang is in another group or has another priority, and its members with it."""
        subject, _ = self._gangs.job(key)
        for record in members:
            charge, priority = self._ledger.charge(record.pod.uid), self._gangs.priority_of(record.pod)
            if charge is not None and (charge.subject, charge.gang_priority) != (subject, priority):
                after = msgspec.structs.replace(charge, subject=subject, gang_priority=priority)
                self._ledger.apply([LedgerChange(charge.uid, after)])

    def _as_taken(self, charge: Charge) -> Charge:
        """With what of it counts to queues."""
        taken = taken_of(charge, self._ledger.charge(charge.uid), self._nodes.get(charge.node), self._ledger.nodes)
        return charge if taken == charge.taken else msgspec.structs.replace(charge, taken=taken)
