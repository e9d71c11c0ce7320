"""The only place that constructs the agent's edges and connects them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog

from agent.core.layout import KubepodsLayout
from agent.edge.brake import MECHANISM, BrakeThread
from agent.edge.cgroupfs import CgroupReader
from agent.edge.cluster import ClusterEdge
from agent.edge.diagnostics import DiagnosticsServers, Sources
from agent.edge.executor import KnobExecutor, Originals
from agent.edge.host import HostReader
from agent.edge.journal import Journal
from agent.edge.link import LinkClient
from agent.edge.metrics import HttpEdge
from agent.edge.network import NetworkEdge
from agent.edge.publisher import Publisher
from agent.feed import DecisionFeed
from agent.metrics import table
from agent.observer import NodeObserver
from agent.ports import Sink
from agent.settings import AgentSettings, load_settings
from agent.status import AgentStatus
from agent.tick import Tick
from kube.client import KubeClient
from kube.events import EventRecorder
from model.fault import ConfigurationFault
from model.report import AgentHello, CheckpointSaved, PreemptionNotice

log = structlog.get_logger()

VERSION = "0.1.0"
_LATE_RATIO = 0.5


class AgentOptions(msgspec.Struct, frozen=True):
    """Where this agent runs; what it does is in its settings."""

    node_name: str
    state_file: Path
    kubeconfig: Path | None = None
    kubepods: str = "/kubepods"
    cgroup_root: Path = Path("/sys/fs/cgroup")
    proc: Path = Path("/proc")
    socket: Path = Path("/run/sublet/agent.sock")
    grpc_listen: str = "127.0.0.1:10317"
    http_listen: str = "127.0.0.1:10316"
    scheduler: str | None = None
    scheduler_ca: Path | None = None
    token_file: Path | None = None
    ready_file: Path | None = None
    settings: Path | None = None
    journal: Path | None = None


def restore(options: AgentOptions) -> int:
    """Put every control file back to what it held before the agent first wrote it; returns how many changed."""
    if not options.state_file.exists():
        raise ConfigurationFault(str(options.state_file), "no such file", "nothing was changed, or give --state-file")
    originals = Originals(options.state_file)
    try:
        return KnobExecutor(options.cgroup_root, originals).restore()
    finally:
        originals.close()


async def run(options: AgentOptions) -> None:
    """Run until SIGTERM or SIGINT. Best-effort ceilings and weights stay in force afterwards."""
    settings = load_settings(options.settings)
    if options.ready_file is not None and not options.ready_file.parent.is_dir():
        raise ConfigurationFault(f"--ready-file {options.ready_file}", "its folder does not exist", "make it first")
    layout = KubepodsLayout(options.kubepods)
    async with contextlib.AsyncExitStack() as stack:
        originals = Originals(options.state_file)
        stack.callback(originals.close)
        reader = CgroupReader(options.cgroup_root)
        stack.callback(reader.close)
        reader.require(layout)
        host = HostReader(options.proc)
        stack.callback(host.close)
        client = await stack.enter_async_context(
            await KubeClient.connect(options.kubeconfig, f"sublet-agent/{VERSION}")
        )
        agent = _Agent(options, settings, layout, originals, reader, host, client)
        await agent.serve(stack)


class _Agent:
    """Every edge, constructed once."""

    def __init__(
        self,
        options: AgentOptions,
        settings: AgentSettings,
        layout: KubepodsLayout,
        originals: Originals,
        reader: CgroupReader,
        host: HostReader,
        client: KubeClient,
    ) -> None:
        self._options = options
        self._settings = settings
        self._wake = asyncio.Event()
        self._failed_ticks = 0
        loop = asyncio.get_running_loop()
        self._executor = KnobExecutor(options.cgroup_root, originals)
        self._brake = BrakeThread(
            options.cgroup_root,
            layout,
            settings.brake_interval_seconds,
            self._executor.lower,
            lambda: _wake_from_thread(loop, self._wake),
        )
        self._events = EventRecorder(client, "sublet-agent", options.node_name)
        self._cluster = ClusterEdge(client, options.node_name, settings, self._events)
        self._publisher = Publisher(client, options.node_name, settings)
        self._network = NetworkEdge()
        self._link = self._make_link()
        self._status = AgentStatus(settings.tick_seconds)
        self._feed = DecisionFeed()
        self._journal = Journal(options.journal) if options.journal else None
        self._servers = DiagnosticsServers(self._sources(), options.grpc_listen, options.socket)
        sinks: list[Sink] = [self._feed, self._publisher]
        sinks += [sink for sink in (self._link, self._journal) if sink is not None]
        # Last, so that a tick counts as done only when every other sink has taken it.
        sinks.append(self._status)
        observer = NodeObserver(layout, reader, host, lambda: (time.time(), time.monotonic()))
        self._tick = Tick(layout, self._cluster, observer, self._executor, self._brake, tuple(sinks))

    async def serve(self, stack: contextlib.AsyncExitStack) -> None:
        """Start everything, tick until told to stop, stop everything."""
        rows = table(
            self._status,
            self._brake,
            lambda: self._executor.failed_cuts,
            self._publisher,
            self._network,
            self._link,
            lambda: self._failed_ticks,
        )
        http = HttpEdge(self._options.http_listen, rows, self._is_alive, lambda: self._status.ready)
        http.start()
        stack.callback(http.stop)
        if self._journal is not None:
            stack.callback(self._journal.close)
        self._options.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        grpc_address = await self._servers.start()
        stack.push_async_callback(self._servers.stop)
        self._brake.start()
        stack.callback(self._brake.stop)
        stopping = _stop_on_signals()
        tasks = [self._cluster.run, self._events.run, self._publisher.run, self._network.run, self._tick_for_ever]
        tasks.append(lambda: self._tell_ready(grpc_address, http.address))
        if self._link is not None:
            tasks.append(self._link.run)
        await _until(stopping, tasks, lambda: self._events.flush(1.0))
        log.info("stopped; best-effort ceilings and weights stay in force")

    def _is_alive(self) -> bool:
        return self._status.alive and self._brake.alive

    async def _tick_for_ever(self) -> None:
        """One tick a period, one at once when the brake asks; an error of ours is counted and never stops the loop."""
        period = self._settings.tick_seconds
        due = time.monotonic()
        while True:
            if time.monotonic() > due + period * _LATE_RATIO:
                self._status.late_ticks += 1
                due = time.monotonic()
            try:
                self._tick.run()
            except Exception:
                self._failed_ticks += 1
                log.exception("tick failed; limits stay as they are")
            if time.monotonic() >= due:
                due += period
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(due - time.monotonic(), 0)):
                    await self._wake.wait()

    async def _tell_ready(self, grpc_address: str, http_address: str) -> None:
        """Write the ready file once the agent measures and has read the API server."""
        while not self._status.ready:
            await asyncio.sleep(0.05)
        addresses = {"grpc": grpc_address, "http": http_address, "socket": str(self._options.socket)}
        log.info("ready", node=self._options.node_name, **addresses)
        if self._options.ready_file is not None:
            fresh = self._options.ready_file.with_suffix(".new")
            fresh.write_bytes(msgspec.json.encode(addresses))
            fresh.replace(self._options.ready_file)

    def _make_link(self) -> LinkClient | None:
        options = self._options
        if options.scheduler is None or options.scheduler_ca is None or options.token_file is None:
            log.info("no scheduler is linked", effect="eviction costs are neutral")
            return None
        hello = AgentHello(options.node_name, VERSION, secrets.token_hex(8))
        return LinkClient(options.scheduler, options.scheduler_ca, options.token_file, hello, self._notify)

    def _sources(self) -> Sources:
        link = self._link
        return Sources(
            node=self._options.node_name,
            version=VERSION,
            settings=self._settings,
            status=self._status,
            feed=self._feed,
            read_knob=self._executor.read,
            knob_path=self._executor.path,
            link_connected=lambda: link is not None and link.connected,
            brake_cuts=lambda: self._brake.total,
            brake_mechanism=MECHANISM,
            checkpoint=self._checkpoint,
            published=lambda: self._publisher.published,
        )

    def _checkpoint(self, saved: CheckpointSaved) -> None:
        if self._link is not None:
            self._link.checkpoint(saved)

    def _notify(self, notice: PreemptionNotice) -> None:
        self._servers.checkpoints.notify(notice)


def _wake_from_thread(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(event.set)


def _stop_on_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


async def _until(
    stopping: asyncio.Event,
    tasks: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    before_the_end: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Run all tasks until `stopping` is set; an error in one ends them all and is raised."""
    running: set[asyncio.Task[Any]] = {asyncio.create_task(task()) for task in tasks}
    running.add(asyncio.create_task(stopping.wait()))
    try:
        # The ready task ends by itself; every other end is a stop or an error.
        while not stopping.is_set():
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
                running.discard(task)
        await before_the_end()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
