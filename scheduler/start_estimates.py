"""Starts of waiting workloads, estimated in rounds beside the turns: a picture of the cluster, several passes over it,
and the middle start of theirs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from statistics import median_low

import msgspec
import numpy as np

from model.estimates.start_estimate import EstimateBasis, ExpectedEnd, StartEstimate
from model.pod.pod import Pod
from model.queue import ROOT_QUEUE, Cell, QueueOrder
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.estimates.forward import Picture, RunningWork, Start, WaitingWork, forward
from scheduler.core.filters import fit
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import ClaimKind
from scheduler.core.ledger.queue_book import add
from scheduler.core.queueing.future_fit import minimum_of
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot
from scheduler.cycle import Cycle
from scheduler.ports import Clock

_SLICE_SECONDS = 0.005
"""So long a round works at a time, before turns, leases and streams have theirs."""
_PASSING = (Reason.QUOTA_EXHAUSTED, Reason.QUEUE_ORDER)
"""Refusals of a queue that end by themselves."""
_MOST_ENDS = 8


class _Taken(msgspec.Struct):
    """What one workload has: nodes' rows with classes, its queue's cells, one of its pods, and its deadline."""

    rows: list[tuple[int, PodClass]]
    cells: dict[Cell, int]
    queue: str
    pod: Pod | None = None
    deadline_seconds: float | None = None
    count: int = 0


class StartEstimates:
    """A round looks at those that wait in their order; its estimates stand in the cache's start book."""

    def __init__(self, cache: ClusterCache, cycle: Cycle, clock: Clock) -> None:
        self._cache = cache
        self._cycle = cycle
        self._clock = clock
        self._runs = cache.runs.at(0.0)

    async def run(self) -> None:
        """Rounds for ever, a slice at a time."""
        while True:
            policy = self._cycle.settings.estimates
            await asyncio.sleep(policy.every_seconds)
            if not policy.enable:
                self._cache.starts.put({}, self._clock())
                continue
            begun = time.monotonic()
            for _ in self.round():
                if time.monotonic() - begun >= _SLICE_SECONDS:
                    await asyncio.sleep(0)
                    begun = time.monotonic()

    def make(self) -> None:
        """A whole round at once."""
        for _ in self.round():
            pass

    def round(self) -> Iterator[None]:
        """A round, step by step."""
        now = self._clock()
        self._runs = self._cache.runs.at(now)
        waiting, unknown = self._waiting(now)
        yield
        if not waiting:
            self._cache.starts.put(unknown, now)
            return
        picture = self._picture(tuple(work for _, work in waiting), now)
        yield
        policy, courses = self._cycle.settings.estimates, list[Mapping[int, Start]]()
        for turn in range(policy.passes):
            for found in forward(picture, turn, policy.passes, policy.horizon_seconds):
                yield
                if found is not None:
                    courses.append(found)
        blind = sum(1 for work in picture.running if not work.known)
        estimates = {subject: _estimate(courses, place, now, blind) for place, (subject, _) in enumerate(waiting)}
        self._cache.starts.put({**unknown, **estimates}, now)

    # what waits

    def _waiting(self, now: float) -> tuple[list[tuple[WorkloadId, WaitingWork]], dict[WorkloadId, StartEstimate]]:
        """Those whose start is looked for, in their order, and why nothing is known of the others."""
        found: list[tuple[WorkloadId, WaitingWork]] = []
        unknown: dict[WorkloadId, StartEstimate] = {}
        most = self._cycle.settings.estimates.most_workloads
        for candidate in self._cycle.ordered(self._cycle.backlog.candidates, now):
            if len(found) >= most:
                unknown[candidate.subject] = StartEstimate(why=f"more than {most} wait before it", made_seconds=now)
                continue
            asked = self._cycle.quotas.flavors.flavored(candidate)
            refusal = self._cycle.quotas.refusal(asked)
            if refusal is not None and refusal.reason not in _PASSING:
                unknown[candidate.subject] = StartEstimate(why=refusal.detail, made_seconds=now)
                continue
            found.append((candidate.subject, self._work(asked)))
        return found, unknown

    def _work(self, candidate: Candidate) -> WaitingWork:
        needed = minimum_of(candidate) if candidate.needed else candidate
        sets = zip(needed.classes, needed.workload.pod_sets, strict=True)
        pods = tuple((pod_class, pods.count) for pod_class, pods in sets)
        queue = candidate.governed_by
        record = self._cache.pods.record(candidate.uids[0])
        count = sum(number for _, number in pods)
        rules = self._cycle.quotas.tree.queues.get(queue)
        return WaitingWork(
            candidate.subject.text,
            pods if candidate.needed else ((pods[0][0], 1),),
            "" if queue == ROOT_QUEUE else queue,
            self._cycle.quotas.asked.at_once(candidate),
            self._runs.past(record.pod, record.pod_class, count) if record is not None else None,
            self._limit(record.pod) if record is not None else None,
            strict=rules is not None and rules.order is QueueOrder.STRICT_FIFO,
        )

    # what runs

    def _picture(self, waiting: tuple[WaitingWork, ...], now: float) -> Picture:
        snapshot, quota = self._cache.snapshot(), self._cycle.quotas.quota
        free = np.array(snapshot.free)
        taken = self._taken(snapshot, free)
        running = tuple(self._running(subject, each, now) for subject, each in sorted(taken.items()))
        fair = self._cycle.quotas.policy.fair_sharing
        # Turns go on between the passes: each pass has the books as they are now.
        frozen = quota.copy() if quota is not None else None
        return Picture(now, snapshot, free, running, waiting, frozen.copy if frozen is not None else None, fair)

    def _taken(self, snapshot: ClusterSnapshot, free: Amounts) -> dict[WorkloadId, _Taken]:
        """What workloads have on nodes, and what is kept for admitted jobs, which `free` has less from here on."""
        found: dict[WorkloadId, _Taken] = {}
        for charge in self._cache.ledger.charges():
            if charge.pod is None or charge.pod.daemon:
                continue
            own = self._own(found, self._cache.gangs.subject_of(charge.pod), charge.governed_by)
            own.rows.append((snapshot.rows.get(charge.node, -1), charge.pod_class))
            add(own.cells, charge.counted.cells())
            own.pod, own.count = charge.pod, own.count + 1
            started = charge.pod.status.started_seconds or charge.pod.status.scheduled_seconds
            limit = self._limit(charge.pod)
            if limit is not None and started:
                known = own.deadline_seconds
                own.deadline_seconds = started + limit if known is None else max(known, started + limit)
        for claim in self._cache.ledger.claims(ClaimKind.ADMITTED):
            own = self._own(found, claim.subject, claim.queue)
            for pod in claim.pods:
                row = snapshot.rows.get(pod.node, -1)
                own.rows.append((row, pod.pod_class))
                add(own.cells, pod.pod_class.cells())
                if row >= 0:
                    free[row] -= fit.use(snapshot, pod.pod_class)
        return found

    def _own(self, found: dict[WorkloadId, _Taken], subject: WorkloadId, queue: str) -> _Taken:
        if subject not in found:
            found[subject] = _Taken([], {}, "" if queue == ROOT_QUEUE else queue)
        return found[subject]

    def _running(self, subject: WorkloadId, taken: _Taken, now: float) -> RunningWork:
        started = self._cache.runs.started(subject) or now
        pod_class = taken.rows[0][1]
        runs = self._runs.past(taken.pod, pod_class, taken.count) if taken.pod is not None else None
        deadline, rows = taken.deadline_seconds, tuple(taken.rows)
        return RunningWork(subject.text, started, deadline, runs, rows, taken.queue, taken.cells)

    def _limit(self, pod: Pod) -> float | None:
        """How long it may run at most: its own deadline, or that of its job."""
        own = [pod.spec.deadline_seconds, self._cache.job_limit(pod)]
        return min((each for each in own if each is not None), default=None)


