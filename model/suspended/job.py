"""Suspended job: a job that waits without a pod until its queue and nodes have room for all of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
"""Label of a job: the LocalQueue of its namespace that it waits in."""
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
"""Label of a job: its WorkloadPriorityClass."""
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
"""Annotation of a Job: with how many pods at once it may start."""
EQUAL_COMPLETIONS = "kueue.x-k8s.io/job-completions-equal-parallelism"
"""Annotation of a Job: it has as many completions as pods at once, whatever that is."""
MAX_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
"""Label of a job: how long it may run, over all its runs."""
WORKLOAD = "kueue.x-k8s.io/workload"
"""Annotation of the pods of an admitted job: its Workload."""
POD_SET = "kueue.x-k8s.io/podset"
"""Label of the pods of an admitted job: which of its pod sets they belong to."""


class SuspendedKind(StrEnum):
    """Kinds of jobs that wait whole."""

    JOB = "Job"
    JOB_SET = "JobSet"
    TRAINING = "TrainingJob"


class PodTemplate(msgspec.Struct, frozen=True):
    """Pods of a job that are alike: `template` is the pod template of which `count` are made.

    The job may start with `minimum` of them; None: with all or none. They go into one domain of the topology level
    `required`, or of `preferred` where that is possible.
    """

    name: str
    count: int
    template: Mapping[str, Any] = {}
    minimum: int | None = None
    required: str = ""
    preferred: str = ""

    @property
    def least(self) -> int:
        """With how many the job may start."""
        return self.count if self.minimum is None else min(self.minimum, self.count)


class JobEnd(msgspec.Struct, frozen=True):
    """How a job ended, in its own words."""

    succeeded: bool
    message: str = ""


class SuspendedJob(msgspec.Struct, frozen=True):
    """A job with a queue, as its object and its status say; times are Unix seconds.

    `version` is the resourceVersion that was read. `injected`: its templates hold what an admission put there.
    `started`: its controller says that it began and has not been stopped since. `pods` are those that are not gone,
    `ready` those that are ready or through. `reclaimable` are pods by pod set that it will not make again. `problem`
    says why it cannot be queued, or go on waiting; one that runs goes on, and may be evicted.
    """

    kind: SuspendedKind
    namespace: str
    name: str
    uid: str = ""
    version: str = ""
    created_seconds: float = 0.0
    queue: str = ""
    priority_class: str = ""
    pod_sets: tuple[PodTemplate, ...] = ()
    suspended: bool = True
    injected: bool = False
    started: bool = False
    pods: int = 0
    ready: int = 0
    reclaimable: Mapping[str, int] = {}
    end: JobEnd | None = None
    max_seconds: int | None = None
    problem: str = ""

    @property
    def count(self) -> int:
        """How many pods it has when it runs."""
        return sum(pods.count for pods in self.pod_sets)


class PodSetInjection(msgspec.Struct, frozen=True):
    """What the pods of a set get by its admission: labels of their node, and tolerations as they are written.

    `count` is how many were admitted.
    """

    name: str
    count: int = 0
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Mapping[str, Any], ...] = ()
