"""What the cluster does not hold even where nothing runs."""

from __future__ import annotations

import pytest
from scheduler_builders import node, pod, snapshot

from model.node import Taint
from model.pod.pod import Pod
from model.resources import BATCH_CPU
from scheduler.core.queueing.never_fits import most_of, never_fits
from scheduler.core.snapshot.podclass import class_of

TWO = (node("n1", batch_cpu=1000), node("n2", batch_cpu=1000, labels={"zone": "a"}))
LENDING = (node("n1", batch_cpu=100, amounts={"cpu": 4000, "memory": 100}),)


@pytest.mark.parametrize(
    ("nodes", "members", "never"),
    [
        pytest.param(TWO, [(pod(batch_cpu=1000), 2)], False, id="as much as there is, though all of it is used"),
        pytest.param(TWO, [(pod(batch_cpu=1000), 3)], True, id="one member too many"),
        pytest.param(TWO, [(pod(batch_cpu=1001), 1)], True, id="more than a node has"),
        pytest.param(TWO, [(pod(batch_cpu=1001), 0)], False, id="members that are not needed"),
        pytest.param(TWO, [(pod(batch_cpu=1), 1), (pod(batch_cpu=1001), 1)], True, id="one class of several"),
        pytest.param(TWO, [(pod(node_selector={"zone": "a"}), 1)], False, id="one zone"),
        pytest.param(TWO, [(pod(node_selector={"zone": "b"}), 1)], True, id="a zone that is not there"),
        pytest.param(TWO, [(pod(requests={"example.com/fpga": 1}), 1)], True, id="a resource that no node lists"),
        pytest.param((node(taints=(Taint("own"),)),), [(pod(), 1)], True, id="a taint on every node"),
        pytest.param((), [(pod(), 1)], True, id="no node"),
        pytest.param(LENDING, [(pod(batch_cpu=4000), 1)], False, id="more than is lent now, and the node has"),
        pytest.param(LENDING, [(pod(batch_cpu=4001), 1)], True, id="more than the node could lend"),
    ],
)
def test_what_never_fits(nodes: tuple[object, ...], members: list[tuple[Pod, int]], never: bool) -> None:
    """By the nodes as they are, whatever runs there."""
    full = {"n1": {BATCH_CPU: 1000}, "n2": {BATCH_CPU: 1000}}
    cluster = snapshot(*nodes, usage=full)  # type: ignore[arg-type]
    assert never_fits(cluster, most_of(cluster), [(class_of(found), needed) for found, needed in members]) is never
