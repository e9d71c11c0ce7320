"""Kueue's kinds that queues and workloads name: ResourceFlavor, LocalQueue, WorkloadPriorityClass and Topology.

They read alike in v1beta1 and v1beta2 (Topology: v1alpha1 too).
Source: kueue apis/kueue/{v1beta1,v1beta2}; https://kueue.sigs.k8s.io/docs/concepts/.
"""

from __future__ import annotations

import msgspec

from kube import objects
from kube.dialects.documents.document import checked
from kube.dialects.documents.taints import taint, toleration
from kube.dialects.queues.kueue import FairSharing, StopPolicy, state_of, weight_millis
from model.fault import ConfigurationFault
from model.flavor.resource_flavor import ResourceFlavor, SubmissionQueue

PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
"""Label: the WorkloadPriorityClass that orders a job, whatever its pods' priority."""
PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
"""Annotation of a Workload: a whole number that is added to its priority (KEP-7990)."""
_MOST_LEVELS = 16


class _FlavorSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_labels: dict[str, str] | None = None
    node_taints: list[objects.Taint] | None = None
    tolerations: list[objects.Toleration] | None = None
    topology_name: str | None = None


class _LocalSpec(msgspec.Struct, frozen=True, rename="camel"):
    cluster_queue: str | None = None
    stop_policy: StopPolicy | None = None
    fair_sharing: FairSharing | None = None


class _Level(msgspec.Struct, frozen=True, rename="camel"):
    node_label: str


class _TopologySpec(msgspec.Struct, frozen=True):
    levels: list[_Level]


def flavor(source: objects.ResourceFlavor) -> ResourceFlavor:
    """Raises ConfigurationFault naming the object and the field."""
    where = f"ResourceFlavor {source.metadata.name}"
    spec = checked({} if source.spec is None else source.spec, _FlavorSpec, f"{where}: spec")
    labels = spec.node_labels or {}
    if spec.topology_name and not labels:
        fix = "write at least one node label, or leave it out"
        raise ConfigurationFault(f"{where}: spec.topologyName", "is set without spec.nodeLabels", fix)
    return ResourceFlavor(
        source.metadata.name,
        labels,
        tuple(map(taint, spec.node_taints or ())),
        tuple(map(toleration, spec.tolerations or ())),
        spec.topology_name or "",
    )


def submission_queue(source: objects.LocalQueue) -> SubmissionQueue:
    """Raises ConfigurationFault naming the object and the field."""
    namespace, name = source.metadata.namespace, source.metadata.name
    where = f"LocalQueue {namespace}/{name}"
    spec = checked({} if source.spec is None else source.spec, _LocalSpec, f"{where}: spec")
    if not spec.cluster_queue:
        raise ConfigurationFault(f"{where}: spec.clusterQueue", "is missing", "name a ClusterQueue")
    weight = weight_millis(spec.fair_sharing, where)
    return SubmissionQueue(namespace, name, spec.cluster_queue, state_of(spec.stop_policy), weight)


def priority(source: objects.WorkloadPriorityClass) -> int:
    """What it is worth. Raises ConfigurationFault."""
    value = source.value
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 31) <= value < 1 << 31:
        told = f"is {repr(value)[:60]}" if value is not None else "is missing"
        where = f"WorkloadPriorityClass {source.metadata.name}: value"
        raise ConfigurationFault(where, told, "write a whole number below 2147483648")
    return value


def boosted(priority: int, annotations: dict[str, str] | None, where: str) -> int:
    """A priority with what the annotation adds to it, within 32 bits. Raises ConfigurationFault."""
    text = (annotations or {}).get(PRIORITY_BOOST, "").strip()
    if not text:
        return priority
    try:
        boost = int(text)
        if not -(1 << 31) <= boost < 1 << 31:
            raise ValueError
    except ValueError:
        told = f"is {text[:60]!r}"
        raise ConfigurationFault(f"{where}: annotation {PRIORITY_BOOST}", told, "write a whole number") from None
    return max(-(1 << 31), min((1 << 31) - 1, priority + boost))


def levels(source: objects.Topology) -> tuple[str, ...]:
    """Node label keys from the widest level to the narrowest. Raises ConfigurationFault."""
    where = f"Topology {source.metadata.name}"
    spec = checked({} if source.spec is None else source.spec, _TopologySpec, f"{where}: spec")
    found = tuple(each.node_label for each in spec.levels)
    if not found or len(found) > _MOST_LEVELS or len(set(found)) != len(found) or "" in found:
        told = f"are {', '.join(found)[:120] or 'none'}"
        raise ConfigurationFault(f"{where}: spec.levels", told, f"list 1 to {_MOST_LEVELS} node labels, each once")
    return found
