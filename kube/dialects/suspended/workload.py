"""Kueue's Workload (v1beta1 and v1beta2): read into the model, and its spec and status as they are written.

The two versions differ in how the class of its priority is named (`priorityClassName` and `priorityClassSource`, or
`priorityClassRef`), and in the spelling of one field. Both are read; what is written is v1beta1, which every server of
the kind has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.gangs.networktopology import HOSTNAME
from kube.dialects.jobs.status_fields import Count, time_text
from kube.dialects.suspended.bounds import check_pod_sets
from kube.dialects.suspended.packed import PackedTemplate, unpacked
from kube.dialects.suspended.templates import check_template
from kube.mergepatch import merge_patch
from kube.objects import Time, unix_seconds
from kube.objects import Workload as WorkloadSource
from model.condition import ConditionStatus
from model.fault import ConfigurationFault
from model.suspended.job import PodTemplate, SuspendedJob
from model.suspended.workload import (
    ConditionName,
    PodSetAssignment,
    WorkloadAdmission,
    WorkloadCondition,
    WorkloadObject,
    WorkloadStatus,
)

RESOURCE = "kueue.x-k8s.io/v1beta1/workloads"
API_VERSION = "kueue.x-k8s.io/v1beta1"
GROUP = "kueue.x-k8s.io"
DEFINITION = "workloads.kueue.x-k8s.io"
JOB_UID = "kueue.x-k8s.io/job-uid"
"""Label of a Workload: the uid of its job."""
PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
"""Annotation of a Workload: what is added to its priority."""
CLASS_SOURCE = "kueue.x-k8s.io/workloadpriorityclass"
POD_CLASS_SOURCE = "scheduling.k8s.io/priorityclass"
_NAMES = {each.value: each for each in ConditionName}
_LONGEST_NAME = 63
_HASH = 5
_LONGEST_NUMBER = 11


class _ClassRef(msgspec.Struct, frozen=True):
    name: str = ""


class _TopologyRequest(msgspec.Struct, frozen=True):
    required: str = ""
    preferred: str = ""


class _PodSet(msgspec.Struct, frozen=True, rename="camel"):
    name: str = "main"
    count: Count = 1
    template: dict[str, Any] = {}
    min_count: Count | None = None
    topology_request: _TopologyRequest | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    pod_sets: list[_PodSet] = []
    queue_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    priority_class_ref: _ClassRef | None = None
    active: bool | None = None
    maximum_execution_time_seconds: Count | None = None


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class _Domain(msgspec.Struct, frozen=True):
    values: list[str] = []
    count: Count = 0


class _Topology(msgspec.Struct, frozen=True):
    levels: list[str] = []
    domains: list[_Domain] = []


class _Assignment(msgspec.Struct, frozen=True, rename="camel"):
    name: str = "main"
    flavors: dict[str, str] = {}
    resource_usage: dict[str, Any] = {}
    count: Count = 0
    topology_assignment: _Topology | None = None


class _Admission(msgspec.Struct, frozen=True, rename="camel"):
    cluster_queue: str = ""
    pod_set_assignments: list[_Assignment] = []


class _Requeue(msgspec.Struct, frozen=True, rename="camel"):
    count: Count = 0
    requeue_at: Time | None = None


class _Reclaimable(msgspec.Struct, frozen=True):
    name: str = ""
    count: Count = 0


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    conditions: list[_Condition] = []
    admission: _Admission | None = None
    requeue_state: _Requeue | None = None
    reclaimable_pods: list[_Reclaimable] = []
    past_seconds: Count = msgspec.field(name="accumulatedPastExexcutionTimeSeconds", default=0)
    """As v1beta1 spells it."""
    past_seconds_too: Count = msgspec.field(name="accumulatedPastExecutionTimeSeconds", default=0)


def workload(source: WorkloadSource) -> WorkloadObject:
    """What cannot be read is said in `unreadable`; such a Workload is left alone."""
    metadata, problem = source.metadata, ""
    where = f"Workload {metadata.namespace}/{metadata.name}"
    spec, status, sets = _Spec(), WorkloadStatus(), tuple[PodTemplate, ...]()
    try:
        spec = checked(unpacked(source.spec, f"{where}: spec") or {}, _Spec, f"{where}: spec")
        sets = tuple(_read_set(each) for each in spec.pod_sets)
        for each in sets:
            check_template(each.template, f"{where}: spec.podSets[{each.name}].template")
        status = _status(checked(source.status or {}, _Status, f"{where}: status"))
        check_pod_sets(sets, f"{where}: spec.podSets")
        sets = tuple(msgspec.structs.replace(each, template=PackedTemplate(each.template)) for each in sets)
    except ConfigurationFault as fault:
        problem = str(fault)
    owner = next((each for each in metadata.owner_references or () if each.controller), None)
    named = spec.priority_class_name or (spec.priority_class_ref.name if spec.priority_class_ref else "")
    return WorkloadObject(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        owner=owner.uid if owner is not None else "",
        owner_name=owner.name if owner is not None else "",
        owner_kind=owner.kind if owner is not None else "",
        created_seconds=unix_seconds(metadata.creation_timestamp),
        queue=spec.queue_name,
        priority=spec.priority or 0,
        boost=_boost((metadata.annotations or {}).get(PRIORITY_BOOST, "")),
        priority_class=named,
        active=spec.active is not False,
        max_seconds=spec.maximum_execution_time_seconds,
        pod_sets=sets,
        status=status,
        unreadable=problem,
    )


def _boost(text: str) -> int:
    """0 for what is no whole number of 32 bits, as in Kueue."""
    number = int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) <= _LONGEST_NUMBER else 0
    return number if -(1 << 31) <= number < 1 << 31 else 0


def workload_name(job: SuspendedJob) -> str:
    """`KIND-NAME-HASH` as Kueue names it: of one life of the job, at most 63 characters."""
    told = hashlib.sha256(f"{job.kind}/{job.namespace}/{job.name}/{job.uid}".encode()).hexdigest()[:_HASH]
    prefix = f"{job.kind.lower()}-{job.name}"[: _LONGEST_NAME - _HASH - 1].rstrip("-.")
    return f"{prefix}-{told}"


def spec_of(job: SuspendedJob, priority: int, class_name: str, source: str) -> dict[str, Any]:
    """The spec for a job; the class is of Kueue's kind or of Kubernetes', as `source` says."""
    spec: dict[str, Any] = {
        "queueName": job.queue,
        "priority": priority,
        "podSets": [_pod_set(pods) for pods in job.pod_sets],
    }
    if class_name:
        spec |= {"priorityClassName": class_name, "priorityClassSource": source}
    if job.max_seconds is not None:
        spec["maximumExecutionTimeSeconds"] = job.max_seconds
    return spec


def _pod_set(pods: PodTemplate) -> dict[str, Any]:
    told: dict[str, Any] = {"name": pods.name, "count": pods.count, "template": dict(pods.template)}
    if pods.minimum is not None:
        told["minCount"] = pods.minimum
    topology = {name: level for name, level in (("required", pods.required), ("preferred", pods.preferred)) if level}
    return {**told, **({"topologyRequest": topology} if topology else {})}


def _read_set(told: _PodSet) -> PodTemplate:
    topology = told.topology_request or _TopologyRequest()
    return PodTemplate(told.name, told.count, told.template, told.min_count, topology.required, topology.preferred)


def body(job: SuspendedJob, owner: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The object; `owner` is the reference to the job, with which it goes."""
    metadata = {
        "name": workload_name(job),
        "namespace": job.namespace,
        "labels": {JOB_UID: job.uid},
        "ownerReferences": [dict(owner)],
    }
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": dict(spec)}


