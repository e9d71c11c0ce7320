"""Draining: pods of queues that are stopped for good go, those of a ClusterQueue or LocalQueue with HoldAndDrain.

A job at a time, told first as by preemption; a queue that is opened again meanwhile keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from model.placement import EvictionPlan, Victim
from model.queue import QueueState
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.ledger.charge import Charge
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.queues.tree import QueueTree
from scheduler.steps.evicting import LOCAL_QUEUE_STOPPED, QUEUE_STOPPED, Evictions, EvictionWords, UnderWay
from scheduler.steps.turn import Turn


class Draining:
    """By job; times are Unix seconds."""

    def __init__(self, cache: ClusterCache, under_way: UnderWay | None = None) -> None:
        self._cache = cache
        self._evictions = Evictions(cache, under_way)
        self._tree: QueueTree | None = None
        self._stopped: set[str] = set()

    def turn(self, tree: QueueTree, policy: PreemptionPolicySettings, now: float) -> Turn:
        """Notices and evictions of this turn."""
        turn, found = Turn(), dict[WorkloadId, tuple[EvictionWords, list[Victim]]]()
        if tree is not self._tree:
            self._tree, self._stopped = tree, {name for name in tree.top_down if _drained(tree, name)}
        stopped = self._stopped
        held = {key for key, each in self._cache.queues.kueue.submissions.items() if each.state is QueueState.DRAIN}
        for charge, words in self._leaving(stopped, held) if stopped or held else ():
            victim = self._victim(tree, charge)
            found.setdefault(victim.subject, (words, []))[1].append(victim)
        for subject, (words, victims) in sorted(found.items(), key=lambda each: each[0]):
            if subject not in self._evictions:
                self._evictions.begin(subject, _plan(subject, victims), words)
        closed = {_queue(name) for name in stopped} | {_local_queue(key) for key in held}
        for subject in sorted(self._evictions):
            # Pods that ended are charged to no queue any more.
            wanted = subject in found or (self._evictions.by(subject) in closed and self._evictions.ended(subject))
            self._evictions.step(subject, wanted, policy, turn, now)
        return turn

    def next_due(self) -> float | None:
        """Unix time at which pods that were told go in any case."""
        return self._evictions.next_due()

    def _victim(self, tree: QueueTree, charge: Charge) -> Victim:
        pod, queue = charge.pod, tree.queues.get(charge.governed_by)
        if pod is None:
            raise LookupError(f"pod {charge.uid} is charged to queue {charge.governed_by} and not known")
        notice = pod.colocation.eviction.notice_seconds
        if notice and queue is not None:
            notice = max(notice, queue.preemption.grace_seconds or 0.0)
        subject = self._cache.gangs.subject_of(pod)
        return Victim(pod.key, pod.uid, charge.node, subject, notice, charge.governed_by)

    def _leaving(self, stopped: set[str], held: set[str]) -> Iterator[tuple[Charge, EvictionWords]]:
        for charge in self._cache.ledger.charges():
            record = self._cache.pods.record(charge.uid)
            if record is None or charge.pod is None or not record.pod.spec.node_name:
                continue
            local = charge.pod.submission_key
            if charge.governed_by in stopped:
                yield charge, _words(QUEUE_STOPPED, _queue(charge.governed_by))
            elif local in held and charge.counts:
                yield charge, _words(LOCAL_QUEUE_STOPPED, _local_queue(local))


def _queue(name: str) -> str:
    return f"queue {name}"


def _local_queue(key: str) -> str:
    return f"LocalQueue {key}"


def _words(reason: str, queue: str) -> EvictionWords:
    told = f"{queue} is drained"
    return EvictionWords(reason, queue, lambda victim: told, lambda victim: told)


def _plan(subject: WorkloadId, victims: Sequence[Victim]) -> EvictionPlan:
    """Room for nobody."""
    ordered = tuple(sorted(victims, key=lambda victim: (victim.pod_key, victim.uid)))
    return EvictionPlan(subject, "", ordered, (), queue=ordered[0].queue)


def _drained(tree: QueueTree, name: str) -> bool:
    return any(tree.queues[each].state is QueueState.DRAIN for each in tree.path(name) if each in tree.queues)
