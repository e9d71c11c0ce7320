"""What pods with a node take of it, of queues and of preemption, as nodes, gangs and classes change."""

from __future__ import annotations

import msgspec
from cache_builders import empty_cache, feed
from scheduler_builders import raw_node, raw_pod

from kube import objects
from kube.informer import ChangeKind
from model.queue import ROOT_QUEUE
from model.resources import BATCH_CPU


def test_a_gang_takes_its_priority_from_a_class() -> None:
    """As it is now; its placed members too, and none where there is no such class."""
    cache = empty_cache()
    told = {"minMember": 1, "priorityClassName": "high"}
    group = objects.VolcanoPodGroup(objects.Metadata("g", "default", "g"), told)
    pod = raw_pod("a", annotations={"scheduling.k8s.io/group-name": "g"}, node_name="n1", priority=9000)
    feed(cache, raw_node(), group, pod)

    def priority(value: int, kind: ChangeKind = ChangeKind.MODIFIED) -> tuple[int | None, int]:
        high = objects.PriorityClass(objects.Metadata("high"), value)
        feed(cache, high, kind=kind)
        charge = cache.ledger.charge(pod.metadata.uid)
        assert charge is not None
        return cache.gangs.priority("default/g"), charge.priority

    own = pod.spec.priority or 0
    assert (priority(7000), priority(8000)) == ((7000, 7000), (8000, 8000))
    assert priority(0, ChangeKind.DELETED) == (None, own)


def test_a_pod_takes_of_the_cluster_what_its_node_has() -> None:
    """Nothing without the node, nothing of what the node does not list; as nodes come, change and go."""
    cache, gpu = empty_cache(), "nvidia.com/gpu"
    resources = objects.Resources({BATCH_CPU: "500", gpu: "1000"}, {BATCH_CPU: "500", gpu: "1000"})
    pod = raw_pod(node_name="n1", phase="Running")
    pod = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, containers=[objects.Container("main", resources)])
    )
    amounts: dict[str, str | int | float] = {"pods": "110", BATCH_CPU: "1000", gpu: "8"}
    with_gpus = msgspec.structs.replace(raw_node(), status=objects.NodeStatus(amounts, amounts))

    def used() -> tuple[int, int]:
        amounts = cache.ledger.used(ROOT_QUEUE)
        return (amounts.get(BATCH_CPU, 0), amounts.get(gpu, 0))

    feed(cache, pod)
    assert used() == (0, 0) and cache.ledger.nodes["n1"][BATCH_CPU] == 500
    feed(cache, raw_node())
    assert used() == (500, 0)
    feed(cache, with_gpus)
    assert used() == (500, 1000)
    feed(cache, raw_node(), kind=ChangeKind.DELETED)
    assert used() == (0, 0)
    cache.take_touched()
    feed(cache, raw_node())
    feed(cache, raw_node(), kind=ChangeKind.DELETED)
    assert BATCH_CPU in cache.take_touched().news.resources
    feed(cache, pod, kind=ChangeKind.DELETED)
    assert used() == (0, 0)
