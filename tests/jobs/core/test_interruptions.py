"""A controller that is killed after any single write, and starts again: no pod twice, none lost, nothing counted twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from job_cases import Cluster, Interrupted, job, task

from model.job.job import (
    ElasticPolicy,
    GroupTerms,
    Job,
    JobDialect,
    LifecycleRule,
    PodEvent,
    RuleAction,
    TaskDependency,
)
from model.job.status import JobPhase, PodPhase

MOST_WRITES = 24
"""More than any of these cases makes; the last one of each is not interrupted."""
WORKERS = ("worker-0", "worker-1", "worker-2")
RUNS = JobPhase.RUNNING


def _running(cluster: Cluster) -> None:
    cluster.settle(lambda: cluster.status.phase is RUNS and not cluster.status.counts.pending)
    assert cluster.status.phase is RUNS


def _begin(cluster: Cluster) -> None:
    """Nothing is there yet."""


def _failed(cluster: Cluster) -> None:
    _running(cluster)
    cluster.change("train-worker-1", phase=PodPhase.FAILED, exit_code=1)


def _evicted(cluster: Cluster) -> None:
    _running(cluster)
    cluster.change("train-worker-0", evicted=True, leaving=True)


def _gone(cluster: Cluster) -> None:
    _running(cluster)
    del cluster.pods["train-worker-2"]


def _surplus_evicted(cluster: Cluster) -> None:
    """One that it can do without, of a job that has grown."""
    _grown(cluster)
    cluster.change("train-worker-2", evicted=True, leaving=True)


def _succeeded(cluster: Cluster) -> None:
    _running(cluster)
    for name in cluster.pods:
        cluster.change(name, phase=PodPhase.SUCCEEDED)


def _over(cluster: Cluster) -> None:
    """Its time is over as well."""
    _succeeded(cluster)
    cluster.look()
    cluster.now += 100


def _suspended(cluster: Cluster) -> None:
    _running(cluster)
    _changed(cluster, suspend=True)


def _resumed(cluster: Cluster) -> None:
    _suspended(cluster)
    cluster.settle(lambda: cluster.status.phase is JobPhase.SUSPENDED)
    _changed(cluster, suspend=False)


def _changed(cluster: Cluster, **fields: Any) -> None:
    cluster.job = msgspec.structs.replace(cluster.job, **fields)


def _rested(cluster: Cluster) -> None:
    """It may grow by now."""
    _running(cluster)
    cluster.now += 400


def _grown(cluster: Cluster) -> None:
    _rested(cluster)
    cluster.settle(lambda: len(cluster.pods) == 3 and not cluster.status.counts.pending)
    assert len(cluster.pods) == 3


def _without_room(cluster: Cluster) -> None:
    """It has grown, and the scheduler has no node for the pod."""
    _rested(cluster)
    cluster.look()
    cluster.change("train-worker-2", waits="no room")
    cluster.now += 60


def _ordered(action: RuleAction) -> Callable[[Cluster], None]:
    def begin(cluster: Cluster) -> None:
        _running(cluster)
        cluster.order(action)

    return begin


def _ordered_back(cluster: Cluster) -> None:
    _ordered(RuleAction.ABORT_JOB)(cluster)
    cluster.settle(lambda: cluster.status.phase is JobPhase.SUSPENDED)
    cluster.order(RuleAction.RESUME_JOB, "c2")


def plain(**more: Any) -> Job:
    return job(task("worker", 3), **more)


def ruled(action: RuleAction, *events: PodEvent) -> Job:
    return plain(rules=(LifecycleRule(action, events or (PodEvent.FAILED,)),))


ELASTIC = job(
    task("worker", 3, 2), group=GroupTerms(minimum=2), elastic=ElasticPolicy("worker", 2, 3, up_cooldown_seconds=300.0)
)
ORDERED = job(task("worker", 2), task("late", 1, after=TaskDependency(("worker",))))


class Case(msgspec.Struct, frozen=True):
    """`begin` brings the job to where the controller is killed; then it reaches `phase`. `made` are the runs in which
    each member's pod was made, `left` is who has one in the end.
    """

    of: Job
    begin: Callable[[Cluster], None]
    phase: JobPhase = RUNS
    failures: int = 0
    evictions: int = 0
    made: dict[str, list[int]] = {}
    left: tuple[str, ...] = WORKERS
    deleted: bool = False


def each(*runs: int, of: tuple[str, ...] = WORKERS) -> dict[str, list[int]]:
    return {name: list(runs) for name in of}


CASES: dict[str, Case] = {
    "made": Case(plain(), _begin, made=each(0)),
    "made after others": Case(
        ORDERED, _begin, made=each(0, of=("worker-0", "worker-1", "late-0")), left=("late-0", "worker-0", "worker-1")
    ),
    "restarted by a failure": Case(plain(), _failed, failures=1, made=each(0, 1)),
    "restarted by an eviction": Case(plain(), _evicted, evictions=1, made=each(0, 1)),
    "restarted by a pod that is gone": Case(plain(), _gone, evictions=1, made=each(0, 1)),
    "the last failure": Case(plain(most_failures=1), _failed, JobPhase.FAILED, 1, made=each(0), left=("worker-1",)),
    "a pod restarted": Case(ruled(RuleAction.RESTART_POD), _failed, failures=1, made=each(0) | {"worker-1": [0, 1]}),
    "a task restarted": Case(ruled(RuleAction.RESTART_TASK), _failed, failures=1, made=each(0, 1)),
    "a pod made anew without a rule": Case(plain(rules=()), _evicted, evictions=1, made=each(0) | {"worker-0": [0, 1]}),
    "aborted by a rule": Case(
        ruled(RuleAction.ABORT_JOB), _failed, JobPhase.SUSPENDED, made=each(0), left=("worker-1",)
    ),
    "terminated by a rule": Case(
        ruled(RuleAction.TERMINATE_JOB), _failed, JobPhase.TERMINATED, made=each(0), left=("worker-1",)
    ),
    "completed by a rule": Case(
        ruled(RuleAction.COMPLETE_JOB), _failed, JobPhase.SUCCEEDED, made=each(0), left=("worker-1",)
    ),
    "succeeded": Case(plain(), _succeeded, JobPhase.SUCCEEDED, made=each(0)),
    "deleted when its time is over": Case(
        plain(ttl_seconds=60.0), _over, JobPhase.SUCCEEDED, made=each(0), deleted=True
    ),
    "suspended": Case(plain(), _suspended, JobPhase.SUSPENDED, made=each(0), left=()),
    "resumed": Case(plain(), _resumed, made=each(0, 1)),
    "grown": Case(ELASTIC, _rested, made=each(0)),
    "no room to grow": Case(ELASTIC, _without_room, made=each(0), left=("worker-0", "worker-1")),
    "a surplus pod evicted": Case(ELASTIC, _surplus_evicted, evictions=1, made=each(0), left=("worker-0", "worker-1")),
    "suspended by a command": Case(plain(), _ordered(RuleAction.ABORT_JOB), JobPhase.SUSPENDED, made=each(0), left=()),
    "resumed by a command": Case(plain(), _ordered_back, made=each(0, 1)),
    "restarted by a command": Case(plain(), _ordered(RuleAction.RESTART_JOB), made=each(0, 1)),
    "terminated by a command": Case(
        plain(), _ordered(RuleAction.TERMINATE_JOB), JobPhase.TERMINATED, made=each(0), left=()
    ),
}


@pytest.mark.parametrize("dialect", JobDialect)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_kill_after_any_write(case: Case, dialect: JobDialect) -> None:
    """Every member has one pod of each run, and the counters say what happened once; whichever write is the last one."""
    identity = msgspec.structs.replace(case.of.id, dialect=dialect)
    of = msgspec.structs.replace(case.of, id=identity)
    assert not [_interrupted(case, of, writes) for writes in range(MOST_WRITES)][-1], "raise MOST_WRITES"


def _interrupted(case: Case, of: Job, writes: int) -> bool:
    """Whether there was anything to interrupt after so many writes; fails where that made a difference."""
    cluster = Cluster(of)
    case.begin(cluster)
    cluster.budget = writes
    killed = _killed(cluster)
    cluster.budget = 1 << 30
    cluster.settle(lambda: _reached(cluster, case))
    told = (cluster.status.phase, cluster.status.failures, cluster.status.evictions, cluster.deleted)
    assert told == (case.phase, case.failures, case.evictions, case.deleted), writes
    made = [(f"train-{name}", run) for name, runs in case.made.items() for run in runs]
    assert sorted(cluster.created) == sorted(made), writes
    assert sorted(cluster.pods) == sorted(f"train-{name}" for name in case.left), writes
    assert cluster.commands == {}, writes
    return killed


def _killed(cluster: Cluster) -> bool:
    """Whether the budget of writes was too small for a controller that works on."""
    try:
        for _ in range(10):
            cluster.look()
            cluster.clear()
            cluster.run_all()
    except Interrupted:
        return True
    return False


def _reached(cluster: Cluster, case: Case) -> bool:
    return (
        cluster.status.phase is case.phase
        and not cluster.status.counts.pending
        and len(cluster.created) >= sum(map(len, case.made.values()))
        and len(cluster.pods) == len(case.left)
        and cluster.deleted == case.deleted
    )
