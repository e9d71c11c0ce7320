"""An elastic job grows while there is room, gives up what finds none, and begins with its minimum."""

from __future__ import annotations

import msgspec
import pytest
from job_cases import NOW, POLICY, Cluster, job, pod, running, task

from jobs.core.elastic import next_seconds, resized
from jobs.core.members import roster
from model.job.actions import TellEvent
from model.job.job import ElasticPolicy
from model.job.status import JobPhase, JobPod, JobStatus, PodPhase, TaskCounts

ELASTIC = ElasticPolicy("worker", 2, 5, up_step=2, up_cooldown_seconds=60.0)
JOB = job(task("worker", 5, 2), elastic=ELASTIC)


def scaled(status: JobStatus, pods: list[JobPod], now: float = NOW) -> int:
    return resized(JOB, status, roster(JOB, status, pods), POLICY, now).scale["worker"]


def homeless(index: int, seconds: float) -> JobPod:
    return pod(index, PodPhase.PENDING, waits="no room", created_seconds=NOW - seconds)


def test_it_grows_by_a_step_after_its_rest() -> None:
    status = running(scale={"worker": 2}, since_seconds=NOW - 59)
    assert scaled(status, [pod(0), pod(1)]) == 2
    assert scaled(status, [pod(0), pod(1)], NOW + 1) == 4
    assert next_seconds(JOB, status, roster(JOB, status, [pod(0), pod(1)]), POLICY, NOW) == 1.0


def test_it_grows_to_its_maximum_and_no_more() -> None:
    status = running(scale={"worker": 4}, scaled_seconds=NOW - 60)
    assert scaled(status, [pod(index) for index in range(4)]) == 5
    full = running(scale={"worker": 5}, scaled_seconds=NOW - 600)
    assert scaled(full, [pod(index) for index in range(5)]) == 5
    assert next_seconds(JOB, full, roster(JOB, full, []), POLICY, NOW) == 0.0


def test_it_waits_until_all_it_has_are_placed() -> None:
    status = running(scale={"worker": 4}, scaled_seconds=NOW - 600)
    assert scaled(status, [pod(0), pod(1), pod(2), pod(3, PodPhase.PENDING)]) == 4


def test_what_finds_no_room_is_given_up() -> None:
    """After a while, and not below the minimum."""
    status = running(scale={"worker": 4}, scaled_seconds=NOW - 5)
    assert scaled(status, [pod(0), pod(1), pod(2), homeless(3, 29)]) == 4
    assert scaled(status, [pod(0), pod(1), pod(2), homeless(3, 30)]) == 3
    assert scaled(status, [pod(0), pod(1), homeless(2, 30), homeless(3, 30)]) == 2
    assert scaled(status, [pod(0), homeless(1, 30)]) == 4  # one of the minimum is the scheduler's business


def test_a_restart_begins_with_the_minimum() -> None:
    assert scaled(msgspec.structs.replace(running(scale={"worker": 5}), phase=JobPhase.RESTARTING), []) == 2


def test_a_growing_job_of_the_cluster() -> None:
    """Pods are added while it runs, without a restart; the Event says so."""
    cluster = Cluster(JOB)
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    assert len(cluster.pods) == 2
    cluster.now += 60
    grown = cluster.look()
    assert TellEvent("Grown", "worker: 2 → 4 pods") in grown.actions
    cluster.settle()
    assert len(cluster.pods) == 4 and (cluster.status.failures, cluster.status.evictions, cluster.status.run) == (
        0,
        0,
        0,
    )


def took(*gone: int, scale: int = 5, **policy: int) -> Cluster:
    """A job of that size of which others take pods, by index."""
    of = job(task("worker", 5, 2), elastic=ElasticPolicy("worker", 2, 5, up_cooldown_seconds=60.0, **policy))
    cluster = Cluster(of)
    cluster.status = running(
        scale={"worker": scale}, scaled_seconds=NOW - 10, tasks={"worker": TaskCounts(running=scale)}
    )
    pods = (pod(index, evicted=index in gone, leaving=index in gone) for index in range(scale))
    cluster.pods = {each.name: each for each in pods}
    cluster.look()
    return cluster


