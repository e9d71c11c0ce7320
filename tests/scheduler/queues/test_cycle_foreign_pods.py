"""Pods that their authors put on nodes or into queues by a word, and what that does to everybody else's queues."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from queue_world import BATCH, cpu, pod, queue, running
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.reason import Reason

OURS = {"admissionControl": {"namespaces": ["default"]}}
THEIRS = {"admissionControl": {"namespaces": ["evil"]}}


def of(namespace: str, item: objects.Pod) -> objects.Pod:
    metadata = msgspec.structs.replace(item.metadata, namespace=namespace, uid=f"{namespace}-{item.metadata.uid}")
    return msgspec.structs.replace(item, metadata=metadata)


def evil(name: str, queue: str = "", **more: Any) -> objects.Pod:
    return of("evil", pod(name, queue, **more))


def used(world: World, queue: str) -> int:
    found = {each.queue.name: each for each in world.cycle.standings()}
    return found[queue].cells[("", BATCH)].used


GHOSTS = {
    "a node that does not exist": {"node_name": "nowhere", "batch_cpu": "900000"},
    "more than the node has": {"node_name": "n1", "batch_cpu": "900000"},
}


@pytest.mark.parametrize("more", GHOSTS.values(), ids=GHOSTS)
@pytest.mark.parametrize("named", ["", "team"])
def test_a_pod_that_names_its_node_takes_nothing_of_queues(more: dict[str, Any], named: str) -> None:
    """Before the kubelet has taken it in: neither of the queue that it names, nor of what all queues share."""
    world = World().see(raw_node(name="n2", batch_cpu="4000"), raw_node(batch_cpu="100"), queue("team"))
    online = of("evil", raw_pod("ghost", priority=9500, **more))
    world.see(evil("batch", named, **more), online, pod("p", "team"), pod("q"))
    world.turn()
    assert world.binder.assigned == {"p": "n2", "q": "n2"}
    assert used(world, "team") == 500


BOUND = [objects.Condition("PodScheduled", "True", last_transition_time="2026-01-01T00:00:00Z")]
SAID: dict[str, dict[str, Any]] = {"it runs": {"phase": "Running"}, "bound": {"conditions": BOUND}}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_what_is_on_its_node_counts(said: dict[str, Any]) -> None:
    """Whoever bound it: the kubelet or the API server says so, and no pod's author can."""
    source = pod("p", "team", node_name="n1")
    placed = msgspec.structs.replace(source, status=msgspec.structs.replace(source.status, **said))
    world = World().see(raw_node(batch_cpu="4000"), queue("team"), placed)
    world.turn()
    assert used(world, "team") == 500


def test_a_queue_of_others_is_not_charged() -> None:
    """A pod that runs, in a namespace that the queue is not for: it fills nothing, and nobody goes for it."""
    world = World().see(raw_node(batch_cpu="4000"), queue("team", quota={"hard": cpu(1000)}, **OURS))
    world.see(of("evil", running("theirs", "team", batch_cpu="1000")), pod("p", "team"))
    world.turn()
    assert world.binder.assigned == {"p": "n1"} and used(world, "team") == 500


def test_nobody_is_evicted_for_what_others_put_into_the_queue() -> None:
    """What runs within its queue's own amount stays there, whatever anybody's pods call themselves."""
    world = World().see(raw_node(batch_cpu="1000"), raw_node(name="n2", batch_cpu="1000"))
    world.see(queue("ours", quota={"soft": cpu(1000)}, **OURS), queue("theirs", quota={"soft": cpu(1000)}, **THEIRS))
    world.see(running("service", "ours", batch_cpu="1000"), of("evil", running("e", "theirs", "n2", batch_cpu="600")))
    world.see(evil("wants", "theirs", batch_cpu="600"))
    world.see(evil("ghost", "ours", node_name="nowhere", batch_cpu="1000"))
    world.see(of("evil", running("runs", "ours", "n2", batch_cpu="100")))
    world.turn()
    world.turn(after=30.0)
    assert world.evictor.evicted == {}


def test_a_queue_that_says_later_whom_it_is_for() -> None:
    """What ran there of others counts as if it named none from then on, and to the queue again without that rule."""
    world = World().see(raw_node(batch_cpu="4000"), queue("team"), of("evil", running("theirs", "team")))
    world.turn()
    assert used(world, "team") == 500
    world.see(queue("team", **OURS)).turn()
    assert (used(world, "team"), used(world, "default")) == (0, 500)
    world.see(queue("team")).turn()
    assert used(world, "team") == 500


