"""TrainingJob (sublet.dev/v1alpha1) that names a LocalQueue: a job that waits whole, each of its tasks a pod set.

One that grows is admitted with its minimum: what it has beyond that is placed as its queue allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube import objects
from kube.dialects.jobs import training_job, training_status
from kube.dialects.suspended.templates import injected, restored
from kube.objects import UntypedObject
from model.fault import ConfigurationFault
from model.job.job import Job
from model.job.status import JobPhase, TaskCounts
from model.suspended.job import QUEUE_NAME, JobEnd, PodTemplate

_NOT_BEGUN = (JobPhase.PENDING, JobPhase.SUSPENDED)


def read(source: UntypedObject | objects.TrainingJob) -> Job:
    """The job as its own controller reads it."""
    spec = source.spec if isinstance(source, objects.TrainingJob) else msgspec.Raw(msgspec.json.encode(source.spec))
    return training_job.training_job(objects.TrainingJob(source.metadata, spec))


def pod_sets(source: UntypedObject, where: str) -> tuple[PodTemplate, ...]:
    """What it asks for, by the templates that it has. Raises ConfigurationFault."""
    job = read(source)
    if job.problem:
        raise ConfigurationFault(where, "it cannot be read", job.problem)
    level = job.group.required_topology
    return tuple(PodTemplate(task.name, task.minimum, task.template, required=level) for task in job.tasks)


def with_templates(spec: Mapping[str, Any], templates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The spec whose templates have of these what an admission changes, by task."""
    if spec.get("podSets") is None:
        own = templates.get(training_job.WORKER)
        return {**spec, **({"template": restored(spec.get("template") or {}, own)} if own is not None else {})}
    return {**spec, "podSets": [_with(pods, templates.get(pods.get("name", ""))) for pods in spec["podSets"]]}


def progress(source: UntypedObject, where: str) -> dict[str, Any]:
    """How far it has come, as fields of SuspendedJob."""
    status = training_status.read_status(source.status)
    counts = sum(status.tasks.values(), TaskCounts())
    ends = {JobPhase.SUCCEEDED: True, JobPhase.FAILED: False, JobPhase.TERMINATED: False}
    return {
        "started": status.phase not in (*_NOT_BEGUN, *ends),
        "pods": counts.running + counts.pending + counts.terminating + counts.unknown,
        "ready": counts.running + counts.succeeded,
        "end": JobEnd(ends[status.phase], status.message) if status.phase in ends else None,
    }


def held(source: objects.TrainingJob) -> bool:
    """Whether it names a LocalQueue and its templates have nothing of an admission."""
    if not (source.metadata.labels or {}).get(QUEUE_NAME):
        return False
    return not any(injected(task.template) for task in read(source).tasks)


def _with(pods: Mapping[str, Any], template: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(pods) if template is None else {**pods, "template": restored(pods.get("template") or {}, template)}
