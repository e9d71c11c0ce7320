"""Job: what a user writes to have several pods run as one piece of work.

TrainingJob and Volcano's Job are read into the same values. Times are Unix seconds, 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from model.priority import PreemptionPolicy


class JobDialect(StrEnum):
    """The kind of object that a job is written as."""

    TRAINING = "TrainingJob"
    VOLCANO = "Job.batch.volcano.sh"


class JobId(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A job's identity."""

    dialect: JobDialect
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def text(self) -> str:
        """`TrainingJob ml/bert`: what messages call it."""
        return f"{self.dialect} {self.key}"


class Framework(StrEnum):
    """Whose environment variables the pods of a TrainingJob get."""

    PYTORCH = "PyTorchJob"
    TENSORFLOW = "TFJob"
    MPI = "MPIJob"
    XGBOOST = "XGBoostJob"
    PADDLE = "PaddleJob"


class PodEvent(StrEnum):
    """What a rule may be about; values are Volcano's words.

    EVICTED is a pod that went, or goes, before its end by the will of another: preempted, evicted, deleted, refused by
    its node. It is no failure.
    """

    ANY = "*"
    PENDING = "PodPending"
    RUNNING = "PodRunning"
    FAILED = "PodFailed"
    EVICTED = "PodEvicted"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"


class RuleAction(StrEnum):
    """What a rule does; values are Volcano's words."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


class LifecycleRule(msgspec.Struct, frozen=True):
    """`action` follows on any of `events`, or on a container that ends with `exit_code`; after `timeout_seconds`."""

    action: RuleAction
    events: tuple[PodEvent, ...] = ()
    exit_code: int | None = None
    timeout_seconds: float = 0.0


class JobCommand(msgspec.Struct, frozen=True):
    """What somebody orders of a job once; `name` and `uid` are the order's object, `text` is how it names the action.

    `action` is None for one that is not known.
    """

    name: str
    uid: str
    given_seconds: float = 0.0
    action: RuleAction | None = None
    text: str = ""


class TaskDependency(msgspec.Struct, frozen=True):
    """A task's pods are made once `every` one, or any, of the named tasks has its minimum running or done."""

    names: tuple[str, ...]
    every: bool = True


class JobTask(msgspec.Struct, frozen=True):
    """Pods that are alike: `replicas` of them, of which at least `minimum` run together.

    `template` is the pod template as it was written (`metadata`, `spec`). `rules` come before those of the job.
    """

    name: str
    replicas: int
    minimum: int
    template: Mapping[str, Any]
    rules: tuple[LifecycleRule, ...] = ()
    after: TaskDependency | None = None


class Member(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A pod's place in its job: the task and the index in it."""

    task: str
    index: int

    @property
    def text(self) -> str:
        """`worker-2`."""
        return f"{self.task}-{self.index}"


class ElasticPolicy(msgspec.Struct, frozen=True):
    """The job has `minimum` to `maximum` pods of its task `task`; grows and shrinks by a step, then rests: before it
    grows for `up_cooldown_seconds`, after others took pods away for `down_cooldown_seconds` at least.
    """

    task: str
    minimum: int
    maximum: int
    up_step: int = 1
    down_step: int = 1
    up_cooldown_seconds: float = 300.0
    down_cooldown_seconds: float = 300.0

    def spares(self, member: Member) -> bool:
        """Whether it is above the minimum."""
        return member.task == self.task and member.index >= self.minimum


class CheckpointPolicy(msgspec.Struct, frozen=True):
    """Where the job's processes save checkpoints, how often, how many are kept (0: all), as their environment says.

    Before others end them they are told, and have `grace_seconds` to save.
    """

    url: str
    interval_seconds: float = 0.0
    most: int = 0
    grace_seconds: float = 30.0


class GroupTerms(msgspec.Struct, frozen=True):
    """What the job's pods are to the scheduler as a group.

    `minimum` pods are placed together or none. `priority` is a number that a PriorityClass must have where
    `priority_class` names none. After `wait_seconds` in the queue the job goes before others; 0: never.
    `required_topology` is a node label key or the name of a topology layer.
    """

    queue: str = ""
    minimum: int = 1
    scheduler: str = ""
    priority_class: str = ""
    priority: int | None = None
    preemption_policy: PreemptionPolicy | None = None
    wait_seconds: float = 0.0
    required_topology: str = ""
    gpu_type: str = ""


class Job(msgspec.Struct, frozen=True):
    """A job as it is wanted. `problem` says in one sentence why it cannot be run; then nothing is made for it.

    `success`: it has succeeded once so many pods have, 0: once all have ended and its minimum has succeeded. `leader`
    is the task, or the member, whose success ends it, empty without one. `plugins` are Volcano's, with arguments. It
    fails with the failure of number `most_failures`; evictions do not count. `inherited` are annotations that its pods
    and its PodGroup get. `unmet` are sentences about fields that are accepted and not acted on.
    """

    id: JobId
    uid: str = ""
    version: str = ""
    created_seconds: float = 0.0
    leaving: bool = False
    tasks: tuple[JobTask, ...] = ()
    group: GroupTerms = GroupTerms()
    rules: tuple[LifecycleRule, ...] = ()
    plugins: Mapping[str, tuple[str, ...]] = {}
    framework: Framework | None = None
    leader: str = ""
    success: int = 0
    most_failures: int = 3
    ttl_seconds: float | None = None
    suspend: bool = False
    elastic: ElasticPolicy | None = None
    checkpoint: CheckpointPolicy | None = None
    inherited: Mapping[str, str] = {}
    problem: str = ""
    unmet: tuple[str, ...] = ()

    def task(self, name: str) -> JobTask | None:
        """The task of that name."""
        return next((task for task in self.tasks if task.name == name), None)
