"""Topology constraints of gangs: Koordinator's network topology, Kueue's and our own annotations.

Source: Koordinator apis/extension/coscheduling.go and apis/scheduling/v1alpha1/cluster_network_topology_types.go;
https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/. A gang names layers; which node labels these are is
said by the ClusterNetworkTopology, which may come later than the gang: `levels` keeps the names, `resolve` replaces
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Annotated

import msgspec

from kube.dialects.documents.document import annotated
from kube.dialects.sublet import pod_annotations as sublet
from kube.objects import ClusterNetworkTopology
from model.fault import ConfigurationFault
from model.workload import TopologyLevel

ANNOTATION_SPEC = "gang.scheduling.koordinator.sh/network-topology-spec"
KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
CLUSTER_LAYER = "ClusterTopologyLayer"
NODE_LAYER = "NodeTopologyLayer"
HOSTNAME = "kubernetes.io/hostname"
_WIDEST_FIRST = ("region", "zone", "datacenter", "spine", "block", "rack", "accelerator", "host")
_OTHER_NAMES = {"node": "host", "hostname": "host"}
_MOST_LEVELS = 16
_PREFIXES = ("topology.kubernetes.io/", "topology.sublet.dev/", "network.topology.nvidia.com/")


class _Strategy(StrEnum):
    MUST = "MustGather"
    PREFER = "PreferGather"


class _Rule(msgspec.Struct, frozen=True, rename="camel"):
    layer: Annotated[str, msgspec.Meta(min_length=1)]
    strategy: _Strategy
    pod_count_multiple: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] = 0


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    gather_strategy: list[_Rule] | None = None


class Layer(msgspec.Struct, frozen=True):
    """A layer by its name; any of `keys` is a node label that says the domain, `depth` 0 is the widest layer."""

    name: str
    keys: tuple[str, ...]
    depth: int


def levels(annotations: Mapping[str, str], where: str) -> tuple[TopologyLevel, ...]:
    """What an object's annotations ask for; keys are layer names or node labels. Raises ConfigurationFault.

    Koordinator's annotation comes before the short ones, and a required domain before a preferred one.
    """
    told = annotated(annotations, ANNOTATION_SPEC, _Spec, where)
    if told is not None:
        rules = told.gather_strategy or []
        require_few(len(rules), f"{where}: annotation {ANNOTATION_SPEC}.gatherStrategy")
        return tuple(_level(rule) for rule in rules)
    required = annotations.get(sublet.ANNOTATION_REQUIRED_TOPOLOGY) or annotations.get(KUEUE_REQUIRED)
    preferred = annotations.get(sublet.ANNOTATION_PREFERRED_TOPOLOGY) or annotations.get(KUEUE_PREFERRED)
    found = ((required, True), (preferred, False))
    return tuple(TopologyLevel(key.strip(), must) for key, must in found if key and key.strip())


def require_few(number: int, where: str) -> None:
    """Raises ConfigurationFault where a gang names more levels than a network has; each is looked for in the last."""
    if number > _MOST_LEVELS:
        raise ConfigurationFault(where, f"names {number} levels", f"name at most {_MOST_LEVELS}")


def layers(source: ClusterNetworkTopology) -> dict[str, Layer]:
    """The layers of a cluster by name. A layer whose parents go in a circle counts as deep as the circle is long."""
    told = {item.topology_layer: item for item in source.spec.network_topology_spec or () if item.topology_layer}
    parents = {name: item.parent_topology_layer for name, item in told.items()}
    return {
        name: Layer(name, tuple(key for key in item.label_key or () if key), _depth(name, parents))
        for name, item in told.items()
    }


def resolve(
    topology: Iterable[TopologyLevel], known: Mapping[str, Layer], present: Collection[str] = frozenset()
) -> tuple[TopologyLevel, ...]:
    """`topology` with node label keys, widest level first; `present` are the label keys that nodes carry.

    Of several keys that may name a layer the first that is present counts, else the first. A name that nobody knows, or
    that nodes carry as a label, is a label key. The whole cluster is no level: everything is in it.
    """
    found = [level for level in topology if level.key != CLUSTER_LAYER]
    ordered = sorted(enumerate(found), key=lambda item: (_rank(item[1].key, known), item[0]))
    return tuple(msgspec.structs.replace(level, key=_label_key(level.key, known, present)) for _, level in ordered)


def _level(rule: _Rule) -> TopologyLevel:
    return TopologyLevel(rule.layer, rule.strategy is _Strategy.MUST, max(1, rule.pod_count_multiple))


def _depth(name: str, parents: Mapping[str, str]) -> int:
    depth = 0
    while (name := parents.get(name, "")) and depth < len(parents):
        depth += 1
    return depth


def _common(name: str) -> str:
    """`RackLayer`, `rack` and `topology.kubernetes.io/rack` are all `rack`; empty for a name of no known kind."""
    short = name.rpartition("/")[2].lower().removesuffix("layer").removesuffix("topology")
    short = _OTHER_NAMES.get(short, short)
    return short if short in _WIDEST_FIRST else ""


def _candidates(name: str, known: Mapping[str, Layer]) -> tuple[str, ...]:
    if name == NODE_LAYER:
        return (HOSTNAME,)
    if name in known and known[name].keys:
        return known[name].keys
    short = "" if "/" in name else _common(name)
    if short == "host":
        return (HOSTNAME,)
    return tuple(prefix + short for prefix in _PREFIXES) if short else (name,)


def _label_key(name: str, known: Mapping[str, Layer], present: Collection[str]) -> str:
    """A label that is literally called so goes before what the name commonly stands for."""
    if name in present and name not in known:
        return name
    candidates = _candidates(name, known)
    return next((key for key in candidates if key in present), candidates[0])


def _rank(name: str, known: Mapping[str, Layer]) -> tuple[int, int]:
    """Layers of the cluster by depth, others by what they are commonly; unknown names stay where they are between."""
    if name == NODE_LAYER:
        return (2, 0)
    if name in known:
        return (0, known[name].depth)
    short = _common(name)
    if short == "host":
        return (2, 0)
    return (0, _WIDEST_FIRST.index(short)) if short else (1, 0)