def test_a_refused_pod_holds_up_nobody_of_a_strict_queue() -> None:
    """It will never run there."""
    world = World().see(raw_node(batch_cpu="4000"), queue("team", order="StrictFIFO", **OURS))
    world.see(evil("first", "team", created=1.0), pod("p", "team", created=2.0)).turn()
    assert world.binder.assigned == {"p": "n1"}


def test_a_refused_pod_takes_nobodys_place() -> None:
    """Of two jobs that the queue may have."""
    world = World().see(raw_node(batch_cpu="4000"))
    world.see(queue("team", admissionControl={"namespaces": ["default"], "maxJobs": 2}))
    world.see(*(evil(f"e{i}", "team", created=float(i)) for i in range(4)), pod("p", "team", created=9.0))
    turn = world.turn()
    assert world.binder.assigned == {"p": "n1"}
    reasons = {each.subject: each.reason for each in turn.decisions if "/evil/" in each.subject}
    assert set(reasons.values()) == {Reason.QUEUE_REFUSES_JOB}


def test_a_refused_pod_has_no_share() -> None:
    """What it asks for makes no queue's share larger, from which others' would be smaller."""
    world = World().see(raw_node(batch_cpu="4000"), queue("a"), queue("b", **OURS))
    world.see(*(running(f"a{i}", "a", batch_cpu="1000") for i in range(4)))
    world.see(evil("e", "b", batch_cpu="900000")).turn()
    found = {each.queue.name: each.cells[("", BATCH)].entitled for each in world.cycle.standings()}
    assert (found["a"], found["b"]) == (4000, 0)


def test_resources_that_nobody_has_are_not_kept() -> None:
    """Thousands of names in one pod, that waits or is placed: no node and no queue bounds them, and nothing of them
    stays."""
    names = {f"example.com/r{i}": "1" for i in range(500)}
    heavy = msgspec.structs.replace(
        pod("heavy", "team", node_name="n1", phase="Running").spec,
        containers=[objects.Container("main", objects.Resources(names, names))],
    )
    world = World().see(raw_node(batch_cpu="4000"), queue("team"))
    world.see(msgspec.structs.replace(running("heavy", "team"), spec=heavy))
    world.see(msgspec.structs.replace(pod("waits", "team"), spec=msgspec.structs.replace(heavy, node_name="")))
    world.turn()
    for standing in world.cycle.standings():
        assert all(cell[1] in world.cache.snapshot().totals for cell in standing.cells)
    quota = world.cycle.quotas.quota
    assert quota is not None and {cell[1] for cell in quota.cells or ()} == set(world.cache.snapshot().totals)


def test_a_resource_that_a_node_brings_is_counted() -> None:
    """Where it is the pod's own node, those that had some of it before included; another node's is no matter."""
    world = World().see(raw_node(batch_cpu="4000"), queue("team"))
    asks = {"example.com/fpga": "2"}
    source = running("p", "team")
    spec = msgspec.structs.replace(source.spec, containers=[objects.Container("main", objects.Resources(asks, asks))])
    world.see(msgspec.structs.replace(source, spec=spec)).turn()
    for name, counted in (("n2", 0), ("n1", 2)):
        amounts: dict[str, str | int | float] = {"pods": "110", BATCH: "4000", "example.com/fpga": "4"}
        node = msgspec.structs.replace(raw_node(name=name), status=objects.NodeStatus(amounts, amounts))
        world.see(node).turn()
        found = {each.queue.name: each for each in world.cycle.standings()}
        assert found["team"].cells[("", "example.com/fpga")].used == counted


def test_a_pod_that_a_queue_is_not_for_is_no_job_of_it() -> None:
    """Its status says so, by which admission lets an administrator delete the queue."""
    world = World().see(raw_node(), queue("team", admissionControl={"namespaces": ["b"]}))
    world.see(of("evil", pod("w", "team")), of("b", pod("own", "team", batch_cpu="9000"))).turn()
    found = {each.queue.name: each.pending_jobs for each in world.cycle.standings()}
    assert found["team"] == 1
