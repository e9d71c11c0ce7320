"""How a job goes: its pods, and what is kept of it. Times are Unix seconds, 0 where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.condition import ConditionStatus
from model.job.job import Member
from model.resources import ResourceVector


class JobPhase(StrEnum):
    """Where a job is; dialects report it in their own words.

    PENDING: its objects are being made. QUEUED: all its pods exist, fewer than its minimum run. RESTARTING,
    SUSPENDING, COMPLETING, TERMINATING: pods go. SUSPENDED: it has none until it is resumed. The last three are the
    end.
    """

    PENDING = "Pending"
    QUEUED = "Queued"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    COMPLETING = "Completing"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    TERMINATED = "Terminated"
    FAILED = "Failed"

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self in (JobPhase.SUCCEEDED, JobPhase.TERMINATED, JobPhase.FAILED)

    @property
    def active(self) -> bool:
        """Whether missing pods are made, and what happens to pods counts."""
        return self in (JobPhase.PENDING, JobPhase.QUEUED, JobPhase.RUNNING)


class PodPhase(StrEnum):
    """status.phase of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class JobPod(msgspec.Struct, frozen=True):
    """A pod of a job as it is. `run` is the job's run that made it (JobStatus.run).

    `evicted`: another ended it, as in PodEvent.EVICTED, or it ended once it was told to. `leaving`: its deletion has
    begun. `waits` is why the scheduler has no node for it, `since_seconds` when it came into its phase as far as that
    is told, `told_until_seconds` how long it has since it was told that others end it.
    """

    member: Member
    name: str
    uid: str = ""
    run: int = 0
    phase: PodPhase = PodPhase.PENDING
    exit_code: int | None = None
    reason: str = ""
    evicted: bool = False
    leaving: bool = False
    node: str = ""
    address: str = ""
    waits: str = ""
    created_seconds: float = 0.0
    since_seconds: float = 0.0
    told_until_seconds: float = 0.0
    requests: ResourceVector = ResourceVector()

    @property
    def done(self) -> bool:
        """Whether all its containers have ended for good."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)


class TaskCounts(msgspec.Struct, frozen=True):
    """Pods of one task, or of a job, by what they do; a pod that goes is `terminating` and nothing else."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0

    def __add__(self, other: TaskCounts) -> TaskCounts:
        names = self.__struct_fields__
        return TaskCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def staying(self) -> int:
        """All but those that go."""
        return self.begun + self.pending + self.unknown

    @property
    def begun(self) -> int:
        """Pods that run, or did."""
        return self.running + self.succeeded + self.failed


class JobCondition(msgspec.Struct, frozen=True):
    """One condition of a job: since when it is so, and why."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    since_seconds: float = 0.0


class JobEvent(msgspec.Struct, frozen=True):
    """One thing that happened to a job."""

    reason: str
    message: str
    at_seconds: float = 0.0
    warning: bool = False


class PassedPhase(msgspec.Struct, frozen=True):
    """A phase in the words of the job's kind, and since when."""

    name: str
    since_seconds: float = 0.0


class Allocation(msgspec.Struct, frozen=True):
    """What a job's pods that have a node ask for together, and their nodes, sorted."""

    amounts: ResourceVector = ResourceVector()
    nodes: tuple[str, ...] = ()


class World(msgspec.Struct, frozen=True):
    """The pods of an elastic job that train together: `size` of them, in their `generation`, which begins with 1.

    `digest` tells whether they are others than before.
    """

    generation: int = 0
    size: int = 0
    digest: str = ""


class JobStatus(msgspec.Struct, frozen=True):
    """How a job goes: all that is known of it besides its pods, kept in its object's status.

    `run` grows with each restart; pods of a run below that of `floors` for them do not count and are deleted: its keys
    are the job (``), a task (`worker`) and a member (`worker-2`). `failures` and `evictions` are restarts by cause.
    `scale` is how many pods an elastic task has now, by task, `scaled_seconds` since when, `shrunk` whether others took
    some away then. `running_seconds` is the
    time spent running before `since_seconds`, when the phase began. `began_seconds` is when it ran first,
    `queued_seconds` since when it waits. `passed` are its phases so far, the last ones, where its kind tells them.
    `command` is the uid of the command that was obeyed last, `world` who trains together in an elastic job. `in_a_row`
    are restarts of which each came soon after the one before, `rest_seconds` is Unix time until which no pods are made
    for the last of them.
    """

    phase: JobPhase = JobPhase.PENDING
    reason: str = ""
    message: str = ""
    since_seconds: float = 0.0
    run: int = 0
    floors: Mapping[str, int] = {}
    failures: int = 0
    evictions: int = 0
    tasks: Mapping[str, TaskCounts] = {}
    scale: Mapping[str, int] = {}
    scaled_seconds: float = 0.0
    shrunk: bool = False
    began_seconds: float = 0.0
    ended_seconds: float = 0.0
    queued_seconds: float = 0.0
    running_seconds: float = 0.0
    allocation: Allocation = Allocation()
    conditions: tuple[JobCondition, ...] = ()
    passed: tuple[PassedPhase, ...] = ()
    events: tuple[JobEvent, ...] = ()
    command: str = ""
    world: World = World()
    in_a_row: int = 0
    rest_seconds: float = 0.0

    @property
    def counts(self) -> TaskCounts:
        """Of all tasks."""
        return sum(self.tasks.values(), TaskCounts())

    def stale(self, pod: JobPod) -> bool:
        """Whether the pod is of a run that is over for it."""
        member = pod.member
        return pod.run < max(self.floors.get(key, 0) for key in ("", member.task, member.text))
