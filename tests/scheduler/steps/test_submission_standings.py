"""How LocalQueues stand by the pods that name them."""

from __future__ import annotations

from kueue_world import GPU, cluster_queue, flavor, gpu_node, gpu_pod, local_queue, namespace, settled
from scheduler_fakes import World


def test_by_local_queue() -> None:
    """Two lead to one ClusterQueue: what runs and what waits is told apart, by namespace and name."""
    world = World().see(
        namespace(),
        namespace("other"),
        flavor(),
        gpu_node("a0"),
        cluster_queue("one", gpus=8),
        local_queue("x", "one"),
        local_queue("x", "one", "other"),
        local_queue("y", "one"),
    )
    world.see(gpu_pod("p", "x", 4, node="a0"), gpu_pod("q", "y", 4, node="a0"), gpu_pod("r", "x", 4))
    world.see(gpu_pod("s", "x", 4, namespace="other"), gpu_pod("t", "x", 4, namespace="other"))
    found = {f"{each.queue.namespace}/{each.queue.name}": each for each in settled(world).cycle.submission_standings()}
    assert {key: (each.pending_jobs, each.running_jobs) for key, each in found.items()} == {
        "default/x": (1, 1),
        "default/y": (0, 1),
        "other/x": (2, 0),
    }
    assert found["default/x"].used[("gpu-a100", GPU)] == 4 == found["default/x"].reserved[("gpu-a100", GPU)]
    assert not found["other/x"].used


def test_nothing_without_local_queues() -> None:
    assert World().cycle.submission_standings() == ()
