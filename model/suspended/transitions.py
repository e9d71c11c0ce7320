"""What happens to a Workload, as changes of its status: the conditions and reasons that Kueue writes.

| from | what happens | conditions after it |
|---|---|---|
| waits | it does not fit | QuotaReserved=False |
| waits | admitted | QuotaReserved, Admitted; Evicted=False, Preempted=False where they were |
| admitted | evicted | Evicted, for a preemption Preempted; its quota is charged still |
| evicted, no pod left | released | QuotaReserved=False, Admitted=False, Requeued by whether it may be tried at once |
| released, rested | requeued | Requeued |
| any | its job ended | Finished |

Source: kueue pkg/workload/workload.go, pkg/controller/core/workload_controller.go,
pkg/controller/jobframework/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.suspended.workload import (
    ConditionName,
    EvictionReason,
    WorkloadAdmission,
    WorkloadCondition,
    WorkloadStatus,
)

_LONGEST_MESSAGE = 1024
_AT_ONCE = (EvictionReason.PREEMPTED, EvictionReason.QUEUE_STOPPED, EvictionReason.LOCAL_QUEUE_STOPPED)
"""Evictions after which it waits in its queue at once; one that is stopped admits nothing by itself."""


def told(
    status: WorkloadStatus, name: ConditionName, now: float, *, holds: bool, reason: str, message: str = ""
) -> WorkloadStatus:
    """With this condition; its time changes where it comes to hold, or no more."""
    before, message = status.conditions.get(name), message[:_LONGEST_MESSAGE]
    since = before.since_seconds if before is not None and before.holds is holds else float(int(now))
    return _with(status, {name: WorkloadCondition(holds, reason, message, since)})


def pending(status: WorkloadStatus, message: str, now: float, reason: str = "Pending") -> WorkloadStatus:
    """It waits, for what the message says."""
    return told(status, ConditionName.QUOTA_RESERVED, now, holds=False, reason=reason, message=message)


def admitted(status: WorkloadStatus, admission: WorkloadAdmission, now: float) -> WorkloadStatus:
    """Its quota is charged from now on, and its pods may run."""
    message = f"Quota reserved in ClusterQueue {admission.queue}"
    after = told(status, ConditionName.QUOTA_RESERVED, now, holds=True, reason="QuotaReserved", message=message)
    message = f"Admitted by ClusterQueue {admission.queue}"
    after = told(after, ConditionName.ADMITTED, now, holds=True, reason="Admitted", message=message)
    for name in (ConditionName.EVICTED, ConditionName.PREEMPTED):
        before = status.conditions.get(name)
        if before is not None and before.holds:
            message = f"Previously: {before.message}"
            after = told(after, name, now, holds=False, reason="QuotaReserved", message=message)
    return msgspec.structs.replace(after, admission=admission, requeue_seconds=0.0)


def evicted(status: WorkloadStatus, reason: EvictionReason, message: str, now: float, why: str = "") -> WorkloadStatus:
    """It is to go; `why` is the reason of a preemption."""
    after = told(status, ConditionName.EVICTED, now, holds=True, reason=reason.value, message=message)
    if reason is EvictionReason.PREEMPTED:
        after = told(after, ConditionName.PREEMPTED, now, holds=True, reason=why or reason.value, message=message)
    return after


def released(status: WorkloadStatus, now: float) -> WorkloadStatus:
    """None of its pods is left: its quota is free. When it is tried again depends on why it was evicted."""
    found = status.conditions.get(ConditionName.EVICTED)
    reason, message = (found.reason, found.message) if found is not None else ("Pending", "")
    ran = max(0.0, now - status.since(ConditionName.ADMITTED)) if status.holds(ConditionName.ADMITTED) else 0.0
    after = told(status, ConditionName.QUOTA_RESERVED, now, holds=False, reason="Pending", message=message)
    message = "The workload has no reservation"
    after = told(after, ConditionName.ADMITTED, now, holds=False, reason="NoReservation", message=message)
    if ConditionName.PODS_READY in status.conditions:
        after = pods_ready(after, now, ready=False)
    at_once = reason in _AT_ONCE or reason == "Pending"
    message = found.message if found is not None else ""
    after = told(after, ConditionName.REQUEUED, now, holds=at_once, reason=reason, message=message)
    past = status.past_seconds + int(ran)
    return msgspec.structs.replace(after, admission=None, past_seconds=past)


def requeued(status: WorkloadStatus, reason: str, message: str, now: float) -> WorkloadStatus:
    """It may be tried again."""
    after = told(status, ConditionName.REQUEUED, now, holds=True, reason=reason, message=message)
    return msgspec.structs.replace(after, requeue_seconds=0.0)


def pods_ready(status: WorkloadStatus, now: float, *, ready: bool) -> WorkloadStatus:
    """Whether all its pods are ready, or through; once they were, others are said to recover."""
    before = status.conditions.get(ConditionName.PODS_READY)
    if ready:
        reason, message = "Started", "All pods were ready or succeeded since the workload admission"
    elif before is not None and (before.holds or before.reason == "WaitForRecovery") and status.admitted:
        reason, message = "WaitForRecovery", "At least one pod has failed, waiting for recovery"
    else:
        reason, message = "WaitForStart", "Not all pods are ready or succeeded"
    return told(status, ConditionName.PODS_READY, now, holds=ready, reason=reason, message=message)


def finished(status: WorkloadStatus, message: str, now: float, *, succeeded: bool) -> WorkloadStatus:
    """Its job ended."""
    reason = "Succeeded" if succeeded else "Failed"
    return told(status, ConditionName.FINISHED, now, holds=True, reason=reason, message=message)


def _with(status: WorkloadStatus, changed: Mapping[ConditionName, WorkloadCondition]) -> WorkloadStatus:
    after: WorkloadStatus = msgspec.structs.replace(status, conditions={**status.conditions, **changed})
    return after
