"""Statuses of both kinds: what is written is read back, in the words of the kind."""

from __future__ import annotations

import pytest
from job_objects import OF_TRAINING, training, volcano, whole_status

from kube.dialects.jobs import reading
from kube.objects import TrainingJob, VolcanoJob
from model.job.job import JobDialect
from model.job.status import JobPhase, JobStatus


@pytest.mark.parametrize("source", [training(), volcano()], ids=["TrainingJob", "Volcano"])
def test_what_is_written_is_read_back(source: TrainingJob | VolcanoJob) -> None:
    """Whatever a leader knew of a job, the next one knows."""
    more = OF_TRAINING if isinstance(source, TrainingJob) else {"events": OF_TRAINING["events"], "command": "c1"}
    status = whole_status(**more)
    job = reading.job(source)
    written = reading.written(job, status)
    again = reading.status(type(source)(source.metadata, source.spec, written))
    assert reading.written(job, again) == written
    assert (again.phase, again.run, again.floors, again.failures, again.evictions) == (
        status.phase, 3, {"": 3, "worker": 2}, 1, 2,
    )  # fmt: skip
    assert (again.tasks, again.conditions, again.queued_seconds) == (
        status.tasks,
        status.conditions,
        status.queued_seconds,
    )
    assert again.command == status.command
    assert (again.scale, again.shrunk, again.allocation, again.events) == (
        status.scale, status.shrunk, status.allocation, status.events,
    )  # fmt: skip


@pytest.mark.parametrize("raw", [None, {}, "text", {"phase": 3}, {"run": {"number": -1}}, {"state": 1}])
def test_a_status_that_cannot_be_read_says_nothing(raw: object) -> None:
    assert reading.status(TrainingJob(status=raw)) == JobStatus() == reading.status(VolcanoJob(status=raw))


def test_phases_in_the_words_of_the_kind() -> None:
    told = {
        phase: (reading.phase_text(JobDialect.TRAINING, phase), reading.phase_text(JobDialect.VOLCANO, phase))
        for phase in JobPhase
    }
    assert told[JobPhase.QUEUED] == ("Queued", "Pending") and told[JobPhase.SUCCEEDED] == ("Succeeded", "Completed")
    assert told[JobPhase.RESTARTING] == ("Suspended", "Restarting") and told[JobPhase.SUSPENDED] == (
        "Suspended",
        "Aborted",
    )
