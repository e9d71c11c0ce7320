"""Status of a Volcano Job in Volcano's words; that it is read back is in test_reading.py."""

from __future__ import annotations

import msgspec
from job_objects import WHOLE, volcano

from kube.dialects.jobs.volcano_job import volcano_job
from kube.dialects.jobs.volcano_status import NOTES, PHASES, read_status, written_status
from model.job.status import JobPhase, JobStatus


def test_a_volcano_jobs_status_as_volcano_reports_it() -> None:
    job = volcano_job(volcano(plugins={"svc": []}))
    written = written_status(job, WHOLE)
    assert written["state"]["phase"] == "Restarting" and (written["version"], written["retryCount"]) == (3, 1)
    assert written["taskStatusCount"] == {"worker": {"phase": {"Pending": 1, "Running": 2, "Terminating": 1}}}
    assert (written["pending"], written["running"], written["minAvailable"]) == (1, 2, 4)
    assert written["runningDuration"] == "1m0s" and written["controlledResources"]["plugin-svc"] == "svc"
    assert [each["status"] for each in written["conditions"]] == ["Restarting"]


def test_every_phase_has_a_word_of_volcanos() -> None:
    assert set(PHASES) == set(JobPhase)
    assert set(PHASES.values()) == {
        "Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated",
        "Failed",
    }  # fmt: skip


def test_phases_so_far_are_kept() -> None:
    """The last twenty, and one that goes on is not told twice."""
    job, raw = volcano_job(volcano()), {}
    for number in range(30):
        phase = JobPhase.RUNNING if number % 2 else JobPhase.RESTARTING
        status = msgspec.structs.replace(read_status(raw), phase=phase, since_seconds=1_700_000_000.0 + number)
        raw = written_status(job, status)
        raw = written_status(job, read_status(raw))
    assert len(raw["conditions"]) == 20 and raw["conditions"][-1]["status"] == "Running"
    assert [each["status"] for each in raw["conditions"][-3:-1]] == ["Running", "Restarting"]


def test_notes_that_cannot_be_read_say_nothing() -> None:
    assert read_status({"controlledResources": {NOTES: "{"}}) == JobStatus()
