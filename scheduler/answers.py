"""Diagnostics answered from the cache, the backlog and the newest decisions; nothing is changed."""

from __future__ import annotations

from collections.abc import AsyncIterator

from model.decision import Decision
from scheduler.cache import ClusterCache
from scheduler.core.gang import Roster, spec_of, subject_of
from scheduler.core.order import dominant_share
from scheduler.cycle import Cycle
from scheduler.desk import NodeDesk
from scheduler.history import DecisionHistory
from scheduler.ports import Clock, GangAnswer, NodeAnswer, PodAnswer, QueueAnswer


class SchedulerAnswers:
    """See scheduler.ports.Answers."""

    def __init__(
        self, cache: ClusterCache, cycle: Cycle, history: DecisionHistory, desk: NodeDesk, clock: Clock
    ) -> None:
        self._cache = cache
        self._cycle = cycle
        self._history = history
        self._desk = desk
        self._clock = clock

    def pod(self, namespace: str, name: str) -> PodAnswer | None:
        """None where the pod is not known."""
        record = self._cache.find(namespace, name)
        if record is None:
            return None
        pod, subject = record.pod, subject_of(record.pod)
        own = self._history.newest(f"pod/{pod.key}") if pod.unsupported else None
        return PodAnswer(
            node=pod.node_name,
            gang=pod.gang.key if pod.gang else "",
            decision=own or self._history.newest(subject),
            queue_position=0 if pod.node_name else self._position(subject),
            message="" if pod.node_name else record.told,
        )

    def gang(self, namespace: str, name: str) -> GangAnswer | None:
        """None where neither a PodGroup nor a pod of that name is known."""
        key = f"{namespace}/{name}"
        known = key in self._cache.gangs or self._cache.exists(f"gang/{key}")
        return self._gang(key, position=True) if known else None

    def gangs(self) -> tuple[GangAnswer, ...]:
        """All gangs by name, without their queue positions."""
        keys = {subject.removeprefix("gang/") for subject in self._cache.subjects() if subject.startswith("gang/")}
        return tuple(self._gang(key, position=False) for key in sorted(keys | self._cache.gangs.keys()))

    def queues(self) -> tuple[QueueAnswer, ...]:
        queue = self._cycle.queue
        share = dominant_share(self._cache.ledger.used(queue.name), self._cache.snapshot().totals, queue.weight)
        pending = len(self._cycle.backlog.candidates)
        return (QueueAnswer(queue.name, queue.weight, pending, float(share.value), share.resource),)

    def nodes(self) -> tuple[NodeAnswer, ...]:
        return tuple(self._node(name) for name in sorted(self._cache.nodes))

    def watch(self, subject_prefix: str, history: int) -> AsyncIterator[Decision]:
        return self._history.watch(subject_prefix, history)

    def _gang(self, key: str, *, position: bool) -> GangAnswer:
        subject = f"gang/{key}"
        namespace, _, name = key.partition("/")
        members = self._cache.roster(subject)
        record = self._cache.gangs.get(key)
        spec = spec_of(members, record.gang if record else None)
        decision = self._history.newest(subject)
        return GangAnswer(
            namespace=namespace,
            name=name,
            min_member=spec.min_member,
            members=members.present,
            scheduled=members.satisfied,
            problem=spec.problem,
            decision=decision,
            queue_position=self._position(subject) if position else 0,
            message=self._told(members),
        )

    def _told(self, members: Roster) -> str:
        """The text its waiting pods carry."""
        records = (self._cache.record(pod.uid) for pod in members.pending)
        return next((record.told for record in records if record is not None and record.told), "")

    def _node(self, name: str) -> NodeAnswer:
        entry = self._desk.reports.get(name)
        return NodeAnswer(
            node=name,
            allocatable=self._cache.nodes[name].allocatable.amounts,
            requested=self._cache.ledger.nodes.get(name, {}),
            link_connected=name in self._desk.links,
            report_age_seconds=max(0.0, self._clock() - entry.received_seconds) if entry else None,
        )

    def _position(self, subject: str) -> int:
        """1 is next; parked workloads keep their place in the order."""
        order = self._cycle.ordered(self._cache.snapshot(), self._cycle.backlog.candidates, self._clock())
        return next((number for number, item in enumerate(order, 1) if item.subject == subject), 0)
