"""The only place that constructs the agent's edges and connects them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from agent.core.evict.decide import EvictionMemory
from agent.core.limit.decide import LimitMemory
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.prediction import Checkpoint, PredictionState, checkpoint, restored
from agent.edge.checkpoints import CheckpointFile
from agent.edge.cluster import ClusterEdge
from agent.edge.discovery import find_layout
from agent.edge.evictor import Evictor, EvictorContext
from agent.edge.fleet import FleetState, FleetWatch
from agent.edge.journal import JournalFile
from agent.edge.network import NetworkEdge, PodNetworks
from agent.edge.processes import processes
from agent.edge.publisher import CONDITION, NodePublisher
from agent.edge.topology import kubelet_cpus
from agent.edge.zones import ZonePublisher
from agent.files.statefile import StateFile, guard_file
from agent.options import AgentOptions
from agent.ports import Sink, TickPorts
from agent.report.decision_feed import DecisionFeed
from agent.report.journal import Head
from agent.report.metrics import Counters, MetricSample, collect
from agent.report.node_patches import WatchedNode
from agent.report.sources import AnswerSources, ServiceSources
from agent.report.status import AgentStatus
from agent.run.heartbeat_guard import Heartbeat
from agent.run.lifecycle import Lifecycle
from agent.run.limit_events import LimitEvents
from agent.run.loop import TickLoop
from agent.run.machine import Machine, MachinePaths
from agent.run.optional_parts import OptionalSink, OptionalTask
from agent.run.sinks import KillSink, LinkSink
from agent.run.tasks import PredictionSaver, clear_ready_file, run_until, write_ready_file
from agent.run.withdrawal import LeftoverOffer
from agent.settings import AgentSettings, Mode, PodOrigin, load_settings
from agent.tick import Tick, TickState
from agent.version import VERSION
from kube.client import KubeClient
from kube.events import EventRecorder
from model.fault import ConfigurationFault, KubernetesFault
from model.reason import Reason, words
from model.report import CheckpointSaved, EvictionCost, PreemptionNotice

if TYPE_CHECKING:
    from agent.edge.kubelet import KubeletPods
    from agent.edge.link import LinkClient
    from agent.run.services import Services

log = structlog.get_logger()

_WITHDRAW_SECONDS = 5.0
_USER_AGENT = f"sublet-agent/{VERSION}"


async def run(options: AgentOptions) -> None:
    """Run until SIGTERM or SIGINT. Best-effort ceilings and weights stay in force afterwards."""
    if options.ready_file is not None:
        clear_ready_file(options.ready_file)
    settings = load_settings(options.settings)
    layout = find_layout(options.cgroup_root, options.kubepods, options.cgroup_driver)
    log.info("cgroups found", version=layout.version, driver=layout.driver.value, kubepods=layout.root)
    if RootKnobs.of(layout).memory_high is None:
        log.info("memory.high is not used: cgroup v1 has none", effect="eviction alone keeps memory in its threshold")
    async with contextlib.AsyncExitStack() as stack:
        state = StateFile(options.state_file)
        stack.callback(state.close)
        # On a node whose online pods want every CPU a start is short of CPU time: limits come before all else.
        ticked = asyncio.Event()
        client = await stack.enter_async_context(KubeClient.later(options.kubeconfig, _USER_AGENT, ticked.wait))
        kubelet = await stack.enter_async_context(_kubelet(settings))
        lifecycle = await stack.enter_async_context(_lifecycle(options, settings, client, state))
        lasting = _Lasting(options, layout, state, client, kubelet, lifecycle, ticked)
        while not lifecycle.stopped:
            mode, ending = lifecycle.begin()
            own = msgspec.structs.replace(settings, mode=mode)
            async with contextlib.AsyncExitStack() as turn:
                await _Agent(lasting, own, turn).serve(turn, ending)
    log.info("stopped; best-effort ceilings and weights stay in force")


@contextlib.asynccontextmanager
async def _lifecycle(
    options: AgentOptions, settings: AgentSettings, client: KubeClient, state: StateFile
) -> AsyncIterator[Lifecycle]:
    """Until the fleet's switch is read, an agent that enforced before does so again, and lends nothing."""
    lifecycle = Lifecycle(settings.mode)
    lifecycle.stop_on_signals()
    if not settings.fleet:
        yield lifecycle
        return
    before = FleetState(lends=bool(state.originals), paused=True)
    watch = FleetWatch(client, options.node_name, settings.fleet, before, lifecycle.turned)
    lifecycle.follow(watch)
    watching = asyncio.create_task(watch.run())
    # It never ends by itself: an agent that no longer hears the switch is of no use.
    watching.add_done_callback(lambda _: lifecycle.stop())
    try:
        yield lifecycle
        if watching.done():
            watching.result()
    finally:
        watching.cancel()
        await asyncio.wait([watching])


