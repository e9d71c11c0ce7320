"""Numbers of the agent's metrics: where each comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from agent.core.observe.network import InterfaceTraffic
from agent.core.observe.observation import CgroupSample, Stall
from agent.ports import TickResult
from agent.report.status import AgentStatus
from model.metrics import AGENT, MetricSample
from model.pod.pod import Pod
from model.report import Usage


class Counters(msgspec.Struct, frozen=True):
    """Counts that no tick carries, as the edges and the loop keep them."""

    failed_ticks: Callable[[], int]
    task_restarts: Callable[[], Iterable[tuple[str, int]]]
    sink_failures: Callable[[], Iterable[tuple[str, int]]]
    journal_lost: Callable[[], int]
    listen_failures: Callable[[], Iterable[tuple[str, int]]]
    pod_sockets: Callable[[], int]
    pod_socket_refusals: Callable[[], int]
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


_Series = Iterable[tuple[str, MetricSample]]


def collect(status: AgentStatus, counters: Counters) -> Mapping[str, list[MetricSample]]:
    """Every series there is now, by row of the table; one is absent until its number is known."""
    found: dict[str, list[MetricSample]] = {row.name: [] for row in AGENT.rows}
    series = (_counted(status, counters), *((_of_tick(status.newest),) if status.newest else ()))
    for name, sample in (pair for part in series for pair in part):
        found[name].append(sample)
    return found


def _counted(status: AgentStatus, counters: Counters) -> _Series:
    yield "ticks_total", MetricSample(status.ticks)
    yield "late_ticks_total", MetricSample(status.late_ticks)
    yield "failed_ticks_total", MetricSample(counters.failed_ticks())
    for task, restarts in counters.task_restarts():
        yield "task_restarts_total", MetricSample(restarts, (task,))
    for sink, failures in counters.sink_failures():
        yield "sink_failures_total", MetricSample(failures, (sink,))
    yield "journal_lost_ticks_total", MetricSample(counters.journal_lost())
    for port, failures in counters.listen_failures():
        yield "listen_failures_total", MetricSample(failures, (port,))
    yield "checkpoint_sockets", MetricSample(counters.pod_sockets())
    yield "checkpoint_socket_refusals_total", MetricSample(counters.pod_socket_refusals())
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
        yield "unenforced_limits", MetricSample(1, (each.file, each.reason.value))
    yield "limited_pods", MetricSample(result.limits.limited_pods)
    for need in result.evictions.needs:
        yield "eviction_need", MetricSample(need.value, (need.policy, need.reason.value))
    if (refaulted := result.evictions.refaulted) is not None:
        yield "read_back_bytes", MetricSample(refaulted.value, (refaulted.reason.value,))
    yield "reclaimed_bytes_total", MetricSample(result.shrink.reclaimed_bytes)
    yield "reclaim_steps_total", MetricSample(result.shrink.fruitful_steps, ("freed",))
    yield "reclaim_steps_total", MetricSample(result.shrink.fruitless_steps, ("fruitless",))
    yield "evictions_pending", MetricSample(len(result.evicting.record.pending))
    yield "write_errors", MetricSample(sum(bool(outcome.error) for outcome in result.outcomes))
    yield "configuration_invalid", MetricSample(bool(result.facts.problem))
    yield "settings_not_acted_on", MetricSample(len(result.facts.unmet))
    yield "unlisted_pods", MetricSample(len(result.observation.unlisted_pods))
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
    who, observation = (pod.namespace, pod.name), result.observation
    averages = result.usage.pods.get(pod.uid) if result.usage else None
    if averages is not None and result.usage is not None:
        labels = (*who, pod.colocation.qos.value)
        yield "pod_cpu_usage_cores", MetricSample(averages.last.cpu_millis / 1000, labels)
        yield "pod_memory_usage_bytes", MetricSample(averages.last.memory_bytes, labels)
        if (ratio := result.usage.throttled_ratio.get(pod.uid)) is not None:
            yield "pod_throttled_ratio", MetricSample(ratio, labels)
    if (traffic := observation.network.get(pod.uid)) is not None:
        yield "pod_network_bytes_total", MetricSample(traffic.received_bytes, (*who, "received"))
        yield "pod_network_bytes_total", MetricSample(traffic.sent_bytes, (*who, "sent"))
    sample = observation.pods.get(pod.uid)
    if isinstance(sample, CgroupSample) and sample.disk is not None:
        yield "pod_disk_bytes_total", MetricSample(sample.disk.read_bytes, (*who, "read"))
        yield "pod_disk_bytes_total", MetricSample(sample.disk.written_bytes, (*who, "written"))
    if isinstance(sample, CgroupSample) and sample.events is not None:
        yield "pod_oom_kills_total", MetricSample(sample.events.oom_kill, who)
