"""NodeMetric in both directions: what Koordinator's controllers read of a node's use, and what they ask to be measured.

Source: Koordinator apis/slo/v1alpha1/{nodemetric_types,resources}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from kube import objects
from kube.dialects.documents.document import GoDuration, checked
from kube.dialects.documents.duration import go_duration
from kube.dialects.koordinator.sloconfig import CollectPolicy, ReportPolicy
from model.fault import ConfigurationFault
from model.nodemetric import AggregatedUsage, HostApplicationMetric, NodeMetric, NumaUsage, PodMetric
from model.qos import PriorityBand, QoSClass
from model.quantity import format_millis
from model.report import Usage
from model.resources import CPU, MEMORY, ResourceVector, parse_resources

P = TypeVar("P", CollectPolicy, ReportPolicy)
_NATIVE = (CPU, MEMORY)
_MOST_ROWS = {
    ("podsMetric",): 4_096,
    ("hostApplicationMetric",): 1_024,
    ("nodeMetric", "numaUsages"): 1_024,
    ("nodeMetric", "aggregatedNodeUsages"): 64,
    ("nodeMetric", "aggregatedSystemUsages"): 64,
}
_MOST_STATISTICS = 16
"""An agent's token can fill an object of 1.5 MB with the shortest of rows; reading those would take half a second."""


def collect_policy(source: objects.NodeMetric) -> CollectPolicy:
    """What is to be measured. Raises ConfigurationFault naming object and field, as the one below does."""
    return _policy(source, CollectPolicy)


def report_policy(source: objects.NodeMetric) -> ReportPolicy:
    """How it is to be reported."""
    return _policy(source, ReportPolicy)


def _policy(source: objects.NodeMetric, kind: type[P]) -> P:
    where = f"NodeMetric {source.metadata.name}: spec"
    spec = checked({} if source.spec is None else source.spec, dict[str, Any], where)
    policy = spec.get("metricCollectPolicy")
    return checked({} if policy is None else policy, kind, f"{where}.metricCollectPolicy")


def node_metric(source: objects.NodeMetric) -> NodeMetric:
    """The status. Raises ConfigurationFault naming object and field.

    A pod or host application counts with what is known of it; one without CPU and memory was not measured.
    """
    where = f"NodeMetric {source.metadata.name}: status"
    _require_few_rows(source.status, where)
    status = checked({} if source.status is None else source.status, objects.NodeMetricStatus, where)
    node = status.node_metric or objects.NodeMetricInfo()
    at = f"{where}.nodeMetric"
    return NodeMetric(
        updated_seconds=status.update_time.timestamp() if status.update_time else None,
        node=_usage(node.node_usage, f"{at}.nodeUsage"),
        system=_usage(node.system_usage, f"{at}.systemUsage"),
        pods=tuple(_pods(status.pods_metric or (), f"{where}.podsMetric")),
        host_applications=tuple(_applications(status.host_application_metric or (), f"{where}.hostApplicationMetric")),
        prod_reclaimable=_predicted(status.prod_reclaimable_metric, f"{where}.prodReclaimableMetric"),
        prod_peak=_predicted(status.prod_peak_metric, f"{where}.prodPeakMetric"),
        node_aggregates=_aggregates(node.aggregated_node_usages, f"{at}.aggregatedNodeUsages"),
        system_aggregates=_aggregates(node.aggregated_system_usages, f"{at}.aggregatedSystemUsages"),
        numa=tuple(_numa(node.numa_usages or (), f"{at}.numaUsages")),
    )


def _require_few_rows(status: Any, where: str) -> None:
    for path, most in _MOST_ROWS.items():
        rows = status
        for name in path:
            rows = rows.get(name) if isinstance(rows, dict) else None
        if isinstance(rows, list) and len(rows) > most:
            raise ConfigurationFault(f"{where}.{'.'.join(path)}", f"has {len(rows)} rows", f"write at most {most}")


def _usage(source: objects.ResourceMap | None, where: str) -> Usage | None:
    """None where CPU or memory is missing."""
    amounts = _amounts(source, where)
    return None if _missing(amounts) else Usage(amounts[CPU], amounts[MEMORY])


def _amounts(source: objects.ResourceMap | None, where: str) -> ResourceVector:
    told = (source.resources if source else None) or {}
    return parse_resources({name: told[name] for name in _NATIVE if name in told}, f"{where}.resources")


def _missing(amounts: ResourceVector) -> tuple[str, ...]:
    return tuple(name for name in _NATIVE if name not in amounts)


