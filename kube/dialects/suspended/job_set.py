"""JobSet (jobset.x-k8s.io/v1alpha2) as a job that waits whole: each of its ReplicatedJobs is a pod set.

Its own controller makes and ends the Jobs; a suspended JobSet lets its pod templates be changed. Source: jobset
api/jobset/v1alpha2/jobset_types.go; kueue pkg/controller/jobs/jobset/jobset_controller.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.jobs.status_fields import Count
from kube.objects import Condition, UntypedObject
from model.suspended.job import JobEnd, PodTemplate

_ENDS = {"Completed": True, "Failed": False}


class _JobSpec(msgspec.Struct, frozen=True):
    parallelism: Count | None = None
    completions: Count | None = None
    template: dict[str, Any] = {}


class _JobTemplate(msgspec.Struct, frozen=True):
    spec: _JobSpec = _JobSpec()


class _ReplicatedJob(msgspec.Struct, frozen=True):
    name: str
    replicas: Count = 1
    template: _JobTemplate = _JobTemplate()

    @property
    def each(self) -> int:
        """How many pods one of its Jobs has at once."""
        at_once = 1 if self.template.spec.parallelism is None else self.template.spec.parallelism
        completions = self.template.spec.completions
        return at_once if completions is None else min(at_once, completions)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    replicated_jobs: list[_ReplicatedJob] = []


class _JobsStatus(msgspec.Struct, frozen=True):
    name: str = ""
    ready: Count = 0
    succeeded: Count = 0
    active: Count = 0


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    replicated_jobs_status: list[_JobsStatus] = []
    conditions: list[Condition] = []


def pod_sets(source: UntypedObject, where: str) -> tuple[PodTemplate, ...]:
    """What it asks for. Raises ConfigurationFault."""
    told = checked(source.spec or {}, _Spec, f"{where}: spec")
    jobs = told.replicated_jobs
    return tuple(PodTemplate(job.name, job.replicas * job.each, job.template.spec.template) for job in jobs)


def with_templates(spec: Mapping[str, Any], templates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The spec with other pod templates, by ReplicatedJob."""
    return {**spec, "replicatedJobs": [_with(job, templates) for job in spec.get("replicatedJobs") or ()]}


def progress(source: UntypedObject, where: str) -> dict[str, Any]:
    """How far it has come, as fields of SuspendedJob. Raises ConfigurationFault."""
    asked = checked(source.spec or {}, _Spec, f"{where}: spec")
    told = checked(source.status or {}, _Status, f"{where}: status")
    each = {job.name: job.each for job in asked.replicated_jobs}
    return {
        "started": any(jobs.active or jobs.ready for jobs in told.replicated_jobs_status),
        "pods": sum(jobs.active * each.get(jobs.name, 0) for jobs in told.replicated_jobs_status),
        "ready": sum((jobs.ready + jobs.succeeded) * each.get(jobs.name, 0) for jobs in told.replicated_jobs_status),
        "reclaimable": {
            jobs.name: jobs.succeeded * each[jobs.name]
            for jobs in told.replicated_jobs_status
            if jobs.succeeded and jobs.name in each
        },
        "end": next(
            (JobEnd(_ENDS[one.type], one.message) for one in told.conditions if one.met and one.type in _ENDS), None
        ),
    }


def _with(job: Mapping[str, Any], templates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if job.get("name") not in templates:
        return dict(job)
    template = job.get("template") or {}
    spec = {**(template.get("spec") or {}), "template": templates[job["name"]]}
    return {**job, "template": {**template, "spec": spec}}
