"""Job that waits whole, and its Workload → the next write.

Everything that was decided is in the two objects: the admission is in the Workload's status before the job is started,
an eviction before it is stopped, and its quota is given back only once no pod is left. So each look begins with what
they say, and whoever stops after any write goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from jobs.core.suspended.actions import (
    MakeWorkload,
    ReshapeWorkload,
    RestoreJob,
    StartJob,
    StopJob,
    SuspendedAction,
    SuspendedPlan,
    Tell,
    WriteStatus,
)
from jobs.core.suspended.eviction import eviction, next_seconds
from jobs.core.suspended.policy import FlavorPlace, PriorityFound, SuspendedFacts, SuspendedPolicy
from model.suspended import transitions
from model.suspended.job import PodSetInjection, SuspendedJob
from model.suspended.workload import ConditionName, EvictionReason, WorkloadObject, WorkloadStatus


def plan(
    job: SuspendedJob, workload: WorkloadObject | None, facts: SuspendedFacts, policy: SuspendedPolicy, now: float
) -> SuspendedPlan:
    """What is to be written next; nothing where the job is as it shall be."""
    if job.problem and (workload is None or not job.pod_sets):
        return SuspendedPlan(_invalid(job))
    if workload is None:
        return SuspendedPlan(_unknown(job, facts))
    if workload.unreadable:
        return SuspendedPlan(Tell("InvalidWorkload", workload.unreadable))
    if workload.status.finished:
        return SuspendedPlan()
    if job.end is not None:
        done = transitions.finished(workload.status, job.end.message, now, succeeded=job.end.succeeded)
        return SuspendedPlan(WriteStatus(done, "FinishedWorkload", f"Workload {workload.key} is declared finished"))
    if workload.status.admitted:
        return _admitted(job, workload, facts, policy, now)
    return _not_admitted(job, workload, facts, now)


def _invalid(job: SuspendedJob) -> Tell:
    return Tell("InvalidJob", job.problem)


def _unknown(job: SuspendedJob, facts: SuspendedFacts) -> SuspendedAction | None:
    """A job that names a queue and has no Workload yet, or not any more."""
    if job.end is not None:
        return None
    if not job.suspended:
        return StopJob()
    if job.injected:
        told = "its Workload was deleted while it was admitted; delete the job, and make it again"
        return Tell("WorkloadMissing", told)
    priority = priority_of(job, facts)
    return Tell("PriorityClassMissing", priority.problem) if priority.problem else MakeWorkload(priority)


def _admitted(
    job: SuspendedJob, workload: WorkloadObject, facts: SuspendedFacts, policy: SuspendedPolicy, now: float
) -> SuspendedPlan:
    due = eviction(workload, policy.ready, now)
    if due is not None:
        return SuspendedPlan(due)
    again = next_seconds(workload, policy.ready, now)
    if job.suspended:
        return SuspendedPlan(_invalid(job) if job.problem else _start(workload, facts), again)
    status = _with_progress(job, workload.status, now)
    return SuspendedPlan(WriteStatus(status) if status != workload.status else None, again)


def _start(workload: WorkloadObject, facts: SuspendedFacts) -> SuspendedAction:
    missing = sorted(_flavors(workload).difference(facts.flavors) - {""})
    if missing:
        return Tell("FlavorMissing", f"it is admitted, and ResourceFlavor {missing[0]} does not exist; create it")
    return StartJob(tuple(_injections(workload, facts)))


def _injections(workload: WorkloadObject, facts: SuspendedFacts) -> Iterator[PodSetInjection]:
    admission = workload.status.admission
    for each in admission.assignments if admission is not None else ():
        places = [facts.flavors.get(name, FlavorPlace()) for name in dict.fromkeys(each.flavors.values())]
        labels = {key: value for place in places for key, value in place.node_labels.items()}
        tolerations = tuple(_once(item for place in places for item in place.tolerations))
        yield PodSetInjection(each.name, each.count, labels, tolerations)


def _once(items: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def _flavors(workload: WorkloadObject) -> set[str]:
    admission = workload.status.admission
    assignments = admission.assignments if admission is not None else ()
    return {flavor for each in assignments for flavor in each.flavors.values()}


def _with_progress(job: SuspendedJob, status: WorkloadStatus, now: float) -> WorkloadStatus:
    ready = job.started and job.ready >= job.count
    before = status.conditions.get(ConditionName.PODS_READY)
    if before is None or before.holds != ready:
        status = transitions.pods_ready(status, now, ready=ready)
    if dict(status.reclaimable) != dict(job.reclaimable):
        status = msgspec.structs.replace(status, reclaimable=job.reclaimable)
    return status


def _not_admitted(job: SuspendedJob, workload: WorkloadObject, facts: SuspendedFacts, now: float) -> SuspendedPlan:
    status = workload.status
    if not job.suspended:
        return SuspendedPlan(StopJob())
    if job.started or job.pods:
        return SuspendedPlan()  # its controller is ending its pods
    if job.injected:
        return SuspendedPlan(RestoreJob())
    if status.reserving:
        released = transitions.released(status, now)
        return SuspendedPlan(WriteStatus(released, "Stopped", _why(status)))
    if job.problem:
        return SuspendedPlan(_invalid(job))
    if _differs(job, workload, facts):
        return SuspendedPlan(ReshapeWorkload(priority_of(job, facts)))
    return _resting(workload, now)


def _why(status: WorkloadStatus) -> str:
    found = status.conditions.get(ConditionName.EVICTED)
    return found.message if found is not None else ""


def _resting(workload: WorkloadObject, now: float) -> SuspendedPlan:
    """When one that was evicted may be tried again."""
    status = workload.status
    found = status.conditions.get(ConditionName.REQUEUED)
    if found is None or found.holds or not workload.active:
        return SuspendedPlan()
    if found.reason == EvictionReason.DEACTIVATED.value:
        after = transitions.requeued(status, "Reactivated", "The workload was reactivated", now)
        return SuspendedPlan(WriteStatus(after))
    if found.reason != EvictionReason.PODS_READY_TIMEOUT.value:
        return SuspendedPlan()  # the scheduler knows when its queue goes on
    if now < status.requeue_seconds:
        return SuspendedPlan(None, status.requeue_seconds - now)
    after = transitions.requeued(status, "BackoffFinished", "The workload backoff was finished", now)
    return SuspendedPlan(WriteStatus(after))


def _differs(job: SuspendedJob, workload: WorkloadObject, facts: SuspendedFacts) -> bool:
    """Whether the job asks for something else than its Workload."""
    priority = priority_of(job, facts)
    asked = (job.queue, job.pod_sets, job.max_seconds)
    known = (workload.queue, workload.pod_sets, workload.max_seconds)
    return not priority.problem and (asked != known or priority.value != workload.priority)


def priority_of(job: SuspendedJob, facts: SuspendedFacts) -> PriorityFound:
    """By the WorkloadPriorityClass that it names, else the PriorityClass of its first pods, else the cluster's own."""
    if job.priority_class:
        value = facts.workload_classes.get(job.priority_class)
        if value is None:
            told = f"it names WorkloadPriorityClass {job.priority_class}, which does not exist; create it"
            return PriorityFound(problem=told)
        return PriorityFound(value, job.priority_class, of_workloads=True)
    name = next((named for pods in job.pod_sets if (named := _class_of(pods.template))), facts.usual)
    if not name:
        return PriorityFound()
    value = facts.pod_classes.get(name)
    if value is None:
        return PriorityFound(problem=f"its pods name PriorityClass {name}, which does not exist; create it")
    return PriorityFound(value, name)


def _class_of(template: Any) -> str:
    spec = template.get("spec")
    found = spec.get("priorityClassName") if isinstance(spec, dict) else None
    return found if isinstance(found, str) else ""
