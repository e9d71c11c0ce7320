"""Status of a TrainingJob as its definition has it; that it is read back is in test_reading.py."""

from __future__ import annotations

from job_objects import OF_TRAINING, whole_status

from kube.dialects.jobs.training_status import PHASES, read_status, written_status
from model.job.status import JobPhase


def test_a_training_jobs_status_as_it_is_read_by_people() -> None:
    written = written_status(whole_status(**OF_TRAINING))
    assert written["phase"] == "Suspended" and written["startTime"] == "2023-11-14T22:13:20Z"
    assert written["allocatedResources"] == {"gpus": 8, "cpu": "1500m", "memory": "1Gi", "nodes": ["n1", "n2"]}
    assert written["replicaStatuses"] == {
        "worker": {"pending": 1, "running": 2, "succeeded": 0, "failed": 0, "terminating": 1}
    }


def test_every_phase_has_a_word_of_the_definition() -> None:
    assert set(PHASES) == set(JobPhase)
    assert set(PHASES.values()) == {"Pending", "Queued", "Running", "Succeeded", "Failed", "Suspended"}


def test_a_condition_of_another_status_is_unknown() -> None:
    (found,) = read_status({"conditions": [{"type": "Odd", "status": "Maybe"}]}).conditions
    assert found.status.value == "Unknown"
