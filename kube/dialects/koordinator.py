"""Koordinator's labels, annotations and NodeSLO, and the scheduler-plugins PodGroup it builds on.

Source: Koordinator apis/extension (qos, priority, coscheduling) and apis/slo/v1alpha1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kube.objects import Metadata, NodeSLO, PodGroup
from model.fault import ConfigurationFault
from model.qos import KubernetesQoS, PriorityBand, QoSClass, priority_band, qos_class
from model.quantity import format_millis
from model.report import Usage
from model.strategy import SuppressStrategy
from model.workload import DEFAULT_GANG_TIMEOUT_SECONDS, Gang, GangMembership, GangMode, GangSource, GangSpec

LABEL_QOS = "koordinator.sh/qosClass"
LABEL_PRIORITY_CLASS = "koordinator.sh/priority-class"
LABEL_POD_GROUP = "pod-group.scheduling.sigs.k8s.io"
LABEL_LIGHTWEIGHT_NAME = "pod-group.scheduling.sigs.k8s.io/name"
LABEL_LIGHTWEIGHT_MIN = "pod-group.scheduling.sigs.k8s.io/min-available"
_GANG = "gang.scheduling.koordinator.sh/"
ANNOTATION_GANG_NAME = _GANG + "name"
ANNOTATION_GANG_MIN = _GANG + "min-available"
ANNOTATION_GANG_TOTAL = _GANG + "total-number"
ANNOTATION_GANG_MODE = _GANG + "mode"
ANNOTATION_GANG_WAIT = _GANG + "waiting-time"

_SUPPRESS_POLICIES = ("adaptive", "cfsQuota", "cpuset")
_DURATION_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?)(ns|us|µs|ms|h|m|s)")


def qos_of(labels: Mapping[str, str], kubernetes: KubernetesQoS) -> tuple[QoSClass, QoSClass]:
    """(the label as written or NONE, the class with default)."""
    written = labels.get(LABEL_QOS)
    label = QoSClass(written) if written and written in [q.value for q in QoSClass] else QoSClass.NONE
    return label, qos_class(written, kubernetes)


def band_of(labels: Mapping[str, str], priority: int | None, qos: QoSClass) -> PriorityBand:
    """The priority band with default."""
    return priority_band(labels.get(LABEL_PRIORITY_CLASS), priority, qos)


def gang_of(metadata: Metadata) -> GangMembership | None:
    """A pod's gang: PodGroup label first, then the lightweight label, then the annotation."""
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    if name := labels.get(LABEL_POD_GROUP):
        return GangMembership(metadata.namespace, name, GangSource.POD_GROUP)
    name = labels.get(LABEL_LIGHTWEIGHT_NAME) or annotations.get(ANNOTATION_GANG_NAME, "")
    if not name:
        return None
    minimum = labels.get(LABEL_LIGHTWEIGHT_MIN) or annotations.get(ANNOTATION_GANG_MIN)
    return GangMembership(metadata.namespace, name, GangSource.ANNOTATION, _annotated_spec(minimum, annotations))


def _annotated_spec(minimum: str | None, annotations: Mapping[str, str]) -> GangSpec:
    if minimum is None:
        return GangSpec(
            0, problem=f"annotation {ANNOTATION_GANG_MIN} is missing; set it to the number of members needed"
        )
    count = _whole(minimum)
    if count is None or count < 1:
        return GangSpec(
            0, problem=f"annotation {ANNOTATION_GANG_MIN} is {minimum!r}; write a whole number of 1 or more"
        )
    return _spec(count, annotations, go_duration_seconds(annotations.get(ANNOTATION_GANG_WAIT, "")))


def _spec(minimum: int, annotations: Mapping[str, str], timeout_seconds: float | None) -> GangSpec:
    """Illegal total, mode and time fall back as Koordinator does: minimum, Strict, 600 s."""
    total = _whole(annotations.get(ANNOTATION_GANG_TOTAL, ""))
    loose = annotations.get(ANNOTATION_GANG_MODE) == GangMode.NON_STRICT.value
    return GangSpec(
        min_member=minimum,
        total=total if total is not None and total >= minimum else minimum,
        mode=GangMode.NON_STRICT if loose else GangMode.STRICT,
        timeout_seconds=timeout_seconds if timeout_seconds and timeout_seconds > 0 else DEFAULT_GANG_TIMEOUT_SECONDS,
    )


