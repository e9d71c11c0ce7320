"""Levels of a gang's topology, and the node labels they mean."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.gangs.networktopology import Layer, layers, levels, resolve
from kube.objects import ClusterNetworkTopology
from model.fault import ConfigurationFault
from model.workload import TopologyLevel

SPEC = "gang.scheduling.koordinator.sh/network-topology-spec"
KUEUE = "kueue.x-k8s.io/podset-"


def gather(*rules: dict[str, Any]) -> str:
    return msgspec.json.encode({"gatherStrategy": list(rules)}).decode()


LEVELS: dict[str, tuple[dict[str, str], tuple[TopologyLevel, ...]]] = {
    "none": ({}, ()),
    "rules": (
        {
            SPEC: gather(
                {"layer": "spine", "strategy": "PreferGather"},
                {"layer": "block", "strategy": "MustGather", "podCountMultiple": 4},
            )
        },
        (TopologyLevel("spine", False), TopologyLevel("block", True, 4)),
    ),
    "ours": (
        {"sublet.dev/required-topology": "zone", "sublet.dev/preferred-topology": " rack "},
        (TopologyLevel("zone", True), TopologyLevel("rack", False)),
    ),
    "Kueue's": (
        {KUEUE + "required-topology": "zone", KUEUE + "preferred-topology": "rack"},
        (TopologyLevel("zone", True), TopologyLevel("rack", False)),
    ),
    "ours before Kueue's": (
        {"sublet.dev/required-topology": "zone", KUEUE + "required-topology": "rack"},
        (TopologyLevel("zone", True),),
    ),
}


@pytest.mark.parametrize(("annotations", "expected"), LEVELS.values(), ids=LEVELS.keys())
def test_levels(annotations: dict[str, str], expected: tuple[TopologyLevel, ...]) -> None:
    """Koordinator's annotation, or one label key each."""
    assert levels(annotations, "Gang ns/g") == expected


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"layer": "a", "strategy": "Gather"}, r"strategy: is 'Gather' .write one of MustGather, PreferGather"),
        ({"strategy": "MustGather"}, "layer"),
        ({"layer": "a", "strategy": "MustGather", "podCountMultiple": -1}, "podCountMultiple: is -1"),
    ],
)
def test_a_rule_that_cannot_be_read(rule: dict[str, Any], told: str) -> None:
    """Gang, annotation, field and fix."""
    with pytest.raises(ConfigurationFault, match=rf"^Gang ns/g: annotation .*gatherStrategy\[0\].*{told}"):
        levels({SPEC: gather(rule)}, "Gang ns/g")


def test_more_levels_than_a_network_has() -> None:
    """A scheduler that looks for each inside the other would not come back from thousands."""
    rules = [{"layer": f"l{number}", "strategy": "MustGather"} for number in range(5000)]
    assert len(levels({SPEC: gather(*rules[:16])}, "Gang ns/g")) == 16
    with pytest.raises(ConfigurationFault, match=r"^Gang ns/g: .*gatherStrategy: names 5000 levels .name at most 16"):
        levels({SPEC: gather(*rules)}, "Gang ns/g")


def cluster(*told: tuple[str, str, list[str]]) -> dict[str, Layer]:
    """(layer, parent, label keys) of each."""
    items = [{"topologyLayer": name, "parentTopologyLayer": parent, "labelKey": keys} for name, parent, keys in told]
    return layers(msgspec.convert({"spec": {"networkTopologySpec": items}}, ClusterNetworkTopology))


THREE = cluster(
    ("BlockLayer", "SpineLayer", ["net/block", "net/leaf"]),
    ("SpineLayer", "ClusterTopologyLayer", ["net/spine"]),
    ("NodeTopologyLayer", "BlockLayer", []),
)


def test_layers() -> None:
    """Depth by parents, whatever the order."""
    assert {name: (layer.keys, layer.depth) for name, layer in THREE.items()} == {
        "BlockLayer": (("net/block", "net/leaf"), 2),
        "SpineLayer": (("net/spine",), 1),
        "NodeTopologyLayer": ((), 3),
    }


def test_layers_in_a_circle() -> None:
    """End."""
    assert {layer.depth for layer in cluster(("a", "b", ["x"]), ("b", "a", ["y"])).values()} == {2}


# names asked for, label keys on nodes -> label keys, widest first
RESOLVED: dict[str, tuple[tuple[str, ...], set[str], tuple[str, ...]]] = {
    "layers, widest first": (("BlockLayer", "SpineLayer"), set(), ("net/spine", "net/block")),
    "the key that nodes carry": (("BlockLayer",), {"net/leaf"}, ("net/leaf",)),
    "the node": (("NodeTopologyLayer", "BlockLayer"), set(), ("net/block", "kubernetes.io/hostname")),
    "the cluster is no level": (("ClusterTopologyLayer", "BlockLayer"), set(), ("net/block",)),
    "common names": (("rack", "zone"), set(), ("topology.kubernetes.io/zone", "topology.kubernetes.io/rack")),
    "common names as layers": (("RackLayer",), {"topology.sublet.dev/rack"}, ("topology.sublet.dev/rack",)),
    "label keys": (("example.com/rack", "example.com/zone"), set(), ("example.com/zone", "example.com/rack")),
    "unknown keys stay in their order": (("b", "a"), set(), ("b", "a")),
    "a label called so": (("rack",), {"rack", "topology.sublet.dev/rack"}, ("rack",)),
    "a layer called as a label": (("SpineLayer",), {"SpineLayer", "net/spine"}, ("net/spine",)),
    "the host is narrowest": (("kubernetes.io/hostname", "a"), set(), ("a", "kubernetes.io/hostname")),
}


@pytest.mark.parametrize(("asked", "present", "expected"), RESOLVED.values(), ids=RESOLVED.keys())
def test_resolve(asked: tuple[str, ...], present: set[str], expected: tuple[str, ...]) -> None:
    """Layers by the cluster's object, else by what they are commonly called, else as label keys."""
    found = resolve([TopologyLevel(name, True) for name in asked], THREE, present)
    assert tuple(level.key for level in found) == expected


def test_resolving_keeps_the_rest() -> None:
    """Strategy and multiple."""
    assert resolve([TopologyLevel("SpineLayer", False, 4)], THREE) == (TopologyLevel("net/spine", False, 4),)
