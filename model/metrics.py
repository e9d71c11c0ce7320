"""Metrics of all three programs, a row each: /metrics, docs/metrics.md and their tests are made of this table.

A counter only grows while its program runs, and its name ends in _total; a number that may fall is a gauge. A name ends
in its unit where that is one of Prometheus' base units (https://prometheus.io/docs/practices/naming).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class MetricType(StrEnum):
    """Types of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricUnit(StrEnum):
    """What one of a metric's number is; of most, the thing that is counted."""

    COUNT = ""
    SECONDS = "seconds"
    BYTES = "bytes"
    CORES = "cores"
    RATIO = "ratio"
    SHARE = "1 is the whole cluster"
    AMOUNT = "milli-CPU or bytes"
    FILE = "the file's own"


class Metric(msgspec.Struct, frozen=True):
    """One row; `name` is without the program's prefix, `buckets` are upper bounds of a histogram.

    `prefixed`: its full name begins with the program's.
    """

    type: MetricType
    name: str
    unit: MetricUnit
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    prefixed: bool = True


class MetricTable(msgspec.Struct, frozen=True):
    """The metrics of one program, agent, scheduler or admission."""

    program: str
    rows: tuple[Metric, ...]

    def full_name(self, row: Metric) -> str:
        """As Prometheus has it: `sublet_agent_ticks_total`."""
        return f"sublet_{self.program}_{row.name}" if row.prefixed else row.name

    @property
    def by_name(self) -> Mapping[str, Metric]:
        return {row.name: row for row in self.rows}


class MetricSample(msgspec.Struct, frozen=True):
    """One series: values of the row's labels, and the number."""

    value: float
    labels: tuple[str, ...] = ()


def _unit(name: str) -> MetricUnit:
    """As the name ends; else what is counted."""
    last = name.removesuffix("_total").rpartition("_")[2]
    return next((unit for unit in MetricUnit if unit.value == last), MetricUnit.COUNT)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(MetricType.COUNTER, name, _unit(name), text, labels)


def _gauge(name: str, text: str, *labels: str, unit: MetricUnit | None = None) -> Metric:
    return Metric(MetricType.GAUGE, name, unit or _unit(name), text, labels)


def _histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    return Metric(MetricType.HISTOGRAM, name, _unit(name), text, labels, buckets)


def _of_training(row: Metric) -> Metric:
    """Under the name that boards for training clusters ask for, without a prefix."""
    return msgspec.structs.replace(row, prefixed=False)


QUEUE_ROWS = (
    "training_job_queue_length",
    "training_cluster_resource_utilization",
    "training_queue_fairshare_deviation",
)
"""Gauges of the scheduler that are read from queues as they are."""
_CYCLE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_BINDING_SECONDS = (*_CYCLE_SECONDS, 5.0, 10.0)
_WAIT_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
_REVIEW_SECONDS = (0.0005, *_CYCLE_SECONDS, 5.0)
_AMOUNT = MetricUnit.AMOUNT
_JOB_SECONDS = tuple(0.1 * 2**power for power in range(15))
_COMPLETION_SECONDS = tuple(60.0 * 2**power for power in range(15))
"""From a minute to 11.4 days."""
_VICTIMS = (1, 2, 4, 8, 16, 32, 64, 128)

