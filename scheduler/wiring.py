"""Builds the scheduler from its parts and runs it; the only place that constructs edges."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import structlog

from jobs.controllers.job_controller import JobController
from jobs.controllers.job_progress import Completion, completion
from jobs.controllers.suspended_jobs import SuspendedJobs
from jobs.edge.job_writer import KubernetesJobWriter
from jobs.edge.ssh_keys import key_pair
from jobs.edge.suspended_writer import KubernetesSuspendedWriter
from kube.client import KubeClient
from kube.dialects.queues.dialect import QueueDialect
from kube.events import EventRecorder
from kube.grpc_server import loopback_server
from kube.informer import SOON_SECONDS
from kube.leadership import Leadership
from kube.lease import Holder, LeaseSettings
from kube.monitoring import AccessGuard, MonitoringServer, Probes
from kube.objects import NodeMetric
from kube.reviews import Reviews
from kube.tls import ServerCertificate, TlsFiles
from kube.wholefile import write_whole
from model.fault import ConfigurationFault
from model.queue import DEFAULT_QUEUE
from scheduler.answers import SchedulerAnswers
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.facts import Configured, Fact, NodeSeen, ObjectSeen, PodGroupSeen
from scheduler.controllers.node_objects import NodeObjects
from scheduler.controllers.queue_statuses import QueueStatuses
from scheduler.controllers.quota_profiles import QuotaProfiles
from scheduler.controllers.submission_statuses import SubmissionStatuses
from scheduler.controllers.withdrawal import Withdrawer
from scheduler.cycle import Cycle
from scheduler.edge.cluster import (
    KubernetesAnnouncer,
    KubernetesBinder,
    KubernetesEvictor,
    KubernetesNoticeWriter,
    KubernetesStatusWriter,
    KubernetesWatch,
    scheduler_config,
)
from scheduler.edge.diagnostics import DiagnosticsServicer
from scheduler.edge.kept_definitions import KeptDefinitions
from scheduler.edge.leaderlabel import LeaderLabel
from scheduler.edge.linkchild import LinkChild
from scheduler.edge.metrics import SchedulerMetrics
from scheduler.edge.unserved import UnservedKinds
from scheduler.edge.workloads import WorkloadStatuses
from scheduler.history import DecisionHistory
from scheduler.link.callers import TokenTable
from scheduler.link.frames import Serving
from scheduler.link.node_reports import NodeReports
from scheduler.loop import Loop
from scheduler.publish import Outlets, Publisher
from scheduler.settings import SchedulerSettings
from scheduler.start_estimates import StartEstimates
from scheduler.steps.queue_figures import queue_label

log = structlog.get_logger()

_STUCK_SECONDS = 60.0
"""A loop that has not turned for so long is not alive; it turns at least every 10 s."""

_FLUSH_SECONDS, _LOST_FLUSH_SECONDS = 15.0, 1.0
"""How long a stop waits for Events: within the 30 s that a pod has. Who has lost the lease shall be back soon."""


class SchedulerOptions(msgspec.Struct, frozen=True):
    """What a command line says; addresses are HOST:PORT, port 0 takes a free one.

    Without `token_file` the API server says who calls: tokens made for `link_audience`, and as agents those of
    `agent_account` (NAMESPACE:NAME). `advertise_host` is how agents on other machines reach this one, `pod` is
    `namespace/name` where this is a pod.
    """

    kubeconfig: Path | None
    tls: TlsFiles
    token_file: Path | None
    identity: str
    link_audience: str = "sublet-scheduler"
    agent_account: str = "sublet-system:sublet-agent"
    settings: SchedulerSettings = SchedulerSettings()
    link_listen: str = "0.0.0.0:10318"
    grpc_listen: str = "127.0.0.1:10319"
    http_listen: str = "127.0.0.1:10320"
    ready_file: Path | None = None
    advertise_host: str = ""
    pod: str = ""
    console_log: bool = False

    @property
    def serving(self) -> Serving:
        """What the link process is started with."""
        return Serving(
            listen=self.link_listen,
            certificate=str(self.tls.certificate),
            key=str(self.tls.key),
            tokens=str(self.token_file or ""),
            calls=self.settings.concurrent_calls,
            costs_interval_seconds=1.0,
            console=self.console_log,
            kubeconfig=str(self.kubeconfig or ""),
            audience=self.link_audience,
            agent=self.agent_account,
        )


class SchedulerAddresses(msgspec.Struct, frozen=True):
    """The ready file: where the servers really listen."""

    link: str
    grpc: str
    http: str


class SharedParts(msgspec.Struct, frozen=True):
    """What stays the same whether this process leads or not."""

    client: KubeClient
    recorder: EventRecorder
    link: LinkChild


class Scheduler:
    """All parts, wired; nothing runs yet."""

    def __init__(
        self, outside: SharedParts, options: SchedulerOptions, leadership: Leadership, metrics: SchedulerMetrics
    ) -> None:
        settings = options.settings
        client, recorder, link = outside.client, outside.recorder, outside.link
        self.options = options
        self.clock = steady_clock()
        self.history = DecisionHistory(settings.decision_history)
        cache = ClusterCache(
            settings.served,
            settings.load,
            settings.gangs,
            settings.largest_cpu_ratio,
            settings.plain,
            settings.queues.dialects,
            settings.gang_makers,
            late_by_creation=settings.suspended_jobs.ready.by_creation,
        )
        self.cycle = cycle = Cycle(cache, settings)
        announcer = KubernetesAnnouncer(recorder)
        kept = KeptDefinitions(client)
        workloads = WorkloadStatuses(client)
        writer = KubernetesStatusWriter(client, kept.keeps, workloads)
        binder, evictor = KubernetesBinder(client), KubernetesEvictor(client, workloads)
        notices = KubernetesNoticeWriter(client)
        outlets = Outlets(binder, writer, evictor, announcer, link, notices, leadership.leading)
        publisher = Publisher(outlets, metrics, self.clock, settings)
        recorder.give_way = lambda: publisher.binding
        self.starts = StartEstimates(cache, cycle, self.clock)
        self.loop = Loop(cycle, publisher, self.history, metrics, self.clock, settings)
        self.node_reports = NodeReports(cache, self.history, self.clock, metrics.checkpoint)
        self.withdrawer = Withdrawer(client, recorder, leadership.leading, self.clock, settings.withdraw)
        self.node_objects = NodeObjects(client, leadership.leading, recorder=recorder, enabled=settings.node_objects)
        self.queue_statuses = QueueStatuses(
            client, leadership.leading, cycle.standings, cache.queues, kept.keeps, self.clock
        )
        self.submission_statuses = SubmissionStatuses(
            client,
            leadership.leading,
            cycle.submission_standings,
            cycle.standings,
            cache.queues.kueue,
            kept.keeps,
            self.clock,
        )
        quotas = QueueDialect.ELASTIC_QUOTA in settings.queues.dialects
        self.quota_profiles = QuotaProfiles(client, leadership.leading, kept.keeps, enabled=quotas)
        self.jobs = JobController(
            client,
            KubernetesJobWriter(client, key_pair),
            recorder,
            leadership.leading,
            kept.keeps,
            self.clock,
            policy=settings.jobs,
            shortest_wait_seconds=settings.ageing.shortest_wait_seconds,
            holds=settings.suspended_jobs.enabled,
            finished=lambda job, status: self._completed(metrics, completion(job, status)),
            gone=metrics.job_gone,
        )
        self.suspended = SuspendedJobs(
            client,
            KubernetesSuspendedWriter(client),
            recorder,
            leadership.leading,
            kept.keeps,
            self.clock,
            policy=settings.suspended_jobs,
        )
        asked = (cache, cycle, self.history, self.node_reports, self.clock)
        self.answers = SchedulerAnswers(*asked, self.jobs.progress)
        self.unserved = UnservedKinds(client, recorder, leadership.leading, self.clock)
        soon = KeptDefinitions(client, SOON_SECONDS)
        self.watch = KubernetesWatch(client, self._enqueue, settings.queues.dialects, settings.gang_makers, soon.keeps)
        self.loop.reread = self.watch.reread

    def _completed(self, metrics: SchedulerMetrics, ended: Completion) -> None:
        """A queue that nobody wrote is no label, as of any other metric of queues."""
        quota = self.cycle.quotas.quota
        queue = queue_label(ended.queue, quota.tree.queues if quota is not None else (DEFAULT_QUEUE,))
        metrics.job_completed(ended.seconds, queue, ended.job_type, ended.status)

    def _enqueue(self, fact: Fact) -> None:
        if isinstance(fact, NodeSeen):
            self.withdrawer.saw(fact.change)
            self.node_objects.saw_node(fact.change)
            self.quota_profiles.saw_node(fact.change)
        elif isinstance(fact, ObjectSeen) and isinstance(fact.change.object, NodeMetric):
            self.node_objects.saw_metric(fact.change)
        elif isinstance(fact, ObjectSeen | PodGroupSeen):
            self.jobs.saw_group(fact.change)
        self.loop.enqueue(fact)


class _State:
    """How far the process has come; probes look at it."""

    def __init__(self) -> None:
        self.ready = False
        self.scheduler: Scheduler | None = None

    def alive(self) -> str:
        scheduler = self.scheduler
        if not self.ready or scheduler is None:
            return ""
        idle = scheduler.clock() - scheduler.loop.last_turn_seconds
        return f"no scheduling cycle for {idle:.0f} s" if idle > _STUCK_SECONDS else ""

    def not_ready(self) -> str:
        return "" if self.ready else "not leading, or not synced yet"


def steady_clock() -> Any:
    """Unix seconds that never go back: the wall clock at the start, then the monotonic one."""
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset


async def run(options: SchedulerOptions, stop: asyncio.Event) -> str:
    """Serve until told to stop: nothing. Leadership lost: why, at once, since another leads by then.

    Raises ConfigurationFault for what only the operator can mend.
    """
    # What a standby would only find out as leader is found out now.
    if options.token_file is not None:
        TokenTable.read(options.token_file)
    certificate = ServerCertificate(options.tls)
    if options.ready_file is not None:
        if not options.ready_file.parent.is_dir():
            raise ConfigurationFault(f"--ready-file {options.ready_file}", "its folder does not exist", "make it first")
        options.ready_file.unlink(missing_ok=True)
    metrics, state = SchedulerMetrics(), _State()
    # Opened beside the start of the link process: each loads modules for some tenths of a second.
    async with KubeClient.later(options.kubeconfig, "sublet-scheduler") as client:
        probes, guard = Probes(state.alive, state.not_ready), AccessGuard(certificate, Reviews(client))
        http = MonitoringServer(options.http_listen, metrics.registry, probes, guard)
        http.start()
        try:
            return await _Process(client, options, metrics, state, http.address).run(stop)
        finally:
            http.close()


class _Process:
    """From the first standby second to the last one of leading."""

    def __init__(
        self, client: KubeClient, options: SchedulerOptions, metrics: SchedulerMetrics, state: _State, http: str
    ) -> None:
        self._client = client
        self._options = options
        self._metrics = metrics
        self._state = state
        self._http = http
        self._link = LinkChild(options.serving)
        settings = options.settings
        self._recorder = EventRecorder(client, settings.scheduler_names[0], options.identity, capacity=settings.events)
        self._label = LeaderLabel(client, options.pod)

    async def run(self, stop: asyncio.Event) -> str:
        options = self._options
        async with _beside(_together(self._link.run(), self._recorder.run())) as linking:
            await _first(self._client.open(), linking)
            address = await _first(self._link.address(), linking)
            lease, advertised = options.settings.lease, _advertised(str(address), options.advertise_host)
            async with Leadership(
                options.kubeconfig, lease, options.identity, address=advertised, user_agent="sublet-scheduler-lease"
            ) as leadership:
                leadership.on_holder = self._heard_of
                async with _beside(self._label.put(False)):
                    await _first(stop.wait(), leadership.acquired.wait(), leadership.ended.wait(), linking)
                if leadership.acquired.is_set() and not (leadership.ended.is_set() or stop.is_set()):
                    await self._lead(leadership, linking, stop)
                # Nothing but a stop ends a leader in order, even where the lease went before it was noticed.
                lost = leadership.ended.is_set() or not stop.is_set()
            # Events need no lease: the successor begins meanwhile.
            await self._recorder.flush(_LOST_FLUSH_SECONDS if lost else _FLUSH_SECONDS)
        if leadership.error is not None:
            raise leadership.error
        return _loss(lease, leadership.holder, options.identity) if lost else ""

    def _heard_of(self, holder: Holder) -> None:
        """Agents that come to a standby are sent to the leader."""
        if holder.identity != self._options.identity:
            self._link.stand_by(holder.address)

    async def _lead(self, leadership: Leadership, linking: asyncio.Task[None], stop: asyncio.Event) -> None:
        """Schedule until told to stop, or leadership is lost."""
        self._metrics.watch({"leader": lambda: float(leadership.leading())})
        told = await _first(scheduler_config(self._client), stop.wait(), leadership.ended.wait(), linking)
        if stop.is_set() or leadership.ended.is_set():
            return
        outside = SharedParts(self._client, self._recorder, self._link)
        scheduler = Scheduler(outside, self._options, leadership, self._metrics)
        # Before anything else is known, so that nothing is decided by other settings.
        scheduler.loop.enqueue(Configured(told))
        self._state.scheduler = scheduler
        self._metrics.watch(self._figures())
        async with _background(scheduler) as start, _answering(scheduler) as grpc:
            self._link.lead(scheduler.node_reports, grpc)
            beginning = self._begin(scheduler, start)
            await _first(beginning, stop.wait(), leadership.ended.wait(), linking)
            if not (stop.is_set() or leadership.ended.is_set()):
                self._say_ready(await self._link.address(), grpc)
                await _first(stop.wait(), leadership.ended.wait(), linking)
            self._state.ready = False
            if not leadership.ended.is_set():
                # A stop in order: what is begun comes to its end while the lease is held.
                await _first(scheduler.loop.drain(), leadership.ended.wait(), linking)
            self._link.stand_by("")
            await self._label.remove()

    async def _begin(self, scheduler: Scheduler, start: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Until the first turn is over. It and the list before it make millions of values that stay: looking through
        them for garbage again and again would take longer than making them.
        """
        gc.disable()
        try:
            await scheduler.watch.synced()
            start(self._label.put(True))
            start(scheduler.loop.run())
            await scheduler.loop.turned.wait()
        finally:
            gc.enable()
        gc.freeze()

    def _figures(self) -> dict[str, Callable[[], float]]:
        return {
            "links": lambda: self._link.links,
            "link_restarts_total": lambda: self._link.restarts,
            "dropped_decisions_total": lambda: self._link.dropped,
            "dropped_events_total": lambda: self._recorder.dropped,
        }

    def _say_ready(self, link: str, grpc: str) -> None:
        self._state.ready = True
        _write_ready(self._options.ready_file, SchedulerAddresses(link, grpc, self._http))
        log.info("scheduling", link=link, grpc=grpc, http=self._http, identity=self._options.identity)


