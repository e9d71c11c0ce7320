"""The PodGroup of a job: how many of its pods start together, and on which terms."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.core.owner import group_name, metadata
from model.job import labels
from model.job.actions import EnsureObject, MadeKind
from model.job.job import Job, JobDialect, Member

_WAITING_AND_RUNNING = "waiting-and-running"
"""The minimum holds after a restart as before it."""
_VERSIONS = {
    MadeKind.POD_GROUP: "scheduling.sigs.k8s.io/v1alpha1",
    MadeKind.VOLCANO_POD_GROUP: "scheduling.volcano.sh/v1beta1",
}


def pod_group(job: Job, wanted: Iterable[Member], priority_class: str) -> EnsureObject:
    """Of Volcano's kind for a Volcano Job, of scheduling.sigs.k8s.io's for a TrainingJob.

    Where tasks wait for others, no more pods are needed together than there are.
    """
    members = tuple(wanted)
    minimum = max(1, min(job.group.minimum, len(members)))
    if job.id.dialect is JobDialect.VOLCANO:
        return _volcano(job, members, minimum, priority_class)
    return _made(job, MadeKind.POD_GROUP, {"minMember": minimum})


def _volcano(job: Job, members: tuple[Member, ...], minimum: int, priority_class: str) -> EnsureObject:
    due = {each.task for each in members}
    least = {task.name: task.minimum for task in job.tasks if task.name in due}
    spec = {"minMember": minimum, "minTaskMember": least, "queue": job.group.queue}
    return _made(
        job,
        MadeKind.VOLCANO_POD_GROUP,
        {**spec, **({"priorityClassName": priority_class} if priority_class else {})},
    )


def _made(job: Job, kind: MadeKind, spec: dict[str, object]) -> EnsureObject:
    name = group_name(job)
    about = metadata(job, name)
    annotations = {**job.inherited, **_terms(job)}
    body = {
        "apiVersion": _VERSIONS[kind],
        "kind": "PodGroup",
        "metadata": {**about, **({"annotations": annotations} if annotations else {})},
        "spec": spec,
    }
    return EnsureObject(kind, name, body, {"metadata": {"annotations": annotations}, "spec": spec})


def _terms(job: Job) -> dict[str, str]:
    told = {} if job.id.dialect is JobDialect.VOLCANO else {labels.MATCH_POLICY: _WAITING_AND_RUNNING}
    if job.group.wait_seconds:
        told[labels.WAITING_TIME] = f"{job.group.wait_seconds:g}s"
    if job.group.required_topology:
        told[labels.REQUIRED_TOPOLOGY] = job.group.required_topology
    return told
