"""More nodes of a kind: what is asked for, and which node they are like."""

from __future__ import annotations

import pytest

from cli.simulate.cluster_more import MoreNodes, more_nodes, with_more
from model.fault import ConfigurationFault
from tests.cli.simulate.clusters import given, node, pod


@pytest.mark.parametrize(
    ("text", "found"),
    [("nodes=4", MoreNodes(4)), ("nodes=1,like=gpu-1", MoreNodes(1, "gpu-1"))],
)
def test_what_is_asked_for(text: str, found: MoreNodes) -> None:
    """How many, and like which where that is said."""
    assert more_nodes(text) == found


@pytest.mark.parametrize("text", ["4", "nodes=", "nodes=0", "nodes=-1", "nodes=4,like=", "pods=4", "nodes=100000"])
def test_what_is_no_question(text: str) -> None:
    """By the option's name, with what to write."""
    with pytest.raises(ConfigurationFault, match=f"--what-if {text}: is not nodes=N"):
        more_nodes(text)


def test_the_largest_node_is_the_pattern() -> None:
    """Devices count before CPUs; the given manifests stay as they are."""
    gpu = node("gpu", "4")
    gpu["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    found = given(node("big", "64"), gpu, pod())
    larger, like = with_more(found, MoreNodes(2))
    assert like == "gpu" and len(list(found.of("Node"))) == 2
    more = {item.object.metadata.name: item.object for item in larger.of("Node")}
    assert set(more) == {"big", "gpu", "gpu-more-1", "gpu-more-2"}
    assert more["gpu-more-1"].metadata.labels["kubernetes.io/hostname"] == "gpu-more-1"
    assert len(list(larger.of("Pod"))) == 1


def test_a_named_pattern() -> None:
    assert with_more(given(node("big", "64"), node("small", "4")), MoreNodes(1, "small"))[1] == "small"


@pytest.mark.parametrize(
    ("more", "told"), [(MoreNodes(1, "x"), "--what-if like=x: no such Node"), (MoreNodes(1), "no Node is given")]
)
def test_no_pattern(more: MoreNodes, told: str) -> None:
    """One line."""
    with pytest.raises(ConfigurationFault, match=told):
        with_more(given(pod()), more)