def _loss(lease: LeaseSettings, holder: Holder, identity: str) -> str:
    """Why this process leads no more."""
    who = f"another process called {identity}" if holder.identity == identity else holder.identity or "somebody else"
    return f"lease {lease.namespace}/{lease.name}: held by {who} now, and two schedulers must not act at a time"


def _advertised(address: str, host: str) -> str:
    """Where agents on other machines reach a listener: one on all interfaces says so by the machine's name."""
    listening, _, port = address.rpartition(":")
    own = socket.gethostname() if listening in ("0.0.0.0", "[::]", "") else listening
    return f"{host or own}:{port}"


@contextlib.asynccontextmanager
async def _background(scheduler: Scheduler) -> AsyncIterator[Callable[[Coroutine[Any, Any, None]], None]]:
    """All that runs while leading; yields what adds to it."""
    async with asyncio.TaskGroup() as group:
        beside = (
            scheduler.withdrawer.run(),
            scheduler.node_objects.run(),
            scheduler.queue_statuses.run(),
            scheduler.submission_statuses.run(),
            scheduler.quota_profiles.run(),
            scheduler.jobs.run(),
            scheduler.suspended.run(),
            scheduler.unserved.run(),
            scheduler.starts.run(),
        )
        tasks = [*scheduler.watch.start(group), *(group.create_task(work) for work in beside)]
        yield lambda work: tasks.append(group.create_task(work))
        for task in tasks:
            task.cancel()


@contextlib.asynccontextmanager
async def _answering(scheduler: Scheduler) -> AsyncIterator[str]:
    """Diagnostics on loopback, where the link process passes those from outside on to; yields the real address."""
    listener = await loopback_server(scheduler.options.grpc_listen, (DiagnosticsServicer(scheduler.answers),))
    await listener.start()
    try:
        yield listener.address
    finally:
        await listener.stop(0.2)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """`work` as a task that ends with the block."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _together(*works: Coroutine[Any, Any, None]) -> None:
    """All of them, and none is left behind."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work)


async def _first(*works: Any) -> Any:
    """What the first of them that ends returns, or raises; the others are given up, tasks apart."""
    tasks = [work if isinstance(work, asyncio.Task) else asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task.result() for task in tasks if task in done)
    finally:
        for work, task in zip(works, tasks, strict=True):
            if task is not work:
                task.cancel()


def _write_ready(path: Path | None, listening: SchedulerAddresses) -> None:
    """Write the ready file in one step."""
    if path is not None:
        write_whole(path, msgspec.json.encode(listening), path.with_name(path.name + ".draft"))
