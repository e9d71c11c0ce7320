"""How a job goes, in the words of its kind, and what is counted of its end."""

from __future__ import annotations

import pytest

from jobs.controllers.job_progress import Completion, completion, job_progress
from model.job.job import Framework, GroupTerms, Job, JobDialect, JobId
from model.job.status import Allocation, JobEvent, JobPhase, JobStatus, TaskCounts
from model.queue import ProgressEvent

TRAINING = Job(
    JobId(JobDialect.TRAINING, "ml", "bert"),
    created_seconds=100.0,
    group=GroupTerms(queue="research"),
    framework=Framework.PYTORCH,
    most_failures=2,
)
STATUS = JobStatus(
    JobPhase.RESTARTING,
    "PodFailed",
    "pod bert-0 failed",
    since_seconds=150.0,
    failures=1,
    evictions=4,
    tasks={"worker": TaskCounts(running=1, terminating=2)},
    began_seconds=120.0,
    allocation=Allocation(nodes=("n1",)),
    events=(JobEvent("PodFailed", "pod bert-0 failed", 150.0, True),),
)


def test_how_it_goes() -> None:
    """Phase as its definition has it; counts of what there is."""
    found = job_progress(TRAINING, STATUS)
    assert (found.kind, found.phase, found.reason, found.message) == (
        "TrainingJob",
        "Suspended",
        "PodFailed",
        "pod bert-0 failed",
    )
    assert (found.failures, found.most_failures, found.evictions) == (1, 2, 4)
    assert (dict(found.tasks), found.nodes) == ({"worker": {"running": 1, "terminating": 2}}, ("n1",))
    assert found.events == (ProgressEvent("PodFailed", "pod bert-0 failed", 150.0, True),)


def test_one_that_cannot_be_run() -> None:
    """Its problem counts before what was written."""
    broken = Job(TRAINING.id, problem="TrainingJob ml/bert: spec.template is empty; write one")
    found = job_progress(broken, JobStatus())
    assert (found.reason, found.message) == ("Invalid", broken.problem)


ENDS = {
    "succeeded": (TRAINING, JobPhase.SUCCEEDED, Completion(60.0, "research", "PyTorchJob", "succeeded")),
    "failed": (TRAINING, JobPhase.FAILED, Completion(60.0, "research", "PyTorchJob", "failed")),
    "terminated": (
        Job(JobId(JobDialect.VOLCANO, "ml", "v"), created_seconds=100.0),
        JobPhase.TERMINATED,
        Completion(60.0, "default", "Job", "failed"),
    ),
}


@pytest.mark.parametrize(("job", "phase", "expected"), ENDS.values(), ids=ENDS)
def test_what_is_counted_of_an_end(job: Job, phase: JobPhase, expected: Completion) -> None:
    """From creation to end, by its queue, what it is and how it ended."""
    assert completion(job, JobStatus(phase, ended_seconds=160.0)) == expected
