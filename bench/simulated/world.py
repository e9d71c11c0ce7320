"""A cluster in simulated time: the scheduler's cycle decides, and what it writes takes place as fast as a client may.

Bindings come before other writes, as they do in the scheduler. A bound pod runs at once; a job that loses a pod to an
eviction loses all it did, and is made again. No other time passes but that of the scheduler's turns, where it counts.
"""

from __future__ import annotations

import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec

from bench.simulated.job import EPOCH_SECONDS, SimulatedJob
from kube import objects
from kube.informer import Change, ChangeKind
from model.condition import ConditionStatus, ConditionType
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.settings import SchedulerSettings
from scheduler.steps.evicting import PREEMPTED
from scheduler.steps.turn import Turn


class Speed(msgspec.Struct, frozen=True):
    """How fast things happen: writes a second (None: without end), how many at once after a rest, and whether the time
    that a turn takes passes in the simulation, too.
    """

    writes_per_second: float | None = None
    burst: int = 100
    turns_take_time: bool = False


class JobTimes(msgspec.Struct):
    """Seconds since the begin; `started` is that of the life that came to its end, None before."""

    job: SimulatedJob
    started: float | None = None
    ended: float | None = None
    evictions: int = 0


class Effort(msgspec.Struct):
    """What the scheduler did: turns, their CPU time, the longest, writes, and how many were evicted."""

    turns: int = 0
    seconds: float = 0.0
    longest_seconds: float = 0.0
    bindings: int = 0
    other_writes: int = 0
    evictions: int = 0


class _Life(msgspec.Struct):
    """A job as it is now: its pods, those of them that have nodes, and which life it is."""

    pods: dict[str, objects.Pod]
    bound: set[str]
    number: int = 0