AGENT = MetricTable(
    "agent",
    (
        _gauge("reclaimable", "May be lent now, in milli-CPU or bytes.", "resource", unit=_AMOUNT),
        _gauge("published", "What the node's status offers, in milli-CPU or bytes.", "resource", unit=_AMOUNT),
        _gauge("prod_reclaimable", "Predicted to stay unused of production's requests.", "resource", unit=_AMOUNT),
        _gauge("prod_peak", "Predicted peak of production, in milli-CPU or bytes.", "resource", unit=_AMOUNT),
        _gauge("cpu_usage_cores", "CPU used in the last second.", "consumer"),
        _gauge("memory_usage_bytes", "Memory that cannot be dropped.", "consumer"),
        _gauge("pod_cpu_usage_cores", "CPU used by a pod in the last second.", "namespace", "pod", "qos"),
        _gauge("pod_memory_usage_bytes", "Memory of a pod that cannot be dropped.", "namespace", "pod", "qos"),
        _gauge("pod_throttled_ratio", "Throttled periods of all periods, 0 to 1.", "namespace", "pod", "qos"),
        _counter("pod_network_bytes_total", "Traffic as the pod sees it.", "namespace", "pod", "direction"),
        _counter("pod_disk_bytes_total", "Disk traffic of a pod.", "namespace", "pod", "direction"),
        _counter("pod_oom_kills_total", "Processes the kernel killed in a pod.", "namespace", "pod"),
        _gauge("pressure_ratio", "Share of the last 10 s some or all tasks waited.", "resource", "kind"),
        _counter("pressure_stalled_seconds_total", "Time some or all tasks waited.", "resource", "kind"),
        _gauge(
            "limit",
            "Decided value of a control file of all best effort together.",
            "file",
            "reason",
            unit=MetricUnit.FILE,
        ),
        _gauge("unenforced_limits", "1 for each limit of best effort that is not in force.", "file", "reason"),
        _gauge("limited_pods", "Pods with limits from their batch resources."),
        _gauge("observing", "1 in mode observe: nothing is written."),
        _gauge("write_errors", "Control files not written in the newest tick."),
        _gauge("unmeasured_pods", "Listed pods whose cgroup could not be read."),
        _gauge("unlisted_pods", "Pod cgroups that no listed pod owns."),
        _gauge("configuration_invalid", "1 while an invalid document is ignored."),
        _gauge(
            "settings_not_acted_on",
            "Fields that documents ask for and that are not acted on, or only in part (docs/koordinator.md).",
        ),
        _counter("ticks_total", "Ticks since the start."),
        _counter("late_ticks_total", "Ticks that began half a period late."),
        _counter("failed_ticks_total", "Ticks that ended in an error of ours."),
        _counter("task_restarts_total", "Errors of ours that ended a task the agent can do without.", "task"),
        _counter("sink_failures_total", "Ticks that a sink did not take because of an error of ours.", "sink"),
        _counter("journal_lost_ticks_total", "Ticks that are not in the journal, whose disk was too slow for them."),
        _counter("listen_failures_total", "Attempts to listen on a port that somebody else held.", "port"),
        _gauge("checkpoint_sockets", "Pods with a socket folder of their own, in which the agent looks for processes."),
        _counter(
            "checkpoint_socket_refusals_total", "What was no socket, process or message of the pod, at a pod's socket."
        ),
        _counter("brake_cuts_total", "Cuts of best effort between ticks."),
        _counter("brake_unreadable_total", "Brake readings that failed."),
        _counter("brake_failed_cuts_total", "Cuts the kernel refused."),
        _gauge("brake_mechanism", "1 for each way of waking up early that is active.", "mechanism"),
        _counter("early_ticks_total", "Ticks started before their time, by what asked.", "cause"),
        _gauge(
            "eviction_need",
            "Missing by a rule that evicts, in milli-CPU or bytes.",
            "rule",
            "reason",
            unit=_AMOUNT,
        ),
        _gauge("read_back_bytes", "Memory online pods read back within 10 s after it was taken.", "reason"),
        _counter("reclaimed_bytes_total", "Memory reclaimed of best-effort pods before anybody was evicted."),
        _counter("reclaim_steps_total", "Steps of that, by whether half of what was asked was freed.", "outcome"),
        _counter("evictions_total", "Orders to notify or evict a pod, by what came of them.", "reason", "outcome"),
        _counter("evictions_dropped_total", "Orders that found no room in the queue."),
        _gauge("evictions_pending", "Pods told to go that are not gone yet."),
        _counter("last_resort_kills_total", "Pods killed on the spot before memory ran out."),
        _counter("last_resort_futile_total", "Looks at which memory ran out and no pod's end would have helped."),
        _counter("publish_failures_total", "Refused or lost writes to the API server."),
        _counter("dropped_events_total", "Kubernetes Events dropped since the start: no room, or refused."),
        _gauge("link_connected", "1 while the scheduler is linked."),
        _counter("network_bytes_total", "Traffic of the node's interfaces.", "interface", "direction"),
    ),
)
SCHEDULER = MetricTable(
    "scheduler",
    (
        _histogram("cycle_duration_seconds", "Time one scheduling cycle took.", buckets=_CYCLE_SECONDS),
        _counter("attempts_total", "Workloads tried, by result scheduled or unschedulable.", "result"),
        _histogram("binding_duration_seconds", "Time one binding took, by result.", "result", buckets=_BINDING_SECONDS),
        _histogram("pod_wait_seconds", "Time from a pod's creation to its binding.", buckets=_WAIT_SECONDS),
        _gauge("waiting_workloads", "Workloads without nodes, by state ready, parked or held.", "state"),
        _counter("gang_timeouts_total", "Gangs that found no place within their timeout."),
        _counter("set_aside_total", "Workloads set aside by an error of the scheduler itself."),
        _counter("preemption_attempts_total", "Plans made that evict pods for a workload."),
        _counter("preemption_outcomes_total", "Preemption considered for a workload, by outcome.", "reason"),
        _histogram("preemption_victims", "Pods that one plan evicts.", buckets=_VICTIMS),
        _counter("evictions_total", "Evictions of victims, by result done or failed.", "result"),
        _counter(
            "lost_work_seconds_total",
            "Work that evicted pods lost since their jobs' newest checkpoint, of each pod, by queue.",
            "queue",
        ),
        _counter("refused_objects_total", "Objects left out because they cannot be read, by kind.", "kind"),
        _gauge("links", "Node agents connected."),
        _counter("link_restarts_total", "Times the process that serves the agents was started again."),
        _counter("dropped_decisions_total", "Agents' decisions dropped because nobody took them in time."),
        _gauge("leader", "1 while this process leads and its lease is renewed in time."),
        _counter("dropped_events_total", "Kubernetes Events dropped since the start: no room, or refused."),
        _of_training(
            _histogram(
                "training_job_scheduling_duration_seconds",
                "Time from a job's creation to its placement, result scheduled, or to its timeout, result timeout, by "
                "its owner's kind, of a TrainingJob by its jobType; other where that is none of those known.",
                "queue",
                "job_type",
                "result",
                buckets=_JOB_SECONDS,
            )
        ),
        _of_training(
            _gauge(
                "training_job_queue_length",
                "Jobs that wait, by queue, (none) where there is no such queue, and priority.",
                "queue",
                "priority",
            )
        ),
        _of_training(
            _gauge(
                "training_cluster_resource_utilization",
                "What the pods of a queue have of the cluster, and what is kept for them; queues without others below.",
                "resource_type",
                "queue",
                unit=MetricUnit.SHARE,
            )
        ),
        _of_training(
            _counter(
                "training_job_preemptions_total",
                "Jobs that lose pods to another, by both queues; reason Preempting by priority, Reclaiming by quota.",
                "preemptor_queue",
                "victim_queue",
                "reason",
            )
        ),
        _of_training(
            _counter(
                "training_checkpoint_saves_total",
                "Checkpoints by job (the 1,000 that saved last), reason interval or notice; status complete, or missed "
                "where a job that asked for notice saved nothing in its time.",
                "job",
                "reason",
                "status",
            )
        ),
        _of_training(
            _gauge(
                "training_queue_fairshare_deviation",
                "What a queue has of its dominant resource less its fair share of it; above 0 it has more.",
                "queue",
                unit=MetricUnit.SHARE,
            )
        ),
        _of_training(
            _counter(
                "training_gang_scheduling_total",
                "Gangs placed, result scheduled, or out of time, result timeout, for which label timeout is true.",
                "result",
                "timeout",
            )
        ),
        _of_training(
            _histogram(
                "training_job_completion_seconds",
                "Time from a job's creation to its end, status succeeded or failed: TrainingJobs by their jobType, "
                "Volcano's Jobs as Job.",
                "queue",
                "job_type",
                "status",
                buckets=_COMPLETION_SECONDS,
            )
        ),
    ),
)
ADMISSION = MetricTable(
    "admission",
    (
        _counter(
            "reviews_total",
            "Reviews by kind of object and result allowed, changed, refused or malformed.",
            "kind",
            "result",
        ),
        _histogram("review_duration_seconds", "Time from a whole request to its answer.", buckets=_REVIEW_SECONDS),
        _counter("profile_pods_total", "Pods that a profile selects, by what became of it.", "profile", "reason"),
        _gauge("certificate_expires_in_seconds", "Until the certificate that is served expires."),
        _gauge("authority_expires_in_seconds", "Until the certificate authority expires; 0 where another leads."),
        _counter("certificate_writes_total", "Secrets, bundles and webhook configurations written.", "object"),
        _gauge("leader", "1 while this process makes the certificates."),
        _gauge("cluster_silent_seconds", "Since anything was heard of the most silent of the watched collections."),
    ),
)
TABLES = (AGENT, SCHEDULER, ADMISSION)