def pod_group(group: PodGroup) -> Gang:
    """A PodGroup object; a minMember below 1 becomes the spec's `problem`, naming object and field."""
    metadata = group.metadata
    where = f"PodGroup {metadata.namespace}/{metadata.name}: spec.minMember"
    minimum = group.spec.min_member
    timeout = group.spec.schedule_timeout_seconds
    if isinstance(minimum, bool) or not isinstance(minimum, int) or minimum < 1:
        told = "is missing" if minimum is None else f"is {minimum!r}"
        spec = GangSpec(0, problem=f"{where} {told}; write a whole number of 1 or more")
    else:
        seconds = float(timeout) if isinstance(timeout, int) and timeout > 0 else None
        spec = _spec(minimum, metadata.annotations or {}, seconds)
    return Gang(
        namespace=metadata.namespace,
        name=metadata.name,
        spec=spec,
        uid=metadata.uid,
        phase=group.status.phase if group.status else "",
        created_seconds=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
    )


def suppress_strategy(slo: NodeSLO, defaults: SuppressStrategy) -> SuppressStrategy:
    """The node's CPU suppression settings. Raises ConfigurationFault naming object, field and fix."""
    where = f"NodeSLO {slo.metadata.name}: spec"
    if slo.spec is not None and not isinstance(slo.spec, dict):
        raise ConfigurationFault(where, "is not an object", "write fields under it, or remove it")
    where += ".resourceUsedThresholdWithBE"
    section = (slo.spec or {}).get("resourceUsedThresholdWithBE")
    if section is None:
        return defaults
    if not isinstance(section, dict):
        raise ConfigurationFault(where, "is not an object", "write fields under it, or remove it")
    minimum = _percent(section, "cpuSuppressMinPercent", where)
    threshold = _percent(section, "cpuSuppressThresholdPercent", where)
    return SuppressStrategy(
        enable=_flag(section, "enable", where, defaults.enable),
        threshold_pct=defaults.threshold_pct if threshold is None else threshold,
        min_pct=defaults.min_pct if minimum is None else minimum,
        policy=_choice(section, "cpuSuppressPolicy", where, _SUPPRESS_POLICIES, defaults.policy),
    )


def _percent(section: Mapping[str, Any], field: str, where: str) -> int | None:
    value = section.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:
        raise ConfigurationFault(f"{where}.{field}", f"is {value!r}", "write a whole number from 0 to 100")
    return value


def _flag(section: Mapping[str, Any], field: str, where: str, default: bool) -> bool:
    value = section.get(field, default)
    if not isinstance(value, bool):
        raise ConfigurationFault(f"{where}.{field}", f"is {value!r}", "write true or false")
    return value


def _choice(section: Mapping[str, Any], field: str, where: str, allowed: tuple[str, ...], default: str) -> str:
    value = section.get(field) or default
    if value not in allowed:
        raise ConfigurationFault(f"{where}.{field}", f"is {value!r}", f"write one of {', '.join(allowed)}")
    return str(value)


def go_duration_seconds(text: str) -> float | None:
    """A Go duration such as `1h30m`; None where it is not one."""
    if not text or "".join(number + unit for number, unit in _DURATION_PART.findall(text)) != text:
        return None
    return sum(float(number) * _DURATION_UNITS[unit] for number, unit in _DURATION_PART.findall(text))


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,9}", text) else None


class PodMetric(msgspec.Struct, frozen=True):
    """One row of NodeMetric's podsMetric."""

    namespace: str
    name: str
    usage: Usage
    priority: str
    qos: str


def node_metric_status(update_time: str, node: Usage, system: Usage, pods: Iterable[PodMetric]) -> dict[str, Any]:
    """NodeMetric's status; `update_time` is RFC 3339. Pods sorted by namespace and name, as koordlet writes them."""
    return {
        "updateTime": update_time,
        "nodeMetric": {"nodeUsage": _resource_map(node), "systemUsage": _resource_map(system)},
        "podsMetric": [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "podUsage": _resource_map(pod.usage),
                "priority": pod.priority,
                "qos": pod.qos,
            }
            for pod in sorted(pods, key=lambda pod: (pod.namespace, pod.name))
        ],
    }


def _resource_map(usage: Usage) -> dict[str, Any]:
    return {"resources": {"cpu": format_millis(usage.cpu_millis), "memory": str(usage.memory_bytes)}}
