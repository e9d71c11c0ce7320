"""Pods of a TrainingJob that waits whole, as they would be made: what its own controller adds to their templates counts
where they are placed.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jobs.core.pod_body import common_spec
from jobs.core.policy import JobFacts
from jobs.core.priority import priority_class
from model.job.job import Job
from model.priority import PreemptionPolicy
from model.suspended.job import PodTemplate, SuspendedJob


def with_pods(suspended: SuspendedJob, job: Job, classes: Mapping[str, int]) -> SuspendedJob:
    """The pod sets of the job; `classes` are PriorityClasses with their values."""
    named = priority_class(job, JobFacts(classes))
    if suspended.problem or named.problem:
        return msgspec.structs.replace(suspended, problem=suspended.problem or named.problem)
    sets = tuple(_made(pods, job, named.name) for pods in suspended.pod_sets)
    return msgspec.structs.replace(suspended, pod_sets=sets)


def _made(pods: PodTemplate, job: Job, class_name: str) -> PodTemplate:
    spec = common_spec(job, pods.template.get("spec") or {}, class_name)
    if job.group.preemption_policy is PreemptionPolicy.NEVER:
        spec["preemptionPolicy"] = "Never"
    return msgspec.structs.replace(pods, template={**pods.template, "spec": spec})
