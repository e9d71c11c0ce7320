"""One agent put together: its edges, its tick with the sinks, its tasks, and how it begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent.core.evict.decide import EvictionMemory
from agent.core.limit.decide import LimitMemory
from agent.core.observe.prediction import Checkpoint, PredictionState, checkpoint, restored
from agent.edge.journal import JournalFile, JournalThread
from agent.files.statefile import StateFile
from agent.ports import Sink, TickPorts
from agent.report.decision_feed import DecisionFeed
from agent.report.journal import JournalHead
from agent.report.status import AgentStatus
from agent.run.answers import AgentAnswers
from agent.run.edges import AgentCallbacks, Edges, ProcessContext
from agent.run.heartbeat_guard import Heartbeat
from agent.run.limit_events import LimitEvents
from agent.run.loop import TickLoop
from agent.run.optional_parts import OptionalSink, OptionalTask
from agent.run.sinks import KillSink, LinkSink
from agent.run.tasks import PredictionSaver, run_until, write_ready_file
from agent.settings import AgentSettings, Mode
from agent.tick import Tick, TickState
from model.fault import ConfigurationFault, KubernetesFault
from model.reason import Reason, words
from model.report import CheckpointSaved, EvictionCost

if TYPE_CHECKING:
    from agent.run.services import AgentServices

log = structlog.get_logger()

_WITHDRAW_SECONDS = 5.0


class RunningAgent:
    """An agent in one mode; another mode is another agent."""

    def __init__(self, lasting: ProcessContext, settings: AgentSettings, stack: contextlib.AsyncExitStack) -> None:
        options, kubelet = lasting.options, lasting.kubelet
        self._lasting = lasting
        self._options = options
        self._settings = settings
        self._observing = settings.mode is Mode.OBSERVE
        if self._observing:
            _tell_what_stays(lasting.state)
        callbacks = AgentCallbacks(lambda: self._tick_loop.wake(), self._costs, self._saved)
        self._edges = Edges(lasting, settings, callbacks, stack, observing=self._observing)
        self._status, self._feed = AgentStatus(settings.tick_seconds), DecisionFeed()
        self._answers = AgentAnswers(
            lasting,
            settings,
            self._edges,
            self._status,
            self._feed,
            lambda: self._tick_loop.failed_ticks,
            observing=self._observing,
        )
        self._journal = self._make_journal()
        if self._journal is not None:
            journal = self._journal
            self._answers.journal_lost = lambda: journal.lost
        self._answers.sinks = self._make_optional_sinks()
        # The status comes last, so that a tick counts as done only when every other sink has taken it.
        publishing = () if self._observing else (self._edges.publisher,)
        self._tick = self._make_tick((*publishing, *self._answers.sinks, self._status))
        self._tick_loop = TickLoop(
            self._tick_once,
            settings.tick_seconds,
            self._status,
            self._edges.machine.discovery.fileno,
            kubelet.wake if kubelet is not None else lambda: None,
        )
        self._saver = PredictionSaver(
            self._learned, self._edges.checkpoints.save, settings.prediction.checkpoint_interval_seconds
        )

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
        brake = self._edges.machine.brake
        brake.start()
        stack.callback(brake.stop)
        # Without one of these the agent is of no use: it ends, its limits stay, and it is started again.
        tasks = [self._tick_loop.run, self._edges.cluster.run, lambda: self._serve_others(stack)]
        if not self._observing:
            tasks.append(self._edges.publisher.run)
        await run_until(ending, tasks, self._before_the_end)

    def _tick_once(self) -> None:
        try:
            self._tick.run()
        finally:
            self._lasting.ticked.set()

    async def _serve_others(self, stack: contextlib.AsyncExitStack) -> None:
        """What a node can be limited without. Never returns."""
        await self._lasting.client.open()
        # In a thread: a tick may be due while it is loaded.
        services = (await asyncio.to_thread(_services))(
            self._options,
            self._lasting.client,
            self._answers.sources(),
            self._edges.pod_sockets,
            observing=self._observing,
        )
        self._answers.services = services
        stack.push_async_callback(services.stop)
        await services.start()
        self._answers.tasks = self._make_optional_tasks(services)
        # What was made so far stays for good: no collection needs to look at it again.
        gc.collect()
        gc.freeze()
        async with asyncio.TaskGroup() as running:
            for task in self._answers.tasks:
                running.create_task(task.run())

    async def _before_the_end(self) -> None:
        if self._lasting.lifecycle.gives_up_lending:
            await self._withdraw()
        await self._edges.events.flush(1.0)
        await self._saver.save()

    async def _withdraw(self) -> None:
        """A server that does not answer is not waited for: this agent tries again while it observes."""
        log.info(words(Reason.OBSERVING), effect="the offer is withdrawn; ceilings stay as they are")
        try:
            async with asyncio.timeout(_WITHDRAW_SECONDS):
                await self._edges.publisher.withdraw(Reason.OBSERVING)
        except (KubernetesFault, TimeoutError) as error:
            log.warning("the offer was not withdrawn", error=str(error))

    async def _tell_ready(self, services: AgentServices) -> None:
        """Write the ready file once the agent measures and has read the API server."""
        while not self._status.ready:
            await asyncio.sleep(0.05)
        addresses = services.addresses
        if self._options.ready_file is not None:
            write_ready_file(self._options.ready_file, addresses)
        log.info("ready", node=self._options.node_name, **addresses)

    def _make_optional_sinks(self) -> tuple[OptionalSink, ...]:
        edges, answers = self._edges, self._answers
        sinks: dict[str, Sink | None] = {
            # An observer's would hide the silence of an agent that enforces.
            "heartbeat": None if self._observing else Heartbeat(self._options.heartbeat, self._settings.tick_seconds),
            "kills": KillSink(edges.evictor),
            "limit_events": None if self._observing else LimitEvents(edges.record),
            "feed": self._feed,
            "zones": None if self._observing else edges.zones,
            "link": LinkSink(lambda: answers.link) if self._options.scheduler and not self._observing else None,
            "journal": self._journal,
            "thawer": edges.thawer,
            "pod_sockets": None if self._observing else edges.pod_sockets,
            "leftover_offer": edges.leftover_offer,
        }
        return tuple(OptionalSink(name, sink) for name, sink in sinks.items() if sink is not None)

    def _make_optional_tasks(self, services: AgentServices) -> tuple[OptionalTask, ...]:
        edges = self._edges
        tasks = {
            "listeners": services.listen,
            "network": edges.network.run,
            "pod_networks": edges.pod_networks.run,
            "topology": edges.machine.follow_topology,
            "prediction": self._saver.run,
            "ready_file": lambda: self._tell_ready(services),
        }
        if not self._observing:
            tasks |= {"events": edges.events.run, "zones": edges.zones.run, "evictions": edges.evictor.run}
            tasks["pod_sockets"] = edges.pod_sockets.run
        if edges.leftover_offer is not None:
            tasks["leftover_offer"] = edges.leftover_offer.run
        if services.link is not None:
            tasks["link"] = services.link.run
        if self._lasting.kubelet is not None:
            tasks["kubelet"] = self._lasting.kubelet.run
        return tuple(OptionalTask(name, task) for name, task in tasks.items())

    def _make_tick(self, sinks: tuple[Sink, ...]) -> Tick:
        edges, machine = self._edges, self._edges.machine
        observer = machine.observer(lambda: edges.pod_networks.newest)
        executor, brake, reclaimer = machine.executor, machine.brake, machine.reclaimer
        ports = TickPorts(edges.cluster, observer, executor, brake, edges.evictor, reclaimer)
        tick = Tick(self._lasting.layout, self._settings, ports, sinks)
        learned, policy = edges.checkpoints.load(), self._settings.prediction
        prediction = restored(learned, time.time(), policy) if learned is not None else PredictionState()
        limits = LimitMemory(brake=machine.arm_as_before(self._options.heartbeat))
        eviction = EvictionMemory(self._lasting.state.evictions)
        tick.state = TickState(prediction=prediction, limits=limits, eviction=eviction)
        return tick

    def _make_journal(self) -> JournalThread | None:
        path, largest = self._options.journal, self._options.journal_max_mib << 20
        if path is None:
            return None
        return JournalThread(lambda head: JournalFile(path, largest, head), self._head)

    def _learned(self) -> Checkpoint:
        return checkpoint(self._tick.state.prediction, self._settings.prediction)

    def _head(self) -> JournalHead:
        return JournalHead(self._lasting.layout, self._settings, self._tick.state)

    def _costs(self) -> Mapping[str, EvictionCost]:
        """What the scheduler says while it is linked; neutral otherwise."""
        link = self._answers.link
        return link.costs if link is not None and link.connected else {}

    def _saved(self, saved: CheckpointSaved) -> None:
        """A pod has reported a checkpoint."""
        self._edges.evictor.checkpointed(saved.pod_uid, saved.state_seconds)
        if (link := self._answers.link) is not None:
            link.checkpoint(saved)


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


def _services() -> type[AgentServices]:
    from agent.run.services import AgentServices

    return AgentServices
