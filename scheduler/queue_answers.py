"""Answers about queues and jobs: who waits in which stage, what is short, who is ahead and what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

import msgspec

from model.decision import Decision
from model.estimates.start_estimate import without_estimate
from model.pod.pod import Pod
from model.queue import ROOT_QUEUE, JobAccount, QueueAccount, QueuedJob, QuotaShortage, governing
from model.reason import stage_of
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.saved_work import job_of
from scheduler.cache.suspended_cache import gang_key
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import ClaimKind
from scheduler.core.placement.explain import nearest_text
from scheduler.cycle import Cycle
from scheduler.history import DecisionHistory
from scheduler.ports import Clock

_MOST_JOBS = 20
"""Of those that wait in a queue, and of those ahead of a job."""


class NamedJob(msgspec.Struct, frozen=True):
    """What a person means by a name: its pods that count, and the workloads that they are.

    `needed` is how many must be placed at once.
    """

    name: str
    pods: tuple[Pod, ...]
    subjects: tuple[WorkloadId, ...]
    scheduled: int
    needed: int


class QueueAnswers:
    """Nothing is changed; the order is that of this moment."""

    def __init__(self, cache: ClusterCache, cycle: Cycle, history: DecisionHistory, clock: Clock) -> None:
        self._cache = cache
        self._cycle = cycle
        self._history = history
        self._clock = clock

    def queue(self, name: str) -> QueueAccount | None:
        """None where no queue of that name is known."""
        found = {each.queue.name: each for each in self._cycle.standings()}
        if name == ROOT_QUEUE or name not in found:
            return None
        tree = self._cycle.quotas.tree
        waiting = [(at, item) for at, item in self.order() if name in tree.path(item.workload.queue)]
        jobs = tuple(self._waiting(item, at) for at, item in waiting[:_MOST_JOBS])
        return QueueAccount(found[name], self._cycle.loans(name), jobs, len(waiting))

    def job(self, namespace: str, name: str) -> JobAccount | None:
        """None where neither a gang, nor a controller of pods, nor a pod has that name."""
        found = self._named(f"{namespace}/{name}")
        if found is None:
            return None
        order = list(self.order())
        places = {item.subject: at for at, item in order}
        first = min(found.subjects, key=lambda subject: (places.get(subject, len(order) + 1), subject))
        place = places.get(first, 0)
        job = self._told(found.name, self._queue_of(found), place, self._history.newest(first.text))
        waiting = [item for _, item in order if item.subject in set(found.subjects)]
        ahead = [(at, item) for at, item in order if at < place]
        return JobAccount(
            namespace=namespace,
            name=name,
            job=msgspec.structs.replace(job, asked=_total(map(asked_of, waiting)), held=self._held(found.subjects)),
            path=tuple(queue for queue in self._cycle.quotas.tree.path(job.queue) if queue != ROOT_QUEUE),
            members=len(found.pods),
            scheduled=found.scheduled,
            needed=found.needed,
            message=without_estimate(self._message(found.pods)),
            nearest=self.nearest(first) if place else "",
            decision=self._history.newest(first.text),
            preemption=self._history.preemption(first.text) if place else None,
            shortages=self.shortages(first),
            ahead=tuple(self._waiting(item, at) for at, item in ahead[:_MOST_JOBS]),
            ahead_count=len(ahead),
            start=self._cache.starts.of(first) if place else None,
            lost_seconds=self._cache.work.lost_seconds(self._job(found, f"{namespace}/{name}")),
            saved_seconds=min((self._cache.saved.get(pod.uid, 0.0) for pod in found.pods), default=0.0),
            told_until_seconds=max(map(_told_until, found.pods), default=0.0),
        )

    def shortages(self, subject: WorkloadId) -> tuple[QuotaShortage, ...]:
        """What a workload that waits finds short of its queue's quota at this moment."""
        candidate = self._cycle.backlog.by_subject.get(subject)
        refusal = self._cycle.quotas.refusal(candidate) if candidate is not None else None
        short = refusal.short if refusal is not None else ()
        return tuple(QuotaShortage(each.cell, each.node, each.bound, each.asked, each.room) for each in short)

    def stage(self, subject: WorkloadId) -> str:
        """Where the newest decision leaves the workload, empty before the first."""
        decision = self._history.newest(subject.text)
        return stage_of(decision.reason).value if decision is not None else ""

    def order(self) -> Iterator[tuple[int, Candidate]]:
        """All that wait with their places; parked workloads keep theirs. 1 is next."""
        waiting = self._cycle.backlog.candidates
        return enumerate(self._cycle.ordered(waiting, self._clock()), 1)

    def position(self, subject: WorkloadId) -> int:
        """The place of a workload, 0 where it does not wait."""
        return next((at for at, item in self.order() if item.subject == subject), 0)

    def nearest(self, subject: WorkloadId, uid: str = "") -> str:
        """The node nearest to taking the next member, or this one; nothing where it is not known or one fits."""
        candidate, working = self._cycle.backlog.by_subject.get(subject), self._cycle.working
        if candidate is None or working is None:
            return ""
        return nearest_text(working, candidate, uid, self._cache.offers.doubts)

    def _named(self, key: str) -> NamedJob | None:
        suspended = self._cache.suspended.named(*key.split("/", 1))
        if suspended is not None and not suspended.status.finished:
            return self._gang(WorkloadId.gang(gang_key(suspended.key)))
        if self._cache.gangs.get(key) is not None or key in self._cache.pods.gang_keys():
            return self._gang(self._cache.gangs.index.subject(key))
        owned = self._cache.pods.owned_by(key) or self._cache.pods.made_by(key)
        if owned:
            subjects = {self._cache.gangs.subject_of(pod) for pod in owned}
            alone = subjects.pop() if len(subjects) == 1 else None
            return self._gang(alone) if alone and alone.gangs else self._controlled(f"job/{key}", owned)
        record = self._cache.pods.find(*key.split("/", 1))
        if record is None:
            return None
        subject = self._cache.gangs.subject_of(record.pod)
        return self._gang(subject) if subject.gangs else self._controlled(subject.text, (record.pod,))

    def _gang(self, subject: WorkloadId) -> NamedJob:
        parts = self._cache.parts(subject)
        return NamedJob(
            subject.text,
            tuple(pod for part in parts for pod in part.members.counted),
            (subject,),
            sum(part.members.satisfied for part in parts),
            sum(part.spec.min_member for part in parts),
        )

    def _controlled(self, name: str, pods: Sequence[Pod]) -> NamedJob:
        """Pods of one controller; those that are no gang are placed one by one."""
        counted = tuple(pod for pod in pods if not pod.terminal)
        subjects = dict.fromkeys(self._cache.gangs.subject_of(pod) for pod in pods)
        return NamedJob(name, counted, tuple(subjects), sum(bool(pod.spec.node_name) for pod in counted), 1)

    def _job(self, found: NamedJob, asked: str) -> str:
        """The name by which its losses are known; without pods, the one that was asked for."""
        return next((job_of(pod, self._cache.gangs.subject_of(pod)) for pod in found.pods), asked)

    def _queue_of(self, job: NamedJob) -> str:
        waiting = (self._cycle.backlog.by_subject.get(subject) for subject in job.subjects)
        told = [item.governed_by for item in waiting if item is not None]
        return told[0] if told else next(map(queue_of, job.pods), ROOT_QUEUE)

    def _waiting(self, candidate: Candidate, place: int) -> QueuedJob:
        subject = candidate.subject
        told = self._told(subject.text, candidate.governed_by, place, self._history.newest(subject.text))
        return msgspec.structs.replace(told, asked=asked_of(candidate), held=self._held((subject,)))

    def _told(self, name: str, queue: str, place: int, decision: Decision | None) -> QueuedJob:
        if decision is None:
            return QueuedJob(name, queue, place)
        return QueuedJob(name, queue, place, stage_of(decision.reason).value, decision.reason.value, decision.detail)

    def _held(self, subjects: Iterable[WorkloadId]) -> Mapping[str, int]:
        """What its members on nodes have, and what is kept for it."""
        ledger = self._cache.ledger
        found: list[Mapping[str, int]] = []
        for subject in subjects:
            for pod in self._pods(subject):
                charge = ledger.charge(pod.uid)
                found += [dict(charge.pod_class.request)] if charge is not None else []
            claims = (ledger.claim(kind, subject) for kind in ClaimKind)
            found += [dict(pod.pod_class.request) for claim in claims if claim is not None for pod in claim.pods]
        return _total(found)

    def _pods(self, subject: WorkloadId) -> tuple[Pod, ...]:
        if subject.gangs:
            return tuple(pod for part in self._cache.parts(subject) for pod in part.members.placed)
        record = self._cache.pods.find(*subject.name.split("/", 1))
        return (record.pod,) if record is not None else ()

    def _message(self, pods: Iterable[Pod]) -> str:
        """The text its waiting pods carry."""
        waiting = (self._cache.pods.record(pod.uid) for pod in pods if not pod.spec.node_name)
        return next((each.condition_message for each in waiting if each is not None and each.condition_message), "")


def queue_of(pod: Pod) -> str:
    """The queue that governs a pod, empty where none does."""
    return governing(pod.spec.queue, online=not pod.colocation.below_prod)


def _told_until(pod: Pod) -> float:
    told = pod.colocation.eviction.standing
    return told.deadline_seconds if told is not None else 0.0


def asked_of(candidate: Candidate) -> Mapping[str, int]:
    """What all its waiting members request, by resource."""
    sets = zip(candidate.classes, candidate.workload.pod_sets, strict=False)
    return _total({name: amount * pods.count for name, amount in found.request} for found, pods in sets)


def _total(amounts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    found: Counter[str] = reduce(_added, amounts, Counter())
    return dict(sorted(found.items()))


def _added(total: Counter[str], amounts: Mapping[str, int]) -> Counter[str]:
    total.update(amounts)
    return total
