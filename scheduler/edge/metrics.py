"""Prometheus metrics from one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from model.reason import Reason

PREFIX = "sublet_scheduler_"
_CYCLE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_BIND = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_VICTIMS = (1, 2, 4, 8, 16, 32, 64, 128)
_WAIT = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)


class Row(msgspec.Struct, frozen=True):
    """One metric: type counter, gauge or histogram; `name` without `PREFIX`."""

    type: str
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS = (
    Row("histogram", "cycle_duration_seconds", "Time one scheduling cycle took.", buckets=_CYCLE),
    Row("counter", "attempts_total", "Workloads tried, by result scheduled or unschedulable.", ("result",)),
    Row("histogram", "binding_duration_seconds", "Time one binding took, by result.", ("result",), _BIND),
    Row("histogram", "pod_wait_seconds", "Time from a pod's creation to its binding.", buckets=_WAIT),
    Row("gauge", "waiting_workloads", "Workloads without nodes, by state ready, parked or held.", ("state",)),
    Row("counter", "gang_timeouts_total", "Gangs that found no place within their timeout."),
    Row("counter", "set_aside_total", "Workloads set aside by an error of the scheduler itself."),
    Row("counter", "preemption_attempts_total", "Plans made that evict pods for a workload."),
    Row("counter", "preemption_outcomes_total", "Preemption considered for a workload, by outcome.", ("reason",)),
    Row("histogram", "preemption_victims", "Pods that one plan evicts.", buckets=_VICTIMS),
    Row("counter", "evictions_total", "Evictions of victims, by result done or failed.", ("result",)),
    Row("counter", "refused_objects_total", "Objects left out because they cannot be read, by kind.", ("kind",)),
    Row("gauge", "links", "Node agents connected."),
    Row("counter", "link_restarts_total", "Times the process that serves the agents was started again."),
    Row("counter", "dropped_decisions_total", "Agents' decisions dropped because nobody took them in time."),
    Row("gauge", "leader", "1 while this process leads and its lease is renewed in time."),
    Row("counter", "dropped_events_total", "Kubernetes Events dropped since the start: no room, or refused."),
)
_KINDS: dict[str, Any] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


class Metrics:
    """scheduler.ports.Meter on a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry
        self._metrics: dict[str, Any] = {row.name: _build(row, registry) for row in METRICS}
        ProcessCollector(registry=registry)

    def cycle(self, seconds: float, scheduled: int, unschedulable: int) -> None:
        self._metrics["cycle_duration_seconds"].observe(seconds)
        self._metrics["attempts_total"].labels("scheduled").inc(scheduled)
        self._metrics["attempts_total"].labels("unschedulable").inc(unschedulable)

    def bound(self, seconds: float, result: str) -> None:
        self._metrics["binding_duration_seconds"].labels(result).observe(seconds)

    def waited(self, seconds: float) -> None:
        self._metrics["pod_wait_seconds"].observe(max(0.0, seconds))

    def waiting(self, candidates: int, parked: int, held: int) -> None:
        for state, number in (("ready", candidates - parked), ("parked", parked), ("held", held)):
            self._metrics["waiting_workloads"].labels(state).set(max(0, number))

    def timed_out(self, gangs: int) -> None:
        self._metrics["gang_timeouts_total"].inc(gangs)

    def set_aside(self, workloads: int) -> None:
        self._metrics["set_aside_total"].inc(workloads)

    def considered(self, reason: Reason) -> None:
        self._metrics["preemption_outcomes_total"].labels(reason.value).inc()

    def preempted(self, victims: int) -> None:
        self._metrics["preemption_attempts_total"].inc()
        self._metrics["preemption_victims"].observe(victims)

    def evicted(self, result: str) -> None:
        self._metrics["evictions_total"].labels(result).inc()

    def refused(self, kind: str) -> None:
        self._metrics["refused_objects_total"].labels(kind).inc()

    def watch(self, figures: Mapping[str, Callable[[], float]]) -> None:
        """Read these gauges and counters at each scrape, by row; a counter's figure only grows."""
        rows = {row.name: row for row in METRICS}
        for name, read in figures.items():
            if rows[name].type == "counter":
                self.registry.unregister(self._metrics[name])
                self.registry.register(_ReadCounter(rows[name], read))
            else:
                self._metrics[name].set_function(read)


class _ReadCounter(Collector):
    """A counter kept elsewhere."""

    def __init__(self, row: Row, read: Callable[[], float]) -> None:
        self._row, self._read = row, read

    def describe(self) -> Iterable[Metric]:
        return [CounterMetricFamily(PREFIX + self._row.name, self._row.help)]

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(PREFIX + self._row.name, self._row.help, self._read())


def _build(row: Row, registry: CollectorRegistry) -> Any:
    options: dict[str, Any] = {"buckets": row.buckets} if row.buckets else {}
    return _KINDS[row.type](PREFIX + row.name, row.help, row.labels, registry=registry, **options)
