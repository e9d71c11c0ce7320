"""Kubernetes' own Pods and Nodes into the model."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kube import objects
from kube.dialects import koordinator
from kube.dialects.eviction import eviction_terms
from model.node import Node, Taint
from model.pod import Container, Pod, PodPhase, Toleration
from model.qos import KubernetesQoS
from model.resources import CPU, MEMORY, ResourceVector, parse_resources

_CONFIG_HASH = "kubernetes.io/config.hash"
_CONFIG_MIRROR = "kubernetes.io/config.mirror"
_DEFAULT_GRACE_SECONDS = 30
_LONGEST_GRACE_SECONDS = 365 * 86_400
_DIRECTORY_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}")


def pod(source: objects.Pod) -> Pod:
    """Raises ConfigurationFault naming the pod, the container and the resource that cannot be read."""
    metadata, spec = source.metadata, source.spec
    where = f"Pod {metadata.namespace}/{metadata.name}"
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    containers = tuple(_container(item, where) for item in spec.containers)
    init = tuple(_init_container(item, where) for item in spec.init_containers or ())
    whole = _asked(spec.resources, "", f"{where}: spec.resources")
    kubernetes = _kubernetes_qos(source.status, [whole] if whole != Container("") else [*containers, *init])
    label, qos = koordinator.qos_of(labels, kubernetes)
    pinned = koordinator.pinned_to(annotations)
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        requests=_effective_request(containers, init, whole)
        + parse_resources(spec.overhead or {}, f"{where}: spec.overhead"),
        containers=koordinator.with_extended_resources(containers, annotations),
        qos=qos,
        qos_label=label,
        kubernetes_qos=kubernetes,
        band=koordinator.band_of(labels, spec.priority, qos),
        priority=spec.priority or 0,
        phase=_phase(source.status.phase),
        node_name=spec.node_name,
        scheduler_name=spec.scheduler_name,
        gang=koordinator.gang_of(metadata),
        node_selector=spec.node_selector or {},
        tolerations=tuple(_toleration(item) for item in spec.tolerations or []),
        gated=bool(spec.scheduling_gates),
        deleting=metadata.deletion_timestamp is not None,
        created_seconds=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
        container_ids=_container_ids(source.status),
        cgroup_uid=_cgroup_uid(metadata),
        host_network=spec.host_network,
        numa_zones=pinned.numa_zones,
        cpuset=pinned.cpuset,
        unsupported=tuple(_unsupported(spec)),
        init_containers=koordinator.with_extended_resources(init, annotations),
        eviction=eviction_terms(labels, annotations),
        grace_seconds=_grace_seconds(spec.termination_grace_period_seconds),
    )


def node(source: objects.Node) -> Node:
    """Raises ConfigurationFault naming the node and the resource that cannot be read."""
    metadata = source.metadata
    where = f"Node {metadata.name}: status"
    return Node(
        name=metadata.name,
        capacity=parse_resources(source.status.capacity or {}, f"{where}.capacity"),
        allocatable=parse_resources(source.status.allocatable or {}, f"{where}.allocatable"),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        taints=tuple(Taint(item.key, item.value, item.effect) for item in source.spec.taints or []),
        unschedulable=source.spec.unschedulable,
        uid=metadata.uid,
    )


def _container(source: objects.Container, where: str) -> Container:
    return _asked(source.resources, source.name, f"{where}: container {source.name}.resources")


def _init_container(source: objects.Container, where: str) -> Container:
    """One that is always restarted is a sidecar."""
    return msgspec.structs.replace(_container(source, where), sidecar=source.restart_policy == "Always")


def _grace_seconds(told: int | None) -> float:
    """A negative grace counts as 1 s, as in Kubernetes."""
    if told is None:
        return float(_DEFAULT_GRACE_SECONDS)
    return float(min(told, _LONGEST_GRACE_SECONDS)) if told >= 0 else 1.0


def _asked(source: objects.Resources | None, name: str, field: str) -> Container:
    """Of a container, or of the pod as a whole."""
    resources = source or objects.Resources()
    return Container(
        name=name,
        requests=parse_resources(resources.requests or {}, f"{field}.requests"),
        limits=parse_resources(resources.limits or {}, f"{field}.limits"),
    )


def _effective_request(containers: Sequence[Container], init: Sequence[Container], whole: Container) -> ResourceVector:
    """max(Σ containers + Σ sidecars, max over init containers of it + preceding sidecars), without overhead.

    What the pod asks for as a whole replaces that; its limit stands for a request that neither it nor a container
    makes (https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/).
    """
    total = sum((item.requests for item in containers), ResourceVector())
    sidecars, peak = ResourceVector(), ResourceVector()
    for own in init:
        if own.sidecar:
            sidecars = sidecars + own.requests
            peak = peak.maximum(sidecars)
        else:
            peak = peak.maximum(sidecars + own.requests)
    summed = (total + sidecars).maximum(peak)
    limits = {name: whole.limits[name] for name in whole.limits if name not in summed}
    return ResourceVector({**summed.amounts, **limits, **whole.requests.amounts})


def _kubernetes_qos(status: objects.PodStatus, asked: Sequence[Container]) -> KubernetesQoS:
    """status.qosClass is what the kubelet acts on; computed only before the server has filled it in.

    `asked` is the pod as a whole where that says anything, else every container.
    """
    written = status.qos_class
    if written in [member.value for member in KubernetesQoS]:
        return KubernetesQoS(written)
    amounts = [(item.requests[name], item.limits[name]) for item in asked for name in (CPU, MEMORY)]
    if not any(request or limit for request, limit in amounts):
        return KubernetesQoS.BEST_EFFORT
    full = all(limit > 0 and request in (0, limit) for request, limit in amounts)
    return KubernetesQoS.GUARANTEED if full else KubernetesQoS.BURSTABLE


def _container_ids(status: objects.PodStatus) -> dict[str, str]:
    """Of every container that was ever started, init containers and sidecars among them."""
    told = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
    return {item.name: item.container_id.rpartition("://")[2] for item in told if item.container_id}


def _cgroup_uid(metadata: objects.Metadata) -> str:
    """A mirror stands for a static pod, which the kubelet runs under the hash of its configuration.

    The hash becomes a directory's name: a text that could lead elsewhere is not one.
    """
    annotations = metadata.annotations or {}
    config = annotations.get(_CONFIG_HASH, "") if _CONFIG_MIRROR in annotations else ""
    return config if _DIRECTORY_NAME.fullmatch(config) else metadata.uid


def _phase(text: str) -> PodPhase:
    return PodPhase(text) if text in [member.value for member in PodPhase] else PodPhase.PENDING


def _toleration(source: objects.Toleration) -> Toleration:
    return Toleration(source.key, source.operator or "Equal", source.value, source.effect)


def _unsupported(spec: objects.PodSpec) -> list[str]:
    """Constraints this version cannot honour, in the words of the pod's own spec."""
    found = [f"spec.affinity.{key}" for key, value in (spec.affinity or {}).items() if _requires(value)]
    if any(
        c.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for c in spec.topology_spread_constraints or []
    ):
        found.append("spec.topologySpreadConstraints")
    if any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in spec.volumes or []):
        found.append("spec.volumes.persistentVolumeClaim")
    if spec.resource_claims:
        found.append("spec.resourceClaims")
    if any(port.get("hostPort") for container in spec.containers for port in container.ports or []):
        found.append("spec.containers.ports.hostPort")
    return found


def _requires(terms: object) -> bool:
    return isinstance(terms, dict) and bool(terms.get("requiredDuringSchedulingIgnoredDuringExecution"))
