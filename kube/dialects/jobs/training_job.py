"""TrainingJob (sublet.dev/v1alpha1) as a job: pods of one shape (`template`), or of named sets (`podSets`)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from kube.dialects.documents.document import GoDuration, checked
from kube.dialects.jobs.bounds import MOST_TASKS, check_count, check_size, decoded
from kube.dialects.jobs.replica_resources import ReplicaResources, with_resources
from kube.dialects.jobs.template import check_names, pod_template
from kube.objects import TrainingJob, unix_seconds
from model.fault import ConfigurationFault
from model.job.job import (
    CheckpointPolicy,
    ElasticPolicy,
    Framework,
    GroupTerms,
    Job,
    JobDialect,
    JobId,
    JobTask,
    LifecycleRule,
    PodEvent,
    RuleAction,
)
from model.priority import PreemptionPolicy

WORKER = "worker"
"""The task of a job of one shape."""
LEADERS = ("master", "chief", "launcher")
"""Tasks whose success is the job's, as in Kubeflow."""
_Replicas = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_Priority = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class _Preemption(StrEnum):
    NEVER = "Never"
    LOWER = "PreemptLower"
    ALWAYS = "PreemptAlways"


_POLICIES = {
    _Preemption.NEVER: PreemptionPolicy.NEVER,
    _Preemption.LOWER: None,  # as the PriorityClass says
    _Preemption.ALWAYS: PreemptionPolicy.ALWAYS,
}


class _Resources(msgspec.Struct, frozen=True, rename="camel"):
    min_replicas: _Replicas | None = None
    max_replicas: _Replicas | None = None
    replica_resources: ReplicaResources | None = None
    gpu_type: str | None = None
    topology_constraint: str | None = None


class _Scheduling(msgspec.Struct, frozen=True, rename="camel"):
    queue: str | None = None
    priority: _Priority | None = None
    priority_class_name: str | None = None
    gang_scheduling: bool | None = None
    max_wait_time: GoDuration | None = None
    preemption_policy: _Preemption | None = None
    scheduler_name: str | None = None


class _Scale(msgspec.Struct, frozen=True, rename="camel"):
    scale_up_cooldown: GoDuration | None = None
    scale_down_cooldown: GoDuration | None = None
    scale_up_step: _Replicas | None = None
    scale_down_step: _Replicas | None = None


