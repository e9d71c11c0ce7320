"""Jobs that wait whole, of all kinds: read into the model, and the patches that start, stop and restore them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from kube.dialects.documents.document import check_depth
from kube.dialects.gangs.membership import whole
from kube.dialects.gangs.networktopology import levels
from kube.dialects.jobs.reading import API_VERSIONS, RESOURCES
from kube.dialects.suspended import batch_job, job_set, training_job
from kube.dialects.suspended.bounds import check_pod_sets
from kube.dialects.suspended.templates import check_template, injected, restored, with_injection
from kube.mergepatch import merge_patch
from kube.objects import UntypedObject, unix_seconds
from model.fault import ConfigurationFault
from model.job.job import JobDialect
from model.suspended.job import (
    MAX_SECONDS,
    PRIORITY_CLASS,
    QUEUE_NAME,
    PodSetInjection,
    PodTemplate,
    SuspendedJob,
    SuspendedKind,
)
from model.suspended.workload import WorkloadObject

Counts = Callable[[UntypedObject, Mapping[str, Any], Mapping[str, int]], dict[str, Any]]
Templates = Callable[[Mapping[str, Any], Mapping[str, Mapping[str, Any]]], dict[str, Any]]


def _all(source: UntypedObject, spec: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    """The spec of a kind that never starts with less."""
    return dict(spec)


class JobShape(msgspec.Struct, frozen=True):
    """What is read and changed of one kind: its resource and API version, and the functions of its dialect. Each has
    `spec.suspend`.
    """

    resource: str
    api_version: str
    pod_sets: Callable[[UntypedObject, str], tuple[PodTemplate, ...]]
    progress: Callable[[UntypedObject, str], dict[str, Any]]
    with_templates: Templates
    with_counts: Counts = _all


SHAPES: Mapping[SuspendedKind, JobShape] = MappingProxyType(
    {
        SuspendedKind.JOB: JobShape(
            "batch/v1/jobs",
            "batch/v1",
            batch_job.pod_sets,
            batch_job.progress,
            batch_job.with_templates,
            batch_job.with_counts,
        ),
        SuspendedKind.JOB_SET: JobShape(
            "jobset.x-k8s.io/v1alpha2/jobsets",
            "jobset.x-k8s.io/v1alpha2",
            job_set.pod_sets,
            job_set.progress,
            job_set.with_templates,
        ),
        SuspendedKind.TRAINING: JobShape(
            RESOURCES[JobDialect.TRAINING],
            API_VERSIONS[JobDialect.TRAINING],
            training_job.pod_sets,
            training_job.progress,
            training_job.with_templates,
        ),
    }
)


def suspended_job(kind: SuspendedKind, source: UntypedObject) -> SuspendedJob:
    """A job; what cannot be read becomes its `problem`, naming object and field."""
    metadata, shape = source.metadata, SHAPES[kind]
    labels, where = metadata.labels or {}, f"{kind} {metadata.namespace}/{metadata.name}"
    job = SuspendedJob(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        created_seconds=unix_seconds(metadata.creation_timestamp),
        queue=labels.get(QUEUE_NAME, ""),
        priority_class=labels.get(PRIORITY_CLASS, ""),
        suspended=isinstance(source.spec, dict) and source.spec.get("suspend") is True,
    )
    try:
        check_depth(source.spec, f"{where}: spec")
        sets = tuple(_in_topology(each, where) for each in shape.pod_sets(source, where))
        told = shape.progress(source, where)
    except ConfigurationFault as fault:
        return msgspec.structs.replace(job, problem=str(fault))
    holds = any(injected(each.template) for each in sets)
    job = msgspec.structs.replace(job, pod_sets=sets, injected=holds, **told)
    try:
        check_pod_sets(sets, where)
        return msgspec.structs.replace(job, max_seconds=_max_seconds(labels.get(MAX_SECONDS), where))
    except ConfigurationFault as fault:
        return msgspec.structs.replace(job, problem=str(fault))


def owner_reference(job: SuspendedJob) -> dict[str, Any]:
    """The job as controller of its Workload."""
    version = SHAPES[job.kind].api_version
    return {"apiVersion": version, "kind": job.kind.value, "name": job.name, "uid": job.uid, "controller": True}


def start_patch(
    job: SuspendedJob, source: UntypedObject, workload: str, injections: tuple[PodSetInjection, ...]
) -> dict[str, Any]:
    """What makes it run where its admission says. Raises ConfigurationFault where a template says otherwise."""
    shape, given = SHAPES[job.kind], {each.name: each for each in injections}
    try:
        templates = {
            pods.name: with_injection(pods.template, given[pods.name], workload)
            for pods in job.pod_sets
            if pods.name in given
        }
    except ValueError as error:
        told = f"{job.kind} {job.namespace}/{job.name}: spec.template"
        raise ConfigurationFault(told, str(error), "remove that line, or name another queue") from error
    before = source.spec or {}
    after = shape.with_templates(before, templates)
    after = shape.with_counts(source, after, {each.name: each.count for each in injections})
    return merge_patch(before, {**after, "suspend": False})


def stop_patch(source: UntypedObject) -> dict[str, Any]:
    """What makes it end its pods and make none."""
    before = source.spec or {}
    return merge_patch(before, {**before, "suspend": True})


def restore_patch(job: SuspendedJob, source: UntypedObject, workload: WorkloadObject) -> dict[str, Any]:
    """What takes out of it what an admission put there."""
    shape, originals = SHAPES[job.kind], {pods.name: pods for pods in workload.pod_sets}
    templates = {
        pods.name: restored(pods.template, originals[pods.name].template)
        for pods in job.pod_sets
        if pods.name in originals
    }
    before = source.spec or {}
    after = shape.with_templates(before, templates)
    after = shape.with_counts(source, after, {name: pods.count for name, pods in originals.items()})
    return merge_patch(before, after)


def _in_topology(pods: PodTemplate, where: str) -> PodTemplate:
    """With what its template says of the topology, unless the job does. Raises ConfigurationFault."""
    check_template(pods.template, f"{where}: template of {pods.name}")
    annotations = (pods.template.get("metadata") or {}).get("annotations") or {}
    if pods.required or pods.preferred:
        return pods
    told = {level.required: level.key for level in levels(annotations, where)[::-1]}
    return msgspec.structs.replace(pods, required=told.get(True, ""), preferred=told.get(False, ""))


def _max_seconds(text: str | None, where: str) -> int | None:
    if not text:
        return None
    number = whole(text)
    if number is None or not 0 < number < 1 << 31:
        field = f"{where}: metadata.labels[{MAX_SECONDS}]"
        raise ConfigurationFault(field, f"is {text[:60]!r}", "write a whole number of seconds, 1 or more")
    return number
