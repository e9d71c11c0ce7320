"""CPU binding in Koordinator's words: what a pod asks for, what it was given, and the CPUs that a node has for that.

Source: Koordinator apis/extension/{resource,numa_aware,node_reservation,system_qos}.go and
pkg/scheduler/plugins/nodenumaresource/{plugin,topology_eventhandler}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

import msgspec

from kube import objects
from kube.dialects.documents.document import annotated, checked, document
from kube.dialects.koordinator.reservation import reservation
from kube.dialects.koordinator.systemqos import system_cpus
from kube.dialects.koordinator.topology import (
    ANNOTATION_CPU_TOPOLOGY,
    ANNOTATION_KUBELET,
    ANNOTATION_POD_CPUS,
    KIND,
)
from model.cpubinding import (
    CPUS_LIMIT,
    BindPolicy,
    CpuLayout,
    CpuRequest,
    CpuRules,
    ExclusivePolicy,
    NodeCpus,
    NumaStrategy,
    cpus_in,
    layout_of,
    mask_of,
    mask_of_list,
)
from model.fault import ConfigurationFault
from model.node import Node
from model.qos import PriorityBand, QoSClass
from model.topology import Processor, format_cpus

ANNOTATION_RESOURCE_SPEC = "scheduling.koordinator.sh/resource-spec"
LABEL_BIND_POLICY = "node.koordinator.sh/cpu-bind-policy"
LABEL_STRATEGY = "node.koordinator.sh/numa-allocate-strategy"
NOT_WHOLE = "the requested CPUs must be integer"
"""Koordinator's words."""
_LAYOUTS = 64
"""So many texts are remembered: nodes of one model have the same."""
_STATIC = "static"


class _Policy(StrEnum):
    """CPUBindPolicy; ConstrainedBurst asks for no CPUs of its own."""

    UNSET = ""
    DEFAULT = "Default"
    FULL_PCPUS = "FullPCPUs"
    SPREAD_BY_PCPUS = "SpreadByPCPUs"
    CONSTRAINED_BURST = "ConstrainedBurst"


class _Exclusive(StrEnum):
    UNSET = ""
    NONE = "None"
    PCPU_LEVEL = "PCPULevel"
    NUMA_NODE_LEVEL = "NUMANodeLevel"


class _Spec(msgspec.Struct, frozen=True):
    required: _Policy | None = msgspec.field(name="requiredCPUBindPolicy", default=None)
    preferred: _Policy | None = msgspec.field(name="preferredCPUBindPolicy", default=None)
    exclusive: _Exclusive | None = msgspec.field(name="preferredCPUExclusivePolicy", default=None)


class _Cpu(msgspec.Struct, frozen=True):
    id: int
    core: int = 0
    socket: int = 0
    node: int = 0


class _Detail(msgspec.Struct, frozen=True):
    detail: list[_Cpu] | None = None


class _KubeletPolicy(msgspec.Struct, frozen=True):
    policy: str = ""
    options: dict[str, str] | None = None
    reserved_cpus: str | None = msgspec.field(name="reservedCPUs", default=None)


class _Allocation(msgspec.Struct, frozen=True):
    cpuset: str = ""
    by_kubelet: bool | None = msgspec.field(name="managedByKubelet", default=None)


def cpu_request(
    annotations: Mapping[str, str], label: QoSClass, band: PriorityBand, cpu_millis: int
) -> CpuRequest | None:
    """Whole CPUs that a pod is to have for itself: LSE and LSR pods of band prod that ask for CPU; None for others."""
    if label not in (QoSClass.LSE, QoSClass.LSR) or band is not PriorityBand.PROD or cpu_millis <= 0:
        return None
    count = cpu_millis // 1000
    try:
        spec = annotated(annotations, ANNOTATION_RESOURCE_SPEC, _Spec, "Pod") or _Spec()
    except ConfigurationFault as fault:
        return CpuRequest(count, problem=str(fault))
    policy = spec.required or spec.preferred or _Policy.DEFAULT
    if policy is _Policy.CONSTRAINED_BURST:
        return None
    return CpuRequest(
        count,
        BindPolicy.SPREAD_BY_PCPUS if policy is _Policy.SPREAD_BY_PCPUS else BindPolicy.FULL_PCPUS,
        required=bool(spec.required),
        exclusive=ExclusivePolicy(spec.exclusive or ExclusivePolicy.NONE),
        problem=NOT_WHOLE if cpu_millis % 1000 else "",
    )


