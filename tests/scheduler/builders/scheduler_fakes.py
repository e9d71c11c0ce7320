"""Fakes of the scheduler's ports, and a scheduler loop around them with a clock that is told the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kube.informer import Change, ChangeKind
from kube.objects import Condition
from model.fault import KubernetesFault
from model.metrics import MetricSample
from model.placement import Placement
from model.pod.colocation import StandingNotice
from model.reason import Reason
from model.report import PreemptionNotice
from model.suspended.workload import WorkloadAdmission
from model.workload import GangTimes
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.phase import GangStatus
from scheduler.cycle import Cycle
from scheduler.history import DecisionHistory
from scheduler.loop import Loop
from scheduler.ports import NamedObject
from scheduler.publish import Outlets, Publisher
from scheduler.settings import SchedulerSettings
from scheduler.steps.turn import Turn


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeBinder:
    """Binds at once; `failures` holds a fault by pod name, used up once each; `absent` pods do not exist.

    `told` are annotations that came with Bindings. Bindings in `lost` are made, but answered 504; `silent` counts how often `bound` has no answer.
    """

    def __init__(self) -> None:
        self.assigned: dict[str, str] = {}
        self.told: dict[str, dict[str, str]] = {}
        self.failures: dict[str, KubernetesFault] = {}
        self.uids: dict[str, str] = {}
        self.absent: set[str] = set()
        self.lost: set[str] = set()
        self.silent = 0

    async def bind(self, placement: Placement) -> None:
        name = placement.pod_key.partition("/")[2]
        if name in self.absent:
            raise KubernetesFault(name, "404", status=404)
        if name in self.assigned or self._uid(placement) != placement.pod_uid:
            raise KubernetesFault(name, "409", status=409)
        fault = self.failures.pop(name, None)
        if fault is not None:
            raise fault
        self.assigned[name] = placement.node
        if placement.annotations:
            self.told[name] = dict(placement.annotations)
        if name in self.lost:
            raise KubernetesFault(name, "504", status=504)

    async def bound(self, placement: Placement) -> bool:
        if self.silent:
            self.silent -= 1
            raise KubernetesFault(placement.pod_key, "no answer")
        name = placement.pod_key.partition("/")[2]
        return self._uid(placement) == placement.pod_uid and self.assigned.get(name) == placement.node

    def _uid(self, placement: Placement) -> str:
        return self.uids.get(placement.pod_key.partition("/")[2], placement.pod_uid)


class FakeWriter:
    """Keeps the newest message and status; `failing` refuses the next write."""

    def __init__(self) -> None:
        self.conditions: dict[str, str] = {}
        self.dated: dict[str, bool] = {}
        self.nominated: dict[str, str] = {}
        self.writes = 0
        self.statuses: dict[str, GangStatus] = {}
        self.times: dict[str, list[GangTimes]] = {}
        self.unmarkable: KubernetesFault | None = None
        self.groups: dict[str, Condition] = {}
        self.failing = False
        self.absent: set[str] = set()
        self.admitted: list[str] = []

    async def admit(self, named: NamedObject, admission: WorkloadAdmission) -> None:
        self.admitted.append(named.name)

    async def unscheduled(self, pod: NamedObject, message: str, *, first: bool, nominated: str | None = None) -> None:
        self.writes += 1
        if pod.name in self.absent:
            raise KubernetesFault(pod.name, "404", status=404)
        if self.failing:
            self.failing = False
            raise KubernetesFault("PATCH", "503", status=503)
        self.conditions[pod.name] = message
        self.dated[pod.name] = first
        if nominated is not None:
            self.nominated[pod.name] = nominated

    async def gang_status(self, gang: NamedObject, status: GangStatus) -> None:
        if self.failing:
            self.failing = False
            raise KubernetesFault("PATCH", "503", status=503)
        self.statuses[gang.name] = status

    async def gang_times(self, gang: NamedObject, times: GangTimes) -> None:
        if self.unmarkable is not None:
            raise self.unmarkable
        self.times.setdefault(gang.name, []).append(times)

    async def group_condition(self, gang: NamedObject, condition: Condition) -> None:
        self.groups[gang.name] = condition


class FakeAnnouncer:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def scheduled(self, pod: NamedObject, node: str) -> None:
        self.events.append(("Scheduled", pod.name, node))

    def failed(self, pod: NamedObject, message: str) -> None:
        self.events.append(("FailedScheduling", pod.name, message))

    def gang(self, gang: NamedObject, reason: str, message: str, *, warning: bool) -> None:
        self.events.append((reason, gang.name, message))

    def preempted(self, pod: NamedObject, note: str) -> None:
        self.events.append(("Preempted", pod.name, note))

    def unserved(self, pod: NamedObject, message: str) -> None:
        self.events.append(("NotActedOn", pod.name, message))

    def configuration(self, config_map: NamedObject, reason: str, message: str, *, warning: bool) -> None:
        self.events.append((reason, config_map.name, message))


class FakeEvictor:
    """Evicts at once; `failures` holds a fault by pod name, used up once each; who is in `full` takes no condition."""

    def __init__(self) -> None:
        self.evicted: dict[str, str] = {}
        self.failures: dict[str, KubernetesFault] = {}
        self.full: set[str] = set()

    async def evict(self, pod: NamedObject, reason: str, message: str, *, require_condition: bool = True) -> None:
        if require_condition and pod.name in self.full:
            raise KubernetesFault(pod.key, "500 etcdserver: request is too large", status=500)
        fault = self.failures.pop(pod.name, None)
        if fault is not None:
            raise fault
        self.evicted[pod.name] = message


class FakeCourier:
    """Keeps what was told, (node, uid) → deadline; what was withdrawn is gone."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, str], float] = {}

    def notify(self, node: str, notice: PreemptionNotice) -> None:
        self.told[node, notice.pod_uid] = notice.deadline_seconds

    def withdraw(self, node: str, pod_uid: str) -> None:
        self.told.pop((node, pod_uid), None)


