"""A cluster by quota alone, and what its PodGroups stand for."""

from __future__ import annotations

from typing import Any

from cli.simulate.cluster_by_quota import NODE
from cli.simulate.cluster_given import GivenCluster
from tests.cli.simulate.clusters import NOW, Object, decided, given, node, other, pod

GPU = "nvidia.com/gpu"


def queue(name: str, **spec: Any) -> Object:
    """Volcano's."""
    return other("Queue", "scheduling.volcano.sh/v1beta1", name, spec=spec)


def group(name: str, queue_name: str, gpus: int, members: int = 2, phase: str = "") -> Object:
    """Volcano's PodGroup that asks for so many GPUs together."""
    spec = {"minMember": members, "queue": queue_name, "minResources": {GPU: str(gpus)}}
    status = {"status": {"phase": phase}} if phase else {}
    return other("PodGroup", "scheduling.volcano.sh/v1beta1", name, spec=spec, **status)


def test_without_nodes_quota_decides() -> None:
    """What a queue may have at most runs; a group beyond that waits for quota."""
    found = decided(queue("train", capability={GPU: "8"}), group("a", "train", 6), group("b", "train", 6))
    assert [(row.name, row.outcome, row.count, row.reason) for row in found.workloads] == [
        ("default/a", "admitted", 2, "Scheduled"),
        ("default/b", "pending", 2, "QuotaExhausted"),
    ]
    assert {row.node for row in found.placements} == {NODE}
    assert [row.phase for row in found.gangs if row.name == "default/a"] == ["Running"]


def test_groups_that_run_already() -> None:
    """They use their queue's quota."""
    objects = (queue("train", capability={GPU: "8"}), group("old", "train", 8, phase="Running"))
    found = decided(*objects, group("new", "train", 1, members=1))
    (train,) = (row for row in found.queues if row.name == "train")
    assert (train.used[GPU], train.pending[GPU]) == (8, 1)
    assert [(row.name, row.outcome) for row in found.workloads] == [("default/new", "pending")]


def test_the_parts_of_a_group() -> None:
    """They sum to what it asks for, where that does not come out even too; its labels are theirs."""
    raw = group("g", "train", 7, members=3)
    raw["metadata"]["labels"] = {"sublet.dev/queue": "x"}
    cluster = GivenCluster(given(queue("train"), raw), NOW)
    containers = [pod.spec.containers[0].resources for pod in cluster.pods.values()]
    assert [each.requests[GPU] for each in containers if each and each.requests] == ["3", "2", "2"]
    assert {(pod.metadata.labels or {})["sublet.dev/queue"] for pod in cluster.pods.values()} == {"x"}


def test_a_group_with_pods_stands_for_nothing_else() -> None:
    """Its pods are given."""
    member = pod("m", "1")
    member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    cluster = GivenCluster(given(queue("train"), group("g", "train", 8), member), NOW)
    assert [pod.metadata.name for pod in cluster.pods.values()] == ["m"]


def test_with_a_node_groups_need_pods() -> None:
    """A group of which none is given waits for them."""
    cluster = GivenCluster(given(node(), queue("train"), group("g", "train", 8)), NOW)
    assert cluster.pods == {}


def test_a_queue_without_pods() -> None:
    """It takes part with a demand of 0: its share is its guarantee."""
    found = decided(queue("idle", guarantee={"resource": {GPU: "4"}}), queue("train"), group("a", "train", 2))
    shares = {row.name: row.fair_share[GPU] for row in found.queues}
    assert shares["idle"] == 4 and shares["train"] == 2
