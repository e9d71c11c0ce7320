"""The wiring of what is told of one agent: to diagnostics, Prometheus and probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent.report.decision_feed import DecisionFeed
from agent.report.metrics import Counters, collect
from agent.report.sources import AnswerSources, ServiceSources
from agent.report.status import AgentStatus
from agent.run.edges import Edges, ProcessContext
from agent.run.optional_parts import OptionalSink, OptionalTask
from agent.settings import AgentSettings
from agent.version import VERSION
from model.metrics import MetricSample

if TYPE_CHECKING:
    from agent.edge.link import LinkClient
    from agent.run.services import AgentServices


class AgentAnswers:
    """`services` and `tasks` begin after the first tick; what is told of them before that is nothing yet."""

    def __init__(
        self,
        lasting: ProcessContext,
        settings: AgentSettings,
        edges: Edges,
        status: AgentStatus,
        feed: DecisionFeed,
        failed_ticks: Callable[[], int],
        *,
        observing: bool,
    ) -> None:
        self._lasting = lasting
        self._settings = settings
        self._edges = edges
        self._status = status
        self._feed = feed
        self._failed_ticks = failed_ticks
        self._observing = observing
        self.services: AgentServices | None = None
        self.journal_lost: Callable[[], int] = lambda: 0
        self.sinks: tuple[OptionalSink, ...] = ()
        self.tasks: tuple[OptionalTask, ...] = ()

    @property
    def link(self) -> LinkClient | None:
        return self.services.link if self.services is not None else None

    def sources(self) -> ServiceSources:
        """For the services, which begin later than the agent."""
        return ServiceSources(self._answers(), self._collect, self._not_alive, self._not_ready, self._edges.record)

    def _not_alive(self) -> str:
        return "" if self._status.alive and self._edges.machine.brake.alive else "ticks have stopped"

    def _not_ready(self) -> str:
        return "" if self._status.ready else "usage is not measured yet or the API server was not read"

    def _answers(self) -> AnswerSources:
        edges, layout = self._edges, self._lasting.layout
        brake, executor = edges.machine.brake, edges.machine.executor
        return AnswerSources(
            node=self._lasting.options.node_name,
            version=VERSION,
            settings=self._settings,
            status=self._status,
            feed=self._feed,
            read_knob=executor.read,
            knob_path=executor.path,
            link_connected=self._link_connected,
            brake_cuts=lambda: brake.total,
            brake_mechanisms=lambda: brake.mechanisms,
            wakes=lambda: brake.wakes,
            cgroups=f"v{layout.version}, driver {layout.driver.value}, {layout.root}",
            published=lambda: edges.publisher.published,
        )

    def _collect(self) -> Mapping[str, list[MetricSample]]:
        edges, brake, executor = self._edges, self._edges.machine.brake, self._edges.machine.executor
        counters = Counters(
            failed_ticks=self._failed_ticks,
            task_restarts=lambda: [(task.name, task.failures) for task in self.tasks],
            sink_failures=lambda: [(sink.name, sink.failures) for sink in self.sinks],
            journal_lost=self.journal_lost,
            listen_failures=lambda: self.services.listen_failures if self.services is not None else (),
            pod_sockets=lambda: edges.pod_sockets.folders,
            pod_socket_refusals=lambda: edges.pod_sockets.refused,
            brake_cuts=lambda: brake.total,
            brake_unreadable=lambda: brake.unreadable,
            brake_mechanisms=lambda: brake.mechanisms,
            early_ticks=lambda: brake.wakes.items(),
            last_resort_kills=lambda: brake.total_kills,
            last_resort_futile=lambda: brake.futile_looks,
            evictions=lambda: [(*key, count) for key, count in edges.evictor.evictions.items()],
            dropped_evictions=lambda: edges.evictor.dropped,
            observing=self._observing,
            failed_cuts=lambda: executor.failed_cuts,
            publish_failures=lambda: edges.publisher.failures + edges.zones.failures,
            dropped_events=lambda: edges.events.dropped,
            link_connected=self._link_connected,
            interfaces=lambda: edges.network.newest,
            published=lambda: [(decision.name, decision.value) for decision in edges.publisher.published],
        )
        return collect(self._status, counters)

    def _link_connected(self) -> bool:
        return self.link is not None and self.link.connected
