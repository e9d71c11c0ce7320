"""Which pods a job is to have at this moment, and which of those that exist are its members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from model.job.job import Job, JobTask, Member
from model.job.status import JobPod, JobStatus, PodPhase, TaskCounts

_BEGUN = (PodPhase.RUNNING, PodPhase.SUCCEEDED)


class Roster(msgspec.Struct, frozen=True):
    """`wanted` members in their order; `current` pods count, by member; `others` are to go: pods of an earlier run, and
    those of members that are wanted no more. `early` ended in a run that is still to come, by their labels.
    """

    wanted: tuple[Member, ...]
    current: Mapping[Member, JobPod]
    others: tuple[JobPod, ...]
    early: tuple[JobPod, ...] = ()

    @property
    def missing(self) -> tuple[Member, ...]:
        """Wanted members that have no pod, not even one that goes."""
        names = {pod.member for pod in (*self.others, *self.early)}
        return tuple(each for each in self.wanted if each not in self.current and each not in names)

    @property
    def pods(self) -> tuple[JobPod, ...]:
        """All there are."""
        return (*self.current.values(), *self.others)

    @property
    def live(self) -> tuple[JobPod, ...]:
        """Those that have not ended."""
        return tuple(pod for pod in self.pods if not pod.done)


def size(job: Job, status: JobStatus, task: JobTask) -> int:
    """How many pods the task has at this moment."""
    elastic = job.elastic
    if elastic is None or elastic.task != task.name:
        return task.replicas
    return max(elastic.minimum, min(status.scale.get(task.name, elastic.minimum), elastic.maximum))


def roster(job: Job, status: JobStatus, pods: Iterable[JobPod]) -> Roster:
    """Members of tasks that are due, in the order of tasks and indices.

    The end of a pod does not count whose run is still to come: its author may write that label, and no restart would
    leave the pod behind, so that each look began another.
    """
    seen = tuple(sorted(pods, key=lambda pod: pod.member))
    early = tuple(pod for pod in seen if _early(status, pod))
    every = tuple(pod for pod in seen if not _early(status, pod))
    fresh = {pod.member: pod for pod in every if not status.stale(pod)}
    begun = Counter(pod.member.task for pod in fresh.values() if pod.phase in _BEGUN)
    ready = {task.name for task in job.tasks if begun[task.name] >= task.minimum}
    named, there = {task.name for task in job.tasks}, {member.task for member in fresh}
    due = (
        task for task in job.tasks if task.name in there or _due(task, lambda name: name in ready or name not in named)
    )
    wanted = tuple(member for task in due for member in _members(job, status, task))
    known = set(wanted)
    current = {member: fresh[member] for member in wanted if member in fresh}
    others = tuple(pod for pod in every if pod.member not in known or status.stale(pod))
    return Roster(wanted, current, others, early)


def counts(job: Job, found: Roster) -> dict[str, TaskCounts]:
    """Pods by task and by what they do."""
    told = {task.name: TaskCounts() for task in job.tasks}
    for pod in found.pods:
        counts_now = found.current.get(pod.member) is pod and not pod.leaving
        kind = pod.phase.value.lower() if counts_now else "terminating"
        told[pod.member.task] = told.get(pod.member.task, TaskCounts()) + TaskCounts(**{kind: 1})
    return told


def _members(job: Job, status: JobStatus, task: JobTask) -> Iterator[Member]:
    return (Member(task.name, index) for index in range(size(job, status, task)))


def _early(status: JobStatus, pod: JobPod) -> bool:
    return pod.run > status.run and (pod.done or pod.leaving)


def _due(task: JobTask, ready: Callable[[str], bool]) -> bool:
    """Whether the tasks that it waits for have begun."""
    if task.after is None:
        return True
    begun = (ready(name) for name in task.after.names)
    return all(begun) if task.after.every else any(begun)
