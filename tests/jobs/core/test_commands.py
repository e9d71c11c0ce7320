"""Commands: each is obeyed once, tells where it changes nothing, and goes."""

from __future__ import annotations

import pytest
from job_cases import NOW, Cluster, job, running

from jobs.core.commands import due
from jobs.core.policy import JobFacts
from model.job.actions import TellEvent
from model.job.job import Job, JobCommand, LifecycleRule, PodEvent, RuleAction
from model.job.status import JobPhase, JobStatus, PodPhase

RUNS: dict[str, tuple[RuleAction, JobPhase, int, list[str]]] = {
    "suspended": (RuleAction.ABORT_JOB, JobPhase.SUSPENDED, 0, []),
    "restarted": (RuleAction.RESTART_JOB, JobPhase.RUNNING, 1, ["train-worker-0", "train-worker-1"]),
    "completed": (RuleAction.COMPLETE_JOB, JobPhase.SUCCEEDED, 0, []),
    "terminated": (RuleAction.TERMINATE_JOB, JobPhase.TERMINATED, 0, []),
}


@pytest.mark.parametrize(("action", "phase", "run", "pods"), RUNS.values(), ids=RUNS)
def test_a_job_that_runs(action: RuleAction, phase: JobPhase, run: int, pods: list[str]) -> None:
    """It is no failure and no eviction."""
    cluster = Cluster(job())
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.order(action)
    cluster.look()
    assert cluster.commands == {}
    cluster.settle(lambda: cluster.status.phase is phase)
    status = cluster.status
    assert (status.phase, status.run, status.failures, status.evictions) == (phase, run, 0, 0)
    assert sorted(cluster.pods) == pods


def test_what_a_rule_suspended_is_resumed() -> None:
    """In a new run; what failed before does not count any more, and is in nobody's way."""
    cluster = Cluster(job(rules=(LifecycleRule(RuleAction.ABORT_JOB, (PodEvent.FAILED,)),)))
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.change("train-worker-1", phase=PodPhase.FAILED, exit_code=1)
    cluster.look()
    cluster.order(RuleAction.RESUME_JOB)
    cluster.look()
    assert cluster.status.phase is JobPhase.SUSPENDING and list(cluster.commands) == ["c1"]
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    assert (cluster.status.phase, cluster.status.run) == (JobPhase.RUNNING, 1)
    assert sorted(cluster.pods) == ["train-worker-0", "train-worker-1"] and cluster.commands == {}


IGNORED: dict[str, tuple[Job, JobStatus, RuleAction | None, str]] = {
    "one that runs": (
        job(), running(), RuleAction.RESUME_JOB, "ResumeJob changes nothing of a job that is running",
    ),
    "one that has ended": (
        job(), running(phase=JobPhase.FAILED), RuleAction.RESTART_JOB, "RestartJob changes nothing of a job that is failed",
    ),
    "one that its object suspends": (
        job(suspend=True), running(phase=JobPhase.SUSPENDED), RuleAction.RESUME_JOB,
        "ResumeJob resumes no job that its own object suspends",
    ),
    "no known action": (job(), running(), None, "Dance is no action that is known"),
}  # fmt: skip


@pytest.mark.parametrize(("of", "status", "action", "words"), IGNORED.values(), ids=IGNORED)
def test_what_changes_nothing_is_told(of: Job, status: JobStatus, action: RuleAction | None, words: str) -> None:
    cluster = Cluster(of)
    cluster.status = status
    cluster.order(action)
    found = cluster.look()
    assert TellEvent("CommandIgnored", f"command c1: {words}", True) in found.actions
    assert (found.status.phase, found.status.run) == (status.phase, status.run) and cluster.commands == {}
    assert "CommandIgnored" not in str(cluster.look().actions)


def test_one_after_the_other() -> None:
    """The oldest first; the next one once that is gone, so that none is obeyed twice."""
    first = JobCommand("b", "u1", NOW, RuleAction.ABORT_JOB)
    second = JobCommand("a", "u2", NOW + 1, RuleAction.RESTART_JOB)
    order = due(job(), running(), JobFacts(commands=(second, first)))
    assert order is not None and order.command is first
    assert due(job(), order.status, JobFacts(commands=(second, first))) is None
    order = due(job(), order.status, JobFacts(commands=(second,)))
    assert order is not None and order.command is second
