"""Volumes and claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube import objects
from kube.dialects.upstream.storage import claim, volume
from model.fault import ConfigurationFault
from model.pod.affinity import NodeTerm
from model.selector import Operator, Requirement
from model.storage import VolumeClaim

ZONE = "topology.kubernetes.io/zone"
HOST_A = {"matchExpressions": [{"key": "host", "operator": "In", "values": ["a"]}]}


def persistent(
    labels: dict[str, str] | None = None, terms: list[dict[str, Any]] | None = None
) -> objects.PersistentVolume:
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms is not None else {}
    return msgspec.convert({"metadata": {"name": "v", "labels": labels}, "spec": affinity}, objects.PersistentVolume)


def test_claim() -> None:
    """Bound or not."""
    metadata = objects.Metadata(namespace="ns", name="data")
    assert claim(objects.PersistentVolumeClaim(metadata)) == VolumeClaim("ns", "data")
    bound = objects.PersistentVolumeClaim(metadata, objects.ClaimSpec("v"))
    assert (claim(bound).key, claim(bound).volume) == ("ns/data", "v")


def test_a_volume_of_every_node() -> None:
    """None differs from no term at all, which no node matches."""
    assert volume(persistent()).nodes is None
    assert volume(persistent(terms=[])).nodes == ()


def test_a_volume_of_some_nodes() -> None:
    """Required node affinity."""
    assert volume(persistent(terms=[HOST_A])).nodes == (NodeTerm((Requirement("host", Operator.IN, ("a",)),)),)


# labels of the volume, its terms, labels of a node -> reachable
REACHABLE: dict[str, tuple[dict[str, str], list[dict[str, Any]] | None, dict[str, str], bool]] = {
    "the zone": ({ZONE: "z1"}, None, {ZONE: "z1"}, True),
    "another zone": ({ZONE: "z1"}, None, {ZONE: "z2"}, False),
    "one of two zones": ({ZONE: "z1__z2"}, None, {ZONE: "z2"}, True),
    "a node without zones": ({ZONE: "z1"}, None, {}, True),
    "the label's old name": ({"failure-domain.beta.kubernetes.io/zone": "z1"}, None, {ZONE: "z2"}, False),
    "zone and affinity": ({ZONE: "z1"}, [HOST_A], {ZONE: "z1", "host": "a"}, True),
    "zone without affinity": ({ZONE: "z1"}, [HOST_A], {ZONE: "z1", "host": "b"}, False),
    "affinity without zone": ({ZONE: "z1"}, [HOST_A], {ZONE: "z2", "host": "a"}, False),
    "no term stays no node": ({ZONE: "z1"}, [{}], {ZONE: "z1"}, False),
}


@pytest.mark.parametrize(("labels", "terms", "node", "expected"), REACHABLE.values(), ids=REACHABLE.keys())
def test_zones(
    labels: dict[str, str], terms: list[dict[str, Any]] | None, node: dict[str, str], expected: bool
) -> None:
    """As VolumeZone filters."""
    nodes = volume(persistent(labels, terms)).nodes
    assert nodes is not None
    reached = any(term.labels and all(each.holds(node) for each in term.labels) for term in nodes)
    assert reached is expected


def test_what_cannot_be_read_is_named() -> None:
    """Volume and field."""
    broken = [{"matchExpressions": [{"key": "host", "operator": "Near"}]}]
    with pytest.raises(
        ConfigurationFault, match=r"PersistentVolume v: spec.nodeAffinity.required.nodeSelectorTerms\[0\]"
    ):
        volume(persistent(terms=broken))
