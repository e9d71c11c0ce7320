"""Whose objects are, and what the PodGroup is called."""

from __future__ import annotations

from job_cases import job

from jobs.core.owner import group_name, metadata, owner_reference
from model.job.job import JobDialect


def test_owners() -> None:
    """The job is the controller; nothing holds up its deletion."""
    assert owner_reference(job(dialect=JobDialect.VOLCANO)) == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train",
        "uid": "12345678-9abc",
        "controller": True,
    }
    assert metadata(job(), "x")["labels"] == {"sublet.dev/job-uid": "12345678-9abc", "sublet.dev/job-name": "train"}


def test_names_of_groups() -> None:
    assert (
        group_name(job(dialect=JobDialect.VOLCANO)) == "train-12345678-9abc" and group_name(job()) == "train-12345678"
    )
