"""Phases of a job, and what leads from one to the next: the whole table.

| from | cause | to |
|---|---|---|
| Pending, Queued, Running | all pods that are due exist, fewer than the minimum run | Queued |
| | the minimum runs, or ran | Running |
| | a pod that is due is missing, and no rule is about that | Pending |
| | a rule restarts the job | Restarting |
| | suspended by its field, or by a rule | Suspending |
| | a rule completes it, or enough of it has succeeded while others run | Completing |
| | a rule terminates it | Terminating |
| | all pods have ended, well or not | Succeeded, Failed |
| | the failure that is one too many | Failed |
| Restarting | no pod is left | Pending |
| | suspended by its field, or by a command | Suspending |
| Suspending | no pod is left | Suspended |
| Suspended | resumed by its field, or by a command | Pending |
| Completing, Terminating | no pod runs | Succeeded, Terminated |

Whatever a rule does a command may do, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from model.job.status import JobPhase


class Cause(StrEnum):
    """Why a job goes from one phase to the next; also the reason that its status names."""

    MAKING_PODS = "MakingPods"
    WAITING_FOR_NODES = "WaitingForNodes"
    RUNNING = "MinimumRunning"
    RESTARTED = "Restarted"
    SUSPENDED = "Suspended"
    ABORTED = "Aborted"
    RESUMED = "Resumed"
    PODS_GONE = "PodsGone"
    COMPLETED = "Completed"
    TERMINATED = "Terminated"
    SUCCEEDED = "Succeeded"
    PODS_FAILED = "PodsFailed"
    TOO_MANY_FAILURES = "TooManyFailures"


_WHILE_ACTIVE = {
    Cause.MAKING_PODS: JobPhase.PENDING,
    Cause.WAITING_FOR_NODES: JobPhase.QUEUED,
    Cause.RUNNING: JobPhase.RUNNING,
    Cause.RESTARTED: JobPhase.RESTARTING,
    Cause.SUSPENDED: JobPhase.SUSPENDING,
    Cause.ABORTED: JobPhase.SUSPENDING,
    Cause.COMPLETED: JobPhase.COMPLETING,
    Cause.TERMINATED: JobPhase.TERMINATING,
    Cause.SUCCEEDED: JobPhase.SUCCEEDED,
    Cause.PODS_FAILED: JobPhase.FAILED,
    Cause.TOO_MANY_FAILURES: JobPhase.FAILED,
}

TRANSITIONS: Mapping[JobPhase, Mapping[Cause, JobPhase]] = {
    JobPhase.PENDING: _WHILE_ACTIVE,
    JobPhase.QUEUED: _WHILE_ACTIVE,
    JobPhase.RUNNING: _WHILE_ACTIVE,
    JobPhase.RESTARTING: {
        Cause.PODS_GONE: JobPhase.PENDING,
        Cause.SUSPENDED: JobPhase.SUSPENDING,
        Cause.ABORTED: JobPhase.SUSPENDING,
    },
    JobPhase.SUSPENDING: {Cause.PODS_GONE: JobPhase.SUSPENDED},
    JobPhase.SUSPENDED: {Cause.RESUMED: JobPhase.PENDING},
    JobPhase.COMPLETING: {Cause.PODS_GONE: JobPhase.SUCCEEDED},
    JobPhase.TERMINATING: {Cause.PODS_GONE: JobPhase.TERMINATED},
    JobPhase.SUCCEEDED: {},
    JobPhase.TERMINATED: {},
    JobPhase.FAILED: {},
}
"""The phase that follows; a cause that a phase does not name changes nothing there."""


def following(phase: JobPhase, cause: Cause) -> JobPhase:
    """The phase after `cause`; the same where it changes nothing."""
    return TRANSITIONS[phase].get(cause, phase)
