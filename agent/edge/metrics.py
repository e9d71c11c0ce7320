"""The agent's metric table as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agent.report.metrics import ROWS, MetricRow, MetricSample


def registry(read: Callable[[], Mapping[str, list[MetricSample]]]) -> CollectorRegistry:
    """The table's rows, and what describes the process itself."""
    made = CollectorRegistry()
    made.register(TableCollector(read))
    ProcessCollector(registry=made)
    return made


class TableCollector(Collector):
    """Turns the metric table into what Prometheus reads; `read` gives every series at each scrape."""

    def __init__(self, read: Callable[[], Mapping[str, list[MetricSample]]]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return [_family(row) for row in ROWS]

    def collect(self) -> Iterator[Metric]:
        series = self._read()
        for row in ROWS:
            family = _family(row)
            for sample in series[row.name]:
                family.add_metric(list(sample.labels), sample.value)
            yield family


def _family(row: MetricRow) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if row.name.endswith("_total") else GaugeMetricFamily
    return kind(row.name, row.help, labels=row.labels)
