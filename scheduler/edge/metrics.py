"""The scheduler's metrics, counted as things happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from kube.exposition import Instruments
from model.metrics import SCHEDULER
from model.reason import Reason


class SchedulerMetrics:
    """scheduler.ports.Meter."""

    def __init__(self) -> None:
        self._made = Instruments(SCHEDULER)

    @property
    def registry(self) -> CollectorRegistry:
        return self._made.registry

    def cycle(self, seconds: float, scheduled: int, unschedulable: int) -> None:
        self._made.observe("cycle_duration_seconds", seconds)
        self._made.count("attempts_total", "scheduled", by=scheduled)
        self._made.count("attempts_total", "unschedulable", by=unschedulable)

    def bound(self, seconds: float, result: str) -> None:
        self._made.observe("binding_duration_seconds", seconds, result)

    def waited(self, seconds: float) -> None:
        self._made.observe("pod_wait_seconds", max(0.0, seconds))

    def waiting(self, candidates: int, parked: int, held: int) -> None:
        for state, number in (("ready", candidates - parked), ("parked", parked), ("held", held)):
            self._made.set("waiting_workloads", max(0, number), state)

    def timed_out(self, gangs: int) -> None:
        self._made.count("gang_timeouts_total", by=gangs)

    def set_aside(self, workloads: int) -> None:
        self._made.count("set_aside_total", by=workloads)

    def considered(self, reason: Reason) -> None:
        self._made.count("preemption_outcomes_total", reason.value)

    def preempted(self, victims: int) -> None:
        self._made.count("preemption_attempts_total")
        self._made.observe("preemption_victims", victims)

    def evicted(self, result: str) -> None:
        self._made.count("evictions_total", result)

    def refused(self, kind: str) -> None:
        self._made.count("refused_objects_total", kind)

    def watch(self, figures: Mapping[str, Callable[[], float]]) -> None:
        """Read these rows at each scrape."""
        self._made.watch(figures)
