"""Jobs that wait whole, of all kinds: read into the model, and the patches that start, stop and restore them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from kube.dialects.documents.document import check_depth
from kube.dialects.suspended import batch_job
from kube.dialects.suspended.templates import injected, restored, with_injection
from kube.mergepatch import merge_patch
from kube.objects import UntypedObject, unix_seconds
from model.fault import ConfigurationFault
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


class JobShape(msgspec.Struct, frozen=True):
    """What is read and changed of one kind: its resource and API version, and the functions of its dialect."""

    resource: str
    api_version: str
    pod_sets: Callable[[object, str], tuple[PodTemplate, ...]]
    suspended: Callable[[Any], bool]
    with_suspend: Callable[[Mapping[str, Any], bool], dict[str, Any]]
    with_templates: Callable[[Mapping[str, Any], Mapping[str, Mapping[str, Any]]], dict[str, Any]]
    progress: Callable[[object, object, str], dict[str, Any]]


SHAPES: Mapping[SuspendedKind, JobShape] = MappingProxyType(
    {
        SuspendedKind.JOB: JobShape(
            "batch/v1/jobs",
            "batch/v1",
            batch_job.pod_sets,
            batch_job.suspended,
            batch_job.with_suspend,
            batch_job.with_templates,
            batch_job.progress,
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
        suspended=shape.suspended(source.spec),
    )
    try:
        check_depth(source.spec, f"{where}: spec")
        sets = shape.pod_sets(source.spec, where)
        told = shape.progress(source.spec, source.status, where)
        most = _max_seconds(labels.get(MAX_SECONDS), where)
    except ConfigurationFault as fault:
        return msgspec.structs.replace(job, problem=str(fault))
    holds = any(injected(each.template) for each in sets)
    return msgspec.structs.replace(job, pod_sets=sets, injected=holds, max_seconds=most, **told)


def owner_reference(job: SuspendedJob) -> dict[str, Any]:
    """The job as controller of its Workload."""
    version = SHAPES[job.kind].api_version
    return {"apiVersion": version, "kind": job.kind.value, "name": job.name, "uid": job.uid, "controller": True}


def start_patch(
    job: SuspendedJob, spec: Mapping[str, Any], workload: str, injections: tuple[PodSetInjection, ...]
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
    return merge_patch(spec, shape.with_suspend(shape.with_templates(spec, templates), False))


def stop_patch(job: SuspendedJob, spec: Mapping[str, Any]) -> dict[str, Any]:
    """What makes it end its pods and make none."""
    return merge_patch(spec, SHAPES[job.kind].with_suspend(spec, True))


def restore_patch(job: SuspendedJob, spec: Mapping[str, Any], workload: WorkloadObject) -> dict[str, Any]:
    """What takes out of its templates what an admission put there."""
    originals = {pods.name: pods.template for pods in workload.pod_sets}
    templates = {
        pods.name: restored(pods.template, originals[pods.name]) for pods in job.pod_sets if pods.name in originals
    }
    return merge_patch(spec, SHAPES[job.kind].with_templates(spec, templates))


def _max_seconds(text: str | None, where: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 31:
        field = f"{where}: metadata.labels[{MAX_SECONDS}]"
        raise ConfigurationFault(field, f"is {text[:60]!r}", "write a whole number of seconds, 1 or more")
    return int(text)
