"""A controller that is killed after any single write, and starts again: no pod twice, none lost, nothing counted twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from job_cases import Cluster, Interrupted, job, task

from model.job.status import JobPhase, PodPhase

MOST_WRITES = 40


def _begin(cluster: Cluster) -> None:
    """Nothing is there yet."""


def _running(cluster: Cluster) -> None:
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING and not cluster.status.counts.pending)
    assert cluster.status.phase is JobPhase.RUNNING


def _one_failed(cluster: Cluster) -> None:
    _running(cluster)
    cluster.change("train-worker-1", phase=PodPhase.FAILED, exit_code=1)


def _one_evicted(cluster: Cluster) -> None:
    _running(cluster)
    cluster.change("train-worker-0", evicted=True, leaving=True)


def _one_gone(cluster: Cluster) -> None:
    _running(cluster)
    del cluster.pods["train-worker-2"]


def _all_succeeded(cluster: Cluster) -> None:
    _running(cluster)
    for name in cluster.pods:
        cluster.change(name, phase=PodPhase.SUCCEEDED)


CASES: dict[str, tuple[Callable[[Cluster], None], JobPhase, int, int, list[int]]] = {
    "made": (_begin, JobPhase.RUNNING, 0, 0, [0]),
    "one failed": (_one_failed, JobPhase.RUNNING, 1, 0, [0, 1]),
    "one was evicted": (_one_evicted, JobPhase.RUNNING, 0, 1, [0, 1]),
    "one is gone": (_one_gone, JobPhase.RUNNING, 0, 1, [0, 1]),
    "all succeeded": (_all_succeeded, JobPhase.SUCCEEDED, 0, 0, [0]),
}


@pytest.mark.parametrize("writes", range(MOST_WRITES))
@pytest.mark.parametrize(("begin", "phase", "failures", "evictions", "runs"), CASES.values(), ids=CASES)
def test_a_kill_after_any_write(
    begin: Callable[[Cluster], None], phase: JobPhase, failures: int, evictions: int, runs: list[int], writes: int
) -> None:
    """Every member has one pod of each run, and the counters say what happened once."""
    cluster = Cluster(job(task("worker", 3)))
    begin(cluster)
    cluster.budget = writes
    try:
        for _ in range(10):
            cluster.look()
            cluster.clear()
            cluster.run_all()
    except Interrupted:
        pass
    cluster.budget = 1 << 30
    cluster.settle(lambda: cluster.status.phase is phase and not cluster.status.counts.pending)
    assert cluster.status.phase is phase
    assert (cluster.status.failures, cluster.status.evictions) == (failures, evictions)
    assert sorted(cluster.created) == sorted((f"train-worker-{index}", run) for index in range(3) for run in runs)
    assert sorted(cluster.pods) == [f"train-worker-{index}" for index in range(3)]
