"""Volcano's Job (batch.volcano.sh/v1alpha1) as a job.

Where it says less than it could, Volcano's defaults hold: all pods are needed, queue `default`, three failures.
Source: volcano.sh/apis pkg/apis/batch/v1alpha1/job.go; volcano pkg/controllers/job, pkg/webhooks/admission/jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from kube.dialects.documents.document import GoDuration, checked
from kube.dialects.documents.duration import go_duration_seconds
from kube.dialects.jobs.bounds import (
    MOST_ARGUMENTS,
    MOST_RULES,
    MOST_TASKS,
    MOST_VOLUMES,
    check_each,
    check_size,
    decoded,
)
from kube.dialects.jobs.template import check_names, pod_template
from kube.dialects.jobs.volumes import JobVolume, with_volumes
from kube.objects import VolcanoJob, unix_seconds
from model.fault import ConfigurationFault
from model.job.job import (
    GroupTerms,
    Job,
    JobDialect,
    JobId,
    JobTask,
    LifecycleRule,
    PodEvent,
    RuleAction,
    TaskDependency,
)

SUSPEND = "sublet.dev/suspend"
"""Annotation of a Volcano Job, whose definition has no such field: `true` suspends it."""
PLUGINS = ("env", "svc", "ssh", "pytorch")
"""Those that are served."""
_INHERITED = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
    "sublet.dev/required-topology",
    "sublet.dev/preferred-topology",
    "sublet.dev/preemption-notice-seconds",
    "sublet.dev/preemption-policy",
)
"""Annotations of the job that its pods and its PodGroup get."""
WAITING_TIME = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
"""Annotations of the job: after so long in the queue it goes before others, as Volcano's plugin sla has it."""
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_Code = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
_EVENTS = {event.value: event for event in PodEvent}
_ACTIONS = {action.value: action for action in RuleAction}
_NOTHING = ("SyncJob", "EnqueueJob")
"""Actions of a rule that change nothing: what is missing is made in any case."""


class _Iteration(StrEnum):
    ANY = "any"
    ALL = "all"


class _Rule(msgspec.Struct, frozen=True, rename="camel"):
    action: str = ""
    event: str | None = None
    events: list[str] | None = None
    exit_code: _Code | None = None
    timeout: GoDuration | None = None


class _DependsOn(msgspec.Struct, frozen=True):
    name: list[str] | None = None
    iteration: _Iteration | None = None


