"""Stand-ins: the pods that a suspended job would have, as objects that the scheduler reads like any pod."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kube import objects
from kube.dialects.documents.document import checked
from kube.dialects.gangs.makers import JOB_SET_NAME
from kube.dialects.queues.membership import KUEUE
from model.priority import PreemptionPolicy, PriorityClass
from model.suspended.job import POD_SET, WORKLOAD, PodTemplate, SuspendedKind
from model.suspended.workload import WorkloadObject

_SEPARATOR = ":"
"""In no name of an object."""


class _Template(objects.Pod, frozen=True):
    """A pod template: the same without status and name."""


def stand_ins(
    workload: WorkloadObject, class_of: Callable[[str], PriorityClass | None], queued_seconds: float
) -> list[objects.Pod]:
    """One for each pod, created then. `class_of` finds a PriorityClass by name, by no name that of pods without one.
    Raises ConfigurationFault.
    """
    return [pod for pods in workload.pod_sets for pod in _pods(workload, pods, class_of, _time(queued_seconds))]


def stand_in_uid(workload: WorkloadObject, pod_set: str, which: str) -> str:
    """The uid of one of them; `which` tells those of a pod set apart."""
    return _SEPARATOR.join((workload.uid, pod_set, which))


def is_stand_in(uid: str, workload: WorkloadObject) -> bool:
    """Whether it is one of the Workload's."""
    return uid.startswith(f"{workload.uid}{_SEPARATOR}")


def belongs(metadata: objects.Metadata, workload: WorkloadObject) -> bool:
    """Whether a pod that names the Workload is of its job: anybody may name it, and would be evicted as little as a job
    that is not admitted.
    """
    if is_stand_in(metadata.uid, workload):
        return True
    controller = next((each for each in metadata.owner_references or () if each.controller), None)
    if controller is None or not workload.owner:
        return False
    if controller.uid == workload.owner or workload.owner_kind != SuspendedKind.JOB_SET:
        return controller.uid == workload.owner
    # Between a JobSet and its pods are Jobs.
    named = (metadata.labels or {}).get(JOB_SET_NAME)
    return controller.kind == SuspendedKind.JOB and named == workload.owner_name


def pod_set_of(uid: str) -> str:
    """The pod set that a stand-in belongs to, by its uid."""
    return uid.rsplit(_SEPARATOR, 2)[-2]


def _pods(
    workload: WorkloadObject, pods: PodTemplate, class_of: Callable[[str], PriorityClass | None], created: objects.Time
) -> Iterator[objects.Pod]:
    where = f"Workload {workload.key}: spec.podSets[{pods.name}].template"
    raw: dict[str, Any] = {"metadata": pods.template.get("metadata") or {}, "spec": pods.template.get("spec") or {}}
    read = checked(raw, _Template, where)
    found = class_of(str(raw["spec"].get("priorityClassName") or ""))
    told = {name: getattr(read.spec, name) for name in read.spec.__struct_fields__}
    # API servers refuse of a pod its own number of a priority, and a policy that is not that of its class.
    never = PreemptionPolicy.NEVER.value if found is not None and found.policy is PreemptionPolicy.NEVER else None
    policy = never or read.spec.preemption_policy
    told |= {"priority": found.value if found is not None else None, "preemption_policy": policy, "node_name": ""}
    spec = objects.PodSpec(**told)
    labels = {**(read.metadata.labels or {}), KUEUE: workload.queue, POD_SET: pods.name}
    annotations = {**(read.metadata.annotations or {}), WORKLOAD: workload.name}
    for index in range(pods.count):
        metadata = objects.Metadata(
            name=_SEPARATOR.join((workload.name, pods.name, str(index))),
            namespace=workload.namespace,
            uid=stand_in_uid(workload, pods.name, str(index)),
            labels=labels,
            annotations=annotations,
            creation_timestamp=created,
        )
        yield objects.Pod(metadata, spec)


def _time(seconds: float) -> objects.Time:
    """Unix seconds as a time."""
    found: objects.Time = msgspec.convert(seconds, objects.Time, strict=False)
    return found
