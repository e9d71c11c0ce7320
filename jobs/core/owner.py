"""Whose the objects of a job are, and the name of its PodGroup."""

from __future__ import annotations

from typing import Any

from model.job import labels
from model.job.job import Job, JobDialect

_KINDS = {
    JobDialect.TRAINING: ("sublet.dev/v1alpha1", "TrainingJob"),
    JobDialect.VOLCANO: ("batch.volcano.sh/v1alpha1", "Job"),
}
_UID_PART = 8


def owner_reference(job: Job) -> dict[str, Any]:
    """The job as controller: what it owns goes with it."""
    version, kind = _KINDS[job.id.dialect]
    return {
        "apiVersion": version,
        "kind": kind,
        "name": job.id.name,
        "uid": job.uid,
        "controller": True,
    }


def metadata(job: Job, name: str) -> dict[str, Any]:
    """Of an object that is made for the job."""
    return {
        "name": name,
        "namespace": job.id.namespace,
        "labels": {labels.JOB_UID: job.uid, labels.JOB_NAME: job.id.name},
        "ownerReferences": [owner_reference(job)],
    }


def group_name(job: Job) -> str:
    """`JOB-UID` as Volcano has it; of a TrainingJob shortened, since it is the value of a label."""
    uid = job.uid if job.id.dialect is JobDialect.VOLCANO else job.uid[:_UID_PART]
    return f"{job.id.name}-{uid}"
