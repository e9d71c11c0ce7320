"""Restarts: of the job, of a task or of a pod. They are written down before any pod is deleted.

A restart is a new run: `floors` say from which run on pods count, so that one that is deleted late counts no second
time, whenever the controller is interrupted. Failures are counted against the job's budget, evictions are not
(docs/adr/0049).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from jobs.core.policy import JobPolicy
from jobs.core.rules import Happening
from jobs.core.transitions import Cause
from model.job.job import Job, Member, PodEvent, RuleAction
from model.job.status import JobStatus

_SOON_SECONDS = 600.0
"""A restart that comes later than that after the last one is no sign that they would go on."""
_LONGEST_REST_SECONDS = 300.0


def paced(before: JobStatus, after: JobStatus, policy: JobPolicy, now: float) -> JobStatus:
    """The status with the rest before its pods are made again, where this look restarts something not for the first
    time: pods that are evicted, or fail, as soon as they are made would be made without end. A job that goes on with
    fewer pods restarts nothing.
    """
    if after.shrunk and after.scale != before.scale:
        return after
    if (after.failures, after.evictions) == (before.failures, before.evictions) or after.phase.ended:
        return after
    soon = before.in_a_row > 0 and now < before.rest_seconds + _SOON_SECONDS
    number = before.in_a_row + 1 if soon else 1
    most = max(_LONGEST_REST_SECONDS, policy.restart_seconds)
    rest = min(policy.restart_seconds * 2.0 ** min(number - 2, 32), most) if number > 1 else 0.0
    return msgspec.structs.replace(after, in_a_row=number, rest_seconds=float(math.ceil(now + rest)))


def whole(status: JobStatus) -> JobStatus:
    """The same in a new run, for which no pod counts that exists."""
    return _floored(status, {"": status.run + 1})


def of_task(status: JobStatus, task: str) -> JobStatus:
    """The same in a new run, for which no pod of the task counts."""
    kept = {key: floor for key, floor in status.floors.items() if not _within(key, task)}
    return _floored(status, {**kept, task: status.run + 1})


def of_members(status: JobStatus, members: Iterable[Member]) -> JobStatus:
    """The same in a new run, for which these members' pods do not count."""
    return _floored(status, {**status.floors, **{member.text: status.run + 1 for member in members}})


def counted(job: Job, status: JobStatus, happening: Happening) -> JobStatus:
    """The same with one more failure, or eviction."""
    if happening.event is PodEvent.EVICTED:
        return msgspec.structs.replace(status, evictions=status.evictions + 1)
    return msgspec.structs.replace(status, failures=status.failures + 1)


def exhausted(job: Job, status: JobStatus, happening: Happening) -> bool:
    """Whether this was the failure that is one too many; as Volcano counts, the budget is of runs."""
    return happening.event is not PodEvent.EVICTED and status.failures >= job.most_failures


def restarted(job: Job, status: JobStatus, action: RuleAction, happening: Happening) -> tuple[JobStatus, Cause]:
    """The status after a restart of what `action` says, and the cause of the phase that follows."""
    status = counted(job, status, happening)
    if exhausted(job, status, happening):
        return status, Cause.TOO_MANY_FAILURES
    if action is RuleAction.RESTART_POD:
        return of_members(status, (happening.member,)), Cause.MAKING_PODS
    if action in (RuleAction.RESTART_TASK, RuleAction.RESTART_PARTITION):
        return of_task(status, happening.member.task), Cause.MAKING_PODS
    return whole(status), Cause.RESTARTED


def _floored(status: JobStatus, floors: Mapping[str, int]) -> JobStatus:
    return msgspec.structs.replace(status, run=status.run + 1, floors=floors)


def _within(key: str, task: str) -> bool:
    """Whether the key is the task, or one of its members."""
    return key == task or (key.startswith(f"{task}-") and key[len(task) + 1 :].isdigit())