def status_patch(raw: object, status: WorkloadStatus) -> dict[str, Any]:
    """What makes `status` of the status that was read; conditions of types that nobody knows here stay."""
    before = raw if isinstance(raw, dict) else {}
    own: dict[str, Any] = {
        "conditions": _conditions(before.get("conditions"), status),
        "admission": _written(status.admission),
        "requeueState": _requeue_state(status),
        "reclaimablePods": [{"name": name, "count": n} for name, n in sorted(status.reclaimable.items())],
        "accumulatedPastExexcutionTimeSeconds": status.past_seconds,
    }
    others = {name: value for name, value in before.items() if name not in own}
    return merge_patch(before, {**others, **{name: value for name, value in own.items() if value}})


def _status(told: _Status) -> WorkloadStatus:
    requeue = told.requeue_state or _Requeue()
    return WorkloadStatus(
        conditions={_NAMES[each.type]: _condition(each) for each in told.conditions if each.type in _NAMES},
        admission=_admission(told.admission) if told.admission is not None else None,
        requeues=requeue.count,
        requeue_seconds=unix_seconds(requeue.requeue_at),
        reclaimable={each.name: each.count for each in told.reclaimable_pods},
        past_seconds=told.past_seconds or told.past_seconds_too,
    )


def _condition(told: _Condition) -> WorkloadCondition:
    holds = told.status == ConditionStatus.TRUE
    return WorkloadCondition(holds, told.reason, told.message, unix_seconds(told.last_transition_time))


