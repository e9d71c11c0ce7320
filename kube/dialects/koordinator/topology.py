"""NodeResourceTopology: the upstream object as Koordinator fills it, from our values and back.

Source: noderesourcetopology-api v1alpha1 and Koordinator apis/extension/numa_aware.go,
pkg/koordlet/statesinformer/impl/states_noderesourcetopology.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kube import objects
from kube.dialects.documents.document import annotated, checked, parsed
from kube.dialects.koordinator.reservation import ANNOTATION_RESERVATION, reservation, written_out
from kube.dialects.koordinator.systemqos import ANNOTATION_SYSTEM_QOS, system_cpus
from model.fault import ConfigurationFault
from model.node import Node
from model.quantity import format_bytes, format_millis
from model.resources import (
    BATCH_CPU,
    BATCH_MEMORY,
    CPU,
    MEMORY,
    MID_CPU,
    MID_MEMORY,
    ResourceVector,
    parse_resources,
)
from model.topology import CpuBasics, KubeletCpus, NodeTopology, Processor, SharePool, Zone, format_cpus

API_VERSION = "topology.node.k8s.io/v1alpha1"
KIND = "NodeResourceTopology"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
"""Its value is Koordinator's own, whose readers look for it; another label tells whose it is."""
_PART = {"app.kubernetes.io/part-of": "sublet"}
_NODE = "node.koordinator.sh/"
ANNOTATION_BASICS = _NODE + "cpu-basic-info"
ANNOTATION_CPU_TOPOLOGY = _NODE + "cpu-topology"
ANNOTATION_POOLS = _NODE + "cpu-shared-pools"
ANNOTATION_BEST_EFFORT_POOLS = _NODE + "be-cpu-shared-pools"
ANNOTATION_POD_CPUS = _NODE + "pod-cpu-allocs"
ANNOTATION_KUBELET = "kubelet.koordinator.sh/cpu-manager-policy"
_COPIED = (ANNOTATION_RESERVATION, ANNOTATION_SYSTEM_QOS)
_OURS = (CPU, MEMORY, BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)
_ZONE_TYPE = "Node"
_ZONE_NAME = re.compile(r"node-([0-9]{1,5})")


class NodeResourceTopology(objects.NodeResourceTopology, frozen=True, rename="camel"):
    """The object as it is stored; zones stay untyped so that what others wrote into them survives."""

    topology_policies: list[str] | None = None
    zones: list[dict[str, Any]] | None = None


class _Amount(msgspec.Struct, frozen=True):
    name: str
    allocatable: str | int = 0
    capacity: str | int = 0


class _Zone(msgspec.Struct, frozen=True):
    name: str
    type: str = ""
    resources: list[_Amount] | None = None


class _Basics(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    cpu_model: str = ""
    hyper_thread_enabled: bool = False
    turbo_enabled: bool = False
    cat_l3_cbm_mask: str = msgspec.field(name="catL3CbmMask", default="")
    vendor_id: str = msgspec.field(name="vendorID", default="")


def document(node: Node, topology: NodeTopology, lent: Mapping[int, ResourceVector]) -> dict[str, Any]:
    """The whole object, ready to be created. `lent` is zone id → batch (and mid) amounts.

    Raises ConfigurationFault where the Node's reservation cannot be read.
    """
    # Without blockOwnerDeletion, which would ask for rights on the node's finalizers.
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": node.name,
            "labels": {LABEL_MANAGED_BY: "Koordinator", **_PART},
            "ownerReferences": [owner],
            "annotations": _annotations(node, topology),
        },
        "topologyPolicies": ["None"],
        "zones": [_zone(zone, lent.get(zone.id, ResourceVector())) for zone in topology.zones],
    }