class _Task(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    replicas: _Number | None = None
    min_available: _Number | None = None
    template: Any = None
    policies: list[_Rule] | None = None
    depends_on: _DependsOn | None = None
    max_retry: _Number | None = None
    topology_policy: str | None = None
    partition_policy: Any = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str | None = None
    min_available: _Number | None = None
    volumes: list[JobVolume] | None = None
    tasks: list[_Task] | None = None
    policies: list[_Rule] | None = None
    plugins: dict[str, list[str] | None] | None = None
    queue: str | None = None
    max_retry: _Number | None = None
    ttl_seconds_after_finished: _Number | None = None
    priority_class_name: str | None = None
    min_success: _Number | None = None
    network_topology: Any = None
    running_estimate: Any = None


def volcano_job(source: VolcanoJob) -> Job:
    """A job; what cannot be read becomes its `problem`, naming object and field."""
    metadata = source.metadata
    annotations = metadata.annotations or {}
    job = Job(
        id=JobId(JobDialect.VOLCANO, metadata.namespace, metadata.name),
        uid=metadata.uid,
        version=metadata.resource_version,
        created_seconds=unix_seconds(metadata.creation_timestamp),
        leaving=metadata.deletion_timestamp is not None,
        suspend=annotations.get(SUSPEND) == "true",
        inherited={key: annotations[key] for key in _INHERITED if annotations.get(key)},
    )
    try:
        found = _read(job, decoded(source.spec, f"{job.id.text}: spec"), annotations)
        check_size(found)
        return found
    except ConfigurationFault as fault:
        return msgspec.structs.replace(job, problem=str(fault))


def _read(job: Job, raw: Any, annotations: Mapping[str, str]) -> Job:
    where = job.id.text
    spec = checked({} if raw is None else raw, _Spec, f"{where}: spec")
    waiting = next((text for key in WAITING_TIME if (text := annotations.get(key))), "")
    counted = (
        (spec.tasks, MOST_TASKS, "tasks"),
        (spec.volumes, MOST_VOLUMES, "volumes"),
        (spec.policies, MOST_RULES, "policies"),
    )
    check_each(counted, f"{where}: spec")
    tasks = tuple(_tasks(spec, where))
    check_names(job.id.name, tasks, where)
    _check_order(tasks, where)
    return msgspec.structs.replace(
        job,
        tasks=tasks,
        group=_group(spec, tasks, waiting, where),
        rules=_rules(spec.policies, f"{where}: spec.policies"),
        plugins=_plugins(spec, f"{where}: spec.plugins"),
        success=spec.min_success or 0,
        most_failures=3 if spec.max_retry is None else spec.max_retry,
        ttl_seconds=spec.ttl_seconds_after_finished,
        unmet=tuple(_unmet(spec)),
    )


def _plugins(spec: _Spec, field: str) -> dict[str, tuple[str, ...]]:
    """Those that are served, with their arguments."""
    served = {name: tuple(told or ()) for name, told in (spec.plugins or {}).items() if name in PLUGINS}
    check_each(((told, MOST_ARGUMENTS, "arguments") for told in served.values()), field)
    return served


def _group(spec: _Spec, tasks: Iterable[JobTask], waiting: str, where: str) -> GroupTerms:
    every = sum(task.replicas for task in tasks)
    minimum = sum(task.minimum for task in tasks) if spec.min_available is None else spec.min_available
    if minimum > every:
        found = f"is {minimum}, and its tasks have {every} pods"
        raise ConfigurationFault(f"{where}: spec.minAvailable", found, "lower it, or raise replicas")
    return GroupTerms(
        queue=spec.queue or "default",
        minimum=minimum,
        scheduler=spec.scheduler_name or "volcano",
        priority_class=spec.priority_class_name or "",
        wait_seconds=_waiting_seconds(waiting, where),
    )


def _waiting_seconds(text: str, where: str) -> float:
    seconds = go_duration_seconds(text) if text else 0.0
    if seconds is None:
        field = f"{where}: annotation {WAITING_TIME[0]}"
        raise ConfigurationFault(field, f"is {text!r}"[:80], "write a duration such as 30m")
    return seconds


def _tasks(spec: _Spec, where: str) -> Iterator[JobTask]:
    if not spec.tasks:
        raise ConfigurationFault(f"{where}: spec.tasks", "is empty", "write at least one")
    _check_volumes(spec.volumes or (), where)
    for index, task in enumerate(spec.tasks):
        field = f"{where}: spec.tasks[{index}]"
        replicas = 1 if task.replicas is None else task.replicas
        names = task.depends_on.name if task.depends_on else None
        counted = ((task.policies, MOST_RULES, "policies"), (names, MOST_TASKS, "names in dependsOn"))
        check_each(counted, field)
        minimum = replicas if task.min_available is None else task.min_available
        if minimum > replicas:
            found = f"is {minimum}, more than its {replicas} replicas"
            raise ConfigurationFault(f"{field}.minAvailable", found, "lower it")
        yield JobTask(
            name=task.name or f"default{index}",
            replicas=replicas,
            minimum=minimum,
            template=with_volumes(pod_template(task.template, f"{field}.template"), spec.volumes or ()),
            rules=_rules(task.policies, f"{field}.policies"),
            after=_after(task.depends_on),
        )


def _check_volumes(volumes: Iterable[JobVolume], where: str) -> None:
    """Raises ConfigurationFault for a claim that is to be made: an empty folder would lose what is saved there."""
    for index, volume in enumerate(volumes):
        if volume.volume_claim:
            fix = "create the claim, and write volumeClaimName"
            raise ConfigurationFault(f"{where}: spec.volumes[{index}].volumeClaim", "no claim is made for a job", fix)


def _after(told: _DependsOn | None) -> TaskDependency | None:
    if told is None or not told.name:
        return None
    return TaskDependency(tuple(told.name), told.iteration is not _Iteration.ANY)


def _check_order(tasks: tuple[JobTask, ...], where: str) -> None:
    """Raises ConfigurationFault for a task that waits for one that is not there, or in a circle."""
    after = {task.name: task.after.names if task.after else () for task in tasks}
    for name, names in after.items():
        for other in names:
            if other not in after:
                found = f"is {other}, and there is no task of that name"
                raise ConfigurationFault(f"{where}: dependsOn of task {name}", found, "name one of its tasks")
    done: set[str] = set()
    while len(done) < len(after):
        ready = {name for name, names in after.items() if name not in done and done.issuperset(names)}
        if not ready:
            found = f"makes a circle of {', '.join(sorted(set(after) - done))}"
            raise ConfigurationFault(f"{where}: dependsOn", found, "take one of them out")
        done |= ready


def _rules(told: Iterable[_Rule] | None, field: str) -> tuple[LifecycleRule, ...]:
    found = (_rule(rule, f"{field}[{index}]") for index, rule in enumerate(told or ()))
    return tuple(rule for rule in found if rule is not None)


def _rule(told: _Rule, field: str) -> LifecycleRule | None:
    """None for one that changes nothing, or is about what is no business of pods. Raises ConfigurationFault."""
    if told.action in _NOTHING:
        return None
    if told.action not in _ACTIONS:
        raise ConfigurationFault(f"{field}.action", f"is {told.action!r}"[:80], "write one of " + ", ".join(_ACTIONS))
    names = [name for name in (told.event, *(told.events or ())) if name]
    if bool(names) == (told.exit_code is not None):
        found = "has both events and exitCode" if names else "has neither event nor exitCode"
        raise ConfigurationFault(field, found, "write one of them")
    if told.exit_code == 0:
        raise ConfigurationFault(f"{field}.exitCode", "is 0, which is no failure", "write another")
    events = tuple(_EVENTS[name] for name in names if name in _EVENTS)
    if names and not events:
        return None
    if PodEvent.PENDING in events and not told.timeout:
        raise ConfigurationFault(field, "is about PodPending and has no timeout", "write one such as 10m")
    return LifecycleRule(_ACTIONS[told.action], events, told.exit_code, float(told.timeout or 0.0))


def _unmet(spec: _Spec) -> Iterator[str]:
    """Fields that are accepted and not acted on, each with what follows."""
    for name in sorted(spec.plugins or {}):
        if name not in PLUGINS:
            yield f"spec.plugins.{name}: pods get nothing of it; {', '.join(PLUGINS)} are served"
    if spec.network_topology:
        yield "spec.networkTopology: there are no HyperNodes; write annotation sublet.dev/required-topology"
    if spec.running_estimate:
        yield "spec.runningEstimate: nothing is planned by it"
    rules = [*(spec.policies or ())]
    for index, task in enumerate(spec.tasks or ()):
        yield from _unmet_of_task(task, f"spec.tasks[{index}]")
        rules += task.policies or ()
    if any(rule.action == RuleAction.RESTART_PARTITION for rule in rules):
        yield "action RestartPartition: it restarts the task, since pods are in no partitions"
    if any(rule.action == RuleAction.RESUME_JOB for rule in rules):
        yield "action ResumeJob: a suspended job has no pods, so nothing happens to them"


def _unmet_of_task(task: _Task, field: str) -> Iterator[str]:
    if task.partition_policy:
        yield f"{field}.partitionPolicy: its pods are in no partitions"
    if task.topology_policy not in (None, "", "none"):
        yield f"{field}.topologyPolicy: write the annotation of Koordinator's CPU binding on its pods"
    if task.max_retry is not None:
        yield f"{field}.maxRetry: failures are counted for the whole job"
