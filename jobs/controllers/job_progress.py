"""How a job goes, as people ask for it: its status in the words of its kind."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kube.dialects.jobs import reading
from model.job.job import Job
from model.job.status import JobPhase, JobStatus, TaskCounts
from model.queue import DEFAULT_QUEUE, JobProgress, ProgressEvent

_INVALID = "Invalid"


def job_progress(job: Job, status: JobStatus) -> JobProgress:
    """One that cannot be run says why, whatever its status was."""
    return JobProgress(
        kind=job.id.dialect.value,
        phase=reading.phase_text(job.id.dialect, status.phase),
        reason=_INVALID if job.problem else status.reason,
        message=job.problem or status.message,
        since_seconds=status.since_seconds,
        created_seconds=job.created_seconds,
        began_seconds=status.began_seconds,
        ended_seconds=status.ended_seconds,
        failures=status.failures,
        most_failures=max(1, job.most_failures),
        evictions=status.evictions,
        tasks={name: _counts(counts) for name, counts in status.tasks.items()},
        nodes=status.allocation.nodes,
        events=tuple(ProgressEvent(each.reason, each.message, each.at_seconds, each.warning) for each in status.events),
    )


class Completion(NamedTuple):
    """How long a job took from its creation to its end, and what it is counted by."""

    seconds: float
    queue: str
    job_type: str
    status: str


def completion(job: Job, status: JobStatus) -> Completion:
    """Of a job that has ended; the type of a TrainingJob is its framework, such as PyTorchJob."""
    kind = job.framework.value if job.framework is not None else reading.KINDS[job.id.dialect]
    ended = "succeeded" if status.phase is JobPhase.SUCCEEDED else "failed"
    return Completion(status.ended_seconds - job.created_seconds, job.group.queue or DEFAULT_QUEUE, kind, ended)


def _counts(counts: TaskCounts) -> dict[str, int]:
    """Of what there is."""
    told: dict[str, int] = msgspec.to_builtins(counts)
    return {word: count for word, count in told.items() if count}
