"""Conditions of a job, what happened to it, and the Events that tell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from model.condition import ConditionStatus
from model.job.actions import TellEvent
from model.job.job import Job, PodEvent
from model.job.status import JobCondition, JobEvent, JobPhase, JobStatus

ACCEPTED, WAITED, UNMET, RUNNING, FINISHED, SUSPENDED = (
    "Accepted",
    "WaitTimeExceeded",
    "NotActedOn",
    "Running",
    "Finished",
    "Suspended",
)


class Told(msgspec.Struct, frozen=True):
    """A condition as it is now."""

    type: str
    met: bool
    reason: str
    message: str = ""


def conditions(job: Job, status: JobStatus, problem: str, now: float) -> tuple[JobCondition, ...]:
    """Of this look; one that stays keeps its time."""
    before = {each.type: each for each in status.conditions}
    told = {each.type: _since(each, before.get(each.type), now) for each in _conditions(job, status, problem, now)}
    kept = {name: each for name, each in before.items() if name not in told and name not in (WAITED, UNMET)}
    return tuple(found for _, found in sorted({**kept, **told}.items()))


def waited_too_long(job: Job, status: JobStatus, now: float) -> bool:
    """Whether it waits longer than it wants to."""
    waits = status.phase in (JobPhase.PENDING, JobPhase.QUEUED) and job.group.wait_seconds > 0
    return waits and status.queued_seconds > 0 and now >= status.queued_seconds + job.group.wait_seconds


def events(job: Job, before: JobStatus, after: JobStatus) -> Iterator[TellEvent]:
    """What is told about the change from one status to the next."""
    if after.phase is not before.phase or after.run != before.run:
        bad = after.phase in (JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.RESTARTING)
        # It runs on with fewer pods.
        reason = PodEvent.EVICTED.value if after.shrunk and after.phase is before.phase else after.reason
        yield TellEvent(reason, after.message or after.phase.value, bad)
    if after.in_a_row > 1 and after.in_a_row != before.in_a_row:
        told = f"it was restarted {after.in_a_row} times in a row: its pods are made again after a rest"
        yield TellEvent("RestartDelayed", told, True)
    for task, count in after.scale.items():
        was = before.scale.get(task, count)
        if was != count:
            yield TellEvent("Grown" if count > was else "Shrunk", f"{task}: {was} → {count} pods")
    known = {each.type: (each.status, each.reason, each.message) for each in before.conditions}
    for each in after.conditions:
        if known.get(each.type) != (each.status, each.reason, each.message) and _bad(each):
            yield TellEvent(each.reason, each.message, True)


def remembered(status: JobStatus, told: Iterable[TellEvent], most: int, now: float) -> tuple[JobEvent, ...]:
    """The newest events, those included."""
    more = (JobEvent(each.reason, each.message, now, each.warning) for each in told)
    return (*status.events, *more)[-most:] if most else ()


def _conditions(job: Job, status: JobStatus, problem: str, now: float) -> Iterator[Told]:
    yield Told(ACCEPTED, not problem, "InvalidSpec" if problem else "Valid", problem)
    if job.unmet:
        yield Told(UNMET, True, "NotActedOn", "; ".join(job.unmet))
    if job.group.wait_seconds and waited_too_long(job, status, now):
        yield Told(WAITED, True, "WaitTimeExceeded", f"waiting for more than {job.group.wait_seconds:g} s")
    yield Told(RUNNING, status.phase is JobPhase.RUNNING, status.reason or "New", status.message)
    if status.phase is JobPhase.SUSPENDED or any(each.type == SUSPENDED for each in status.conditions):
        yield Told(SUSPENDED, status.phase is JobPhase.SUSPENDED, status.reason or "New", status.message)
    if status.phase.ended:
        yield Told(FINISHED, True, status.reason, status.message)


def _bad(condition: JobCondition) -> bool:
    return (condition.type == ACCEPTED and condition.status is ConditionStatus.FALSE) or (
        condition.type in (WAITED, UNMET) and condition.status is ConditionStatus.TRUE
    )


def _since(told: Told, before: JobCondition | None, now: float) -> JobCondition:
    status = ConditionStatus.TRUE if told.met else ConditionStatus.FALSE
    since = before.since_seconds if before is not None and before.status is status else now
    return JobCondition(told.type, status, told.reason, told.message, since)