def test_it_goes_on_with_fewer() -> None:
    """No pod is made in the place of the last ones, nobody restarts, and it says so; it grows after both rests."""
    cluster = took(4, down_cooldown_seconds=200)
    status = cluster.status
    assert (status.phase, status.scale, status.evictions, status.failures) == (JobPhase.RUNNING, {"worker": 4}, 1, 0)
    assert [(each.reason, each.message) for each in status.events][-2:] == [
        ("PodEvicted", "pod train-worker-4 was evicted"), ("Shrunk", "worker: 5 → 4 pods"),
    ]  # fmt: skip
    cluster.settle()
    assert len(cluster.pods) == 4 and cluster.created == []
    cluster.now = NOW + 199
    cluster.look()
    assert len(cluster.pods) == 4
    cluster.now = NOW + 200
    cluster.look()
    assert cluster.created == [("train-worker-4", 1)] and cluster.status.shrunk is False


def evicted(cluster: Cluster, index: int) -> None:
    """A minute later others take a pod."""
    cluster.now += 60.0
    cluster.change(f"train-worker-{index}", evicted=True, leaving=True)
    cluster.look()
    cluster.clear()


def test_one_that_only_shrinks_was_not_restarted() -> None:
    """It makes no pods, so none need a rest; a pod that is made again and again after that does."""
    cluster = took(4, down_cooldown_seconds=6000)
    cluster.clear()
    evicted(cluster, 3)
    evicted(cluster, 2)
    status = cluster.status
    assert (status.phase, status.scale, status.evictions) == (JobPhase.RUNNING, {"worker": 2}, 3)
    assert (status.in_a_row, status.rest_seconds) == (0, 0.0)
    assert "RestartDelayed" not in [each.reason for each in status.events]


def test_what_is_evicted_before_it_runs_again_rests_though_the_job_shrank_before() -> None:
    """Without a rule that restarts it, its phase stays the same when the pod that was made is evicted at once."""
    pods, elastic = task("worker", 5, 2), ElasticPolicy("worker", 2, 5, down_cooldown_seconds=6000.0)
    cluster = Cluster(job(pods, elastic=elastic, rules=()))
    cluster.status = running(scale={"worker": 2}, shrunk=True, tasks={"worker": TaskCounts(running=2)})
    cluster.pods = {each.name: each for each in (pod(0), pod(1))}
    for number in range(1, 4):
        evicted(cluster, 0)
        assert (cluster.status.phase, cluster.status.shrunk) == (JobPhase.PENDING, True)
        assert cluster.status.in_a_row == number
        cluster.now = max(cluster.now, cluster.status.rest_seconds)
        cluster.look()


SMALLER: dict[str, tuple[tuple[int, ...], dict[str, int], int, list[int]]] = {
    "the last two": ((3, 4), {}, 3, []),
    "one in the middle is made again": ((2, 4), {}, 4, [2]),
    "whole steps": ((4,), {"down_step": 2}, 3, []),
    "never below the minimum": ((2, 3, 4), {"down_step": 2}, 2, []),
}


@pytest.mark.parametrize(("gone", "policy", "size", "made"), SMALLER.values(), ids=SMALLER)
def test_how_far_it_shrinks(gone: tuple[int, ...], policy: dict[str, int], size: int, made: list[int]) -> None:
    cluster = took(*gone, **policy)
    cluster.settle()
    assert (cluster.status.phase, cluster.status.scale) == (JobPhase.RUNNING, {"worker": size})
    assert sorted(cluster.pods) == [f"train-worker-{index}" for index in range(size)]
    assert cluster.created == [(f"train-worker-{index}", 1) for index in made]


def test_what_has_no_node_is_given_up_with_it() -> None:
    """Who takes pods leaves no room for more."""
    cluster = took(3)
    cluster.status = running(scale={"worker": 5}, scaled_seconds=NOW - 10, tasks={"worker": TaskCounts(running=4)})
    cluster.pods["train-worker-3"] = pod(3, evicted=True, leaving=True)
    cluster.pods["train-worker-4"] = pod(4, PodPhase.PENDING, waits="no room", created_seconds=NOW)
    cluster.look()
    assert cluster.status.scale == {"worker": 3}


def test_one_of_its_minimum_restarts_it() -> None:
    assert took(1, 4).status.phase is JobPhase.RESTARTING
