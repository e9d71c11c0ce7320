"""Tables of metrics as Prometheus reads them, and what describes the process itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from model import metrics
from model.metrics import MetricSample, MetricTable, MetricType

_INSTRUMENTS: Mapping[MetricType, Any] = {
    MetricType.COUNTER: Counter,
    MetricType.GAUGE: Gauge,
    MetricType.HISTOGRAM: Histogram,
}
_FAMILIES: Mapping[MetricType, Any] = {
    MetricType.COUNTER: CounterMetricFamily,
    MetricType.GAUGE: GaugeMetricFamily,
}


def registry_of(table: MetricTable, read: Callable[[], Mapping[str, Sequence[MetricSample]]]) -> CollectorRegistry:
    """The table's counters and gauges, all read at each scrape; `read` gives every series, by row."""
    made = CollectorRegistry()
    made.register(_Read(table, table.rows, read))
    ProcessCollector(registry=made)
    return made


class Instruments:
    """A table's metrics on a registry of their own; numbers are counted here, or read at each scrape (`watch`)."""

    def __init__(self, table: MetricTable) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._table = table
        self._made: dict[str, Any] = {row.name: self._make(row) for row in table.rows}
        self._series: dict[str, set[tuple[str, ...]]] = {row.name: set() for row in table.rows if row.labels}
        ProcessCollector(registry=self.registry)

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """A counter's row grows."""
        self._of(name, labels).inc(by)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """One observation of a histogram's row."""
        self._of(name, labels).observe(value)

    def set(self, name: str, value: float, *labels: str) -> None:
        """A gauge's row is at `value`."""
        self._of(name, labels).set(value)

    def forget(self, name: str, label: str, value: str) -> None:
        """A row's series with this value of a label are gone, with what was counted."""
        at = self._table.by_name[name].labels.index(label)
        for labels in [each for each in self._series[name] if each[at] == value]:
            self._series[name].discard(labels)
            self._made[name].remove(*labels)

    def watch(self, figures: Mapping[str, Callable[[], float]]) -> None:
        """Read these rows without labels at each scrape; a counter's figure only grows."""
        for name, read in figures.items():
            row = self._table.by_name[name]
            self.registry.unregister(self._made[name])
            self._made[name] = _Read(self._table, (row,), _alone(name, read))
            self.registry.register(self._made[name])

    def follow(self, read: Callable[[], Mapping[str, Sequence[MetricSample]]], *names: str) -> None:
        """Read all series of these rows together at each scrape; one that is not given any more is gone."""
        rows = tuple(self._table.by_name[name] for name in names)
        for name in names:
            self.registry.unregister(self._made[name])
        made = _Read(self._table, rows, read)
        self._made |= dict.fromkeys(names, made)
        self.registry.register(made)

    def _make(self, row: metrics.Metric) -> Any:
        options: dict[str, Any] = {"buckets": row.buckets} if row.buckets else {}
        name = self._table.full_name(row)
        return _INSTRUMENTS[row.type](name, row.help, row.labels, registry=self.registry, **options)

    def _of(self, name: str, labels: tuple[str, ...]) -> Any:
        if not labels:
            return self._made[name]
        self._series[name].add(labels)
        return self._made[name].labels(*labels)


def _alone(name: str, read: Callable[[], float]) -> Callable[[], Mapping[str, Sequence[MetricSample]]]:
    return lambda: {name: (MetricSample(read()),)}


class _Read(Collector):
    """Rows whose numbers are kept elsewhere; one without series has only its help and type."""

    def __init__(
        self,
        table: MetricTable,
        rows: Sequence[metrics.Metric],
        read: Callable[[], Mapping[str, Sequence[MetricSample]]],
    ) -> None:
        self._table = table
        self._rows = rows
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return [self._family(row) for row in self._rows]

    def collect(self) -> Iterator[Metric]:
        series = self._read()
        for row in self._rows:
            family = self._family(row)
            for sample in series[row.name]:
                family.add_metric(list(sample.labels), sample.value)
            yield family

    def _family(self, row: metrics.Metric) -> Any:
        return _FAMILIES[row.type](self._table.full_name(row), row.help, labels=row.labels)
