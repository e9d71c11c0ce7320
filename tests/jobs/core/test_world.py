"""World of an elastic job: who trains together, told by a file that follows the job, and its generations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from job_cases import NOW, Cluster, Interrupted, job, pod, running, task

from jobs.core.members import roster
from jobs.core.peers import ElasticPeers, peers
from jobs.core.world import FILE, environment, followed, members_of
from model.job.job import ElasticPolicy, Job
from model.job.status import JobPhase, JobPod, JobStatus, PodPhase, World

ELASTIC = ElasticPolicy("worker", 2, 4, up_step=1, up_cooldown_seconds=60.0, down_cooldown_seconds=60.0)
JOB = job(task("worker", 4, 2), elastic=ELASTIC)


def told(cluster: Cluster) -> dict[str, Any]:
    """The file as it is in the cluster; fails where it says another number than the status."""
    made = cluster.objects["train-world"]
    assert made.changes == {"data": made.body["data"]}
    found: dict[str, Any] = msgspec.json.decode(made.body["data"][FILE])
    assert found["size"] == len(found["members"]) == cluster.status.world.size
    assert found["generation"] == cluster.status.world.generation
    return found


def names(*indexes: int) -> list[str]:
    return [f"train-worker-{index}" for index in indexes]


def test_before_it_runs_all_it_wants() -> None:
    """The first pod reads the size that its variables say; the file is there before the pod is."""
    cluster = Cluster(JOB)
    cluster.budget = 3  # status, PodGroup, the file
    with pytest.raises(Interrupted):
        cluster.look()
    assert cluster.created == [] and told(cluster) == {
        "generation": 1, "size": 2, "minimum": 2, "maximum": 4, "members": names(0, 1),
    }  # fmt: skip
    cluster.budget = 99
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    assert cluster.status.phase is JobPhase.RUNNING and told(cluster)["generation"] == 1


def test_a_pod_that_grows_it_counts_once_it_runs() -> None:
    """Nobody waits for a pod for which there may be no node."""
    cluster = Cluster(JOB)
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.now += 60
    cluster.look()
    assert len(cluster.pods) == 3 and told(cluster)["members"] == names(0, 1)
    cluster.run_all()
    cluster.look()
    assert told(cluster) == {"generation": 2, "size": 3, "minimum": 2, "maximum": 4, "members": names(0, 1, 2)}


def grown() -> Cluster:
    """Of four pods that run."""
    cluster = Cluster(JOB)
    cluster.status = running(scale={"worker": 4}, scaled_seconds=NOW)
    cluster.pods = {each.name: each for each in (pod(index) for index in range(4))}
    cluster.look()
    assert told(cluster)["members"] == names(0, 1, 2, 3)
    return cluster


@pytest.mark.parametrize(("gone", "left"), [((3,), (0, 1, 2)), ((2, 3), (0, 1)), ((2,), (0, 1, 3))])
def test_who_is_taken_is_told_at_once(gone: tuple[int, ...], left: tuple[int, ...]) -> None:
    """Also one between others: ranks are places in the list. It is no restart, and one generation."""
    cluster = grown()
    before = cluster.status.world.generation
    for index in gone:
        cluster.change(f"train-worker-{index}", evicted=True, leaving=True)
    cluster.look()
    assert told(cluster)["members"] == names(*left)
    assert cluster.status.world.generation == before + 1 and cluster.status.phase is not JobPhase.RESTARTING


def test_one_in_the_place_of_another_is_another_generation() -> None:
    """Its process knows nothing of what the others did."""
    cluster = grown()
    before = cluster.status.world.generation
    cluster.change("train-worker-2", evicted=True, leaving=True)
    cluster.look()
    cluster.clear()
    cluster.settle(lambda: told(cluster)["size"] == 4)
    assert told(cluster)["members"] == names(0, 1, 2, 3) and cluster.status.world.generation == before + 2


def test_a_restart_is_another_generation_of_the_minimum() -> None:
    cluster = grown()
    before = cluster.status.world.generation
    cluster.change("train-worker-0", evicted=True, leaving=True)
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING and cluster.status.run > 0)
    assert told(cluster)["members"] == names(0, 1) and cluster.status.world.generation == before + 1


def ended(index: int) -> JobPod:
    return pod(index, PodPhase.SUCCEEDED)


WORLDS: dict[str, tuple[int, list[JobPod], tuple[int, ...]]] = {
    "who has done its work is of it": (3, [ended(0), pod(1), pod(2)], (0, 1, 2)),
    "who has failed is not": (3, [pod(0), pod(1), pod(2, PodPhase.FAILED)], (0, 1)),
    "nor who has no node": (3, [pod(0), pod(1), pod(2, PodPhase.PENDING)], (0, 1)),
    "nor who goes": (3, [pod(0), pod(1), pod(2, leaving=True)], (0, 1)),
    "all until the minimum runs": (3, [pod(0), pod(2, PodPhase.PENDING)], (0, 1, 2)),
}


@pytest.mark.parametrize(("size", "pods", "indexes"), WORLDS.values(), ids=WORLDS)
def test_who_is_of_it(size: int, pods: list[JobPod], indexes: tuple[int, ...]) -> None:
    found = members_of(ElasticPeers(2, 4, ""), roster(JOB, running(scale={"worker": size}), pods))
    assert tuple(each.index for each in found) == indexes


@pytest.mark.parametrize("of", [job(), JOB], ids=["one that does not change its size", "one that does not run"])
def test_who_has_none(of: Job) -> None:
    status = running() if of is not JOB else JobStatus(phase=JobPhase.SUSPENDED)
    found = roster(of, status, [])
    assert followed(status, peers(of, found.wanted), found).world == World()


def test_other_sets_count() -> None:
    """By their ranks, and in the bounds."""
    of = job(task("master", 1), task("worker", 4, 2), elastic=ELASTIC)
    cluster = Cluster(of)
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    assert told(cluster)["members"] == ["train-master-0", *names(0, 1)]
    assert (told(cluster)["minimum"], told(cluster)["maximum"]) == (3, 5)


def test_where_a_process_reads_it() -> None:
    found = environment("train-worker-1")
    assert found == {"SUBLET_WORLD_FILE": f"/etc/sublet/world/{FILE}", "SUBLET_WORLD_MEMBER": "train-worker-1"}
