"""Jobs, JobSets, LeaderWorkerSets and PyTorchJobs: how many pods of one belong together.

Source: as in makers.py; Kubernetes documentation, "Jobs" (parallelism, completions, backoffLimitPerIndex).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube.dialects.gangs.makers import SET_EXCLUSIVE, Maker, MakerId, MakerObject
from kube.objects import Job, JobSet, JobSpec, LeaderWorkerSet, PyTorchJob, ReplicatedJob

_LARGEST = 1 << 31
_IN_ORDER, _LEADER_READY = "InOrder", "LeaderReady"

AnyMaker = Job | JobSet | LeaderWorkerSet | PyTorchJob
MAKERS: Mapping[type, Maker] = {
    Job: Maker.JOB,
    JobSet: Maker.JOB_SET,
    LeaderWorkerSet: Maker.LEADER_WORKER_SET,
    PyTorchJob: Maker.PYTORCH_JOB,
}


class _Wrong(Exception):
    """A field that cannot be read: its path, and what stands there."""


def maker_id(source: AnyMaker) -> MakerId:
    """Of an object."""
    return MakerId(MAKERS[type(source)], f"{source.metadata.namespace}/{source.metadata.name}")


def maker_object(source: AnyMaker, *, queued: bool = False) -> MakerObject:
    """`queued` is whether its labels name a queue. What cannot be read becomes `problem`, naming object and field."""
    id_ = maker_id(source)
    try:
        found = _READ[id_.maker](id_, source, queued)
    except _Wrong as wrong:
        return MakerObject(id_, queued=queued, problem=f"{id_.where}: {wrong}; write a whole number of 0 or more")
    total = sum(found.sizes.values())
    if total < _LARGEST:
        return found
    return MakerObject(
        id_, queued=queued, problem=f"{id_.where}: has {total} pods together; write fewer than {_LARGEST}"
    )


def _job(id_: MakerId, source: Job, queued: bool) -> MakerObject:
    """Of a Job that is through in part only those that are left are needed: finished and given up indexes stay away."""
    at_once, wanted = _count(source.spec.parallelism, "spec.parallelism"), source.spec.completions
    if wanted is None:
        left = at_once if not source.status.succeeded else 0
    else:
        through = source.status.succeeded + _indexes(source.status.failed_indexes)
        left = min(at_once, max(0, _count(wanted, "spec.completions") - through))
    alone = _pods(source.spec, "spec") <= 1
    limit = _limit_seconds(source.spec.active_deadline_seconds)
    return MakerObject(id_, {"": left}, queued=queued, left=True, alone=alone, limit_seconds=limit)


def _limit_seconds(told: object) -> float | None:
    """A deadline that Kubernetes would refuse is none: nothing but an estimate rests on it."""
    return float(told) if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None


def _job_set(id_: MakerId, source: JobSet, queued: bool) -> MakerObject:
    """One gang where all Jobs are made at once, else one of each ReplicatedJob: the next come once it is ready."""
    jobs = source.spec.replicated_jobs or ()
    startup = source.spec.startup_policy
    ordered = (startup is not None and startup.startup_policy_order == _IN_ORDER) or any(job.depends_on for job in jobs)
    each = {job.name: _pods(job.template.spec, f"spec.replicatedJobs[{job.name}].template.spec") for job in jobs}
    sizes = {job.name: each[job.name] * _replicas(job) for job in jobs}
    return MakerObject(id_, sizes, each, queued=queued, joint=not ordered)


def _replicas(job: ReplicatedJob) -> int:
    return _count(job.replicas, f"spec.replicatedJobs[{job.name}].replicas")


def _leader_worker_set(id_: MakerId, source: LeaderWorkerSet, queued: bool) -> MakerObject:
    """Workers are made once the leader is there, or ready (LeaderReady), or has a node (exclusive topology)."""
    exclusive = SET_EXCLUSIVE in (source.metadata.annotations or {})
    return MakerObject(id_, queued=queued, first_alone=exclusive or source.spec.startup_policy == _LEADER_READY)


def _pytorch_job(id_: MakerId, source: PyTorchJob, queued: bool) -> MakerObject:
    """All replicas, or as many as its scheduling policy says."""
    specs = source.spec.pytorch_replica_specs or {}
    size = sum(_count(each.replicas, f"spec.pytorchReplicaSpecs.{name}.replicas") for name, each in specs.items())
    policy = source.spec.run_policy.scheduling_policy if source.spec.run_policy else None
    if policy is None:
        return MakerObject(id_, {"": size}, queued=queued)
    if policy.min_available is not None:
        size = _count(policy.min_available, "spec.runPolicy.schedulingPolicy.minAvailable")
    return MakerObject(id_, {"": size}, queue=policy.queue, queued=queued)


_READ: Mapping[Maker, Callable[[MakerId, Any, bool], MakerObject]] = {
    Maker.JOB: _job,
    Maker.JOB_SET: _job_set,
    Maker.LEADER_WORKER_SET: _leader_worker_set,
    Maker.PYTORCH_JOB: _pytorch_job,
}


def _pods(spec: JobSpec, where: str) -> int:
    """How many a Job has at once at most."""
    at_once = _count(spec.parallelism, f"{where}.parallelism")
    wanted = spec.completions
    return at_once if wanted is None else min(at_once, _count(wanted, f"{where}.completions"))


def _count(told: object, field: str) -> int:
    """1 where nothing is said. Raises _Wrong."""
    if told is None:
        return 1
    if isinstance(told, bool) or not isinstance(told, int) or not 0 <= told < _LARGEST:
        raise _Wrong(f"{field} is {repr(told)[:60]}")
    return told


def _indexes(text: str) -> int:
    """How many indexes `1,3-5` names; 0 of a text that is no such list."""
    total = 0
    for each in text.split(",") if text else ():
        first, _, last = each.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return 0
        total += int(last or first) - int(first) + 1
    return total