def _admission(told: _Admission) -> WorkloadAdmission:
    return WorkloadAdmission(told.cluster_queue, tuple(_assignment(each) for each in told.pod_set_assignments))


def _assignment(told: _Assignment) -> PodSetAssignment:
    usage = {name: str(amount) for name, amount in told.resource_usage.items()}
    return PodSetAssignment(told.name, told.count, told.flavors, usage, _seats(told.topology_assignment))


def _seats(told: _Topology | None) -> dict[str, int]:
    """By host name; of domains wider than a node nobody knows which node it is."""
    if told is None or told.levels[-1:] != [HOSTNAME]:
        return {}
    found: dict[str, int] = {}
    for each in told.domains:
        if each.values:
            found[each.values[-1]] = found.get(each.values[-1], 0) + each.count
    return found


def _written(admission: WorkloadAdmission | None) -> dict[str, Any] | None:
    if admission is None:
        return None
    return {
        "clusterQueue": admission.queue,
        "podSetAssignments": [_written_set(each) for each in admission.assignments],
    }


def _written_set(told: PodSetAssignment) -> dict[str, Any]:
    found = {"name": told.name, "flavors": dict(told.flavors), "resourceUsage": dict(told.usage), "count": told.count}
    if not told.seats:
        return found
    domains = [{"values": [node], "count": count} for node, count in sorted(told.seats.items())]
    return found | {"topologyAssignment": {"levels": [HOSTNAME], "domains": domains}}


def _requeue_state(status: WorkloadStatus) -> dict[str, Any] | None:
    if not status.requeues and not status.requeue_seconds:
        return None
    told: dict[str, Any] = {"count": status.requeues}
    if status.requeue_seconds:
        told["requeueAt"] = time_text(status.requeue_seconds)
    return told


def _conditions(raw: object, status: WorkloadStatus) -> list[Any]:
    known: Iterable[Any] = raw if isinstance(raw, list) else ()
    left = {name.value: _written_condition(name.value, told) for name, told in status.conditions.items()}
    found = [left.pop(_type(each), each) for each in known]
    return [*found, *left.values()]


def _type(raw: Any) -> str:
    return str(raw.get("type", "")) if isinstance(raw, dict) else ""


def _written_condition(name: str, told: WorkloadCondition) -> dict[str, Any]:
    return {
        "type": name,
        "status": (ConditionStatus.TRUE if told.holds else ConditionStatus.FALSE).value,
        "reason": told.reason,
        "message": told.message,
        "lastTransitionTime": time_text(told.since_seconds or 1.0),
    }
