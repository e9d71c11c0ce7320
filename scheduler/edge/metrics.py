"""The scheduler's metrics, counted as things happen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from prometheus_client import CollectorRegistry

from kube.exposition import Instruments
from model.metrics import QUEUE_ROWS, SCHEDULER, MetricSample
from model.reason import Reason

_WAITS = "training_job_scheduling_duration_seconds"
_COMPLETIONS = "training_job_completion_seconds"
_LOSSES = "training_job_preemptions_total"
_SAVES = "training_checkpoint_saves_total"
_LOST_WORK = "lost_work_seconds_total"
_MOST_JOBS = 1000


class SchedulerMetrics:
    """scheduler.ports.Meter."""

    def __init__(self) -> None:
        self._made = Instruments(SCHEDULER)
        self._queues: Mapping[str, Sequence[MetricSample]] = dict.fromkeys(QUEUE_ROWS, ())
        self._made.follow(lambda: self._queues, *QUEUE_ROWS)
        self._counted: set[str] = set()
        self._jobs: dict[str, None] = {}

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

    def job_ended_waiting(self, seconds: float, queue: str, job_type: str, result: str) -> None:
        self._counted.add(queue)
        self._made.observe(_WAITS, max(0.0, seconds), queue, job_type, result)

    def gang_ended_waiting(self, result: str, *, timed_out: bool) -> None:
        self._made.count("training_gang_scheduling_total", result, "true" if timed_out else "false")

    def job_completed(self, seconds: float, queue: str, job_type: str, status: str) -> None:
        self._counted.add(queue)
        self._made.observe(_COMPLETIONS, max(0.0, seconds), queue, job_type, status)

    def job_preempted(self, preemptor_queue: str, victim_queue: str, reason: Reason) -> None:
        self._counted |= {preemptor_queue, victim_queue}
        self._made.count(_LOSSES, preemptor_queue, victim_queue, reason.value)

    def lost_work(self, queue: str, seconds: float) -> None:
        self._counted.add(queue)
        self._made.count(_LOST_WORK, queue, by=max(0.0, seconds))

    def checkpoint(self, job: str, reason: str, status: str) -> None:
        self._jobs.pop(job, None)
        self._jobs[job] = None
        self._made.count(_SAVES, job, reason, status)
        if len(self._jobs) > _MOST_JOBS:
            self.job_gone(next(iter(self._jobs)))

    def job_gone(self, job: str) -> None:
        if job in self._jobs:
            del self._jobs[job]
            self._made.forget(_SAVES, "job", job)

    def queues(self, names: Collection[str], series: Mapping[str, Sequence[MetricSample]]) -> None:
        self._queues = series
        for gone in self._counted.difference(names):
            self._made.forget(_WAITS, "queue", gone)
            self._made.forget(_COMPLETIONS, "queue", gone)
            self._made.forget(_LOSSES, "preemptor_queue", gone)
            self._made.forget(_LOSSES, "victim_queue", gone)
            self._made.forget(_LOST_WORK, "queue", gone)
        self._counted.intersection_update(names)

    def watch(self, figures: Mapping[str, Callable[[], float]]) -> None:
        """Read these rows at each scrape."""
        self._made.watch(figures)
