"""Jobs of both kinds read and written alike."""

from __future__ import annotations

from typing import Any

from kube.dialects.jobs import training_job, training_status, volcano_job, volcano_status
from kube.objects import TrainingJob, VolcanoJob
from model.job.job import Job, JobDialect
from model.job.status import JobPhase, JobStatus

AnyJob = TrainingJob | VolcanoJob
RESOURCES = {
    JobDialect.TRAINING: "sublet.dev/v1alpha1/trainingjobs",
    JobDialect.VOLCANO: "batch.volcano.sh/v1alpha1/jobs",
}
"""As `path_of` takes them."""
API_VERSIONS = {JobDialect.TRAINING: "sublet.dev/v1alpha1", JobDialect.VOLCANO: "batch.volcano.sh/v1alpha1"}
_PHASES = {JobDialect.TRAINING: training_status.PHASES, JobDialect.VOLCANO: volcano_status.PHASES}
KINDS = {JobDialect.TRAINING: "TrainingJob", JobDialect.VOLCANO: "Job"}


def dialect_of(source: AnyJob) -> JobDialect:
    """The kind of the object."""
    return JobDialect.TRAINING if isinstance(source, TrainingJob) else JobDialect.VOLCANO


def job(source: AnyJob) -> Job:
    """What is wanted; what cannot be read becomes its `problem`."""
    return training_job.training_job(source) if isinstance(source, TrainingJob) else volcano_job.volcano_job(source)


def status(source: AnyJob) -> JobStatus:
    """What was written last; a new one where nothing was, or it cannot be read."""
    read = training_status.read_status if isinstance(source, TrainingJob) else volcano_status.read_status
    return read(source.status)


def written(job: Job, status: JobStatus) -> dict[str, Any]:
    """The whole status of the job's object."""
    if job.id.dialect is JobDialect.VOLCANO:
        return volcano_status.written_status(job, status)
    return training_status.written_status(status)


def phase_text(dialect: JobDialect, phase: JobPhase) -> str:
    """The phase in the words of the kind."""
    return _PHASES[dialect][phase]
