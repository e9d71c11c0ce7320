"""Pods whose place depends on pods that the scheduler itself has placed since they were tried."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects

TOPOLOGY = "kubernetes.io/hostname"
SELECTOR = {"matchLabels": {"app": "base"}}
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": SELECTOR, "topologyKey": TOPOLOGY}]
    }
}
EVEN = [
    {
        "maxSkew": 1,
        "topologyKey": TOPOLOGY,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": SELECTOR,
        "nodeAffinityPolicy": "Ignore",
    }
]


def node(name: str) -> objects.Node:
    found = raw_node(name)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, labels={TOPOLOGY: name}))


def pod(name: str, *, created: float = 0.0, node_name: str = "", **spec: Any) -> objects.Pod:
    found = raw_pod(name, batch_cpu="100", created=created, node_name=node_name, labels={"app": "base"})
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, **spec))


def follower(**spec: Any) -> objects.Pod:
    return msgspec.structs.replace(
        pod("follower", **spec), metadata=msgspec.structs.replace(pod("follower").metadata, labels={})
    )


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_pod_follows_one_that_was_placed_after_it(confirmed: bool) -> None:
    """In the next turn, whether or not the API has confirmed the binding by then."""
    world = World().see(node("n1"), follower(affinity=NEAR), pod("base", created=1.0))
    world.turn()
    assert world.binder.assigned == {"base": "n1"}
    if confirmed:
        world.see(pod("base", created=1.0, node_name="n1"))
    world.turn(after=1.0)
    assert world.binder.assigned == {"base": "n1", "follower": "n1"}


def test_a_pod_takes_its_turn_when_others_evened_out() -> None:
    """Its domain had one too many until a pod was placed in the other."""
    here = pod("here", node_name="n1")
    waiting = pod("waiting", created=1.0, node_selector={TOPOLOGY: "n1"}, topology_spread_constraints=EVEN)
    world = World().see(node("n1"), node("n2"), here, waiting)
    world.turn()
    assert world.binder.assigned == {}
    world.see(pod("there", created=2.0, node_selector={TOPOLOGY: "n2"})).turn(after=1.0)
    assert world.binder.assigned == {"there": "n2"}
    world.turn(after=1.0)
    assert "waiting" in world.binder.assigned


def test_placements_wake_nobody_else() -> None:
    """Who waits for room is not tried again for what was placed."""
    world = World().see(node("n1"), raw_pod("large", batch_cpu="2000"), pod("base", created=1.0))
    world.turn()
    assert [d.subject for d in world.turn(after=5.0).decisions] == []