class _Elastic(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool | None = None
    min_workers: _Replicas | None = None
    max_workers: _Replicas | None = None
    scale_policy: _Scale | None = None


class _PodSet(msgspec.Struct, frozen=True):
    name: str
    template: Any = None
    replicas: _Replicas | None = None


class _Checkpoint(msgspec.Struct, frozen=True, rename="camel"):
    url: str
    interval: GoDuration | None = None
    max_checkpoints: _Replicas | None = None
    grace_period: GoDuration | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    job_type: Framework
    resources: _Resources | None = None
    scheduling_config: _Scheduling | None = None
    elastic_config: _Elastic | None = None
    template: Any = None
    pod_sets: list[_PodSet] | None = None
    suspend: bool | None = None
    max_retry: _Number | None = None
    ttl_seconds_after_finished: _Number | None = None
    checkpoint: _Checkpoint | None = None


def training_job(source: TrainingJob) -> Job:
    """A job; what cannot be read becomes its `problem`, naming object and field."""
    metadata = source.metadata
    job = Job(
        id=JobId(JobDialect.TRAINING, metadata.namespace, metadata.name),
        uid=metadata.uid,
        version=metadata.resource_version,
        created_seconds=unix_seconds(metadata.creation_timestamp),
        leaving=metadata.deletion_timestamp is not None,
    )
    try:
        found = _read(job, decoded(source.spec, f"{job.id.text}: spec"))
        check_size(found)
        return found
    except ConfigurationFault as fault:
        return msgspec.structs.replace(job, problem=str(fault))


def _read(job: Job, raw: Any) -> Job:
    where = job.id.text
    spec = checked({} if raw is None else raw, _Spec, f"{where}: spec")
    check_count(spec.pod_sets, MOST_TASKS, "podSets", f"{where}: spec")
    resources, scheduling = spec.resources or _Resources(), spec.scheduling_config or _Scheduling()
    elastic = _elastic(spec, resources, where)
    tasks = tuple(_tasks(spec, resources, elastic, where))
    check_names(job.id.name, tasks, where)
    gang = scheduling.gang_scheduling is not False
    names = [task.name for task in tasks]
    return msgspec.structs.replace(
        job,
        tasks=tasks,
        group=_group(scheduling, resources, sum(task.minimum for task in tasks) if gang else 1),
        rules=_RULES,
        framework=spec.job_type,
        leader=_leader(spec, names),
        most_failures=3 if spec.max_retry is None else spec.max_retry,
        ttl_seconds=spec.ttl_seconds_after_finished,
        suspend=spec.suspend is True,
        elastic=elastic,
        checkpoint=_checkpoint(spec.checkpoint),
        unmet=tuple(_unmet(spec, resources)),
    )


def _leader(spec: _Spec, names: list[str]) -> str:
    """Of an MPI job of one shape the first pod is what starts the others' processes."""
    first = f"{WORKER}-0" if spec.job_type is Framework.MPI and spec.pod_sets is None else ""
    return next((name for name in LEADERS if name in names), first)


_RULES = (
    LifecycleRule(RuleAction.RESTART_JOB, (PodEvent.EVICTED,)),
    LifecycleRule(RuleAction.RESTART_JOB, (PodEvent.FAILED,)),
)
"""Distributed training goes on with all of its processes or none."""


def _tasks(spec: _Spec, resources: _Resources, elastic: ElasticPolicy | None, where: str) -> Iterator[JobTask]:
    if (spec.template is None) == (spec.pod_sets is None):
        told = "has both template and podSets" if spec.template is not None else "has neither template nor podSets"
        raise ConfigurationFault(f"{where}: spec", told, "write a template for pods that are alike, or podSets")
    if spec.pod_sets is None:
        yield _single(spec, resources, elastic, where)
        return
    if not spec.pod_sets:
        raise ConfigurationFault(f"{where}: spec.podSets", "is empty", "write at least one")
    for index, pods in enumerate(spec.pod_sets):
        template = pod_template(pods.template, f"{where}: spec.podSets[{index}].template")
        least, most = _bounds(pods.name, pods.replicas or 1, elastic)
        yield JobTask(pods.name, most, least, with_resources(template, resources.replica_resources))


def _single(spec: _Spec, resources: _Resources, elastic: ElasticPolicy | None, where: str) -> JobTask:
    template = pod_template(spec.template, f"{where}: spec.template")
    if resources.min_replicas is None:
        raise ConfigurationFault(
            f"{where}: spec.resources.minReplicas", "is not given", "write how many pods there are"
        )
    least, most = _bounds(WORKER, resources.min_replicas, elastic)
    return JobTask(WORKER, most, least, with_resources(template, resources.replica_resources))


def _bounds(task: str, replicas: int, elastic: ElasticPolicy | None) -> tuple[int, int]:
    """How many pods there are at least and at most."""
    if elastic is None or elastic.task != task:
        return replicas, replicas
    return elastic.minimum, elastic.maximum


def _elastic(spec: _Spec, resources: _Resources, where: str) -> ElasticPolicy | None:
    least, most = resources.min_replicas, resources.max_replicas
    if least is not None and most is not None and least > most:
        found = f"minReplicas {least} is more than maxReplicas {most}"
        raise ConfigurationFault(f"{where}: spec.resources", found, "lower minReplicas, or raise maxReplicas")
    told = spec.elastic_config
    if told is None or not told.enabled:
        return None
    field = f"{where}: spec.elasticConfig"
    low, high = told.min_workers, told.max_workers
    if low is None or high is None:
        raise ConfigurationFault(field, "says not how many workers", "write minWorkers and maxWorkers")
    if low > high:
        raise ConfigurationFault(field, f"minWorkers {low} is more than maxWorkers {high}", "lower minWorkers")
    if (least is not None and low < least) or (most is not None and high > most):
        found = f"{low} to {high} workers are beyond spec.resources, which has {least} to {most or 'any'} replicas"
        raise ConfigurationFault(field, found, "write the same bounds")
    policy = told.scale_policy or _Scale()
    return ElasticPolicy(
        task=_elastic_task(spec, field),
        minimum=low,
        maximum=high,
        up_step=policy.scale_up_step or 1,
        down_step=policy.scale_down_step or 1,
        up_cooldown_seconds=_seconds(policy.scale_up_cooldown, 300.0),
        down_cooldown_seconds=_seconds(policy.scale_down_cooldown, 300.0),
    )


def _elastic_task(spec: _Spec, field: str) -> str:
    names = [pods.name for pods in spec.pod_sets or ()]
    if names and WORKER not in names:
        raise ConfigurationFault(field, f"spec.podSets has no set called {WORKER}", "call the set that grows so")
    return WORKER


def _group(scheduling: _Scheduling, resources: _Resources, minimum: int) -> GroupTerms:
    return GroupTerms(
        queue=scheduling.queue or "",
        minimum=minimum,
        scheduler=scheduling.scheduler_name or "",
        priority_class=scheduling.priority_class_name or "",
        priority=scheduling.priority or None,
        preemption_policy=_POLICIES[scheduling.preemption_policy or _Preemption.LOWER],
        wait_seconds=_seconds(scheduling.max_wait_time, 0.0),
        required_topology=resources.topology_constraint or "",
        gpu_type=resources.gpu_type or "",
    )


def _checkpoint(told: _Checkpoint | None) -> CheckpointPolicy | None:
    if told is None:
        return None
    grace = _seconds(told.grace_period, CheckpointPolicy("").grace_seconds)
    return CheckpointPolicy(told.url, _seconds(told.interval, 0.0), told.max_checkpoints or 0, grace)


def _unmet(spec: _Spec, resources: _Resources) -> Iterator[str]:
    """Fields that are accepted and not acted on, each with what follows."""
    elastic = spec.elastic_config
    if resources.max_replicas not in (None, resources.min_replicas) and not (elastic and elastic.enabled):
        yield "spec.resources.maxReplicas: the job has minReplicas pods; set spec.elasticConfig.enabled"
    if elastic is not None and not elastic.enabled:
        yield "spec.elasticConfig: enabled is not true, so the job neither grows nor shrinks"
    if spec.pod_sets is not None and resources.min_replicas is not None:
        yield "spec.resources.minReplicas: podSets say how many pods there are"


def _seconds(duration: float | None, default: float) -> float:
    return default if duration is None else float(duration)