@contextlib.asynccontextmanager
async def _kubelet(settings: AgentSettings) -> AsyncIterator[KubeletPods | None]:
    if settings.pods.source is not PodOrigin.KUBELET:
        yield None
        return
    from agent.edge.kubelet import KubeletPods

    kubelet = KubeletPods(settings.pods, _USER_AGENT)
    try:
        yield kubelet
    finally:
        await kubelet.close()


class _Lasting(NamedTuple):
    """What outlives a change of mode; `ticked` is set by the first tick of the process."""

    options: AgentOptions
    layout: Layout
    state: StateFile
    client: KubeClient
    kubelet: KubeletPods | None
    lifecycle: Lifecycle
    ticked: asyncio.Event


class _Agent:
    """Every edge, constructed once."""

    def __init__(self, lasting: _Lasting, settings: AgentSettings, stack: contextlib.AsyncExitStack) -> None:
        options, layout, state, client, kubelet, lifecycle, ticked = lasting
        self._options = options
        self._lifecycle = lifecycle
        self._settings = settings
        self._layout = layout
        self._state = state
        self._client = client
        self._kubelet = kubelet
        self._ticked = ticked
        self._services: Services | None = None
        self._observing = settings.mode is Mode.OBSERVE
        if self._observing:
            _tell_what_stays(state)
        self._machine = Machine(
            MachinePaths(options.cgroup_root, options.proc, options.sys, guard_file(options.state_file)),
            layout,
            state,
            settings.brake_interval_seconds,
            lambda: self._tick_loop.wake(),
            stack,
            dry=self._observing,
        )
        self._brake, self._executor = self._machine.brake, self._machine.executor
        self._events = EventRecorder(client, "sublet-agent", options.node_name)
        self._cluster = ClusterEdge(
            client,
            options.node_name,
            settings,
            self._events,
            layout.root,
            lambda: self._machine.cpu_info,
            kubelet,
            self._costs,
            lambda: lifecycle.paused,
            lambda: self._publisher.acknowledged,
            lambda: self._zones.on_node,
        )
        self._publisher = NodePublisher(
            client, options.node_name, settings, WatchedNode(self._cluster.condition, self._cluster.version)
        )
        self._zones = ZonePublisher(
            client,
            options.node_name,
            settings.topology_seconds,
            lambda: self._machine.cpu_info,
            lambda pods: kubelet_cpus(options.cpu_manager_state, pods),
        )
        context = EvictorContext(self._events, lambda: self._cluster.node_ref, self._notify, state.keep)
        self._evictor = Evictor(client, context, dry=self._observing, saved=state.evictions)
        self._network = NetworkEdge(options.proc)
        self._pod_networks = PodNetworks(self._processes, lambda: self._network.newest, _links_of_pods)
        self._status = AgentStatus(settings.tick_seconds)
        self._feed = DecisionFeed()
        # Only where it is the node's one agent: one that observes for a person must not undo what another offers.
        self._leftover_offer = self._make_leftover_offer() if self._observing and settings.fleet else None
        self._checkpoints = CheckpointFile(options.prediction_file or options.state_file.with_name("prediction.json"))
        self._journal = self._make_journal()
        self._optional_sinks = self._make_optional_sinks()
        # The status comes last, so that a tick counts as done only when every other sink has taken it.
        publishing = () if self._observing else (self._publisher,)
        self._tick = self._make_tick((*publishing, *self._optional_sinks, self._status))
        self._tick_loop = TickLoop(
            self._tick_once,
            settings.tick_seconds,
            self._status,
            self._machine.discovery.fileno,
            kubelet.wake if kubelet is not None else lambda: None,
        )
        self._saver = PredictionSaver(
            self._learned, self._checkpoints.save, settings.prediction.checkpoint_interval_seconds
        )
        self._optional_tasks: tuple[OptionalTask, ...] = ()

    async def serve(self, stack: contextlib.AsyncExitStack, ending: asyncio.Event) -> None:
        """Limit first, then talk: tick until the end, and once there was a tick start everything else."""
        if self._journal is not None:
            self._journal.begin()
            stack.callback(self._journal.close)
        for file in (self._options.socket, self._options.heartbeat):
            _make_folder_of(file)
        # One that observes beside an agent that enforces, for a person, must not speak for that one.
        if self._observing and self._settings.fleet:
            Heartbeat(self._options.heartbeat).rest()
        self._brake.start()
        stack.callback(self._brake.stop)
        # Without one of these the agent is of no use: it ends, its limits stay, and it is started again.
        tasks = [self._tick_loop.run, self._cluster.run, lambda: self._serve_others(stack)]
        if not self._observing:
            tasks.append(self._publisher.run)
        await run_until(ending, tasks, self._before_the_end)

    def _tick_once(self) -> None:
        try:
            self._tick.run()
        finally:
            self._ticked.set()

    async def _serve_others(self, stack: contextlib.AsyncExitStack) -> None:
        """What a node can be limited without. Never returns."""
        await self._client.open()
        self._services = await self._make_services()
        stack.push_async_callback(self._services.stop)
        await self._services.start()
        self._optional_tasks = self._make_optional_tasks(self._services)
        # What was made so far stays for good: no collection needs to look at it again.
        gc.collect()
        gc.freeze()
        async with asyncio.TaskGroup() as running:
            for task in self._optional_tasks:
                running.create_task(task.run())

    async def _make_services(self) -> Services:
        sources = ServiceSources(self._sources(), self._collect, self._not_alive, self._not_ready, self._tell_of_node)
        # In a thread: a tick may be due while it is loaded.
        services = await asyncio.to_thread(_services)
        return services(self._options, self._client, sources, observing=self._observing)

    @property
    def _link(self) -> LinkClient | None:
        return self._services.link if self._services is not None else None

    def _not_alive(self) -> str:
        return "" if self._status.alive and self._brake.alive else "ticks have stopped"

    def _not_ready(self) -> str:
        return "" if self._status.ready else "usage is not measured yet or the API server was not read"

    async def _before_the_end(self) -> None:
        if self._lifecycle.gives_up_lending:
            await self._withdraw()
        await self._events.flush(1.0)
        await self._saver.save()

    async def _withdraw(self) -> None:
        """A server that does not answer is not waited for: this agent tries again while it observes."""
        log.info(words(Reason.OBSERVING), effect="the offer is withdrawn; ceilings stay as they are")
        try:
            async with asyncio.timeout(_WITHDRAW_SECONDS):
                await self._publisher.withdraw(Reason.OBSERVING)
        except (KubernetesFault, TimeoutError) as error:
            log.warning("the offer was not withdrawn", error=str(error))

    async def _tell_ready(self, services: Services) -> None:
        """Write the ready file once the agent measures and has read the API server."""
        while not self._status.ready:
            await asyncio.sleep(0.05)
        addresses = services.addresses
        if self._options.ready_file is not None:
            write_ready_file(self._options.ready_file, addresses)
        log.info("ready", node=self._options.node_name, **addresses)

    def _make_optional_sinks(self) -> tuple[OptionalSink, ...]:
        sinks: dict[str, Sink | None] = {
            # An observer's would hide the silence of an agent that enforces.
            "heartbeat": None if self._observing else Heartbeat(self._options.heartbeat, self._settings.tick_seconds),
            "kills": KillSink(self._evictor),
            "limit_events": None if self._observing else LimitEvents(self._tell_of_node),
            "feed": self._feed,
            "zones": None if self._observing else self._zones,
            "link": LinkSink(lambda: self._link) if self._options.scheduler and not self._observing else None,
            "journal": self._journal,
            "leftover_offer": self._leftover_offer,
        }
        return tuple(OptionalSink(name, sink) for name, sink in sinks.items() if sink is not None)

    def _make_optional_tasks(self, services: Services) -> tuple[OptionalTask, ...]:
        tasks = {
            "listeners": services.listen,
            "network": self._network.run,
            "pod_networks": self._pod_networks.run,
            "topology": self._machine.follow_topology,
            "prediction": self._saver.run,
            "ready_file": lambda: self._tell_ready(services),
        }
        if not self._observing:
            tasks |= {"events": self._events.run, "zones": self._zones.run, "evictions": self._evictor.run}
        if self._leftover_offer is not None:
            tasks["leftover_offer"] = self._leftover_offer.run
        if self._link is not None:
            tasks["link"] = self._link.run
        if self._kubelet is not None:
            tasks["kubelet"] = self._kubelet.run
        return tuple(OptionalTask(name, task) for name, task in tasks.items())

    def _make_tick(self, sinks: tuple[Sink, ...]) -> Tick:
        observer = self._machine.observer(lambda: self._pod_networks.newest)
        ports = TickPorts(self._cluster, observer, self._executor, self._brake, self._evictor)
        tick = Tick(self._layout, self._settings, ports, sinks)
        learned, policy = self._checkpoints.load(), self._settings.prediction
        prediction = restored(learned, time.time(), policy) if learned is not None else PredictionState()
        limits = LimitMemory(brake=self._machine.arm_as_before(self._options.heartbeat))
        tick.state = TickState(prediction=prediction, limits=limits, eviction=EvictionMemory(self._state.evictions))
        return tick

    def _make_journal(self) -> JournalFile | None:
        if self._options.journal is None:
            return None
        return JournalFile(self._options.journal, self._options.journal_max_mib << 20, self._head)

    def _learned(self) -> Checkpoint:
        return checkpoint(self._tick.state.prediction, self._settings.prediction)

    def _head(self) -> Head:
        return Head(self._layout, self._settings, self._tick.state)

    def _make_leftover_offer(self) -> LeftoverOffer:
        return LeftoverOffer(self._publisher, lambda: self._cluster.condition(CONDITION))

    def _sources(self) -> AnswerSources:
        layout = self._layout
        return AnswerSources(
            node=self._options.node_name,
            version=VERSION,
            settings=self._settings,
            status=self._status,
            feed=self._feed,
            read_knob=self._executor.read,
            knob_path=self._executor.path,
            link_connected=self._link_connected,
            brake_cuts=lambda: self._brake.total,
            brake_mechanisms=lambda: self._brake.mechanisms,
            wakes=lambda: self._brake.wakes,
            cgroups=f"v{layout.version}, driver {layout.driver.value}, {layout.root}",
            checkpoint=self._checkpoint,
            published=lambda: self._publisher.published,
        )

    def _link_connected(self) -> bool:
        return self._link is not None and self._link.connected

    def _collect(self) -> Mapping[str, list[MetricSample]]:
        counters = Counters(
            failed_ticks=lambda: self._tick_loop.failed_ticks,
            task_restarts=lambda: [(task.name, task.failures) for task in self._optional_tasks],
            sink_failures=lambda: [(sink.name, sink.failures) for sink in self._optional_sinks],
            listen_failures=lambda: self._services.listen_failures if self._services is not None else (),
            brake_cuts=lambda: self._brake.total,
            brake_unreadable=lambda: self._brake.unreadable,
            brake_mechanisms=lambda: self._brake.mechanisms,
            early_ticks=lambda: self._brake.wakes.items(),
            last_resort_kills=lambda: self._brake.total_kills,
            last_resort_futile=lambda: self._brake.futile_looks,
            evictions=lambda: [(*key, count) for key, count in self._evictor.evictions.items()],
            dropped_evictions=lambda: self._evictor.dropped,
            observing=self._observing,
            failed_cuts=lambda: self._executor.failed_cuts,
            publish_failures=lambda: self._publisher.failures + self._zones.failures,
            dropped_events=lambda: self._events.dropped,
            link_connected=self._link_connected,
            interfaces=lambda: self._network.newest,
            published=lambda: [(decision.name, decision.value) for decision in self._publisher.published],
        )
        return collect(self._status, counters)

    def _processes(self) -> dict[str, int]:
        pods = self._cluster.facts().pods or ()
        return processes(self._machine.tree, pods, self._machine.discovery.pods())

    def _costs(self) -> Mapping[str, EvictionCost]:
        """What the scheduler says while it is linked; neutral otherwise."""
        return self._link.costs if self._link is not None and self._link.connected else {}

    def _checkpoint(self, saved: CheckpointSaved) -> None:
        self._evictor.checkpointed(saved.pod_uid)
        if self._link is not None:
            self._link.checkpoint(saved)

    def _notify(self, notice: PreemptionNotice) -> None:
        # Evictions begin once others are served.
        assert self._services is not None
        self._services.notify(notice)

    def _tell_of_node(self, reason: str, message: str, *, warning: bool) -> None:
        self._events.record(self._cluster.node_ref, reason, message, warning=warning)


def _tell_what_stays(state: StateFile) -> None:
    """Observing takes nothing back: what an agent before this one enforced is as it left it."""
    if state.originals:
        log.warning(
            "limits of an agent before this one stay in force",
            control_files=len(state.originals),
            fix="stop this agent and run `sublet agent --restore`",
        )


def _make_folder_of(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationFault(str(file), f"its folder cannot be made: {error.strerror}", "give another") from error


def _services() -> type[Services]:
    from agent.run.services import Services

    return Services


def _links_of_pods(pods: Mapping[str, int]) -> Mapping[str, tuple[str, ...]]:
    from agent.edge.podlinks import links_of_pods

    return links_of_pods(pods)
