"""PodGroups without pods: what they stand for where quota alone decides."""

from __future__ import annotations

from typing import Any

import pytest

from cli.simulate.cluster_groups import named_groups, pods_of_groups
from model.fault import ConfigurationFault
from tests.cli.simulate.clusters import Object, given, other


def group(api: str = "scheduling.sigs.k8s.io/v1alpha1", **spec: Any) -> Object:
    return other("PodGroup", api, "g", spec={"minMember": 2, "minResources": {"cpu": "3"}, **spec})


@pytest.mark.parametrize(
    ("api", "labels", "annotations"),
    [
        ("scheduling.sigs.k8s.io/v1alpha1", {"pod-group.scheduling.sigs.k8s.io": "g"}, {}),
        ("scheduling.volcano.sh/v1beta1", {}, {"scheduling.k8s.io/group-name": "g"}),
    ],
)
def test_members_name_their_group(api: str, labels: dict[str, str], annotations: dict[str, str]) -> None:
    """As pods of that kind of group do."""
    members = list(pods_of_groups(given(group(api)), (), "c"))
    assert [item.label for item in members] == ["Pod default/g-0", "Pod default/g-1"]
    metadata = members[0].object.metadata
    assert (metadata.labels, metadata.annotations) == (labels, annotations)
    assert set(named_groups({"x": members[0].object})) == {"default/g"}


@pytest.mark.parametrize(("phase", "node"), [("Running", "c"), ("Pending", ""), ("Inqueue", "")])
def test_a_group_that_runs_is_somewhere(phase: str, node: str) -> None:
    """On the one node there is."""
    raw = group("scheduling.volcano.sh/v1beta1") | {"status": {"phase": phase}}
    assert {item.object.spec.node_name for item in pods_of_groups(given(raw), (), "c")} == {node}


def test_groups_that_stand_for_nothing() -> None:
    """Of one whose pods are given, and of one that does not say what it asks for."""
    assert not list(pods_of_groups(given(group()), ("default/g",), "c"))
    assert not list(pods_of_groups(given(group(minResources={})), (), "c"))


def test_an_amount_that_is_none() -> None:
    """File, object and field are named."""
    with pytest.raises(ConfigurationFault, match=r"document 1: PodGroup default/g: spec.minResources.cpu"):
        list(pods_of_groups(given(group(minResources={"cpu": "many"})), (), "c"))
