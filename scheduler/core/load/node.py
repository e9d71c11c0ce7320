"""One node's load: what was measured, and what its pods will use that no measurement shows yet.

Source: Koordinator plugins/loadaware/pod_assign_cache.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from model.loadlimits import LoadLimits, Statistic
from model.nodemetric import AggregatedUsage, NodeMetric
from model.qos import PriorityBand
from model.report import NodeReport, Usage
from scheduler.core.load.policy import LoadPolicy, limits_of

REPORT_SECONDS = 60.0
"""How often a NodeMetric is written where it does not say (Koordinator DefaultNodeMetricReportInterval)."""
_NOTHING = Usage()


class Measured(msgspec.Struct, frozen=True):
    """A node's use as one source saw it at `seconds` (Unix); pods by `namespace/name`.

    A pod assigned later than `interval_seconds` before that is not reflected yet. `all_pods`: a pod that is not listed
    was not measured; otherwise that holds for best-effort pods alone.
    """

    seconds: float
    interval_seconds: float
    node: Usage
    pods: Mapping[str, Usage]
    all_pods: bool = True
    prod_pods: frozenset[str] = frozenset()
    system: Usage = _NOTHING
    aggregates: tuple[AggregatedUsage, ...] = ()


class Assigned(msgspec.Struct, frozen=True):
    """A pod that runs on the node or is on its way; `until_seconds` is how long its estimate stands, 0: not at all."""

    key: str
    estimate: Usage
    assigned_seconds: float
    prod: bool = False
    best_effort: bool = False
    until_seconds: float = 0.0


class Level(msgspec.Struct, frozen=True):
    """What is in use, estimates included, by a measurement of that time."""

    usage: Usage
    seconds: float


class NodeLoad(msgspec.Struct, frozen=True):
    """What scores count, what limits count, what prod pods use (None: not known), and the limits that hold.

    `unfilled`: the node has a NodeMetric, and it does not say what the node uses.
    """

    scored: Level | None = None
    limited: Level | None = None
    prod: Level | None = None
    limits: LoadLimits = LoadLimits()
    unfilled: bool = False


def from_metric(metric: NodeMetric, now: float, interval_seconds: float = REPORT_SECONDS) -> Measured | None:
    """None where the document was never written or has no usage of the node; one from the future counts as from now."""
    if metric.updated_seconds is None or metric.node is None:
        return None
    return Measured(
        min(metric.updated_seconds, now),
        interval_seconds,
        metric.node,
        {pod.key: pod.usage for pod in metric.pods},
        prod_pods=frozenset(pod.key for pod in metric.pods if pod.band is PriorityBand.PROD),
        system=metric.system or _NOTHING,
        aggregates=metric.node_aggregates,
    )


def from_report(report: NodeReport, now: float, policy: LoadPolicy) -> Measured:
    """What the agent says over the link; a report from the future counts as from now."""
    pods = {f"{pod.namespace}/{pod.name}": pod.usage for pod in report.pods}
    return Measured(min(report.observed_at_seconds, now), policy.live_seconds, report.node, pods, all_pods=False)


def node_load(
    metric: Measured | None, live: Measured | None, pods: Iterable[Assigned], policy: LoadPolicy, own: LoadLimits
) -> NodeLoad:
    """The node's load by its NodeMetric and its agent's newest report, whichever is fresher; `own` are its own limits.

    Statistics and the use of prod pods are in the NodeMetric alone, so they are as old as that.
    """
    limits = limits_of(policy, own)
    pods = tuple(pods)
    newest = _current(metric, live, pods)
    return NodeLoad(
        newest if not policy.score_statistic.kind else _aggregated(metric, pods, policy.score_statistic),
        newest if not limits.statistic.kind else _aggregated(metric, pods, limits.statistic),
        _prod(metric, pods, policy) if limits.prod or policy.score_prod_usage else None,
        limits,
    )


def _current(metric: Measured | None, live: Measured | None, pods: Iterable[Assigned]) -> Level | None:
    source = live if live is not None and (metric is None or live.seconds > metric.seconds) else metric
    if source is None:
        return None
    others = metric.pods if metric is not None else {}
    return Level(_plus(source.node, pods, lambda pod: _missing(pod, source, others)), source.seconds)


def _aggregated(metric: Measured | None, pods: Iterable[Assigned], statistic: Statistic) -> Level | None:
    """By the statistic; by the newest usage where the node reports none of that kind, and by estimates alone where only
    the duration asked for is missing.
    """
    if metric is None:
        return None
    of_kind = [row for row in metric.aggregates if statistic.kind in row.statistics and row.duration_seconds > 0]
    if statistic.duration_seconds > 0:
        of_kind = [row for row in of_kind if row.duration_seconds == statistic.duration_seconds]
        if not of_kind:
            return Level(_plus(_NOTHING, pods, lambda pod: pod.estimate), metric.seconds)
    longest = max(of_kind, key=lambda row: row.duration_seconds, default=None)
    base = longest.statistics[statistic.kind] if longest is not None else metric.node
    return Level(_plus(base, pods, lambda pod: _missing(pod, metric, {})), metric.seconds)


def _prod(metric: Measured | None, pods: Iterable[Assigned], policy: LoadPolicy) -> Level | None:
    """Only a pod that calls itself prod and is reported as such counts with what it was measured to use."""
    if metric is None:
        return None
    prods = [pod for pod in pods if pod.prod]
    base = metric.system if policy.prod_includes_system else _NOTHING
    used = _plus(base, prods, lambda pod: metric.pods[pod.key] if pod.key in metric.prod_pods else _NOTHING)
    return Level(_plus(used, prods, lambda pod: _missing_prod(pod, metric)), metric.seconds)


def _missing_prod(pod: Assigned, metric: Measured) -> Usage:
    measured_otherwise = pod.key in metric.pods and pod.key not in metric.prod_pods
    return pod.estimate if measured_otherwise else _missing(pod, metric, {})


def _missing(pod: Assigned, source: Measured, others: Mapping[str, Usage]) -> Usage:
    """What of a pod's estimate the measurement does not show; nothing of a pod that is reflected."""
    used = source.pods.get(pod.key)
    unmeasured = used is None and (source.all_pods or pod.best_effort)
    recent = pod.assigned_seconds > source.seconds - source.interval_seconds or pod.until_seconds > source.seconds
    if not unmeasured and not recent:
        return _NOTHING
    used = used or (_NOTHING if unmeasured else others.get(pod.key, _NOTHING))
    return Usage(
        max(pod.estimate.cpu_millis - used.cpu_millis, 0), max(pod.estimate.memory_bytes - used.memory_bytes, 0)
    )


def _plus(base: Usage, pods: Iterable[Assigned], share: Callable[[Assigned], Usage]) -> Usage:
    cpu, memory = base.cpu_millis, base.memory_bytes
    for pod in pods:
        more = share(pod)
        if more is not _NOTHING:
            cpu, memory = cpu + more.cpu_millis, memory + more.memory_bytes
    return Usage(cpu, memory)
