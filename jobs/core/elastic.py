"""How many pods an elastic job has: it begins with its minimum, and grows by a step while there is room.

Whether there is room the scheduler says: pods above the minimum for which it finds no node are given up, and tried
again after the cool-down. Where others take pods above the minimum away, the job goes on with fewer, by whole steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from jobs.core.members import Roster, size
from jobs.core.policy import JobPolicy
from model.job.job import ElasticPolicy, Job
from model.job.status import JobPhase, JobPod, JobStatus


def resized(job: Job, status: JobStatus, found: Roster, policy: JobPolicy, now: float) -> JobStatus:
    """The same with the number of pods that the job is to have now; `status.phase` is that of this look."""
    elastic, task = job.elastic, job.task(job.elastic.task) if job.elastic else None
    if elastic is None or task is None:
        return status
    there = size(job, status, task)
    wanted = _wanted(elastic, status, found, there, policy, now)
    if wanted == status.scale.get(task.name):
        return status
    changed = status.scale.get(task.name) is not None or wanted != elastic.minimum
    at = now if changed else status.scaled_seconds
    scale = {**status.scale, task.name: wanted}
    return msgspec.structs.replace(status, scale=scale, scaled_seconds=at, shrunk=False)


def shrunk(job: Job, status: JobStatus, found: Roster, now: float) -> JobStatus | None:
    """The same without the pods at its end that others took away, or that have no node while others take some; None
    where there are none, or it does not run.
    """
    elastic = job.elastic
    if elastic is None or status.phase is not JobPhase.RUNNING:
        return None
    pods = (pod for member, pod in found.current.items() if member.task == elastic.task)
    last = max((pod.member.index for pod in pods if pod.node and not pod.evicted), default=-1) + 1
    there = size_now(status, elastic)
    if max(last, elastic.minimum) >= there:
        return None
    steps = math.ceil((there - last) / elastic.down_step)
    wanted = max(elastic.minimum, there - steps * elastic.down_step)
    scale = {**status.scale, elastic.task: wanted}
    return msgspec.structs.replace(status, scale=scale, scaled_seconds=now, shrunk=True)


def next_seconds(job: Job, status: JobStatus, found: Roster, policy: JobPolicy, now: float) -> float:
    """After how long the number may change though nothing happens; 0 for never."""
    elastic = job.elastic
    if elastic is None or status.phase is not JobPhase.RUNNING:
        return 0.0
    waiting = [pod.created_seconds + policy.no_room_seconds for pod in _homeless(elastic, found)]
    if size_now(status, elastic) < elastic.maximum:
        waiting.append(_rested(elastic, status))
    return min((at - now for at in waiting if at > now), default=0.0)


def size_now(status: JobStatus, elastic: ElasticPolicy) -> int:
    """The number of pods of the elastic task."""
    return status.scale.get(elastic.task, elastic.minimum)


def _wanted(elastic: ElasticPolicy, status: JobStatus, found: Roster, there: int, policy: JobPolicy, now: float) -> int:
    if status.phase is not JobPhase.RUNNING:
        # What a restart finds room for is not known: it begins with the least that it needs.
        return elastic.minimum if status.phase is JobPhase.RESTARTING else there
    homeless = _homeless(elastic, found)
    if any(now >= pod.created_seconds + policy.no_room_seconds for pod in homeless):
        return _with_nodes(elastic, found, homeless)
    settled = not homeless and not found.missing and all(pod.node for pod in found.current.values())
    if settled and there < elastic.maximum and now >= _rested(elastic, status):
        return min(there + elastic.up_step, elastic.maximum)
    return there


def _rested(elastic: ElasticPolicy, status: JobStatus) -> float:
    """When it may grow again: after it was made to shrink both rests are over."""
    rest = max(elastic.up_cooldown_seconds, elastic.down_cooldown_seconds if status.shrunk else 0.0)
    return max(status.scaled_seconds, status.since_seconds) + rest


def _homeless(elastic: ElasticPolicy, found: Roster) -> tuple[JobPod, ...]:
    """Pods above the minimum for which the scheduler has no node."""
    pods = (pod for member, pod in found.current.items() if member.task == elastic.task)
    return tuple(pod for pod in pods if pod.member.index >= elastic.minimum and pod.waits and not pod.node)


def _with_nodes(elastic: ElasticPolicy, found: Roster, homeless: Iterable[JobPod]) -> int:
    """Up to the last member that has a node: pods are given up from the end."""
    without = {pod.member for pod in homeless}
    kept = [member.index for member in found.current if member.task == elastic.task and member not in without]
    return max(elastic.minimum, max(kept, default=0) + 1)