def _estimate(courses: list[Mapping[int, Start]], place: int, now: float, blind: int) -> StartEstimate:
    """The middle start of those of all passes; one in which it does not start counts as the latest."""
    found = sorted(course[place].at_seconds for course in courses if place in course)
    if 2 * len(found) <= len(courses):
        why = "nothing that runs before it is expected to end in time"
        if blind:
            why = f"of {blind} running workloads neither a deadline nor past runs tell when they end"
        return StartEstimate(why=why, made_seconds=now)
    late = [float("inf")] * (len(courses) - len(found))
    middle = median_low(found + late)
    afters = {each.after.name: each.after for each in _starts(courses, place) if each.after is not None}
    told = next((each.after for each in _starts(courses, place) if each.at_seconds == middle), None)
    ends = tuple(_last(afters.values(), told))
    basis = told.basis if told is not None else EstimateBasis.ROOM
    return StartEstimate(middle, found[0], found[-1], basis, ends, made_seconds=now)


def _starts(courses: list[Mapping[int, Start]], place: int) -> Iterable[Start]:
    return (course[place] for course in courses if place in course)


def _last(ends: Iterable[ExpectedEnd], told: ExpectedEnd | None) -> list[ExpectedEnd]:
    """By their ends, the one that the middle start follows last."""
    others = sorted(
        (each for each in ends if told is None or each.name != told.name), key=lambda each: each.end_seconds
    )
    return [*others[:_MOST_ENDS], *([told] if told is not None else [])]
