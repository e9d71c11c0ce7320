"""When a job has ended by what its pods did."""

from __future__ import annotations

import pytest
from job_cases import job, pod, task

from jobs.core.ending import ending
from jobs.core.members import counts, roster
from jobs.core.transitions import Cause
from model.job.job import GroupTerms, Job, TaskDependency
from model.job.status import JobPod, JobStatus, PodPhase

OK, BAD = PodPhase.SUCCEEDED, PodPhase.FAILED
THREE = task("worker", 3)
LED = job(task("master", 1), task("worker", 2), leader="master")
CASES: dict[str, tuple[Job, list[JobPod], Cause | None]] = {
    "all run": (job(), [pod(0), pod(1)], None),
    "one runs on": (job(), [pod(0, OK), pod(1)], None),
    "all succeeded": (job(), [pod(0, OK), pod(1, OK)], Cause.SUCCEEDED),
    "one failed": (job(), [pod(0, OK), pod(1, BAD)], Cause.PODS_FAILED),
    "one failed that was not needed": (
        job(THREE, group=GroupTerms(minimum=2)), [pod(0, OK), pod(1, OK), pod(2, BAD)], Cause.SUCCEEDED,
    ),
    "one of a task that needs all": (
        job(task("a", 1), task("b", 2, 1), group=GroupTerms(minimum=2)),
        [pod(0, BAD, "a"), pod(0, OK, "b"), pod(1, OK, "b")],
        Cause.PODS_FAILED,
    ),
    "enough succeeded, others run": (job(THREE, success=2), [pod(0, OK), pod(1, OK), pod(2)], Cause.COMPLETED),
    "enough succeeded, the other failed": (job(THREE, success=2), [pod(0, OK), pod(1, OK), pod(2, BAD)], Cause.SUCCEEDED),
    "too few succeeded": (job(THREE, success=2), [pod(0, OK), pod(1, BAD), pod(2, BAD)], Cause.PODS_FAILED),
    "the master succeeded": (LED, [pod(0, OK, "master"), pod(0), pod(1)], Cause.COMPLETED),
    "a worker succeeded": (LED, [pod(0, task="master"), pod(0, OK), pod(1)], None),
    "the first pod leads": (job(leader="worker-0"), [pod(0, OK), pod(1)], Cause.COMPLETED),
    "a pod is missing": (job(), [pod(0, OK)], None),
    "a task has not begun": (
        job(task("a", 1), task("b", 1, after=TaskDependency(("c",))), task("c", 1, 1)),
        [pod(0, OK, "a"), pod(0, BAD, "c")],
        None,
    ),
    "no pods at all": (job(task("worker", 0)), [], None),
}  # fmt: skip


@pytest.mark.parametrize(("of", "pods", "cause"), CASES.values(), ids=CASES)
def test_endings(of: Job, pods: list[JobPod], cause: Cause | None) -> None:
    found = roster(of, JobStatus(), pods)
    assert ending(of, found, counts(of, found)) is cause
