"""Pods of drained queues are asked to go, once, and again where they stay."""

from __future__ import annotations

import msgspec
from kueue_world import cluster_queue, flavor, gpu_node, gpu_pod, local_queue, namespace
from scheduler_fakes import World

from kube import objects
from scheduler.core.preemption.policy import PreemptionPolicySettings
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
    turn = draining.turn(tree_of(found.cache.queues.queues()), PreemptionPolicySettings(), now)
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


def test_of_the_local_queue_that_their_job_names() -> None:
    """Its pods carry no word of it: Kueue's label is on the Job alone."""
    job = objects.Job(
        objects.Metadata("train", "default", "uid-train", labels={"kueue.x-k8s.io/queue-name": "two"}),
        objects.JobSpec(1, 1),
    )
    pod = gpu_pod("t", "", 2, node="a0")
    owners = [objects.OwnerReference("batch/v1", "Job", "train", "uid-train", True)]
    metadata = msgspec.structs.replace(pod.metadata, labels={}, owner_references=owners)
    found = world().see(job, msgspec.structs.replace(pod, metadata=metadata))
    found.see(local_queue("two", "two", stopPolicy="HoldAndDrain")).turn()
    assert going(found, Draining(found.cache)) == {"q": "LocalQueueStopped", "t": "LocalQueueStopped"}


def test_once_and_again_after_a_minute() -> None:
    found = world(stopPolicy="HoldAndDrain")
    draining = Draining(found.cache)
    told = [bool(going(found, draining, now)) for now in (100.0, 130.0, 160.0)]
    assert told == [True, False, True]
