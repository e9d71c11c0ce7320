"""Prometheus metrics of the admission program, from one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector

PREFIX = "sublet_admission_"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Row(msgspec.Struct, frozen=True):
    """One metric: type counter, gauge or histogram; `name` without `PREFIX`."""

    type: str
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS = (
    Row(
        "counter",
        "reviews_total",
        "Reviews by kind of object and result allowed, changed, refused or malformed.",
        ("kind", "result"),
    ),
    Row("histogram", "review_duration_seconds", "Time from a whole request to its answer.", buckets=_SECONDS),
    Row("counter", "profile_pods_total", "Pods that a profile selects, by what became of it.", ("profile", "reason")),
    Row("gauge", "certificate_expires_in_seconds", "Until the certificate that is served expires."),
    Row("gauge", "authority_expires_in_seconds", "Until the certificate authority expires; 0 where another leads."),
    Row("counter", "certificate_writes_total", "Secrets, bundles and webhook configurations written.", ("object",)),
    Row("gauge", "leader", "1 while this process makes the certificates."),
    Row("gauge", "cluster_silent_seconds", "Since anything was heard of the most silent of the watched collections."),
)
_KINDS: dict[str, Any] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


class Metrics:
    """All rows on a registry of their own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry
        self._metrics: dict[str, Any] = {row.name: _build(row, registry) for row in METRICS}
        ProcessCollector(registry=registry)

    def reviewed(self, kind: str, result: str, seconds: float) -> None:
        self._metrics["reviews_total"].labels(kind, result).inc()
        self._metrics["review_duration_seconds"].observe(seconds)

    def profiled(self, profile: str, reason: str) -> None:
        self._metrics["profile_pods_total"].labels(profile, reason).inc()

    def wrote(self, name: str) -> None:
        self._metrics["certificate_writes_total"].labels(name).inc()

    def watch(self, figures: Mapping[str, Callable[[], float]]) -> None:
        """Read these gauges at each scrape, by row."""
        for name, read in figures.items():
            self._metrics[name].set_function(read)


def _build(row: Row, registry: CollectorRegistry) -> Any:
    options: dict[str, Any] = {"buckets": row.buckets} if row.buckets else {}
    return _KINDS[row.type](PREFIX + row.name, row.help, row.labels, registry=registry, **options)
