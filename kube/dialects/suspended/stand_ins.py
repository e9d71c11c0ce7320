"""Stand-ins: the pods that a suspended job would have, as objects that the scheduler reads like any pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kube import objects
from kube.dialects.documents.document import checked
from kube.dialects.queues.membership import KUEUE
from model.suspended.job import POD_SET, WORKLOAD, PodTemplate
from model.suspended.workload import WorkloadObject

_SEPARATOR = ":"
"""In no name of an object."""


class _Template(objects.Pod, frozen=True):
    """A pod template: the same without status and name."""


def stand_ins(workload: WorkloadObject, priority: Callable[[str], int | None]) -> list[objects.Pod]:
    """One for each pod; `priority` is that of a PriorityClass by name. Raises ConfigurationFault."""
    return [_pod(workload, pods, index, priority) for pods in workload.pod_sets for index in range(pods.count)]


def stand_in_uid(workload: WorkloadObject, pod_set: str, which: str) -> str:
    """The uid of one of them; `which` tells those of a pod set apart."""
    return _SEPARATOR.join((workload.uid, pod_set, which))


def is_stand_in(uid: str, workload: WorkloadObject) -> bool:
    """Whether it is one of the Workload's."""
    return uid.startswith(f"{workload.uid}{_SEPARATOR}")


def pod_set_of(uid: str) -> str:
    """The pod set that a stand-in belongs to, by its uid."""
    return uid.rsplit(_SEPARATOR, 2)[-2]


def _pod(workload: WorkloadObject, pods: PodTemplate, index: int, priority: Callable[[str], int | None]) -> objects.Pod:
    where = f"Workload {workload.key}: spec.podSets[{pods.name}].template"
    raw: dict[str, Any] = {"metadata": pods.template.get("metadata") or {}, "spec": pods.template.get("spec") or {}}
    read = checked(raw, _Template, where)
    spec = {name: getattr(read.spec, name) for name in read.spec.__struct_fields__}
    value = priority(str(raw["spec"].get("priorityClassName") or ""))
    if spec["priority"] is None and value is not None:
        spec["priority"] = value
    created = workload.created_seconds
    metadata = objects.Metadata(
        name=_SEPARATOR.join((workload.name, pods.name, str(index))),
        namespace=workload.namespace,
        uid=stand_in_uid(workload, pods.name, str(index)),
        labels={**(read.metadata.labels or {}), KUEUE: workload.queue, POD_SET: pods.name},
        annotations={**(read.metadata.annotations or {}), WORKLOAD: workload.name},
        creation_timestamp=_time(created),
    )
    return objects.Pod(metadata, objects.PodSpec(**spec))


def _time(seconds: float) -> objects.Time:
    """Unix seconds as a time."""
    found: objects.Time = msgspec.convert(seconds, objects.Time, strict=False)
    return found
