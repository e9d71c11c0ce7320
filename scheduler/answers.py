"""Diagnostics answered from the cache, the backlog and the newest decisions; nothing is changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import msgspec

from model.decision import Decision
from model.pod.pod import Pod
from model.queue import ROOT_QUEUE, JobAccount, JobProgress, QueueAccount, QueuedJob, QueueStanding
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.unserved_words import sentences
from scheduler.core.gangs.roster import Roster
from scheduler.cycle import Cycle
from scheduler.history import DecisionHistory
from scheduler.link.node_reports import NodeReports
from scheduler.ports import Clock, GangExplanation, NodeExplanation, PodExplanation
from scheduler.queue_answers import QueueAnswers, queue_of


class SchedulerAnswers:
    """See scheduler.ports.Answers; `progress` is that of a job (namespace, name) whose controller runs here."""

    def __init__(
        self,
        cache: ClusterCache,
        cycle: Cycle,
        history: DecisionHistory,
        node_reports: NodeReports,
        clock: Clock,
        progress: Callable[[str, str], JobProgress | None] = lambda namespace, name: None,
    ) -> None:
        self._cache = cache
        self._cycle = cycle
        self._history = history
        self._node_reports = node_reports
        self._clock = clock
        self._progress = progress
        self._queues = QueueAnswers(cache, cycle, history, clock)

    def pod(self, namespace: str, name: str) -> PodExplanation | None:
        """None where the pod is not known."""
        record = self._cache.pods.find(namespace, name)
        if record is None:
            return None
        pod, subject = record.pod, self._cache.gangs.subject_of(record.pod)
        own = self._history.newest(WorkloadId.pod(pod.key).text) if pod.spec.unsupported else None
        found = PodExplanation(
            node=pod.spec.node_name,
            gang=pod.spec.gang.key if pod.spec.gang else "",
            decision=own or self._history.newest(subject.text),
            unserved=sentences(record.unserved, self._cache.queues.words),
            queue=queue_of(pod),
            stage=self._queues.stage(subject),
        )
        if pod.spec.node_name:
            scored = self._history.scored(subject.text)
            known = scored is not None and scored.node == pod.spec.node_name
            return msgspec.structs.replace(found, scored=scored) if known else found
        return msgspec.structs.replace(
            found,
            queue_position=self._queues.position(subject),
            message=self._foreign(pod) or record.condition_message,
            preemption=self._history.preemption(subject.text),
            nearest=self._queues.nearest(subject, pod.uid),
            nominated_node=record.nominated,
            shortages=self._queues.shortages(subject),
        )

    def _foreign(self, pod: Pod) -> str:
        """Where a pod waits for somebody else, which a mistyped schedulerName makes it do for ever; else empty."""
        ours = self._cache.schedulers
        if pod.spec.scheduler_name in ours:
            return ""
        named = ", ".join(sorted(ours))
        return (
            f"waits for scheduler {pod.spec.scheduler_name}; this one takes pods whose schedulerName is one of {named}"
        )

    def gang(self, namespace: str, name: str) -> GangExplanation | None:
        """None where neither a PodGroup nor a pod of that name is known."""
        key = f"{namespace}/{name}"
        if self._cache.gangs.get(key) is None and key not in self._cache.pods.gang_keys():
            return None
        found, subject = self._gang(key), self._cache.gangs.index.subject(key)
        if not found.waiting:
            return found
        pending = self._cache.pods.members(key).pending
        records = [record for pod in pending if (record := self._cache.pods.record(pod.uid)) is not None]
        return msgspec.structs.replace(
            found,
            queue_position=self._queues.position(subject),
            preemption=self._history.preemption(subject.text),
            nearest=self._queues.nearest(subject),
            queue=queue_of(pending[0]),
            stage=self._queues.stage(subject),
            shortages=self._queues.shortages(subject),
            nominated={record.pod.name: record.nominated for record in records if record.nominated},
        )

    def gangs(self) -> tuple[GangExplanation, ...]:
        """All gangs by name, without what is asked of one alone."""
        return tuple(self._gang(key) for key in sorted(self._cache.pods.gang_keys() | self._cache.gangs.keys))

    def settings(self) -> bytes:
        """The settings in force, as JSON; `preemption_enabled_by` names what switched it, `scheduler_config` is how far
        Koordinator's ConfigMap is acted on.
        """
        in_force = self._cycle.settings_in_force.in_force
        about = msgspec.to_builtins(in_force) if in_force.config_map else None
        told = {"preemption_enabled_by": in_force.enabled_by, "scheduler_config": about}
        return msgspec.json.encode(msgspec.to_builtins(self._cycle.settings) | told)

    def queues(self) -> tuple[QueueStanding, ...]:
        return self._cycle.standings()[1:]

    def queue(self, name: str) -> QueueAccount | None:
        return self._queues.queue(name)

    def job(self, namespace: str, name: str) -> JobAccount | None:
        """One that has no pods yet, or none any more, has its progress alone."""
        found, progress = self._queues.job(namespace, name), self._progress(namespace, name)
        if found is None and progress is not None:
            lost = self._cache.work.lost_seconds(f"{namespace}/{name}")
            job = QueuedJob(f"{progress.kind}/{namespace}/{name}", ROOT_QUEUE)
            found = JobAccount(namespace, name, job, lost_seconds=lost)
        return found if found is None else msgspec.structs.replace(found, progress=progress)

    def nodes(self) -> tuple[NodeExplanation, ...]:
        return tuple(self._node(name) for name in sorted(self._cache.nodes))

    def watch(self, subject_prefix: str, history: int) -> AsyncIterator[Decision]:
        return self._history.watch(subject_prefix, history)

    def _gang(self, key: str) -> GangExplanation:
        subject = self._cache.gangs.index.subject(key)
        part = next(part for part in self._cache.parts(subject) if part.key == key)
        namespace, _, name = key.partition("/")
        return GangExplanation(
            namespace=namespace,
            name=name,
            min_member=part.spec.min_member,
            members=part.members.present,
            scheduled=part.members.satisfied,
            problem=part.spec.problem,
            decision=self._history.newest(subject.text),
            message=self._told(part.members),
            waiting=len(part.members.pending),
        )

    def _told(self, members: Roster) -> str:
        """The text its waiting pods carry."""
        records = (self._cache.pods.record(pod.uid) for pod in members.pending)
        return next(
            (record.condition_message for record in records if record is not None and record.condition_message), ""
        )

    def _node(self, name: str) -> NodeExplanation:
        entry = self._node_reports.reports.get(name)
        return NodeExplanation(
            node=name,
            allocatable=self._cache.nodes[name].allocatable.amounts,
            requested=self._cache.ledger.nodes.get(name, {}),
            link_connected=name in self._node_reports.links,
            report_age_seconds=max(0.0, self._clock() - entry.received_seconds) if entry else None,
        )
