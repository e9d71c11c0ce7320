"""Jobs of a simulated cluster: what each is called, in which queue it is, and what became of its pods.

A job is a gang, else a template, else a pod.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from model.placement import EvictionPlan
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.pod_record import PodRecord
from view.simulated_queues import JobOut, PreemptionOut, WorkloadOut

ADMITTED, PREEMPTING, PENDING, EVICTED = "admitted", "preempting", "pending", "evicted"
_STATES = {PREEMPTING: "Preempting", PENDING: "Pending", ADMITTED: "Running", EVICTED: "Evicted"}


class JobPod(msgspec.Struct, frozen=True):
    """A pod when it was first seen: its job, its queue, and whether it waited."""

    job: str
    queue: str
    waited: bool


class PodFate(msgspec.Struct, frozen=True):
    """What became of it: an outcome, the code of why, and the flavour of each resource that counts by one."""

    outcome: str
    reason: str = ""
    flavors: tuple[tuple[str, str], ...] = ()


class Jobs:
    """Pods by uid as they were given; templates by the uid of each of their pods."""

    def __init__(self, cache: ClusterCache, templates: Mapping[str, str]) -> None:
        self._cache = cache
        self._templates = templates
        self._pods: dict[str, JobPod] = {}

    def see(self, uids: Iterable[str]) -> None:
        """Take in pods that the cache has read."""
        for uid in uids:
            record = self._cache.pods.record(uid)
            if record is not None and not record.pod.terminal:
                self._pods[uid] = JobPod(self._job(record), record.pod.spec.queue, not record.pod.spec.node_name)

    def add(self, pods: Iterable[tuple[str, JobPod]]) -> None:
        """Others, by the uids that they would have."""
        self._pods.update(pods)

    def named(self, uid: str) -> JobPod:
        """The job of a pod that was seen."""
        return self._pods[uid]

    def name_of(self, subject: WorkloadId) -> str:
        """The job that a workload is, or is a part of."""
        record = None if subject.gangs else self._cache.pods.find(*subject.name.split("/", 1))
        return subject.name if record is None else self._job(record)

    def jobs(self, fates: Mapping[str, PodFate]) -> tuple[JobOut, ...]:
        """Each by its name; of a job that waits in part the waiting part is told."""
        found: dict[tuple[str, str], list[PodFate]] = defaultdict(list)
        for uid, pod in self._pods.items():
            if uid in fates:
                found[pod.job, pod.queue].append(fates[uid])
        return tuple(_job(name, queue, told) for (name, queue), told in sorted(found.items()))

    def workloads(self, fates: Mapping[str, PodFate]) -> tuple[WorkloadOut, ...]:
        """Of those that waited at first: how many pods have which outcome for which reason."""
        counts: Counter[tuple[str, str, str, str, tuple[tuple[str, str], ...]]] = Counter()
        for uid, pod in self._pods.items():
            if pod.waited and uid in fates:
                counts[pod.job, pod.queue, fates[uid].outcome, fates[uid].reason, fates[uid].flavors] += 1
        return tuple(
            WorkloadOut(job, queue, outcome, count, dict(flavors), reason)
            for (job, queue, outcome, reason, flavors), count in sorted(counts.items())
        )

    def preemptions(self, plans: Iterable[EvictionPlan]) -> tuple[PreemptionOut, ...]:
        """A row a job that loses pods to another."""
        rows = {
            PreemptionOut(
                self.named(victim.uid).job,
                self.named(victim.uid).queue,
                self.name_of(plan.preemptor),
                (Reason.RECLAIMING if victim.reclaimed else Reason.PREEMPTING).value,
            ): None
            for plan in plans
            for victim in plan.going
        }
        return tuple(sorted(rows, key=lambda row: (row.victim, row.preemptor)))

    def _job(self, record: PodRecord) -> str:
        gang = record.pod.spec.gang
        if gang is not None:
            return gang.key
        return self._templates.get(record.pod.uid, record.pod.key)


def _job(name: str, queue: str, fates: list[PodFate]) -> JobOut:
    order = (PREEMPTING, PENDING, EVICTED, ADMITTED)
    first = min(fates, key=lambda fate: (order.index(fate.outcome), fate.reason))
    return JobOut(name, queue, _STATES[first.outcome], first.reason if first.outcome != ADMITTED else "")
