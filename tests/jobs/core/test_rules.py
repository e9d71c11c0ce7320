"""Rules: events and exit codes, those of a task before those of the job, after their time."""

from __future__ import annotations

import pytest
from job_cases import NOW, job, pod, running, task

from jobs.core.members import roster
from jobs.core.rules import Verdict, happenings, needed, next_rule_seconds, verdict
from model.job.job import ElasticPolicy, Job, LifecycleRule, Member, PodEvent, RuleAction
from model.job.status import JobPod, JobStatus, PodPhase, TaskCounts

A, R = RuleAction.ABORT_JOB, RuleAction.RESTART_JOB
FAILED, EVICTED = pod(0, PodPhase.FAILED, exit_code=3), pod(0, evicted=True)


def judged(of: Job, pods: list[JobPod], status: JobStatus | None = None, now: float = NOW) -> Verdict | None:
    status = status or running(tasks={})
    return verdict(of, happenings(of, status, roster(of, status, pods), now), now)


def rule(action: RuleAction = A, *events: PodEvent, code: int | None = None, timeout: float = 0.0) -> LifecycleRule:
    return LifecycleRule(action, events, code, timeout)


CASES: dict[str, tuple[list[LifecycleRule], list[LifecycleRule], JobPod, RuleAction | None]] = {
    "a failure": ([], [rule(A, PodEvent.FAILED)], FAILED, A),
    "an eviction is no failure": ([], [rule(A, PodEvent.FAILED)], EVICTED, None),
    "an eviction": ([], [rule(A, PodEvent.EVICTED)], EVICTED, A),
    "any": ([], [rule(A, PodEvent.ANY)], FAILED, A),
    "any, and nothing bad happened": ([], [rule(A, PodEvent.ANY)], pod(0), None),
    "a pod that runs": ([], [rule(A, PodEvent.RUNNING)], pod(0), A),
    "a pod nothing is known of": ([], [rule(A, PodEvent.UNKNOWN)], pod(0, PodPhase.UNKNOWN), A),
    "this exit code": ([], [rule(A, code=3)], FAILED, A),
    "another exit code": ([], [rule(A, code=4)], FAILED, None),
    "an exit code before others": ([], [rule(A, code=3), rule(R, PodEvent.FAILED)], FAILED, A),
    "the task's own": ([rule(A, PodEvent.FAILED)], [rule(R, PodEvent.FAILED)], FAILED, A),
    "the job's where the task has none": ([rule(A, PodEvent.EVICTED)], [rule(R, PodEvent.FAILED)], FAILED, R),
}


@pytest.mark.parametrize(("own", "every", "happened", "action"), CASES.values(), ids=CASES)
def test_which_rule_holds(
    own: list[LifecycleRule], every: list[LifecycleRule], happened: JobPod, action: RuleAction | None
) -> None:
    found = judged(job(task(rules=tuple(own)), rules=tuple(every)), [happened, pod(1)])
    assert (found.action if found else None) is action


def test_a_rule_waits_for_its_time() -> None:
    pending = pod(0, PodPhase.PENDING, since_seconds=NOW - 50)
    of = job(rules=(rule(A, PodEvent.PENDING, timeout=60.0),))
    assert judged(of, [pending, pod(1)]) is None
    told = happenings(of, running(tasks={}), roster(of, running(), [pending, pod(1)]), 100.0)
    assert next_rule_seconds(of, told, NOW) == 10.0
    found = judged(of, [pending, pod(1)], now=NOW + 10)
    assert found is not None and found.action is A


def test_a_task_that_is_complete() -> None:
    of = job(task("a", 1), task("b", 1), rules=(rule(RuleAction.COMPLETE_JOB, PodEvent.TASK_COMPLETED),))
    found = judged(of, [pod(0, PodPhase.SUCCEEDED, "a"), pod(0, task="b")])
    assert found is not None and found.happening.member == Member("a", 0)
    assert judged(of, [pod(0, task="a"), pod(0, task="b")]) is None


def test_a_pod_that_is_gone_was_evicted() -> None:
    """Where the task had all of its pods when it was looked at last, and only then."""
    of = job(rules=(rule(A, PodEvent.EVICTED),))
    whole, partly = running(), running(tasks={"worker": TaskCounts(running=1)})
    found = judged(of, [pod(0)], whole)
    assert found is not None and found.happening.text == "the pod of worker-1 is gone"
    assert judged(of, [pod(0)], partly) is None


def test_an_eviction_that_no_rule_is_about_is_told() -> None:
    found = judged(job(rules=()), [EVICTED, pod(1)])
    assert found is not None and found.action is None and found.happening.event is PodEvent.EVICTED


THROUGH = pod(0, PodPhase.FAILED, exit_code=143, evicted=True, told_until_seconds=NOW + 20)
SAVES = pod(1, told_until_seconds=NOW + 30)


def test_members_that_were_told_end_together() -> None:
    """Who is through restarts nothing while another still saves; then, or at the deadline, all begin anew."""
    of = job(rules=(rule(R, PodEvent.EVICTED),))
    assert judged(of, [THROUGH, SAVES]) is None
    both = [THROUGH, pod(1, PodPhase.FAILED, exit_code=143, evicted=True, told_until_seconds=NOW + 30)]
    assert (found := judged(of, both)) is not None and found.action is R and found.happening.event is PodEvent.EVICTED
    late = judged(of, [THROUGH, SAVES], now=NOW + 30)
    assert late is not None and late.action is R


def test_a_pod_that_ends_without_having_been_told_is_waited_for_by_nobody() -> None:
    found = judged(job(rules=(rule(R, PodEvent.FAILED),)), [FAILED, SAVES])
    assert found is not None and found.action is R


NEEDED: dict[str, tuple[Job, bool]] = {
    "restarted as a whole": (job(rules=(rule(R, PodEvent.EVICTED),)), True),
    "by any event": (job(rules=(rule(A, PodEvent.ANY),)), True),
    "its task alone": (job(rules=(rule(RuleAction.RESTART_TASK, PodEvent.EVICTED),)), True),
    "made again": (job(rules=(rule(RuleAction.RESTART_POD, PodEvent.EVICTED),)), False),
    "no rule": (job(rules=(rule(A, PodEvent.FAILED),)), False),
    "of an elastic job one of its minimum": (job(task("worker", 3, 2), elastic=ElasticPolicy("worker", 2, 3)), True),
    "of an elastic job one above it": (job(task("worker", 3, 1), elastic=ElasticPolicy("worker", 1, 3)), False),
}


@pytest.mark.parametrize(("of", "expected"), NEEDED.values(), ids=NEEDED)
def test_without_whom_a_job_does_not_go_on(of: Job, expected: bool) -> None:
    """The second worker, once it is evicted."""
    assert needed(of, Member("worker", 1)) is expected
