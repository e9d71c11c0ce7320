"""What is to be done for a job that waits whole."""

from __future__ import annotations

import msgspec

from jobs.core.suspended.policy import PriorityFound
from model.suspended.job import PodSetInjection
from model.suspended.workload import WorkloadStatus


class MakeWorkload(msgspec.Struct, frozen=True, tag=True):
    """Make the Workload of the job."""

    priority: PriorityFound


class ReshapeWorkload(msgspec.Struct, frozen=True, tag=True):
    """The job was changed while it waits: its Workload asks for the same again."""

    priority: PriorityFound


class WriteStatus(msgspec.Struct, frozen=True, tag=True):
    """Write the Workload's status; `reason` and `message` make an Event on the job, where there are any."""

    status: WorkloadStatus
    reason: str = ""
    message: str = ""


class Deactivate(msgspec.Struct, frozen=True, tag=True):
    """Write spec.active false into the Workload."""


class StartJob(msgspec.Struct, frozen=True, tag=True):
    """Let the job make its pods, with what its admission says of them."""

    injections: tuple[PodSetInjection, ...]


class StopJob(msgspec.Struct, frozen=True, tag=True):
    """Suspend the job: its controller ends its pods."""


class RestoreJob(msgspec.Struct, frozen=True, tag=True):
    """Take out of the job's templates what an admission put there."""


class Tell(msgspec.Struct, frozen=True, tag=True):
    """An Event on the job, once."""

    reason: str
    message: str


SuspendedAction = MakeWorkload | ReshapeWorkload | WriteStatus | Deactivate | StartJob | StopJob | RestoreJob | Tell


class SuspendedPlan(msgspec.Struct, frozen=True):
    """One write, or none: after it the job is looked at as it is then, so that whoever is killed in between loses
    nothing. `again_seconds` is after how long it is to be looked at though nothing changes; 0: never.
    """

    action: SuspendedAction | None = None
    again_seconds: float = 0.0
