"""The admission program's metrics, counted as things happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from kube.exposition import Instruments
from model.metrics import ADMISSION


class AdmissionMetrics:
    """admission.ports.Meter and CertificateMeter."""

    def __init__(self) -> None:
        self._made = Instruments(ADMISSION)

    @property
    def registry(self) -> CollectorRegistry:
        return self._made.registry

    def reviewed(self, kind: str, result: str, seconds: float) -> None:
        self._made.count("reviews_total", kind, result)
        self._made.observe("review_duration_seconds", seconds)

    def profiled(self, profile: str, reason: str) -> None:
        self._made.count("profile_pods_total", profile, reason)

    def wrote(self, name: str) -> None:
        self._made.count("certificate_writes_total", name)

    def watch(self, figures: Mapping[str, Callable[[], float]]) -> None:
        """Read these rows at each scrape."""
        self._made.watch(figures)
