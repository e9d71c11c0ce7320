"""Queues and groups that a pod names and nobody serves: one Event a name, and all of it in the explanation."""

from __future__ import annotations

from typing import Any

import msgspec
from scheduler_builders import SCHEDULER, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.reason import Reason
from scheduler.answers import SchedulerAnswers
from scheduler.link.node_reports import NodeReports
from scheduler.ports import PodExplanation

QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}
GROUPED = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}


def named(name: str, *, namespace: str = "default", **fields: Any) -> objects.Pod:
    pod = raw_pod(name, batch_cpu="100", **fields)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, namespace=namespace))


def told(world: World) -> list[tuple[str, str]]:
    """(pod, what it names)."""
    events = [(name, text) for reason, name, text in world.announcer.events if reason == Reason.NOT_ACTED_ON.value]
    return [(name, text.partition("nothing acts on ")[2].partition(" yet: ")[0]) for name, text in events]


def answer(world: World, name: str) -> PodExplanation:
    node_reports = NodeReports(world.cache, world.history, world.clock)
    found = SchedulerAnswers(world.cache, world.cycle, world.history, node_reports, world.clock).pod("default", name)
    assert found is not None
    return found


QUEUE = "metadata.labels[kueue.x-k8s.io/queue-name]=team-a"
GROUP = "metadata.labels[scheduling.x-k8s.io/pod-group]=train"


def test_each_name_is_told_once() -> None:
    """Of a namespace, on the first pod that names it; a pod without a node and one of a large gang alike."""
    world = World().see(
        raw_node(batch_cpu="1000"),
        named("a", labels={**QUEUED["labels"], **GROUPED["labels"]}),
        *(named(f"b{i}", **QUEUED) for i in range(5)),
    )
    world.turn()
    assert told(world) == [("a", QUEUE), ("a", GROUP)]
    world.see(named("c", **QUEUED), named("d", **QUEUED, namespace="other"), named("plain"))
    world.turn()
    assert told(world) == [("a", QUEUE), ("a", GROUP), ("d", QUEUE)]
    assert world.binder.assigned.keys() == {"a", "b0", "b1", "b2", "b3", "b4", "c", "d", "plain"}


def test_the_explanation_has_it_for_every_pod() -> None:
    """Wherever the pod is by now."""
    world = World().see(raw_node(batch_cpu="1000"), named("a", **QUEUED), named("b", **QUEUED), named("plain"))
    world.turn()
    for name, texts in (("a", 1), ("b", 1), ("plain", 0)):
        assert len(answer(world, name).unserved) == texts
    (text,) = answer(world, "b").unserved
    assert text.startswith(f"Pod default/b: nothing acts on {QUEUE} yet: where Kueue does not run itself")


def test_a_queue_of_that_name_serves_it() -> None:
    """Whenever it comes: its pods name nothing that nobody serves, and nobody is told meanwhile."""
    queue = objects.Queue(objects.Metadata("team-a", uid="q"))
    world = World().see(raw_node(batch_cpu="1000"), named("a", **QUEUED), queue)
    world.turn()
    assert told(world) == [] and answer(world, "a").unserved == ()


def test_what_cannot_be_read_is_told_alike() -> None:
    """It falls back, and would be silent otherwise."""
    mode = {"annotations": {"gang.scheduling.koordinator.sh/mode": "Foo"}}
    world = World().see(raw_node(batch_cpu="1000"), named("a", **mode), named("b", **mode))
    world.turn()
    assert [name for name, _ in told(world)] == ["a"]
    (text,) = answer(world, "b").unserved
    assert "is 'Foo', which cannot be read: the gang is Strict" in text


def test_others_pods_are_theirs() -> None:
    """A pod of another scheduler, and one that was there before us."""
    world = World().see(raw_node(batch_cpu="1000"), named("theirs", **QUEUED, scheduler_name="someone-else"))
    world.see(named("old", **GROUPED, node_name="n1")).turn()
    assert told(world) == [] and SCHEDULER in world.cache.schedulers


def test_names_are_bounded() -> None:
    """Fifty of a namespace are told; who makes more finds them in the explanation, and keeps nobody else's untold."""
    labels = [{"labels": {"kueue.x-k8s.io/queue-name": f"q{i}"}} for i in range(60)]
    world = World().see(raw_node(batch_cpu="1000"), *(named(f"p{i}", **each) for i, each in enumerate(labels)))
    world.see(named("theirs", namespace="other", **labels[0])).turn()
    assert [name for name, _ in told(world)] == [*(f"p{i}" for i in range(50)), "theirs"]
    assert len(answer(world, "p59").unserved) == 1


def test_namespaces_are_bounded() -> None:
    """Of a thousand it is known what was told; the one that came first is told again."""
    label = {"labels": {"kueue.x-k8s.io/queue-name": "q"}}
    world = World().see(raw_node(batch_cpu="1000"), *(named("a", namespace=f"n{i}", **label) for i in range(1001)))
    world.see(named("b", namespace="n0", **label), named("b", namespace="n1000", **label)).turn()
    assert [name for name, _ in told(world)] == [*["a"] * 1001, "b"]
