"""Why an admitted job has to go, by itself: deactivated, out of time, not ready in time."""

from __future__ import annotations

import msgspec

from jobs.core.suspended.actions import Deactivate, SuspendedAction, WriteStatus
from jobs.core.suspended.policy import ReadyPolicy
from model.suspended.transitions import evicted, told
from model.suspended.workload import ConditionName, EvictionReason, WorkloadObject, WorkloadStatus


def eviction(workload: WorkloadObject, policy: ReadyPolicy, now: float) -> SuspendedAction | None:
    """The next write of an eviction that is due; None where none is."""
    if not workload.active:
        return _deactivated(workload.status, now)
    if _overdue(workload, now):
        return _aim(workload.status, "MaximumExecutionTimeExceeded", "exceeding the maximum execution time", now)
    if policy.enabled and _unready(workload.status, policy, now):
        return _not_ready(workload.status, policy, now)
    return None


def next_seconds(workload: WorkloadObject, policy: ReadyPolicy, now: float) -> float:
    """After how long an eviction is due by time alone; 0: never."""
    due = [end for end in (_end(workload), _ready_by(workload.status, policy) if policy.enabled else 0.0) if end > now]
    return min(due) - now if due else 0.0


def _end(workload: WorkloadObject) -> float:
    """Unix time at which it has run as long as it may, 0 where it may for ever."""
    if workload.max_seconds is None:
        return 0.0
    left = max(0, workload.max_seconds - workload.status.past_seconds)
    return workload.status.since(ConditionName.ADMITTED) + left


def _overdue(workload: WorkloadObject, now: float) -> bool:
    return workload.max_seconds is not None and now >= _end(workload)


def _ready_by(status: WorkloadStatus, policy: ReadyPolicy) -> float:
    """Unix time until which its pods must be ready, 0 where they may take for ever."""
    found = status.conditions.get(ConditionName.PODS_READY)
    if found is not None and found.holds:
        return 0.0
    if found is not None and found.reason == "WaitForRecovery":
        recovery = policy.recovery_timeout_seconds
        return found.since_seconds + recovery if recovery is not None else 0.0
    return status.since(ConditionName.ADMITTED) + policy.timeout_seconds


def _unready(status: WorkloadStatus, policy: ReadyPolicy, now: float) -> bool:
    end = _ready_by(status, policy)
    return 0 < end <= now


def _not_ready(status: WorkloadStatus, policy: ReadyPolicy, now: float) -> SuspendedAction:
    limit, number = policy.backoff_limit_count, status.requeues + 1
    if limit is not None and number > limit:
        return _aim(status, "RequeuingLimitExceeded", "exceeding the maximum number of re-queuing retries", now)
    rest = min(policy.backoff_base_seconds * 2.0 ** min(number - 1, 40), policy.backoff_max_seconds)
    message = f"Exceeded the PodsReady timeout of {policy.timeout_seconds:g} s"
    after = evicted(status, EvictionReason.PODS_READY_TIMEOUT, message, now)
    after = msgspec.structs.replace(after, requeues=number, requeue_seconds=float(int(now + rest)))
    return WriteStatus(after, "EvictedDueToPodsReadyTimeout", message)


def _aim(status: WorkloadStatus, reason: str, why: str, now: float) -> SuspendedAction:
    """It is deactivated: first its status says why, then its spec says so, then it is evicted."""
    if status.holds(ConditionName.DEACTIVATION_TARGET):
        return Deactivate()
    return WriteStatus(told(status, ConditionName.DEACTIVATION_TARGET, now, holds=True, reason=reason, message=why))


def _deactivated(status: WorkloadStatus, now: float) -> WriteStatus:
    found = status.conditions.get(ConditionName.DEACTIVATION_TARGET)
    due = f" due to {found.message}" if found is not None and found.holds else ""
    message = f"The workload is deactivated{due}"
    after = evicted(status, EvictionReason.DEACTIVATED, message, now)
    if due:
        after = told(
            after, ConditionName.DEACTIVATION_TARGET, now, holds=False, reason="Deactivated", message="it is done"
        )
    # Whoever activates it again begins anew.
    after = msgspec.structs.replace(after, requeues=0, requeue_seconds=0.0)
    return WriteStatus(after, "EvictedDueToDeactivated", message)
