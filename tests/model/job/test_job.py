"""Names of jobs and members."""

from __future__ import annotations

from model.job.job import Job, JobDialect, JobId, JobTask, Member


def test_names() -> None:
    one = JobId(JobDialect.VOLCANO, "ml", "train")
    assert (one.key, one.text) == ("ml/train", "Job.batch.volcano.sh ml/train")
    assert Member("worker", 2).text == "worker-2" and Member("a", 1) < Member("a", 10)


def test_tasks_by_name() -> None:
    task = JobTask("worker", 1, 1, {})
    job = Job(JobId(JobDialect.TRAINING, "ml", "train"), tasks=(task,))
    assert job.task("worker") is task and job.task("master") is None