def _pods(rows: Iterable[objects.PodMetricInfo | None], where: str) -> Iterable[PodMetric]:
    for index, row in enumerate(rows):
        amounts = _amounts(row.pod_usage if row else None, f"{where}[{index}].podUsage")
        missing = _missing(amounts)
        if row and missing != _NATIVE:
            band, qos = PriorityBand.of(row.priority), QoSClass.of(row.qos)
            yield PodMetric(row.namespace, row.name, Usage(amounts[CPU], amounts[MEMORY]), band, qos, missing)


def _applications(
    rows: Iterable[objects.HostApplicationMetricInfo | None], where: str
) -> Iterable[HostApplicationMetric]:
    for index, row in enumerate(rows):
        amounts = _amounts(row.usage if row else None, f"{where}[{index}].usage")
        if row and _missing(amounts) != _NATIVE:
            usage = Usage(amounts[CPU], amounts[MEMORY])
            yield HostApplicationMetric(row.name, usage, PriorityBand.of(row.priority), QoSClass.of(row.qos))


def _predicted(source: objects.PredictedMetric | None, where: str) -> Usage | None:
    return _usage(source.resource, f"{where}.resource") if source else None


def _aggregates(rows: list[objects.AggregatedUsageInfo] | None, where: str) -> tuple[AggregatedUsage, ...]:
    found = []
    for index, row in enumerate(rows or ()):
        if (count := len(row.usage or {})) > _MOST_STATISTICS:
            fix = f"write at most {_MOST_STATISTICS}"
            raise ConfigurationFault(f"{where}[{index}].usage", f"has {count} statistics", fix)
        told = {name: _usage(usage, f"{where}[{index}].usage.{name}") for name, usage in (row.usage or {}).items()}
        seconds = checked(row.duration, GoDuration, f"{where}[{index}].duration")
        found.append(AggregatedUsage(float(seconds), {name: usage for name, usage in told.items() if usage}))
    return tuple(found)


def _numa(rows: Iterable[objects.NumaUsageInfo], where: str) -> Iterable[NumaUsage]:
    for index, row in enumerate(rows):
        node = _usage(row.node_usage, f"{where}[{index}].nodeUsage")
        system = _usage(row.system_usage, f"{where}[{index}].systemUsage")
        if node and system:
            yield NumaUsage(row.numa_node_id, node, system)


def status(metric: NodeMetric, update_time: str) -> dict[str, Any]:
    """The whole status for a merge patch: null removes what is not known now. `update_time` is RFC 3339.

    Pods are sorted by namespace and name, host applications by name, as koordlet writes them.
    """
    return {
        "updateTime": update_time,
        "nodeMetric": {
            "nodeUsage": _resource_map(metric.node),
            "systemUsage": _resource_map(metric.system),
            "aggregatedNodeUsages": [_aggregated(item) for item in metric.node_aggregates],
            "aggregatedSystemUsages": [_aggregated(item) for item in metric.system_aggregates],
            "numaUsages": [
                {
                    "numaNodeID": item.numa_id,
                    "nodeUsage": _resource_map(item.node),
                    "systemUsage": _resource_map(item.system),
                }
                for item in metric.numa
            ],
        },
        "podsMetric": [
            {"namespace": pod.namespace, "name": pod.name, "podUsage": _resource_map(pod.usage), **_classes(pod)}
            for pod in sorted(metric.pods, key=lambda pod: (pod.namespace, pod.name))
        ],
        "hostApplicationMetric": [
            {"name": item.name, "usage": _resource_map(item.usage), **_classes(item)}
            for item in sorted(metric.host_applications, key=lambda item: item.name)
        ],
        "prodReclaimableMetric": _prediction(metric.prod_reclaimable),
        "prodPeakMetric": _prediction(metric.prod_peak),
    }


def _classes(item: PodMetric | HostApplicationMetric) -> Mapping[str, str]:
    return {"priority": item.band.value, "qos": item.qos.value}


def _aggregated(item: AggregatedUsage) -> dict[str, Any]:
    usage = {name: _resource_map(usage) for name, usage in item.statistics.items()}
    return {"usage": usage, "duration": go_duration(item.duration_seconds)}


def _prediction(usage: Usage | None) -> dict[str, Any] | None:
    return {"resource": _resource_map(usage)} if usage else None


def _resource_map(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {"resources": {"cpu": format_millis(usage.cpu_millis), "memory": str(usage.memory_bytes)}}
