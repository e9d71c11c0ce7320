"""Pods of drained queues are asked to go, once, and again where they stay."""

from __future__ import annotations

from kueue_world import cluster_queue, flavor, gpu_node, gpu_pod, local_queue, namespace
from scheduler_fakes import World

from scheduler.core.queues.tree import tree_of
from scheduler.steps.draining import Draining


def world(**spec: str) -> World:
    found = World().see(
        namespace(),
        flavor(),
        gpu_node("a0"),
        cluster_queue("one", "org", **spec),
        cluster_queue("two", "org"),
        local_queue("one", "one"),
        local_queue("two", "two"),
        local_queue("other", "two"),
        gpu_pod("p", "one", 2, node="a0"),
        gpu_pod("q", "two", 2, node="a0"),
        gpu_pod("r", "other", 2, node="a0"),
    )
    found.turn()
    return found


def going(found: World, draining: Draining, now: float = 100.0) -> dict[str, str]:
    turn = draining.turn(tree_of(found.cache.queues.queues()), now)
    return {each.pod.name: each.reason for each in turn.evictions}


def test_nobody_by_default() -> None:
    found = world(stopPolicy="Hold")
    assert going(found, Draining(found.cache)) == {}


def test_of_a_cluster_queue() -> None:
    found = world(stopPolicy="HoldAndDrain")
    assert going(found, Draining(found.cache)) == {"p": "ClusterQueueStopped"}


def test_of_a_local_queue() -> None:
    """Others of the same ClusterQueue stay."""
    found = world().see(local_queue("two", "two", stopPolicy="HoldAndDrain"))
    found.turn()
    assert going(found, Draining(found.cache)) == {"q": "LocalQueueStopped"}


def test_once_and_again_after_a_minute() -> None:
    found = world(stopPolicy="HoldAndDrain")
    draining = Draining(found.cache)
    told = [bool(going(found, draining, now)) for now in (100.0, 130.0, 160.0)]
    assert told == [True, False, True]