def changes(current: NodeResourceTopology, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that brings our own annotations and zone rows to `wanted`; empty where nothing differs.

    A list can only be patched as a whole: the patch keeps other writers' rows of the zones it found and carries the
    resourceVersion it was made from, so that a change in between answers 409 instead of being lost.
    """
    have, want = current.metadata.annotations or {}, wanted["metadata"]["annotations"]
    if ANNOTATION_KUBELET in want:
        want = {**want, ANNOTATION_KUBELET: _overlaid(have.get(ANNOTATION_KUBELET, ""), want[ANNOTATION_KUBELET])}
    annotations: dict[str, str | None] = {key: text for key, text in want.items() if have.get(key) != text}
    annotations |= {key: None for key in _COPIED if key in have and key not in want}
    merged = _merged(current.zones or [], wanted["zones"])
    patch: dict[str, Any] = {"metadata": {"annotations": annotations}} if annotations else {}
    if merged != (current.zones or []):
        patch["zones"] = merged
    if patch:
        patch.setdefault("metadata", {})["resourceVersion"] = current.metadata.resource_version
    return patch


def zones(source: NodeResourceTopology) -> tuple[Zone, ...]:
    """NUMA zones by id; zones of another kind are left out. Raises ConfigurationFault naming object, zone and field."""
    where = f"{KIND} {source.metadata.name}: zones"
    found = []
    for index, raw in enumerate(source.zones or []):
        field = f"{where}[{index}]"
        zone = checked(raw, _Zone, field)
        match = _ZONE_NAME.fullmatch(zone.name)
        if zone.type != _ZONE_TYPE or match is None:
            continue
        rows = zone.resources or []
        allocatable = parse_resources({row.name: row.allocatable for row in rows}, f"{field}.resources: allocatable")
        capacity = parse_resources({row.name: row.capacity for row in rows}, f"{field}.resources: capacity")
        found.append(Zone(int(match[1]), zone.name, allocatable, capacity))
    return tuple(sorted(found, key=lambda zone: zone.id))


def cpu_basics(source: NodeResourceTopology) -> CpuBasics | None:
    """None where the annotation is missing. Raises ConfigurationFault naming the object and the annotation."""
    read = annotated(source.metadata.annotations or {}, ANNOTATION_BASICS, _Basics, f"{KIND} {source.metadata.name}")
    if read is None:
        return None
    return CpuBasics(
        read.cpu_model, read.vendor_id, read.hyper_thread_enabled, read.turbo_enabled, read.cat_l3_cbm_mask
    )


def unusable_cpus(node: Node, processors: Iterable[Processor]) -> tuple[int, ...]:
    """CPUs the node's annotations reserve or keep exclusive to the system. Raises ConfigurationFault naming which."""
    return tuple(sorted({*reservation(node).chosen(processors), *system_cpus(node)}))


def _annotations(node: Node, topology: NodeTopology) -> dict[str, str]:
    basics = topology.cpu.basics
    detail = [
        {"id": p.cpu, "core": p.core, "socket": p.socket, "node": p.node}
        for p in sorted(topology.cpu.processors, key=lambda p: p.cpu)
    ]
    told = _Basics(basics.model, basics.hyper_threading, basics.turbo, basics.l3_mask, basics.vendor)
    copied = {
        ANNOTATION_RESERVATION: written_out(node, topology.cpu.processors),
        ANNOTATION_SYSTEM_QOS: node.annotations.get(ANNOTATION_SYSTEM_QOS),
    }
    return {
        ANNOTATION_BASICS: _json(told),
        ANNOTATION_CPU_TOPOLOGY: _json({"detail": detail}),
        ANNOTATION_POOLS: _json(_pools(topology.pools.online)),
        ANNOTATION_BEST_EFFORT_POOLS: _json(_pools(topology.pools.best_effort)),
        **(_kubelet(topology.kubelet) if topology.kubelet else {}),
        **{key: text for key, text in copied.items() if text is not None},
    }


def _kubelet(kubelet: KubeletCpus) -> dict[str, str]:
    """Without them, an unreadable state file leaves what was written last."""
    allocations = [
        {
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "cpuset": format_cpus(pod.cpus),
            "managedByKubelet": True,
        }
        for pod in kubelet.pods
    ]
    return {ANNOTATION_KUBELET: _json({"policy": kubelet.policy}), ANNOTATION_POD_CPUS: _json(allocations)}


def _overlaid(have: str, want: str) -> str:
    """The wanted fields over those that stand: koordlet also tells the kubelet's options and reserved CPUs."""
    try:
        standing = parsed(have, "")
    except ConfigurationFault:
        return want
    both = {**standing, **parsed(want, "")}
    return have if both == standing else _json(both)


def _pools(pools: Iterable[SharePool]) -> list[dict[str, Any]]:
    return [{"socket": pool.socket, "node": pool.node, "cpuset": format_cpus(pool.cpus)} for pool in pools]


def _zone(zone: Zone, lent: ResourceVector) -> dict[str, Any]:
    rows = [_row(name, zone.capacity[name], zone.allocatable[name]) for name in (CPU, MEMORY)]
    rows += [_row(name, lent[name], lent[name]) for name in lent]
    return {"name": zone.name, "type": _ZONE_TYPE, "resources": sorted(rows, key=lambda row: row["name"])}


def _row(name: str, capacity: int, allocatable: int) -> dict[str, str]:
    text = {CPU: format_millis, MEMORY: format_bytes}.get(name, str)
    return {"name": name, "capacity": text(capacity), "allocatable": text(allocatable), "available": text(allocatable)}


def _merged(current: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Our zones with other writers' rows and fields, then zones of another type; NUMA zones that are gone go."""
    old = {zone.get("name"): zone for zone in current if zone.get("type") == _ZONE_TYPE}
    merged = []
    for zone in wanted:
        before = old.get(zone["name"], {})
        foreign = [row for row in before.get("resources") or [] if row.get("name") not in _OURS]
        rows = sorted([*zone["resources"], *foreign], key=lambda row: str(row["name"]))
        merged.append({**before, **zone, "resources": rows})
    return merged + [zone for zone in current if zone.get("type") != _ZONE_TYPE]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
