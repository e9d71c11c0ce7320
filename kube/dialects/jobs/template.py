"""Pod templates of jobs, and the names that pods, hosts and Services of a job get."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import check_depth, checked
from kube.dialects.jobs.bounds import MOST_PODS, MOST_TASKS, check_count, check_template
from kube.dialects.koordinator.labels import ANNOTATION_RESOURCE_STATUS
from kube.dialects.sublet.pod_annotations import ANNOTATION_CHARGED_QUEUE
from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE
from model.fault import ConfigurationFault
from model.job.job import JobTask

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_LONGEST = 63
_OURS = (ANNOTATION_RESOURCE_STATUS, ANNOTATION_CHARGED_QUEUE, ANNOTATION_STANDING_NOTICE)
"""Annotations of pods that the scheduler's account alone may write, which makes the pods of jobs as well."""
_Objects = list[dict[str, Any]] | None
_Map = dict[str, Any] | None


class _Resources(msgspec.Struct, frozen=True):
    requests: _Map = None
    limits: _Map = None


class _Variable(msgspec.Struct, frozen=True):
    name: str


class _Mount(msgspec.Struct, frozen=True, rename="camel"):
    mount_path: str


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    env: list[_Variable] | None = None
    ports: _Objects = None
    resources: _Resources | None = None
    volume_mounts: list[_Mount] | None = None


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: _Objects = None


class _Terms(msgspec.Struct, frozen=True, rename="camel"):
    node_selector_terms: list[_Term] | None = None


class _NodeAffinity(msgspec.Struct, frozen=True):
    required: _Terms | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of a pod that a job adds to; of all others the API server judges."""

    containers: list[_Container]
    init_containers: list[_Container] | None = None
    volumes: _Objects = None
    affinity: _Affinity | None = None


class _Metadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Template(msgspec.Struct, frozen=True):
    spec: _Spec
    metadata: _Metadata | None = None


def pod_template(raw: object, where: str) -> Mapping[str, Any]:
    """The template as it was written. Raises ConfigurationFault for one of which no pod can be made; `where` names the
    field.
    """
    if not isinstance(raw, dict) or not raw:
        raise ConfigurationFault(where, "is empty", "write a pod template with spec.containers")
    check_depth(raw, where)
    template = checked(raw, _Template, where)
    if not template.spec.containers:
        raise ConfigurationFault(f"{where}.spec.containers", "is empty", "write at least one container")
    check_template(raw, where)
    for key in _OURS:
        if template.metadata is not None and key in (template.metadata.annotations or {}):
            fix = "leave it out: the scheduler says so of a pod that it places"
            raise ConfigurationFault(f"{where}.metadata.annotations", f"has {key}", fix)
    return raw


def check_names(job: str, tasks: Iterable[JobTask], where: str) -> None:
    """Raises ConfigurationFault where a pod's name would be no host name, or there are too many pods."""
    tasks = tuple(tasks)
    if not _LABEL.fullmatch(job):
        raise ConfigurationFault(
            f"{where}: metadata.name", f"{job} is no host name", "write letters, digits and - only"
        )
    check_count(tasks, MOST_TASKS, "tasks", where)
    names = [task.name for task in tasks]
    for task in tasks:
        if not _LABEL.fullmatch(task.name):
            told = f"is {task.name!r}"[:80]
            raise ConfigurationFault(f"{where}: name of a task", told, "write small letters, digits and - only")
        if names.count(task.name) > 1:
            raise ConfigurationFault(f"{where}: task {task.name}", "is written twice", "give each a name of its own")
        longest = f"{job}-{task.name}-{max(task.replicas - 1, 0)}"
        if len(longest) > _LONGEST:
            told = f"{longest} has {len(longest)} characters"
            raise ConfigurationFault(f"{where}: name of a pod", told, f"shorten the job's name: {_LONGEST} is the most")
    pods = sum(task.replicas for task in tasks)
    if pods > MOST_PODS:
        raise ConfigurationFault(where, f"has {pods} pods", f"write at most {MOST_PODS}")
