"""Builds the scheduler from its parts and runs it; the only place that constructs edges."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from kube.client import KubeClient
from kube.events import EventRecorder
from kube.lease import LeaseElector
from model.fault import ConfigurationFault
from scheduler.answers import SchedulerAnswers
from scheduler.cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.desk import NodeDesk
from scheduler.edge.diagnostics import DiagnosticsServicer
from scheduler.edge.kubernetes import (
    KubernetesAnnouncer,
    KubernetesBinder,
    KubernetesEvictor,
    KubernetesStatusWriter,
    KubernetesWatch,
)
from scheduler.edge.link import NodeLinkServicer
from scheduler.edge.metrics import HttpServer, Metrics
from scheduler.edge.serving import TlsFiles, TokenTable, check_tls, loopback_server, tls_server
from scheduler.history import DecisionHistory
from scheduler.loop import Loop
from scheduler.publish import Outlets, Publisher
from scheduler.settings import Settings

log = structlog.get_logger()

_STUCK_SECONDS = 60.0
"""A loop that has not turned for so long is not alive; it turns at least every 10 s."""


class Options(msgspec.Struct, frozen=True):
    """What a command line says; addresses are HOST:PORT, port 0 takes a free one."""

    kubeconfig: Path | None
    tls: TlsFiles
    token_file: Path
    identity: str
    settings: Settings = Settings()
    link_listen: str = "0.0.0.0:10318"
    grpc_listen: str = "127.0.0.1:10319"
    http_listen: str = "127.0.0.1:10320"
    ready_file: Path | None = None


class Listening(msgspec.Struct, frozen=True):
    """The ready file: where the servers really listen."""

    link: str
    grpc: str
    http: str


class Scheduler:
    """All parts, wired; nothing runs yet."""

    def __init__(self, client: KubeClient, options: Options, tokens: TokenTable, metrics: Metrics) -> None:
        settings = options.settings
        self.options = options
        self.tokens = tokens
        self.metrics = metrics
        self.clock = steady_clock()
        self.recorder = EventRecorder(client, settings.scheduler_names[0], options.identity)
        self.history = DecisionHistory(settings.decision_history)
        cache = ClusterCache(settings.scheduler_names)
        cycle = Cycle(cache, settings)
        announcer = KubernetesAnnouncer(self.recorder)
        outlets = Outlets(KubernetesBinder(client), KubernetesStatusWriter(client), KubernetesEvictor(client), announcer)
        publisher = Publisher(outlets, metrics, self.clock, settings)
        self.loop = Loop(cycle, publisher, self.history, metrics, self.clock, settings)
        self.desk = NodeDesk(cache, self.history, self.clock)
        self.answers = SchedulerAnswers(cache, cycle, self.history, self.desk, self.clock)
        self.watch = KubernetesWatch(client, self.loop.tell)


class _State:
    """How far the process has come; probes look at it."""

    def __init__(self) -> None:
        self.ready = False
        self.lost = False
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


async def run(options: Options, stop: asyncio.Event) -> int:
    """Lead, schedule until `stop` is set (0) or leadership is lost (1). Raises Fault."""
    metrics = Metrics(CollectorRegistry())
    state = _State()
    tokens = TokenTable.read(options.token_file)
    # What a standby would only find out as leader is found out now.
    check_tls(options.tls)
    if options.ready_file is not None:
        if not options.ready_file.parent.is_dir():
            raise ConfigurationFault(f"--ready-file {options.ready_file}", "its folder does not exist", "make it first")
        options.ready_file.unlink(missing_ok=True)
    http = HttpServer(options.http_listen, metrics.registry, state.alive, state.not_ready)
    try:
        async with await KubeClient.connect(options.kubeconfig, "sublet-scheduler") as client:
            elector = LeaseElector(client, options.settings.lease, options.identity)
            if not await _unless(stop, elector.acquire()):
                return 0
            metrics.leads(True)
            state.scheduler = Scheduler(client, options, tokens, metrics)
            try:
                await _lead(state.scheduler, state, http.address, elector, stop)
            finally:
                if not state.lost:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(elector.release(), 1.0)
            return int(state.lost)
    finally:
        http.close()


async def _lead(scheduler: Scheduler, state: _State, http: str, elector: LeaseElector, stop: asyncio.Event) -> None:
    """Schedule until told to stop, or leadership is lost."""
    async with _background(scheduler) as group, _serving(scheduler) as (link, grpc):
        holding = group.create_task(_hold(elector, state, stop))
        if await _unless(stop, scheduler.watch.synced()):
            looping = group.create_task(scheduler.loop.run())
            state.ready = True
            _say_ready(scheduler.options.ready_file, Listening(link, grpc, http))
            log.info("scheduling", link=link, grpc=grpc, http=http, identity=scheduler.options.identity)
            await stop.wait()
            looping.cancel()
        state.ready = False
        holding.cancel()


async def _hold(elector: LeaseElector, state: _State, stop: asyncio.Event) -> None:
    """Losing the lease is one more reason to stop."""
    await elector.hold()
    state.lost = True
    stop.set()


@contextlib.asynccontextmanager
async def _background(scheduler: Scheduler) -> AsyncIterator[asyncio.TaskGroup]:
    """Informers and the Event poster; the poster outlives the block by a second to empty its queue."""
    async with asyncio.TaskGroup() as group:
        informers = scheduler.watch.start(group)
        poster = group.create_task(scheduler.recorder.run())
        yield group
        for task in informers:
            task.cancel()
        await scheduler.recorder.flush(1.0)
        poster.cancel()


@contextlib.asynccontextmanager
async def _serving(scheduler: Scheduler) -> AsyncIterator[tuple[str, str]]:
    """Both gRPC servers; yields their real addresses."""
    options, tokens = scheduler.options, scheduler.tokens
    diagnostics = DiagnosticsServicer(scheduler.answers)
    link = NodeLinkServicer(
        scheduler.desk, lambda context: tokens.caller(context.invocation_metadata()) or "", scheduler.clock
    )
    scheduler.metrics.watch(lambda: link.links, lambda: scheduler.recorder.dropped)
    calls = options.settings.concurrent_calls
    outer, link_address = await tls_server(options.link_listen, options.tls, tokens, (link, diagnostics), calls)
    inner, grpc_address = await loopback_server(options.grpc_listen, (diagnostics,))
    await outer.start()
    await inner.start()
    try:
        yield link_address, grpc_address
    finally:
        await asyncio.gather(outer.stop(0.2), inner.stop(0.2))


async def _unless(stop: asyncio.Event, work: Any) -> bool:
    """Wait for `work` unless told to stop first; True where it is done."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        working.cancel()
        stopping.cancel()


def _say_ready(path: Path | None, listening: Listening) -> None:
    """Write the ready file in one step."""
    if path is not None:
        draft = path.with_name(path.name + ".draft")
        draft.write_bytes(msgspec.json.encode(listening))
        draft.replace(path)
