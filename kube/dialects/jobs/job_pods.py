"""Pods of jobs: whose they are, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kube import objects
from kube.dialects.sublet.preemption_notice import standing_notice
from kube.dialects.upstream.amounts import amounts_of
from model.condition import ConditionType
from model.fault import ConfigurationFault
from model.job.job import Member
from model.job.labels import JOB_RUN, JOB_UID, TASK, TASK_INDEX
from model.job.status import JobPod, PodPhase
from model.resources import ResourceVector

_EVICTED = frozenset({"Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
"""status.reason of a pod that its node ended, or did not take (kubelet), or whose node is gone."""
_REFUSED = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity", "TopologyAffinityError", "NodePorts")


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    reason: str = ""


class ContainerState(msgspec.Struct, frozen=True):
    terminated: Terminated | None = None


class ContainerView(msgspec.Struct, frozen=True):
    name: str = ""
    state: ContainerState | None = None


class PodStatusView(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: objects.Time | None = None
    conditions: list[objects.Condition] | None = None
    container_statuses: list[ContainerView] | None = None
    init_container_statuses: list[ContainerView] | None = None


class JobPodObject(msgspec.Struct, frozen=True):
    """The fields of a pod that a job looks at."""

    metadata: objects.Metadata = objects.Metadata()
    spec: objects.PodSpec = objects.PodSpec()
    status: PodStatusView = PodStatusView()


def owner(pod: JobPodObject) -> str:
    """The uid of the job that the pod is of; empty for a pod that only carries the label of one."""
    told = (pod.metadata.labels or {}).get(JOB_UID, "")
    owners = (each.uid for each in pod.metadata.owner_references or () if each.controller)
    return told if told in owners else ""


def job_pod(pod: JobPodObject) -> JobPod | None:
    """None where its labels name no member, or its name is not that member's: whoever may make pods may label them."""
    labels, status = pod.metadata.labels or {}, pod.status
    index, run = _number(labels.get(TASK_INDEX)), _number(labels.get(JOB_RUN))
    if index is None or run is None or not labels.get(TASK):
        return None
    member = Member(labels[TASK], index)
    if not pod.metadata.name.endswith(f"-{member.text}"):
        return None
    conditions = {each.type: each for each in status.conditions or ()}
    leaving = pod.metadata.deletion_timestamp is not None
    told = standing_notice(pod.metadata.annotations or {})
    return JobPod(
        member=member,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        run=run,
        phase=_phase(status.phase),
        exit_code=_exit_code(status),
        reason=status.reason,
        evicted=_evicted(status, conditions, leaving, told=told is not None),
        leaving=leaving,
        node=pod.spec.node_name,
        address=status.pod_ip,
        waits=_waits(conditions),
        created_seconds=objects.unix_seconds(pod.metadata.creation_timestamp),
        since_seconds=objects.unix_seconds(status.start_time or pod.metadata.creation_timestamp),
        told_until_seconds=told.deadline_seconds if told is not None else 0.0,
        requests=_requests(pod),
    )


def _evicted(status: PodStatusView, conditions: Mapping[str, objects.Condition], leaving: bool, *, told: bool) -> bool:
    """A pod that has succeeded was not: whoever deletes it clears up. One that was told saves and ends by itself."""
    if status.phase == PodPhase.SUCCEEDED:
        return False
    target = conditions.get(ConditionType.DISRUPTION_TARGET)
    by_node = status.phase == PodPhase.FAILED and (status.reason in _EVICTED or status.reason.startswith(_REFUSED))
    # One that failed by itself, and is deleted then, has failed.
    failed = status.phase == PodPhase.FAILED
    return (target is not None and target.met) or by_node or (leaving and not failed) or (told and failed)


def _phase(told: str) -> PodPhase:
    return PodPhase(told) if told in tuple(PodPhase) else PodPhase.PENDING


def _exit_code(status: PodStatusView) -> int | None:
    """The first code other than 0 of its containers; 0 where all ended well, None where none has ended."""
    codes = [*_codes(status.init_container_statuses), *_codes(status.container_statuses)]
    return next((code for code in codes if code), 0 if codes else None)


def _codes(statuses: Iterable[ContainerView] | None) -> list[int]:
    return [each.state.terminated.exit_code for each in statuses or () if each.state and each.state.terminated]


def _waits(conditions: Mapping[str, objects.Condition]) -> str:
    told = conditions.get(ConditionType.POD_SCHEDULED)
    return (told.message or told.reason) if told is not None and not told.met else ""


def _requests(pod: JobPodObject) -> ResourceVector:
    """Nothing where it cannot be read: the scheduler says so."""
    try:
        where = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
        return amounts_of(pod.spec, where).requests()
    except ConfigurationFault:
        return ResourceVector()


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None
