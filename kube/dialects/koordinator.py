"""Koordinator's labels and annotations on pods and nodes, and the scheduler-plugins PodGroup it builds on.

Source: Koordinator apis/extension (qos, priority, coscheduling, node_*, numa_aware) and apis/slo/v1alpha1/node.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.document import annotated
from kube.dialects.duration import go_duration_seconds
from kube.objects import Metadata, PodGroup
from model.fault import ConfigurationFault
from model.node import Node
from model.pod import Container
from model.qos import KubernetesQoS, PriorityBand, QoSClass, priority_band, qos_class
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, ResourceVector, parse_resources
from model.topology import parse_cpus
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
ANNOTATION_RESOURCE_STATUS = "scheduling.koordinator.sh/resource-status"
_NODE = "node.koordinator.sh/"
ANNOTATION_RESOURCE_SPEC = _NODE + "extended-resource-spec"
ANNOTATION_THIRD_PARTY = _NODE + "thirdPartyAllocations"
ANNOTATION_ORIGIN = _NODE + "originExtendedAllocatable"
ANNOTATION_NORMALIZATION = _NODE + "cpu-normalization-ratio"
ANNOTATION_RAW_ALLOCATABLE = _NODE + "raw-allocatable"
_LARGEST_ZONE = 65_535


def qos_of(labels: Mapping[str, str], kubernetes: KubernetesQoS) -> tuple[QoSClass, QoSClass]:
    """(the label as written or NONE, the class with default)."""
    written = labels.get(LABEL_QOS)
    return QoSClass.of(written), qos_class(written, kubernetes)


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
    if isinstance(minimum, bool) or not isinstance(minimum, int) or not 1 <= minimum < 1 << 31:
        told = "is missing" if minimum is None else f"is {minimum!r}"
        spec = GangSpec(0, problem=f"{where} {told}; write a whole number of 1 or more")
    else:
        seconds = float(timeout) if isinstance(timeout, int) and 0 < timeout < 1 << 31 else None
        spec = _spec(minimum, metadata.annotations or {}, seconds)
    return Gang(
        namespace=metadata.namespace,
        name=metadata.name,
        spec=spec,
        uid=metadata.uid,
        phase=group.status.phase if group.status else "",
        created_seconds=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
    )


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,9}", text) else None


class _Amounts(msgspec.Struct, frozen=True):
    requests: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None


class _ResourceSpec(msgspec.Struct, frozen=True):
    containers: dict[str, _Amounts | None] | None = None


_EXTENDED = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)


def with_extended_resources(containers: tuple[Container, ...], annotations: Mapping[str, str]) -> tuple[Container, ...]:
    """Batch and mid amounts of the webhook's annotation, where a container's own spec has none of them.

    An annotation or amount that cannot be read says nothing.
    """
    if ANNOTATION_RESOURCE_SPEC not in annotations:
        return containers
    try:
        told = annotated(annotations, ANNOTATION_RESOURCE_SPEC, _ResourceSpec, "Pod") or _ResourceSpec()
    except ConfigurationFault:
        return containers
    amounts = told.containers or {}
    return tuple(_extended(each, amounts.get(each.name) or _Amounts()) for each in containers)


def _extended(container: Container, told: _Amounts) -> Container:
    if any(name in of for name in _EXTENDED for of in (container.requests, container.limits)):
        return container
    requests, limits = _readable(told.requests), _readable(told.limits)
    return msgspec.structs.replace(container, requests=container.requests + requests, limits=container.limits + limits)


def _readable(amounts: dict[str, Any] | None) -> ResourceVector:
    try:
        return parse_resources({name: (amounts or {})[name] for name in _EXTENDED if name in (amounts or {})}, "Pod")
    except ConfigurationFault:
        return ResourceVector()


class PinnedTo(msgspec.Struct, frozen=True):
    """Where the scheduler put a pod: a Linux CPU list and NUMA node numbers, ascending."""

    cpuset: str = ""
    numa_zones: tuple[int, ...] = ()


class _NumaNode(msgspec.Struct, frozen=True):
    node: int


class _ResourceStatus(msgspec.Struct, frozen=True):
    cpuset: str | None = None
    numa: list[_NumaNode] | None = msgspec.field(name="numaNodeResources", default=None)


def pinned_to(annotations: Mapping[str, str]) -> PinnedTo:
    """The pod's resource-status; an unreadable part of it pins to nothing: no zones are every zone."""
    try:
        status = annotated(annotations, ANNOTATION_RESOURCE_STATUS, _ResourceStatus, "Pod") or _ResourceStatus()
    except ConfigurationFault:
        return PinnedTo()
    zones = {item.node for item in status.numa or () if 0 <= item.node <= _LARGEST_ZONE}
    return PinnedTo(_cpu_list(status.cpuset or ""), tuple(sorted(zones)))


def _cpu_list(text: str) -> str:
    """The text, empty where it is not a Linux CPU list."""
    try:
        parse_cpus(text)
    except ValueError:
        return ""
    return text


class _Allocation(msgspec.Struct, frozen=True):
    priority: str = ""
    resources: dict[str, Any] | None = None


class _Allocations(msgspec.Struct, frozen=True):
    allocations: list[_Allocation] | None = None


def third_party(node: Node) -> ResourceVector | None:
    """What other schedulers gave away, None without the annotation; only koord-batch is lent twice without it.

    Raises ConfigurationFault naming Node, annotation, field and what to write, as the two below do.
    """
    told = annotated(node.annotations, ANNOTATION_THIRD_PARTY, _Allocations, f"Node {node.name}")
    if told is None:
        return None
    total = ResourceVector()
    for index, allocation in enumerate(told.allocations or ()):
        where = f"{_where(node, ANNOTATION_THIRD_PARTY)}.allocations[{index}].resources"
        amounts = parse_resources(allocation.resources or {}, where)
        total = total + amounts if allocation.priority == PriorityBand.BATCH else total
    return total


def normalization_ratio(node: Node) -> float | None:
    """The ratio the Node carries, None without one."""
    text = node.annotations.get(ANNOTATION_NORMALIZATION, "").strip()
    if not text:
        return None
    ratio = float(text) if re.fullmatch(r"[0-9](\.[0-9]{1,9})?", text) else 0.0
    if not 1 <= ratio <= 5:
        where = _where(node, ANNOTATION_NORMALIZATION)
        raise ConfigurationFault(where, f"is {text[:60]!r}", "write a number from 1.00 to 5.00")
    return ratio


def raw_allocatable(node: Node) -> ResourceVector | None:
    """What was allocatable before amplification, None on a node that is not amplified."""
    told = annotated(node.annotations, ANNOTATION_RAW_ALLOCATABLE, dict[str, Any], f"Node {node.name}")
    return None if told is None else parse_resources(told, _where(node, ANNOTATION_RAW_ALLOCATABLE))


def _where(node: Node, name: str) -> str:
    return f"Node {node.name}: annotation {name}"


def lending_annotations(origin: Mapping[str, int] | None, ratio: float | None) -> dict[str, str | None]:
    """What a Node carries beside the lent amounts: those before third parties' share, and the CPU's ratio.

    None removes: an origin stands only as long as the Node speaks of third parties. Without a ratio to write the one
    that stands is left.
    """
    amounts = {name: str(origin[name]) for name in sorted(origin)} if origin is not None else None
    told: dict[str, str | None] = {
        ANNOTATION_ORIGIN: msgspec.json.encode({"resources": amounts}).decode() if amounts is not None else None
    }
    if ratio is not None:
        told[ANNOTATION_NORMALIZATION] = f"{ratio:.2f}"
    return told
