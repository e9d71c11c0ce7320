"""Figures of queues for metrics."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import candidate, gang, members, raw_node, raw_pod
from scheduler_builders import pod as ready_pod
from scheduler_fakes import World

from kube import objects
from model.job.labels import JOB_TYPE
from model.metrics import QUEUE_ROWS
from model.placement import EvictionPlan, Victim
from model.reason import Reason
from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.steps.queue_figures import NO_QUEUE, ended, losses

LENGTH, UTILISATION, DEVIATION = QUEUE_ROWS


def queue(name: str, weight: int = 1) -> objects.Queue:
    return objects.Queue(objects.Metadata(name=name, uid=name), {"weight": weight})


def pod(name: str, of: str, *, priority: int = 5500, **more: Any) -> objects.Pod:
    """Batch work of a queue that asks for 500."""
    labels = {"koordinator.sh/qosClass": "BE", "sublet.dev/queue": of}
    return raw_pod(name, labels=labels, priority=priority, **more)


def figures(world: World) -> dict[str, dict[tuple[str, ...], float]]:
    found = world.cycle.figures()
    return {row: {sample.labels: sample.value for sample in found[row]} for row in QUEUE_ROWS}


@pytest.fixture
def world() -> World:
    """A node of 2000: queue a has half of it, b wants more than the rest, of two priorities."""
    found = World().see(raw_node(batch_cpu="2000"), queue("a"), queue("b"))
    found.see(*(pod(f"a{i}", "a", node_name="n1", phase="Running") for i in range(2)))
    found.see(*(pod(f"b{i}", "b", batch_cpu="1800", priority=5500 + i % 2) for i in range(3)))
    found.turn()
    return found


def test_how_many_wait(world: World) -> None:
    """By queue and priority; what waits no more has no length."""
    assert figures(world)[LENGTH] == {("b", "5500"): 2, ("b", "5501"): 1}
    world.gone(pod("b1", "b", priority=5501)).turn()
    assert figures(world)[LENGTH] == {("b", "5500"): 2}


def test_what_queues_have_of_the_cluster(world: World) -> None:
    """By resource, of queues that take work; one that has nothing is told of only what its quota names."""
    assert (BATCH_CPU, "b") not in figures(world)[UTILISATION]
    quota = {"hard": {"resources": {BATCH_CPU: 1500}}}
    world.see(objects.Queue(objects.Metadata(name="b", uid="b"), {"quota": quota})).turn()
    found = figures(world)[UTILISATION]
    assert found[BATCH_CPU, "a"] == 0.5 and found[BATCH_CPU, "b"] == 0.0


def test_names_that_pods_make_up(world: World) -> None:
    """However many there are, they have one label, which no queue can have."""
    world.see(*(pod(f"c{i}", f"made-up-{i}") for i in range(3))).turn()
    assert figures(world)[LENGTH] == {("b", "5500"): 2, ("b", "5501"): 1, (NO_QUEUE, "5500"): 3}


def test_how_far_that_is_fair(world: World) -> None:
    """a has the half that it asks for; b has nothing of the other half, which is its share."""
    found = figures(world)[DEVIATION]
    assert found["a",] == 0.0 and found["b",] == -0.5


def test_where_there_is_but_one_queue() -> None:
    """It is told as any other."""
    world = World().see(raw_node(batch_cpu="1000"), raw_pod(labels={"koordinator.sh/qosClass": "BE"}))
    world.turn()
    assert figures(world)[UTILISATION][BATCH_CPU, "default"] == 0.5
    assert figures(world)[DEVIATION] == {("default",): 0.0}


TYPES: dict[str, tuple[str, dict[str, str], str]] = {
    "Kubernetes' Job": ("Job", {}, "Job"),
    "Kubeflow's": ("PyTorchJob", {}, "PyTorchJob"),
    "no owner": ("", {}, "Pod"),
    "an owner of any kind": ("Made" * 9, {}, "other"),
    "a TrainingJob by its framework": ("TrainingJob", {JOB_TYPE: "MPIJob"}, "MPIJob"),
    "a TrainingJob without": ("TrainingJob", {}, "TrainingJob"),
    "a framework of any name": ("TrainingJob", {JOB_TYPE: "Made" * 9}, "other"),
    "a framework of another's pod": ("Job", {JOB_TYPE: "MPIJob"}, "Job"),
}


@pytest.mark.parametrize(("owner", "labels", "job_type"), TYPES.values(), ids=TYPES)
def test_the_type_of_a_job(owner: str, labels: dict[str, str], job_type: str) -> None:
    """Its owner's kind, or framework, where that is one of those known; since its creation."""
    lone = candidate([ready_pod(created_seconds=5.0)])
    pod = msgspec.structs.replace(ready_pod(), owner_kind=owner, labels=labels)
    told = ended(lone, pod, "scheduled", 12.0)
    assert (told.job_type, told.result, told.seconds, told.gang) == (job_type, "scheduled", 7.0, False)


def test_a_gang() -> None:
    """Told as one, even where none of its pods is known any more."""
    told = ended(candidate(members(2), gang(2)), None, "timeout", 1.0)
    assert (told.job_type, told.gang) == ("Pod", True)


def test_a_job_is_lost_once() -> None:
    """However many of its pods go."""
    train, lone = WorkloadId.gang("ml/train"), WorkloadId.pod("ml/p")
    victims = (
        Victim("ml/t0", "u0", "n1", train, queue="a", reclaimed=True),
        Victim("ml/t1", "u1", "n1", train, queue="a", reclaimed=True),
        Victim("ml/p", "u2", "n1", lone, queue="b"),
    )
    plan = EvictionPlan(WorkloadId.pod("x/y"), "x/y", victims, ())
    assert list(losses(plan)) == [("a", Reason.RECLAIMING), ("b", Reason.PREEMPTING)]


def test_who_is_left_to_end_is_not_lost_yet() -> None:
    victims = (
        Victim("ml/p", "u0", "n1", WorkloadId.pod("ml/p"), queue="a", left_until_seconds=9.0),
        Victim("ml/q", "u1", "n1", WorkloadId.pod("ml/q"), queue="b"),
    )
    assert list(losses(EvictionPlan(WorkloadId.pod("x/y"), "x/y", victims, ()))) == [("b", Reason.PREEMPTING)]
