"""The agent's metric table: name, help and where the number comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent.edge.brake import BrakeThread
from agent.edge.link import LinkClient
from agent.edge.metrics import Row, Sample
from agent.edge.network import NetworkEdge
from agent.edge.publisher import Publisher
from agent.ports import TickResult
from agent.status import AgentStatus
from model.report import Usage


def table(
    status: AgentStatus,
    brake: BrakeThread,
    failed_cuts: Callable[[], int],
    publisher: Publisher,
    network: NetworkEdge,
    link: LinkClient | None,
    failed_ticks: Callable[[], int],
) -> tuple[Row, ...]:
    """Every metric the agent has; a series is absent until its number is known."""
    tick = _TickSamples(status)
    return (
        Row("sublet_agent_reclaimable", "May be lent now, in milli-CPU or bytes.", tick.reclaimable, ("resource",)),
        Row("sublet_agent_cpu_usage_cores", "CPU used in the last second.", tick.cpu, ("consumer",)),
        Row("sublet_agent_memory_usage_bytes", "Memory that cannot be dropped.", tick.memory, ("consumer",)),
        Row("sublet_agent_limit", "Decided value of a control file.", tick.limits, ("file", "reason")),
        Row("sublet_agent_write_errors", "Control files not written in the newest tick.", tick.write_errors),
        Row("sublet_agent_unmeasured_pods", "Listed pods whose cgroup could not be read.", tick.unmeasured),
        Row("sublet_agent_configuration_invalid", "1 while an invalid document is ignored.", tick.invalid),
        Row("sublet_agent_ticks_total", "Ticks since the start.", lambda: _one(status.ticks)),
        Row("sublet_agent_late_ticks_total", "Ticks that began half a period late.", lambda: _one(status.late_ticks)),
        Row("sublet_agent_failed_ticks_total", "Ticks that ended in an error of ours.", lambda: _one(failed_ticks())),
        Row("sublet_agent_brake_cuts_total", "Cuts of best effort between ticks.", lambda: _one(brake.total)),
        Row("sublet_agent_brake_unreadable_total", "Brake readings that failed.", lambda: _one(brake.unreadable)),
        Row("sublet_agent_brake_failed_cuts_total", "Cuts the kernel refused.", lambda: _one(failed_cuts())),
        Row("sublet_agent_publish_failures_total", "Refused or lost writes.", lambda: _one(publisher.failures)),
        Row(
            "sublet_agent_link_connected",
            "1 while the scheduler is linked.",
            lambda: _one(1 if link and link.connected else 0),
        ),
        Row(
            "sublet_agent_network_bytes_total",
            "Traffic of the node's interfaces.",
            lambda: _traffic(network),
            ("interface", "direction"),
        ),
    )


class _TickSamples:
    """Series read off the newest tick."""

    def __init__(self, status: AgentStatus) -> None:
        self._status = status

    def reclaimable(self) -> Iterable[Sample]:
        return [Sample(d.value, (d.name,)) for result in self._newest() for d in result.reclaimable]

    def limits(self) -> Iterable[Sample]:
        decisions = [d for result in self._newest() for d in result.limits.decisions.values()]
        return [Sample(d.value, (d.name, d.reason.value)) for d in decisions]

    def cpu(self) -> Iterable[Sample]:
        return [Sample(usage.cpu_millis / 1000, (name,)) for name, usage in self._consumers()]

    def memory(self) -> Iterable[Sample]:
        return [Sample(usage.memory_bytes, (name,)) for name, usage in self._consumers()]

    def write_errors(self) -> Iterable[Sample]:
        return [Sample(sum(bool(o.error) for o in result.outcomes)) for result in self._newest()]

    def unmeasured(self) -> Iterable[Sample]:
        return [
            Sample(len(result.observation.pods) - len(result.usage.pods)) for result in self._newest() if result.usage
        ]

    def invalid(self) -> Iterable[Sample]:
        return [Sample(1 if result.facts.problem else 0) for result in self._newest()]

    def _newest(self) -> tuple[TickResult, ...]:
        return (self._status.newest,) if self._status.newest else ()

    def _consumers(self) -> list[tuple[str, Usage]]:
        return [
            pair
            for result in self._newest()
            if (usage := result.usage)
            for pair in (
                ("node", usage.node.last),
                ("system", usage.system.last),
                ("online", usage.online.last),
                ("besteffort", usage.best_effort.last),
            )
        ]


def _one(value: float) -> tuple[Sample]:
    return (Sample(value),)


def _traffic(network: NetworkEdge) -> list[Sample]:
    return [
        Sample(count, (traffic.name, direction))
        for traffic in network.newest
        for direction, count in (("received", traffic.received_bytes), ("sent", traffic.sent_bytes))
    ]
