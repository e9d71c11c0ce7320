"""Restarts raise the run, and say for whom it holds."""

from __future__ import annotations

import pytest
from job_cases import job

from jobs.core.restart import exhausted, of_members, of_task, restarted, whole
from jobs.core.rules import Happening
from jobs.core.transitions import Cause
from model.job.job import Member, PodEvent, RuleAction
from model.job.status import JobStatus

ONE = Member("worker", 1)
BEFORE = JobStatus(run=4, floors={"": 2, "worker-1": 3, "worker-b-1": 3})


def test_floors() -> None:
    """What a wider restart covers is forgotten; a task of a longer name is another."""
    assert whole(BEFORE).floors == {"": 5} and whole(BEFORE).run == 5
    assert of_task(BEFORE, "worker").floors == {"": 2, "worker-b-1": 3, "worker": 5}
    assert of_members(BEFORE, [ONE]).floors == {"": 2, "worker-1": 5, "worker-b-1": 3}


CASES = {
    "a failure": (PodEvent.FAILED, RuleAction.RESTART_JOB, 0, (1, 0), Cause.RESTARTED),
    "the last failure": (PodEvent.FAILED, RuleAction.RESTART_JOB, 2, (3, 0), Cause.TOO_MANY_FAILURES),
    "an eviction": (PodEvent.EVICTED, RuleAction.RESTART_JOB, 2, (2, 1), Cause.RESTARTED),
    "a restart of a task": (PodEvent.FAILED, RuleAction.RESTART_TASK, 0, (1, 0), Cause.MAKING_PODS),
    "a restart of a partition": (PodEvent.FAILED, RuleAction.RESTART_PARTITION, 0, (1, 0), Cause.MAKING_PODS),
    "a restart of a pod": (PodEvent.FAILED, RuleAction.RESTART_POD, 0, (1, 0), Cause.MAKING_PODS),
    "the last failure, of a pod": (PodEvent.FAILED, RuleAction.RESTART_POD, 2, (3, 0), Cause.TOO_MANY_FAILURES),
}


@pytest.mark.parametrize(("event", "action", "failures", "counted", "cause"), CASES.values(), ids=CASES)
def test_what_is_counted(
    event: PodEvent, action: RuleAction, failures: int, counted: tuple[int, int], cause: Cause
) -> None:
    status, found = restarted(job(), JobStatus(failures=failures), action, Happening(event, ONE))
    assert (status.failures, status.evictions) == counted and found is cause
    assert (status.run == 0) == (cause is Cause.TOO_MANY_FAILURES)


def test_a_budget_of_none_ends_at_the_first_failure() -> None:
    assert exhausted(job(most_failures=0), JobStatus(failures=1), Happening(PodEvent.FAILED, ONE))
    assert not exhausted(job(most_failures=0), JobStatus(evictions=9), Happening(PodEvent.EVICTED, ONE))