class Simulation:
    """`objects_seen` are there from the begin; `watch` hears the time (seconds since the begin) after each turn.
    `lost_seconds` is the CPU time of what was evicted.
    """

    def __init__(
        self,
        nodes: Iterable[objects.Node],
        objects_seen: Iterable[Any],
        settings: SchedulerSettings | None = None,
        speed: Speed | None = None,
    ) -> None:
        self.settings = settings or SchedulerSettings()
        self.cache = ClusterCache(self.settings.served, dialects=self.settings.queues.dialects)
        self.cycle = Cycle(self.cache, self.settings)
        self.effort = Effort()
        self.times: dict[str, JobTimes] = {}
        self.watch: Callable[[float], None] = lambda now: None
        self.lost_seconds = 0.0
        self._speed = speed or Speed()
        self._inbox: list[facts.Fact] = [facts.ObjectSeen(Change(ChangeKind.ADDED, each)) for each in objects_seen]
        self._inbox += [facts.NodeSeen(Change(ChangeKind.ADDED, node)) for node in nodes]
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = count()
        self._lives: dict[str, _Life] = {}
        self._owner: dict[str, str] = {}
        self._bindings: deque[Callable[[float], None]] = deque()
        self._notes: OrderedDict[str, Callable[[float], None]] = OrderedDict()
        self._tokens, self._told_at = float(self._speed.burst), 0.0
        self._writing = False
        self._free_at = 0.0

    def run(self, jobs: Iterable[SimulatedJob], until: float = float("inf")) -> float:
        """Until all jobs have ended, or that second; the time of the last end."""
        for job in jobs:
            self.times[job.key] = JobTimes(job)
            self._at(job.submit_seconds, lambda now, job=job: self._submit(job, now))  # type: ignore[misc]
        now = 0.0
        while (due := self._next()) is not None and due <= until:
            now = max(now, due)
            while self._events and self._events[0][0] <= now:
                heapq.heappop(self._events)[2](now)
            if now >= self._free_at:
                self._turns(now)
        return max((times.ended for times in self.times.values() if times.ended is not None), default=0.0)

    # time

    def _at(self, seconds: float, what: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (seconds, next(self._order), what))

    def _next(self) -> float | None:
        """When something happens next, or the scheduler has something to do by itself."""
        found = [self._events[0][0]] if self._events else []
        if self._inbox:
            found.append(self._free_at)
        elif (due := self.cycle.next_due()) is not None and self._lives:
            found.append(max(due - EPOCH_SECONDS, self._free_at))
        return min(found, default=None)

    def _turns(self, now: float) -> None:
        due = self.cycle.next_due()
        if not self._inbox and (due is None or due - EPOCH_SECONDS > now):
            return
        more = True
        while more:
            inbox, self._inbox = self._inbox, []
            begun = time.process_time()
            turn = self.cycle.turn(inbox, EPOCH_SECONDS + now)
            taken = time.process_time() - begun
            self._count(taken)
            if self._speed.turns_take_time:
                now += taken
                self._free_at = now
            self._take(turn, now)
            more = turn.more and not self._speed.turns_take_time
            if turn.more and not more:
                self._at(now, lambda now: None)
        self.watch(now)

    def _count(self, taken: float) -> None:
        self.effort.turns += 1
        self.effort.seconds += taken
        self.effort.longest_seconds = max(self.effort.longest_seconds, taken)

    # what the scheduler writes

    def _take(self, turn: Turn, now: float) -> None:
        if turn.errors:
            raise turn.errors[0][1]
        for eviction in turn.evictions:
            self._write(lambda now, uid=eviction.pod.uid: self._evict(uid, now), now)  # type: ignore[misc]
        for batch in turn.batches:
            left = [len(batch.binds)]
            for bind in batch.binds:
                self.effort.bindings += 1

                def done(now: float, bind: Any = bind, batch: Any = batch, left: list[int] = left) -> None:
                    self._bind(bind.pod.uid, bind.placement.node, now)
                    left[0] -= 1
                    if not left[0]:
                        self._inbox.append(facts.BatchDone(batch.subject))

                self._notes.pop(bind.pod.uid, None)
                self._write(done, now)
        for note in turn.pod_conditions:
            self.effort.other_writes += 1
            self._tell(note.pod.uid, lambda now, note=note: self._note(note.pod.uid, note.message), now)  # type: ignore[misc]

    def _write(self, done: Callable[[float], None], now: float) -> None:
        if self._speed.writes_per_second is None:
            self._at(now, done)
            return
        self._bindings.append(done)
        self._begin_writing(now)

    def _tell(self, uid: str, done: Callable[[float], None], now: float) -> None:
        """After all bindings; of a pod the newest word alone, as the publisher does it."""
        if self._speed.writes_per_second is None:
            self._at(now, done)
            return
        self._notes.pop(uid, None)
        self._notes[uid] = done
        self._begin_writing(now)

    def _begin_writing(self, now: float) -> None:
        if not self._writing:
            self._writing = True
            self._at(now, self._write_one)

    def _write_one(self, now: float) -> None:
        """As many as the client may make now, then when it may make the next."""
        rate = self._speed.writes_per_second or 1.0
        self._tokens = min(float(self._speed.burst), self._tokens + (now - self._told_at) * rate)
        self._told_at = now
        while self._tokens >= 1.0 - 1e-9 and (self._bindings or self._notes):
            self._tokens -= 1.0
            done = self._bindings.popleft() if self._bindings else self._notes.popitem(last=False)[1]
            done(now)
        self._writing = bool(self._bindings or self._notes)
        if self._writing:
            self._at(now + max((1.0 - self._tokens) / rate, 1e-6), self._write_one)

    # jobs

    def _submit(self, job: SimulatedJob, now: float, life: int = 0) -> None:
        pods = {pod.metadata.uid: pod for pod in job.bodies(EPOCH_SECONDS + now, life)}
        self._lives[job.key] = _Life(pods, set(), life)
        self._owner |= dict.fromkeys(pods, job.key)
        self._inbox += [facts.PodSeen(Change(ChangeKind.ADDED, pod)) for pod in pods.values()]

    def _bind(self, uid: str, node: str, now: float) -> None:
        life = self._lives.get(self._owner.get(uid, ""))
        if life is None or uid not in life.pods:
            self._inbox.append(facts.BindingReleased(_subject(self.cache, uid), uid, "the pod is gone", 404))
            return
        started = datetime.fromtimestamp(EPOCH_SECONDS + now, UTC)
        self._become(life, uid, node=node, phase="Running", started=started)
        life.bound.add(uid)
        if len(life.bound) == len(life.pods):
            times = self.times[self._owner[uid]]
            times.started = now
            number, key = life.number, times.job.key
            self._at(now + times.job.run_seconds, lambda now: self._end(key, number, now))

    def _note(self, uid: str, message: str) -> None:
        life = self._lives.get(self._owner.get(uid, ""))
        if life is not None and uid in life.pods and uid not in life.bound:
            self._become(life, uid, message=message)

    def _become(
        self, life: _Life, uid: str, node: str = "", phase: str = "Pending", started: Any = None, message: str = ""
    ) -> None:
        pod, scheduled = life.pods[uid], ConditionStatus.TRUE if node else ConditionStatus.FALSE
        told = objects.Condition(ConditionType.POD_SCHEDULED, scheduled, "" if node else "Unschedulable", message)
        status = objects.PodStatus(phase=phase, conditions=[told], start_time=started)
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        life.pods[uid] = pod = msgspec.structs.replace(pod, spec=spec, status=status)
        self._inbox.append(facts.PodSeen(Change(ChangeKind.MODIFIED, pod)))

    def _end(self, key: str, number: int, now: float) -> None:
        life = self._lives.get(key)
        if life is not None and life.number == number:
            self.times[key].ended = now
            for uid in tuple(life.pods):
                self._become(life, uid, node=life.pods[uid].spec.node_name, phase="Succeeded")
            self._leave(key)

    def _evict(self, uid: str, now: float) -> None:
        """The whole job goes, and comes again."""
        key = self._owner.get(uid, "")
        life = self._lives.get(key)
        if life is None:
            return
        times = self.times[key]
        times.evictions += 1
        self.effort.evictions += 1
        if times.started is not None:
            cpus = dict(times.job.request).get("cpu", 0) * times.job.pods
            self.lost_seconds += cpus * (now - times.started)
        times.started = None
        self._disrupt(life)
        self._leave(key)
        self._submit(times.job, now, life.number + 1)

    def _disrupt(self, life: _Life) -> None:
        """The condition that comes before the deletion."""
        told = objects.Condition(ConditionType.DISRUPTION_TARGET, ConditionStatus.TRUE, PREEMPTED)
        for uid, pod in life.pods.items():
            status = msgspec.structs.replace(pod.status, conditions=[*(pod.status.conditions or ()), told])
            life.pods[uid] = msgspec.structs.replace(pod, status=status)
            self._inbox.append(facts.PodSeen(Change(ChangeKind.MODIFIED, life.pods[uid])))

    def _leave(self, key: str) -> None:
        life = self._lives.pop(key)
        for uid, pod in life.pods.items():
            del self._owner[uid]
            self._inbox.append(facts.PodSeen(Change(ChangeKind.DELETED, pod)))


def _subject(cache: ClusterCache, uid: str) -> Any:
    record = cache.pods.record(uid)
    return cache.gangs.subject_of(record.pod) if record is not None else None


def waits(times: Iterable[JobTimes]) -> Iterator[float]:
    """Seconds between coming and starting of those that started."""
    return (each.started - each.job.submit_seconds for each in times if each.started is not None)
