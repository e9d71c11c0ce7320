"""Status of a Volcano Job: written in Volcano's words, and read back.

Source: volcano.sh/apis pkg/apis/batch/v1alpha1/job.go (JobStatus).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.documents.duration import go_duration
from kube.dialects.jobs.status_fields import Count, converted, counts_of, phase_of, time_text, without_nothing
from kube.objects import Time, unix_seconds
from model.job.job import Job
from model.job.status import JobCondition, JobEvent, JobPhase, JobStatus, PassedPhase, TaskCounts

NOTES = "sublet.dev/notes"
"""Key in status.controlledResources, which keeps any text: what Volcano's own fields do not say."""
_MOST_PHASES = 20
PHASES = {
    JobPhase.PENDING: "Pending",
    JobPhase.QUEUED: "Pending",
    JobPhase.RUNNING: "Running",
    JobPhase.RESTARTING: "Restarting",
    JobPhase.SUSPENDING: "Aborting",
    JobPhase.SUSPENDED: "Aborted",
    JobPhase.COMPLETING: "Completing",
    JobPhase.TERMINATING: "Terminating",
    JobPhase.SUCCEEDED: "Completed",
    JobPhase.TERMINATED: "Terminated",
    JobPhase.FAILED: "Failed",
}
"""Volcano's phases."""


class _Notes(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Times are Unix seconds."""

    stage: str = ""
    floors: dict[str, int] = {}
    evictions: Count = 0
    began: int = 0
    ended: int = 0
    queued: int = 0
    seconds: int = 0
    conditions: list[JobCondition] = []
    events: list[JobEvent] = []
    command: str = ""
    in_a_row: int = 0
    rest: int = 0


class _State(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class _Passed(msgspec.Struct, frozen=True, rename="camel"):
    status: str = ""
    last_transition_time: Time | None = None


class _TaskPhases(msgspec.Struct, frozen=True):
    phase: dict[str, Count] = {}


class _Volcano(msgspec.Struct, frozen=True, rename="camel"):
    state: _State = _State()
    task_status_count: dict[str, _TaskPhases] = {}
    version: Count = 0
    retry_count: Count = 0
    controlled_resources: dict[str, str] = {}
    conditions: list[_Passed] = []


def read_status(raw: object) -> JobStatus:
    """What was written last; a new one where nothing was, or it cannot be read."""
    told = converted(raw, _Volcano)
    notes = _notes(told.controlled_resources.get(NOTES, ""))
    return JobStatus(
        phase=phase_of(notes.stage),
        reason=told.state.reason,
        message=told.state.message,
        since_seconds=unix_seconds(told.state.last_transition_time),
        run=told.version,
        floors=notes.floors,
        failures=told.retry_count,
        evictions=notes.evictions,
        tasks={name: _of_phases(each.phase) for name, each in told.task_status_count.items()},
        began_seconds=float(notes.began),
        ended_seconds=float(notes.ended),
        queued_seconds=float(notes.queued),
        running_seconds=float(notes.seconds),
        conditions=tuple(notes.conditions),
        events=tuple(notes.events),
        command=notes.command,
        in_a_row=max(0, notes.in_a_row),
        rest_seconds=float(notes.rest),
        passed=tuple(PassedPhase(each.status, unix_seconds(each.last_transition_time)) for each in told.conditions),
    )


def written_status(job: Job, status: JobStatus) -> dict[str, Any]:
    """The whole status. Its conditions are the phases that it passed, the last ones."""
    counts, phase = status.counts, PHASES[status.phase]
    since = time_text(status.since_seconds)
    passed = [{"status": each.name, "lastTransitionTime": time_text(each.since_seconds)} for each in status.passed]
    if not passed or passed[-1]["status"] != phase:
        passed.append({"status": phase, "lastTransitionTime": since})
    notes = _Notes(
        stage=status.phase.value,
        floors=dict(status.floors),
        evictions=status.evictions,
        began=int(status.began_seconds),
        ended=int(status.ended_seconds),
        queued=int(status.queued_seconds),
        seconds=int(status.running_seconds),
        conditions=list(status.conditions),
        events=list(status.events),
        command=status.command,
        in_a_row=status.in_a_row,
        rest=int(status.rest_seconds),
    )
    told = {
        "state": {"phase": phase, "reason": status.reason, "message": status.message, "lastTransitionTime": since},
        "minAvailable": job.group.minimum,
        "taskStatusCount": {name: {"phase": _phases(each)} for name, each in status.tasks.items()},
        **msgspec.to_builtins(counts),
        "version": status.run,
        "retryCount": status.failures,
        "runningDuration": go_duration(status.running_seconds) if status.running_seconds else None,
        "controlledResources": {
            **{f"plugin-{name}": name for name in job.plugins},
            NOTES: msgspec.json.encode(notes).decode(),
        },
        "conditions": passed[-_MOST_PHASES:],
    }
    return without_nothing(told)


def _phases(counts: TaskCounts) -> dict[str, int]:
    told = msgspec.to_builtins(counts)
    return {name.capitalize(): count for name, count in told.items() if count}


def _of_phases(phases: Mapping[str, int]) -> TaskCounts:
    return counts_of({name.lower(): count for name, count in phases.items()})


def _notes(text: str) -> _Notes:
    try:
        return msgspec.json.decode(text, type=_Notes) if text else _Notes()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _Notes()
