"""Kubernetes' own objects into the model: pods, nodes, and what decides where a pod may go or who may be evicted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kube import objects
from kube.dialects.documents.document import checked
from kube.dialects.documents.selector import LabelSelector
from kube.dialects.documents.taints import taint, toleration
from kube.dialects.gangs.membership import USUAL, GangDefaults, gang_of, rank_of
from kube.dialects.gangs.volcano import TASK
from kube.dialects.koordinator import labels as koordinator
from kube.dialects.koordinator.cpubinding import cpu_request, cpu_rules
from kube.dialects.koordinator.cpuburst import burst_terms
from kube.dialects.koordinator.cpuqos import pod_identity
from kube.dialects.koordinator.loadaware import load_terms
from kube.dialects.koordinator.memoryqos import pod_memory
from kube.dialects.koordinator.oomscores import oom_scores
from kube.dialects.queues.membership import named_queues
from kube.dialects.queues.placed_flavors import named_flavors
from kube.dialects.sublet import preemption
from kube.dialects.sublet.eviction import eviction_terms
from kube.dialects.sublet.pod_annotations import charged_queue, minimum_member
from kube.dialects.upstream import podstate
from kube.dialects.upstream.affinity import affinity, spread
from kube.dialects.upstream.amounts import WrittenAmounts, amounts_of
from kube.dialects.upstream.storage import claim, volume
from model.budget import DisruptionBudget
from model.fault import ConfigurationFault
from model.node import Node
from model.pod.affinity import Affinity, HostPort
from model.pod.colocation import Colocation
from model.pod.pod import Pod
from model.pod.spec import PodSpec
from model.pod.status import PodStatus
from model.priority import PriorityClass
from model.qos import KubernetesQoS
from model.queue import DEFAULT_QUEUE
from model.resources import CPU, parse_resources
from model.selector import Selector

__all__ = ["budget", "claim", "namespace_labels", "node", "pod", "priority_class", "volume"]

_CONFIG_HASH = "kubernetes.io/config.hash"
_CONFIG_MIRROR = "kubernetes.io/config.mirror"
_DEFAULT_GRACE_SECONDS = 30
_LONGEST_GRACE_SECONDS = 365 * 86_400
_LONGEST_NAME = 253
"""An API server bounds the names of objects, but not what a pod says of its owner."""
_MOST_SELECTOR_PARTS = 1_000
"""Of a budget, which is read anew whenever it changes: 20,000 took 35 ms, and who may write it changes two bytes."""
_DIRECTORY_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}")


def pod(source: objects.Pod, defaults: GangDefaults = USUAL) -> Pod:
    """Raises ConfigurationFault naming the pod and the field that cannot be read."""
    metadata = source.metadata
    labels = metadata.labels or {}
    amounts = amounts_of(source.spec, _where(metadata), source.status)
    kubernetes = amounts.kubernetes_qos(source.status.qos_class)
    owner = next((each for each in metadata.owner_references or () if each.controller), None)
    spec = _spec(source, amounts, defaults)
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        spec=spec,
        status=_status(source.status, kubernetes),
        colocation=_colocation(source, kubernetes, spec.requests[CPU]),
        labels=labels,
        created_seconds=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp else 0.0,
        deleting=metadata.deletion_timestamp is not None,
        ends_seconds=metadata.deletion_timestamp.timestamp() if metadata.deletion_timestamp else 0.0,
        owned=owner is not None,
        owner=f"{metadata.namespace}/{owner.name[:_LONGEST_NAME]}" if owner is not None else "",
        owner_kind=owner.kind[:_LONGEST_NAME] if owner is not None else "",
        daemon=owner is not None and owner.kind == "DaemonSet",
        cgroup_uid=_cgroup_uid(metadata),
    )


def _where(metadata: objects.Metadata) -> str:
    return f"Pod {metadata.namespace}/{metadata.name}"


def _spec(source: objects.Pod, amounts: WrittenAmounts, defaults: GangDefaults) -> PodSpec:
    metadata, spec = source.metadata, source.spec
    where, labels, annotations = _where(metadata), metadata.labels or {}, metadata.annotations or {}
    requests = amounts.requests()
    certain = amounts_of(spec, where, source.status, least=True).requests() if amounts.resized else None
    named = named_queues(metadata)
    return PodSpec(
        requests=requests,
        certain=certain,
        limits=amounts.limits(),
        scored=amounts.scored(requests),
        containers=amounts.containers,
        init_containers=amounts.init,
        node_name=spec.node_name,
        scheduler_name=spec.scheduler_name,
        gated=bool(spec.scheduling_gates),
        queue=named.queue or DEFAULT_QUEUE,
        named_queue=named.queue,
        local_queue=named.local,
        named_flavors=named_flavors(annotations),
        charged_queue=charged_queue(annotations, spec.node_name),
        gang=gang_of(metadata, spec.scheduling_group, defaults),
        task=annotations.get(TASK, ""),
        rank=rank_of(labels, annotations),
        priority=spec.priority or 0,
        preemption_policy=preemption.policy(spec.preemption_policy, labels, annotations),
        node_selector=spec.node_selector or {},
        affinity=_affinity(spec, metadata.namespace, labels, f"{where}: spec.affinity"),
        spread=spread(spec.topology_spread_constraints, labels, f"{where}: spec.topologySpreadConstraints"),
        tolerations=tuple(toleration(item) for item in spec.tolerations or ()),
        host_ports=tuple(_host_ports(spec)),
        host_network=spec.host_network,
        claims=tuple(_claims(metadata.name, spec)),
        unsupported=("spec.resourceClaims",) if spec.resource_claims else (),
        grace_seconds=_grace_seconds(spec.termination_grace_period_seconds),
        deadline_seconds=_deadline_seconds(spec.active_deadline_seconds),
    )


def _status(status: objects.PodStatus, kubernetes: KubernetesQoS) -> PodStatus:
    known = podstate.conditions(status.conditions or ())
    return PodStatus(
        phase=podstate.phase(status),
        kubernetes_qos=kubernetes,
        scheduled_seconds=known.scheduled_seconds,
        initialized_seconds=known.initialized_seconds,
        started_seconds=status.start_time.timestamp() if status.start_time else 0.0,
        container_ids=podstate.container_ids(status),
        nominated_node=status.nominated_node_name,
        disrupted=known.disrupted,
        evicted=known.evicted,
        rejected=podstate.rejected(status),
    )


def _colocation(source: objects.Pod, kubernetes: KubernetesQoS, cpu_millis: int) -> Colocation:
    labels, annotations = source.metadata.labels or {}, source.metadata.annotations or {}
    priority = source.spec.priority
    label, qos = koordinator.qos_of(labels, kubernetes)
    pinned = koordinator.pinned_to(annotations)
    band = koordinator.band_of(labels, priority, qos)
    return Colocation(
        qos=qos,
        qos_label=label,
        band=band,
        below_prod=koordinator.below_prod_of(labels, priority, label),
        preemptible=preemption.preemptible(labels, annotations),
        minimum_member=minimum_member(annotations),
        eviction=eviction_terms(labels, annotations),
        load=load_terms(annotations),
        burst=burst_terms(annotations),
        numa_zones=pinned.numa_zones,
        cpuset=pinned.cpuset,
        cpus=cpu_request(annotations, label, band, cpu_millis),
        memory_qos=pod_memory(annotations),
        cpu_identity=pod_identity(annotations),
        oom_scores=oom_scores(annotations),
    )


def _affinity(spec: objects.PodSpec, namespace: str, labels: Mapping[str, str], where: str) -> Affinity:
    """Of a pod that has its node, what it asks of nodes is settled, and need not be readable.

    API servers admit Gt and Lt with any text. An agent that left such a pod out would limit and evict it never, and a
    scheduler would give its node no other pods.
    """
    try:
        return affinity(spec.affinity, namespace, labels, where)
    except ConfigurationFault:
        if not spec.node_name:
            raise
        of_pods = {kind: terms for kind, terms in (spec.affinity or {}).items() if kind != "nodeAffinity"}
        return affinity(of_pods, namespace, labels, where)


def node(source: objects.Node) -> Node:
    """Raises ConfigurationFault naming the node and the resource that cannot be read."""
    metadata = source.metadata
    where = f"Node {metadata.name}: status"
    capacity = parse_resources(source.status.capacity or {}, f"{where}.capacity")
    allocatable = parse_resources(source.status.allocatable or {}, f"{where}.allocatable")
    return Node(
        name=metadata.name,
        capacity=capacity,
        allocatable=allocatable,
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        taints=tuple(taint(item) for item in source.spec.taints or []),
        unschedulable=source.spec.unschedulable,
        uid=metadata.uid,
        cpu_rules=cpu_rules(metadata.labels or {}, max(capacity[CPU], allocatable[CPU])),
    )


def budget(source: objects.PodDisruptionBudget) -> DisruptionBudget:
    """Raises ConfigurationFault naming the budget and what of its selector cannot be read."""
    metadata, status = source.metadata, source.status or objects.DisruptionBudgetStatus()
    where = f"PodDisruptionBudget {metadata.namespace}/{metadata.name}: spec.selector"
    told = checked(source.spec.selector, LabelSelector, where) if source.spec.selector else None
    if told is not None and told.parts > _MOST_SELECTOR_PARTS:
        fix = f"name at most {_MOST_SELECTOR_PARTS}; as it is, preemption heeds it for nobody"
        raise ConfigurationFault(where, f"names {told.parts} keys and values", fix)
    return DisruptionBudget(
        namespace=metadata.namespace,
        name=metadata.name,
        selector=told.in_model() if told is not None else Selector(),
        allowed=max(0, status.disruptions_allowed),
        disrupted=frozenset(status.disrupted_pods or ()),
    )


def priority_class(source: objects.PriorityClass) -> PriorityClass:
    """A PriorityClass."""
    policy = preemption.policy_word(source.preemption_policy)
    return PriorityClass(source.metadata.name, source.value, policy, source.global_default)


def namespace_labels(source: objects.Namespace) -> Mapping[str, str]:
    """What namespace selectors look at."""
    return source.metadata.labels or {}


def _grace_seconds(told: int | None) -> float:
    """A negative grace counts as 1 s, as in Kubernetes."""
    if told is None:
        return float(_DEFAULT_GRACE_SECONDS)
    return float(min(told, _LONGEST_GRACE_SECONDS)) if told >= 0 else 1.0


def _deadline_seconds(told: int | None) -> float | None:
    """What Kubernetes refuses, less than 1 s, is none."""
    return float(told) if told is not None and told > 0 else None


def _cgroup_uid(metadata: objects.Metadata) -> str:
    """A mirror stands for a static pod, which the kubelet runs under the hash of its configuration.

    The hash becomes a directory's name: a text that could lead elsewhere is not one.
    """
    annotations = metadata.annotations or {}
    config = annotations.get(_CONFIG_HASH, "") if _CONFIG_MIRROR in annotations else ""
    return config if _DIRECTORY_NAME.fullmatch(config) else metadata.uid


def _host_ports(spec: objects.PodSpec) -> Iterator[HostPort]:
    """Of containers and sidecars; on the host's network every port is one of the host."""
    sidecars = [each for each in spec.init_containers or () if each.restart_policy == "Always"]
    for container in (*spec.containers, *sidecars):
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                yield HostPort(number, port.protocol or "TCP", port.host_ip or "0.0.0.0")


def _claims(pod_name: str, spec: objects.PodSpec) -> Iterator[str]:
    """A generic ephemeral volume's claim is named after the pod and the volume."""
    for each in spec.volumes or ():
        if each.persistent_volume_claim is not None:
            yield each.persistent_volume_claim.claim_name
        elif each.ephemeral is not None:
            yield f"{pod_name}-{each.name}"
