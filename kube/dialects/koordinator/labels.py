"""Koordinator's labels and annotations on pods and nodes; those about gangs are read in `gangs`.

Source: Koordinator apis/extension (qos, priority, node_*, numa_aware) and apis/slo/v1alpha1/node.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import annotated
from model.fault import ConfigurationFault
from model.node import Node
from model.qos import KubernetesQoS, PriorityBand, QoSClass, below_prod, priority_band, qos_class
from model.resources import ResourceVector, parse_resources
from model.topology import parse_cpus

LABEL_QOS = "koordinator.sh/qosClass"
LABEL_PRIORITY_CLASS = "koordinator.sh/priority-class"
ANNOTATION_RESOURCE_STATUS = "scheduling.koordinator.sh/resource-status"
_NODE = "node.koordinator.sh/"
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


def below_prod_of(labels: Mapping[str, str], priority: int | None, qos_label: QoSClass) -> bool:
    """Whether the pod says itself that it is of the mid, batch or free band."""
    return below_prod(labels.get(LABEL_PRIORITY_CLASS), priority, qos_label)


class PinnedTo(msgspec.Struct, frozen=True):
    """Where the scheduler put a pod: a Linux CPU list and NUMA node numbers, ascending."""

    cpuset: str = ""
    numa_zones: tuple[int, ...] = ()


ANYWHERE = PinnedTo()


class _NumaNode(msgspec.Struct, frozen=True):
    node: int


class _ResourceStatus(msgspec.Struct, frozen=True):
    cpuset: str | None = None
    numa: list[_NumaNode] | None = msgspec.field(name="numaNodeResources", default=None)


def pinned_to(annotations: Mapping[str, str]) -> PinnedTo:
    """The pod's resource-status; an unreadable part of it pins to nothing: no zones are every zone."""
    if ANNOTATION_RESOURCE_STATUS not in annotations:
        return ANYWHERE
    try:
        status = annotated(annotations, ANNOTATION_RESOURCE_STATUS, _ResourceStatus, "Pod") or _ResourceStatus()
    except ConfigurationFault:
        return ANYWHERE
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
