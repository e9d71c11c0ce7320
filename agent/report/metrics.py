"""The agent's metrics: the table of names, helps and labels, and where each number comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from agent.core.observe.network import InterfaceTraffic
from agent.core.observe.observation import CgroupSample, Stall
from agent.ports import TickResult
from agent.report.status import AgentStatus
from model.pod.pod import Pod
from model.report import Usage


class MetricSample(msgspec.Struct, frozen=True):
    """One series: values of the row's labels, and the number."""

    value: float
    labels: tuple[str, ...] = ()


class MetricRow(msgspec.Struct, frozen=True):
    """One metric; a counter's name ends in _total."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


class Counters(msgspec.Struct, frozen=True):
    """Counts that no tick carries, as the edges and the loop keep them."""

    failed_ticks: Callable[[], int]
    task_restarts: Callable[[], Iterable[tuple[str, int]]]
    sink_failures: Callable[[], Iterable[tuple[str, int]]]
    listen_failures: Callable[[], Iterable[tuple[str, int]]]
    brake_cuts: Callable[[], int]
    brake_unreadable: Callable[[], int]
    brake_mechanisms: Callable[[], Iterable[str]]
    early_ticks: Callable[[], Iterable[tuple[str, int]]]
    last_resort_kills: Callable[[], int]
    last_resort_futile: Callable[[], int]
    evictions: Callable[[], Iterable[tuple[str, str, int]]]
    dropped_evictions: Callable[[], int]
    observing: bool
    failed_cuts: Callable[[], int]
    publish_failures: Callable[[], int]
    dropped_events: Callable[[], int]
    link_connected: Callable[[], bool]
    interfaces: Callable[[], Iterable[InterfaceTraffic]]
    published: Callable[[], Iterable[tuple[str, int]]]


ROWS = (
    MetricRow("sublet_agent_reclaimable", "May be lent now, in milli-CPU or bytes.", ("resource",)),
    MetricRow("sublet_agent_published", "What the node's status offers, in milli-CPU or bytes.", ("resource",)),
    MetricRow("sublet_agent_prod_reclaimable", "Predicted to stay unused of production's requests.", ("resource",)),
    MetricRow("sublet_agent_prod_peak", "Predicted peak of production, in milli-CPU or bytes.", ("resource",)),
    MetricRow("sublet_agent_cpu_usage_cores", "CPU used in the last second.", ("consumer",)),
    MetricRow("sublet_agent_memory_usage_bytes", "Memory that cannot be dropped.", ("consumer",)),
    MetricRow("sublet_agent_pod_cpu_usage_cores", "CPU used by a pod in the last second.", ("namespace", "pod", "qos")),
    MetricRow(
        "sublet_agent_pod_memory_usage_bytes", "Memory of a pod that cannot be dropped.", ("namespace", "pod", "qos")
    ),
    MetricRow(
        "sublet_agent_pod_throttled_ratio", "Throttled periods of all periods, 0 to 1.", ("namespace", "pod", "qos")
    ),
    MetricRow("sublet_agent_pod_network_bytes_total", "Traffic as the pod sees it.", ("namespace", "pod", "direction")),
    MetricRow("sublet_agent_pod_disk_bytes_total", "Disk traffic of a pod.", ("namespace", "pod", "direction")),
    MetricRow("sublet_agent_pod_oom_kills_total", "Processes the kernel killed in a pod.", ("namespace", "pod")),
    MetricRow("sublet_agent_pressure_ratio", "Share of the last 10 s some or all tasks waited.", ("resource", "kind")),
    MetricRow("sublet_agent_pressure_stalled_seconds_total", "Time some or all tasks waited.", ("resource", "kind")),
    MetricRow("sublet_agent_limit", "Decided value of a control file of all best effort together.", ("file", "reason")),
    MetricRow("sublet_agent_lapse", "1 for each limit of best effort that is not in force.", ("file", "reason")),
    MetricRow("sublet_agent_limited_pods", "Pods with limits from their batch resources."),
    MetricRow("sublet_agent_observing", "1 in mode observe: nothing is written."),
    MetricRow("sublet_agent_write_errors", "Control files not written in the newest tick."),
    MetricRow("sublet_agent_unmeasured_pods", "Listed pods whose cgroup could not be read."),
    MetricRow("sublet_agent_unlisted_pods", "Pod cgroups that no listed pod owns."),
    MetricRow("sublet_agent_configuration_invalid", "1 while an invalid document is ignored."),
    MetricRow(
        "sublet_agent_settings_not_acted_on",
        "Fields that documents ask for and that are not acted on, or only in part (docs/koordinator.md).",
    ),
    MetricRow("sublet_agent_ticks_total", "Ticks since the start."),
    MetricRow("sublet_agent_late_ticks_total", "Ticks that began half a period late."),
    MetricRow("sublet_agent_failed_ticks_total", "Ticks that ended in an error of ours."),
    MetricRow(
        "sublet_agent_task_restarts_total", "Errors of ours that ended a task the agent can do without.", ("task",)
    ),
    MetricRow(
        "sublet_agent_sink_failures_total", "Ticks that a sink did not take because of an error of ours.", ("sink",)
    ),
    MetricRow("sublet_agent_listen_failures_total", "Attempts to listen on a port that somebody else held.", ("port",)),
    MetricRow("sublet_agent_brake_cuts_total", "Cuts of best effort between ticks."),
    MetricRow("sublet_agent_brake_unreadable_total", "Brake readings that failed."),
    MetricRow("sublet_agent_brake_failed_cuts_total", "Cuts the kernel refused."),
    MetricRow("sublet_agent_brake_mechanism", "1 for each way of waking up early that is active.", ("mechanism",)),
    MetricRow("sublet_agent_early_ticks_total", "Ticks started before their time, by what asked.", ("cause",)),
    MetricRow(
        "sublet_agent_eviction_need", "Missing by a rule that evicts, in milli-CPU or bytes.", ("rule", "reason")
    ),
    MetricRow(
        "sublet_agent_read_back_bytes", "Memory online pods read back within 10 s after it was taken.", ("reason",)
    ),
    MetricRow(
        "sublet_agent_evictions_total", "Orders to notify or evict a pod, by what came of them.", ("reason", "outcome")
    ),
    MetricRow("sublet_agent_evictions_dropped_total", "Orders that found no room in the queue."),
    MetricRow("sublet_agent_evictions_pending", "Pods told to go that are not gone yet."),
    MetricRow("sublet_agent_last_resort_kills_total", "Pods killed on the spot before memory ran out."),
    MetricRow(
        "sublet_agent_last_resort_futile_total", "Looks at which memory ran out and no pod's end would have helped."
    ),
    MetricRow("sublet_agent_publish_failures_total", "Refused or lost writes to the API server."),
    MetricRow("sublet_agent_dropped_events_total", "Kubernetes Events dropped since the start: no room, or refused."),
    MetricRow("sublet_agent_link_connected", "1 while the scheduler is linked."),
    MetricRow("sublet_agent_network_bytes_total", "Traffic of the node's interfaces.", ("interface", "direction")),
)

_Series = Iterable[tuple[str, MetricSample]]


def collect(status: AgentStatus, counters: Counters) -> Mapping[str, list[MetricSample]]:
    """Every series there is now, by metric; one is absent until its number is known."""
    found: dict[str, list[MetricSample]] = {row.name: [] for row in ROWS}
    series = (_counted(status, counters), *((_of_tick(status.newest),) if status.newest else ()))
    for name, sample in (pair for part in series for pair in part):
        found[f"sublet_agent_{name}"].append(sample)
    return found


def _counted(status: AgentStatus, counters: Counters) -> _Series:
    yield "ticks_total", MetricSample(status.ticks)
    yield "late_ticks_total", MetricSample(status.late_ticks)
    yield "failed_ticks_total", MetricSample(counters.failed_ticks())
    for task, restarts in counters.task_restarts():
        yield "task_restarts_total", MetricSample(restarts, (task,))
    for sink, failures in counters.sink_failures():
        yield "sink_failures_total", MetricSample(failures, (sink,))
    for port, failures in counters.listen_failures():
        yield "listen_failures_total", MetricSample(failures, (port,))
    yield "brake_cuts_total", MetricSample(counters.brake_cuts())
    yield "brake_unreadable_total", MetricSample(counters.brake_unreadable())
    yield "brake_failed_cuts_total", MetricSample(counters.failed_cuts())
    for mechanism in counters.brake_mechanisms():
        yield "brake_mechanism", MetricSample(1, (mechanism,))
    for cause, count in counters.early_ticks():
        yield "early_ticks_total", MetricSample(count, (cause,))
    for reason, outcome, count in counters.evictions():
        yield "evictions_total", MetricSample(count, (reason, outcome))
    yield "evictions_dropped_total", MetricSample(counters.dropped_evictions())
    yield "last_resort_kills_total", MetricSample(counters.last_resort_kills())
    yield "last_resort_futile_total", MetricSample(counters.last_resort_futile())
    yield "observing", MetricSample(counters.observing)
    yield "publish_failures_total", MetricSample(counters.publish_failures())
    yield "dropped_events_total", MetricSample(counters.dropped_events())
    yield "link_connected", MetricSample(counters.link_connected())
    for resource, amount in counters.published():
        yield "published", MetricSample(amount, (resource,))
    for traffic in counters.interfaces():
        yield "network_bytes_total", MetricSample(traffic.received_bytes, (traffic.name, "received"))
        yield "network_bytes_total", MetricSample(traffic.sent_bytes, (traffic.name, "sent"))


def _of_tick(result: TickResult) -> _Series:
    for lent in result.lending.reclaimable:
        yield "reclaimable", MetricSample(lent.value, (lent.name,))
    for limit in result.limits.of_all:
        yield "limit", MetricSample(limit.decision.value, (limit.knob.file, limit.decision.reason.value))
    for each in result.unenforced:
        yield "lapse", MetricSample(1, (each.file, each.reason.value))
    yield "limited_pods", MetricSample(result.limits.limited_pods)
    for need in result.evictions.needs:
        yield "eviction_need", MetricSample(need.value, (need.policy, need.reason.value))
    if (read_back := result.evictions.read_back) is not None:
        yield "read_back_bytes", MetricSample(read_back.value, (read_back.reason.value,))
    yield "evictions_pending", MetricSample(len(result.evicting.record.pending))
    yield "write_errors", MetricSample(sum(bool(outcome.error) for outcome in result.outcomes))
    yield "configuration_invalid", MetricSample(bool(result.facts.problem))
    yield "settings_not_acted_on", MetricSample(len(result.facts.unmet))
    yield "unlisted_pods", MetricSample(len(result.observation.strangers))
    yield from _foreseen(result)
    yield from _pressure(result)
    yield from _consumers(result)
    for pod in result.facts.pods or ():
        yield from _pod(pod, result)


def _foreseen(result: TickResult) -> _Series:
    if result.prediction is not None:
        for name, usage in (
            ("prod_reclaimable", result.prediction.prod_reclaimable),
            ("prod_peak", result.prediction.prod_peak),
        ):
            yield name, MetricSample(usage.cpu_millis, ("cpu",))
            yield name, MetricSample(usage.memory_bytes, ("memory",))


def _pressure(result: TickResult) -> _Series:
    pressure = result.observation.node_pressure
    for name in pressure.__struct_fields__ if pressure else ():
        stall: Stall | None = getattr(pressure, name)
        resource, _, kind = name.partition("_")
        if stall is not None:
            yield "pressure_ratio", MetricSample(stall.avg10_pct / 100, (resource, kind))
            yield "pressure_stalled_seconds_total", MetricSample(stall.total_us / 1e6, (resource, kind))


def _consumers(result: TickResult) -> _Series:
    usage = result.usage
    if usage is None:
        return
    yield "unmeasured_pods", MetricSample(len(result.observation.pods) - len(usage.pods))
    consumers: dict[str, Usage] = {
        "node": usage.node.last,
        "system": usage.system.last,
        "online": usage.online.last,
        "besteffort": usage.best_effort.last,
        **{f"host:{name}": averages.last for name, averages in usage.host_applications.items()},
    }
    for name, used in consumers.items():
        yield "cpu_usage_cores", MetricSample(used.cpu_millis / 1000, (name,))
        yield "memory_usage_bytes", MetricSample(used.memory_bytes, (name,))


def _pod(pod: Pod, result: TickResult) -> Iterator[tuple[str, MetricSample]]:
    who, seen = (pod.namespace, pod.name), result.observation
    averages = result.usage.pods.get(pod.uid) if result.usage else None
    if averages is not None and result.usage is not None:
        labels = (*who, pod.colocation.qos.value)
        yield "pod_cpu_usage_cores", MetricSample(averages.last.cpu_millis / 1000, labels)
        yield "pod_memory_usage_bytes", MetricSample(averages.last.memory_bytes, labels)
        if (ratio := result.usage.throttled_ratio.get(pod.uid)) is not None:
            yield "pod_throttled_ratio", MetricSample(ratio, labels)
    if (traffic := seen.network.get(pod.uid)) is not None:
        yield "pod_network_bytes_total", MetricSample(traffic.received_bytes, (*who, "received"))
        yield "pod_network_bytes_total", MetricSample(traffic.sent_bytes, (*who, "sent"))
    sample = seen.pods.get(pod.uid)
    if isinstance(sample, CgroupSample) and sample.disk is not None:
        yield "pod_disk_bytes_total", MetricSample(sample.disk.read_bytes, (*who, "read"))
        yield "pod_disk_bytes_total", MetricSample(sample.disk.written_bytes, (*who, "written"))
    if isinstance(sample, CgroupSample) and sample.events is not None:
        yield "pod_oom_kills_total", MetricSample(sample.events.oom_kill, who)