class FakeNoticeWriter:
    """Keeps what pods show, by name; `failures` holds a fault by pod name, used up once each."""

    def __init__(self) -> None:
        self.shown: dict[str, StandingNotice] = {}
        self.failures: dict[str, KubernetesFault] = {}

    async def show(self, pod: NamedObject, notice: StandingNotice) -> None:
        if fault := self.failures.pop(pod.name, None):
            raise fault
        self.shown[pod.name] = notice

    async def hide(self, pod: NamedObject, notice: StandingNotice) -> None:
        if fault := self.failures.pop(pod.name, None):
            raise fault
        if self.shown.get(pod.name) == notice:
            del self.shown[pod.name]


class FakeMeter:
    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.results: list[str] = []
        self.evictions: list[str] = []
        self.plans: list[int] = []
        self.considerations: list[Reason] = []
        self.timeouts = 0
        self.aside = 0
        self.series: Mapping[str, Sequence[MetricSample]] = {}
        self.queue_names: Collection[str] = ()
        self.jobs: list[tuple[str, str, str]] = []
        self.gangs: list[tuple[str, bool]] = []
        self.losses: list[tuple[str, str, Reason]] = []
        self.completions: list[tuple[float, str, str, str]] = []
        self.work: list[tuple[str, float]] = []
        self.saves: list[tuple[str, str, str]] = []

    def cycle(self, seconds: float, scheduled: int, unschedulable: int) -> None: ...

    def bound(self, seconds: float, result: str) -> None:
        self.results.append(result)

    def waited(self, seconds: float) -> None: ...

    def waiting(self, candidates: int, parked: int, held: int) -> None: ...

    def refused(self, kind: str) -> None:
        self.refusals.append(kind)

    def timed_out(self, gangs: int) -> None:
        self.timeouts += gangs

    def set_aside(self, workloads: int) -> None:
        self.aside += workloads

    def considered(self, reason: Reason) -> None:
        self.considerations.append(reason)

    def preempted(self, victims: int) -> None:
        self.plans.append(victims)

    def evicted(self, result: str) -> None:
        self.evictions.append(result)

    def job_ended_waiting(self, seconds: float, queue: str, job_type: str, result: str) -> None:
        self.jobs.append((queue, job_type, result))

    def gang_ended_waiting(self, result: str, *, timed_out: bool) -> None:
        self.gangs.append((result, timed_out))

    def job_completed(self, seconds: float, queue: str, job_type: str, status: str) -> None:
        self.completions.append((seconds, queue, job_type, status))

    def queues(self, names: Collection[str], series: Mapping[str, Sequence[MetricSample]]) -> None:
        self.queue_names, self.series = names, series

    def lost_work(self, queue: str, seconds: float) -> None:
        self.work.append((queue, seconds))

    def checkpoint(self, job: str, reason: str, status: str) -> None:
        self.saves.append((job, reason, status))

    def job_gone(self, job: str) -> None:
        self.saves = [each for each in self.saves if each[0] != job]

    def job_preempted(self, preemptor_queue: str, victim_queue: str, reason: Reason) -> None:
        self.losses.append((preemptor_queue, victim_queue, reason))


class World:
    """A scheduler loop without a network. `see` tells it of an object, `turn` runs one turn and its writes."""

    def __init__(
        self, settings: SchedulerSettings | None = None, cache: ClusterCache | None = None, api: Any = None
    ) -> None:
        """`api` is binder, writer and evictor in one, where what is written is to be read again."""
        settings = settings or SchedulerSettings()
        self.clock = FakeClock()
        self.binder, self.writer, self.evictor = (api, api, api) if api else (FakeBinder(), FakeWriter(), FakeEvictor())
        self.announcer, self.meter = FakeAnnouncer(), FakeMeter()
        self.courier, self.notices = FakeCourier(), FakeNoticeWriter()
        self.cache = cache or ClusterCache(
            settings.served,
            settings.load,
            settings.gangs,
            settings.largest_cpu_ratio,
            settings.plain,
            late_by_creation=settings.suspended_jobs.ready.by_creation,
        )
        self.cycle = Cycle(self.cache, settings)
        self.history = DecisionHistory(settings.decision_history)
        outlets = Outlets(self.binder, self.writer, self.evictor, self.announcer, self.courier, self.notices)
        publisher = Publisher(outlets, self.meter, self.clock, settings)
        self.loop = Loop(self.cycle, publisher, self.history, self.meter, self.clock, settings)

    def see(self, *objects: Any, kind: ChangeKind = ChangeKind.MODIFIED) -> World:
        makers: dict[str, Callable[[Any], facts.Fact]] = {
            "Pod": facts.PodSeen,
            "Node": facts.NodeSeen,
            "PodGroup": facts.PodGroupSeen,
        }
        for item in objects:
            make = makers.get(type(item).__name__, facts.ObjectSeen)
            self.loop.enqueue(make(Change(kind, item)))
        return self

    def gone(self, *objects: Any) -> World:
        return self.see(*objects, kind=ChangeKind.DELETED)

    def turn(self, *, after: float = 0.0) -> Turn:
        """One turn `after` seconds from the last, its writes carried out; their facts wait for the next turn."""
        self.clock.now += after

        async def once() -> Turn:
            async with asyncio.TaskGroup() as group:
                return self.loop.step(group)

        return asyncio.run(once())

    def told(self, name: str) -> list[str]:
        """Messages of FailedScheduling events of a pod."""
        return [
            message for reason, pod, message in self.announcer.events if (reason, pod) == ("FailedScheduling", name)
        ]