def resource_status(layout: CpuLayout, cpus: int) -> str:
    """Annotation resource-status for CPUs (a mask): their list, and how many of each NUMA node."""
    numa = [
        {"node": number, "resources": {"cpu": str(own.bit_count())}}
        for number, mask in layout.nodes
        if (own := mask & cpus)
    ]
    return msgspec.json.encode({"cpuset": format_cpus(cpus_in(cpus)), "numaNodeResources": numa}).decode()


def cpu_rules(labels: Mapping[str, str], cpu_millis: int) -> CpuRules:
    """By a Node's labels and its own CPU; what labels do not say, or in words that are unknown, is as Koordinator has
    it by default."""
    policies = {"FullPCPUsOnly": BindPolicy.FULL_PCPUS, "SpreadByPCPUs": BindPolicy.SPREAD_BY_PCPUS}
    most = labels.get(LABEL_STRATEGY) == NumaStrategy.MOST_ALLOCATED
    strategy = NumaStrategy.MOST_ALLOCATED if most else NumaStrategy.LEAST_ALLOCATED
    return CpuRules(policies.get(labels.get(LABEL_BIND_POLICY, "")), strategy, -(-cpu_millis // 1000))


def node_cpus(source: objects.NodeResourceTopology) -> NodeCpus:
    """CPUs of a node that may be given to pods. Raises ConfigurationFault naming object and annotation."""
    told = source.metadata.annotations or {}
    where = f"{KIND} {source.metadata.name}"
    kubelet = annotated(told, ANNOTATION_KUBELET, _KubeletPolicy, where) or _KubeletPolicy()
    full_only = kubelet.policy == _STATIC and (kubelet.options or {}).get("full-pcpus-only") == "true"
    text = told.get(ANNOTATION_CPU_TOPOLOGY, "")
    return NodeCpus(
        _named_layout(text, where) if text else CpuLayout(),
        _kept(told, kubelet, where),
        BindPolicy.FULL_PCPUS if full_only else None,
    )


def _kept(told: Mapping[str, str], kubelet: _KubeletPolicy, where: str) -> int:
    """What is reserved, the system's own, or the kubelet's, as a mask."""
    # The object bears copies of the Node's annotations, with CPUs by number where the Node says an amount.
    copied = Node(where, annotations=told)
    kept = mask_of((*reservation(copied).cpus, *system_cpus(copied)))
    kept |= _mask(kubelet.reserved_cpus or "", f"{where}: annotation {ANNOTATION_KUBELET}.reservedCPUs")
    for index, each in enumerate(_allocations(told, where)):
        if each.by_kubelet:
            kept |= _mask(each.cpuset, f"{where}: annotation {ANNOTATION_POD_CPUS}[{index}].cpuset")
    return kept


def _allocations(told: Mapping[str, str], where: str) -> list[_Allocation]:
    text, field = told.get(ANNOTATION_POD_CPUS, ""), f"{where}: annotation {ANNOTATION_POD_CPUS}"
    try:
        return checked(msgspec.json.decode(text), list[_Allocation], field) if text else []
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigurationFault(field, f"cannot be read: {error}", "write a list of allocations") from error


def _mask(text: str, where: str) -> int:
    try:
        return mask_of_list(text)
    except ValueError as error:
        raise ConfigurationFault(where, str(error)) from error


def _named_layout(text: str, where: str) -> CpuLayout:
    try:
        return _layout(text)
    except ConfigurationFault as fault:
        raise ConfigurationFault(f"{where}: {fault.where}", fault.what, fault.fix) from fault


@lru_cache(maxsize=_LAYOUTS)
def _layout(text: str) -> CpuLayout:
    where = f"annotation {ANNOTATION_CPU_TOPOLOGY}"
    detail = document(text, _Detail, where).detail or []
    if any(not 0 <= each.id < CPUS_LIMIT for each in detail) or len({each.id for each in detail}) < len(detail):
        raise ConfigurationFault(
            f"{where}.detail", "has a CPU twice, or one that Linux does not count", f"number CPUs below {CPUS_LIMIT}"
        )
    # Koordinator numbers cores by socket on some machines: with their socket they are told apart everywhere.
    cores: dict[tuple[int, int], int] = {}
    nodes: dict[tuple[int, int], int] = {}
    for each in sorted(detail, key=lambda cpu: cpu.id):
        cores.setdefault((each.socket, each.core), each.id)
        if nodes.setdefault((each.socket, each.core), each.node) != each.node:
            what = f"has core {each.core} of socket {each.socket} in two NUMA nodes"
            raise ConfigurationFault(f"{where}.detail", what, "say of each core in which one it is")
    return layout_of(Processor(cpu.id, cores[cpu.socket, cpu.core], cpu.socket, cpu.node) for cpu in detail)
