"""What somebody who may make pods cannot do to queues that are not for his namespace, and to those of others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from queue_world import BATCH, cpu, pod, queue, running
from scheduler_builders import raw_group, raw_node
from scheduler_fakes import World

from kube import objects


def of(namespace: str, source: objects.Pod, amount: str = "500", resource: str = BATCH) -> objects.Pod:
    """The pod in another namespace, with another request."""
    own = {resource: amount}
    spec = msgspec.structs.replace(source.spec, containers=[objects.Container("main", objects.Resources(own, own))])
    return msgspec.structs.replace(
        source, spec=spec, metadata=msgspec.structs.replace(source.metadata, namespace=namespace)
    )


def ghost(name: str = "ghost", queue: str = "", on: str = "nowhere", amount: str = "500", **more: Any) -> objects.Pod:
    """A pod of another tenant that names its node, and asks for anything."""
    return of("evil", pod(name, queue, node_name=on, **more), amount)


def teams() -> World:
    """Two teams with 1000m of their own each, of which b has just that, and a waits for 500m."""
    world = World().see(raw_node(batch_cpu="1000"), raw_node("n2", batch_cpu="1000"))
    world.see(queue("a", quota={"soft": cpu(1000)}))
    world.see(queue("b", quota={"soft": cpu(1000)}, admissionControl={"namespaces": ["default"]}))
    return world.see(running("b0", "b"), running("b1", "b"), running("a0", "a", node="n2"))


GHOSTS = {
    "on a node that does not exist": [ghost(queue="b")],
    "on a node, in a queue that is not for its namespace": [ghost(queue="b", on="n2")],
    "more than the node has": [ghost(on="n2", amount="1000000")],
    "of no queue and beyond any node": [ghost(amount="1000000", priority=9500, name="g2")],
}


@pytest.mark.parametrize("ghosts", GHOSTS.values(), ids=GHOSTS)
def test_a_pod_that_names_its_node_takes_nothing_from_others(ghosts: list[objects.Pod]) -> None:
    """Nobody is evicted who is within his own; the pod itself may be, where it takes what is another's own."""
    world = teams().see(*ghosts)
    world.turn()
    world.see(pod("a1", "a", created=5.0)).turn(after=1.0)
    world.turn(after=30.0)
    assert world.evictor.evicted.keys() <= {"ghost"}


def test_a_queue_is_not_filled_by_a_pod_on_a_node_that_does_not_exist() -> None:
    """Neither its maximum nor the number of its jobs, whoever may use it."""
    world = World().see(raw_node(batch_cpu="1000"))
    world.see(queue("b", quota={"hard": cpu(500)}, admissionControl={"maxJobs": 1}))
    world.see(ghost(queue="b"), pod("p", "b", created=9.0)).turn()
    assert world.binder.assigned == {"p": "n1"}


def test_one_pod_does_not_stop_all_queues() -> None:
    """Whatever it asks for, on no node, beyond its node, or of what its node does not list and its kubelet runs."""
    world = World().see(raw_node(batch_cpu="1000"), raw_node("n2", batch_cpu="1000"), queue("b"))
    world.see(ghost(amount="1000000"), ghost("more", on="n2", amount="1000000"))
    gpus = running("gpus", "", node="n2")
    world.see(of("evil", gpus, "1000", "nvidia.com/gpu"), pod("p", "b", created=9.0)).turn()
    assert world.binder.assigned == {"p": "n1"}


def test_a_node_that_comes_later_brings_what_runs_there() -> None:
    """Until then its pods take nothing, from then on their queue has used it."""
    world = World().see(raw_node(batch_cpu="1000"), queue("b", quota={"hard": cpu(1000)}))
    world.see(running("b0", "b", node="n2"), running("b1", "b", node="n2"), pod("p", "b", created=9.0))
    world.see(raw_node("n2", batch_cpu="1000")).turn()
    assert world.binder.assigned == {} and "is the maximum" in world.told("p")[0]


def test_a_node_that_lists_nothing_any_more_gives_no_quota_back() -> None:
    """An agent's token may take the lent resources from its node, whose pods run on."""
    world = World().see(raw_node(batch_cpu="1000"), raw_node("n2", batch_cpu="1000"))
    world.see(queue("b", quota={"hard": cpu(1000)}), running("b0", "b"), running("b1", "b"))
    world.see(pod("p", "b", created=9.0)).turn()
    bare = raw_node(version="2")
    world.see(msgspec.structs.replace(bare, status=objects.NodeStatus({"pods": "110"}, {"pods": "110"})))
    world.turn(after=1.0)
    assert world.binder.assigned == {} and "is the maximum" in world.told("p")[0]
    world.see(raw_node(batch_cpu="1000", version="3")).gone(running("b0", "b")).turn(after=1.0)
    assert world.binder.assigned.keys() == {"p"}


def test_a_gang_bound_in_part_beyond_its_quota_keeps_no_room() -> None:
    """Whoever names the node of one small member has it bound in part, and the rest may be as large as he likes."""
    world = World().see(raw_node(batch_cpu="4000"), raw_node("n2", batch_cpu="4000"), queue("b"))
    world.see(queue("evil", quota={"hard": cpu(1000)}), raw_group("g", 15))
    world.see(running("g0", "evil", group="g", batch_cpu="1"))
    world.see(*(pod(f"g{index}", "evil", group="g", created=1.0) for index in range(1, 15)))
    world.turn()
    world.see(*(pod(f"p{index}", "b", created=9.0) for index in range(6))).turn(after=1.0)
    assert sorted(world.binder.assigned) == [f"p{index}" for index in range(6)]
