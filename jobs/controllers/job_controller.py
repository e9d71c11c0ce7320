"""The controller of jobs: follows jobs and their pods, and does what the plan says, while it leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from jobs.controllers.job_cache import JobCache
from jobs.controllers.job_progress import job_progress
from jobs.controllers.look_limit import LookLimit
from jobs.controllers.troubles import Troubles
from jobs.core.plan import plan
from jobs.core.policy import JobFacts, JobPolicy
from jobs.ports import JobWriter
from kube import objects
from kube.client import KubeClient
from kube.dialects.jobs import reading
from kube.dialects.jobs.job_pods import JobPodObject
from kube.dialects.jobs.reading import AnyJob
from kube.dialects.jobs.volcano_command import RESOURCE as COMMANDS
from kube.dialects.suspended import training_job
from kube.dialects.suspended.workload import DEFINITION as WORKLOADS
from kube.events import EventRecorder, ObjectRef
from kube.informer import SOON_SECONDS, Change, ChangeKind, Informer
from kube.reconcile import Reconciler
from model.fault import KubernetesFault
from model.job.actions import (
    CreatePod,
    DeleteCommand,
    DeleteJob,
    DeletePod,
    EnsureObject,
    JobAction,
    JobPlan,
    MadeKind,
    TellEvent,
)
from model.job.job import Job, JobDialect
from model.job.labels import JOB_UID
from model.job.status import JobPod, JobStatus
from model.queue import JobProgress

VOLCANO_DEFINITION = "jobs.batch.volcano.sh"
_WORKERS = 8
_WRITES = 16
"""Pods of one job that are being made, or deleted, at once."""
_GROUPS: Mapping[type, MadeKind] = {
    objects.PodGroup: MadeKind.POD_GROUP,
    objects.VolcanoPodGroup: MadeKind.VOLCANO_POD_GROUP,
}
_FORBIDDEN = 403
_COUNTS_SECONDS = 1.0
"""How often a status is written that differs by counts alone: nobody decides by them."""

Finished = Callable[[Job, JobStatus], None]
Decide = Callable[[Job, JobStatus, Iterable[JobPod], JobFacts, JobPolicy, float], JobPlan]


class MadeObject(msgspec.Struct, frozen=True):
    """The fields of an object made for a job that are looked at."""

    metadata: objects.Metadata = objects.Metadata()


class JobController:
    """`keeps` tells of a definition whether its objects are ours to act on; `finished` hears of each job that ends,
    `gone` (`namespace/name`) of each that is deleted; `decide` is the plan; `shortest_wait_seconds` as in JobFacts.
    `holds`: a TrainingJob that names a LocalQueue makes no pods before it is admitted.
    """

    def __init__(
        self,
        client: KubeClient,
        writer: JobWriter,
        recorder: EventRecorder,
        leading: Callable[[], bool],
        keeps: Callable[[str], Awaitable[bool]],
        clock: Callable[[], float],
        *,
        policy: JobPolicy | None = None,
        shortest_wait_seconds: float = 0.0,
        holds: bool = False,
        finished: Finished = lambda job, status: None,
        gone: Callable[[str], None] = lambda job: None,
        decide: Decide = plan,
    ) -> None:
        self._writer = writer
        self._recorder = recorder
        self._keeps = keeps
        self._clock = clock
        self._policy = policy or JobPolicy()
        self._shortest_wait_seconds = shortest_wait_seconds
        self._holds = holds
        self._finished = finished
        self._gone = gone
        self._decide = decide
        self._reconciler = Reconciler(self._reconcile, leading, self._failed, workers=_WORKERS)
        self._cache = JobCache(self._reconciler.add)
        self._classes: Informer[objects.PriorityClass] = Informer(
            client, "scheduling.k8s.io/v1/priorityclasses", objects.PriorityClass, on_change=self._saw_class
        )
        training, volcano = (reading.RESOURCES[dialect] for dialect in (JobDialect.TRAINING, JobDialect.VOLCANO))
        saw, soon = self._cache.saw_job, SOON_SECONDS
        self._training = Informer(client, training, objects.TrainingJob, on_change=saw, undefined_seconds=soon)
        self._volcano = Informer(client, volcano, objects.VolcanoJob, on_change=saw, undefined_seconds=soon)
        self._pods = Informer(client, "v1/pods", JobPodObject, label_selector=JOB_UID, on_change=self._cache.saw_pod)
        self._services = Informer(
            client, "v1/services", MadeObject, label_selector=JOB_UID, on_change=self._saw_service
        )
        self._commands = Informer(
            client, COMMANDS, objects.VolcanoCommand, on_change=self._cache.saw_command, undefined_seconds=soon
        )
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._written: dict[str, float] = {}
        self._troubles = Troubles(recorder)
        self._looks = LookLimit()

    async def run(self) -> None:
        """Never returns, unless there is nothing to do.

        Pods are listed after jobs: what is known of pods must not be older than what a job's status says of them.
        """
        if not self._policy.enabled:
            return
        async with asyncio.TaskGroup() as group:
            for informers in ((self._classes, self._training, self._volcano), (self._pods,)):
                for informer in informers:
                    group.create_task(informer.run())
                for informer in informers:
                    await informer.synced.wait()
            # Nothing waits for these: what a job needs is looked for when it is seen first, commands may come late.
            group.create_task(self._services.run())
            group.create_task(self._commands.run())
            group.create_task(self._reconciler.run())

    def progress(self, namespace: str, name: str) -> JobProgress | None:
        """How the job of that name goes, a TrainingJob before one of Volcano; None where there is none."""
        keys = (f"{dialect} {namespace}/{name}" for dialect in JobDialect)
        source = next((found for key in keys if (found := self._cache.source(key)) is not None), None)
        return job_progress(reading.job(source), reading.status(source)) if source is not None else None

    def saw_group(self, change: Change[Any]) -> None:
        """Every change of a PodGroup of either kind, by whoever follows them."""
        kind = _GROUPS.get(type(change.object))
        if kind is not None and change.kind is ChangeKind.DELETED:
            self._cache.saw_gone(kind, change.object.metadata)

    def _saw_service(self, change: Change[MadeObject]) -> None:
        if change.kind is ChangeKind.DELETED:
            self._cache.saw_gone(MadeKind.SERVICE, change.object.metadata)

    def _saw_class(self, change: Change[objects.PriorityClass]) -> None:
        """A class may be what jobs wait for."""
        self._cache.look_at_all()

    async def _reconcile(self, key: str) -> None:
        source = self._cache.source(key)
        if source is None:
            self._forget(key)
            return
        if reading.dialect_of(source) is JobDialect.VOLCANO and not await self._keeps(VOLCANO_DEFINITION):
            return
        namespace, now = source.metadata.namespace, asyncio.get_running_loop().time()
        if (rest := self._looks.rest(namespace, now)) > 0:
            self._look_again(key, rest)
            return
        found = self._planned(key, source, held=await self._held(key, source))
        self._looks.looked(namespace, self._cache.number(source.metadata.uid), now, spec_bytes=len(source.spec))
        if found is None:
            return
        job, status, wanted = found
        if await self._write_status(key, job, source.status, status, wanted):
            try:
                await self._act(key, job, wanted.actions)
            except KubernetesFault:
                raise
            except Exception as error:
                # Objects of pods are made as they are written.
                self._troubles.set_aside(key, _about(source), error)
            self._look_again(key, wanted.again_seconds)

    async def _held(self, key: str, source: AnyJob) -> bool:
        """Whether it makes no pods since its LocalQueue has not admitted it."""
        if not self._holds or not isinstance(source, objects.TrainingJob):
            return False
        try:
            waits = training_job.held(source)
        except Exception as error:
            self._troubles.set_aside(key, _about(source), error)
            return True
        return waits and await self._keeps(WORKLOADS)

    def _planned(self, key: str, source: AnyJob, *, held: bool) -> tuple[Job, JobStatus, JobPlan] | None:
        """None for a job about which we fail ourselves: it is set aside until it changes, and holds up no other."""
        classes = {each.metadata.name: each.value for each in self._classes.items.values()}
        facts = JobFacts(classes, self._shortest_wait_seconds, self._cache.commands(source))
        try:
            job, status, pods = reading.job(source), reading.status(source), self._cache.pods(source.metadata.uid)
            job = msgspec.structs.replace(job, suspend=job.suspend or held)
            return job, status, self._decide(job, status, pods, facts, self._policy, self._clock())
        except Exception as error:
            self._troubles.set_aside(key, _about(source), error)
            return None

    async def _write_status(self, key: str, job: Job, before: Any, status: JobStatus, wanted: JobPlan) -> bool:
        """Whether what follows may be done: not by what a status says that is another by now."""
        written = reading.written(job, wanted.status)
        if before is not None and written == reading.written(job, status):
            return True
        if before is not None and _by_counts_alone(status, wanted.status):
            rest = self._written.get(key, 0.0) + _COUNTS_SECONDS - self._clock()
            if rest > 0:
                self._look_again(key, rest)
                return True
        await self._reconciler.led()
        self._written[key] = self._clock()
        if not await self._writer.status(job, before, written):
            return False
        if wanted.status.run != status.run:
            # What others took away of the job's objects comes back with the next run.
            self._cache.forget_made(job.uid)
        self._tell(key, wanted.actions)
        if wanted.status.phase.ended and not status.phase.ended:
            self._finished(job, wanted.status)
        return True

    def _tell(self, key: str, actions: Iterable[JobAction]) -> None:
        source = self._cache.source(key)
        for action in actions:
            if source is not None and isinstance(action, TellEvent):
                self._recorder.record(_about(source), action.reason, action.message, warning=action.warning)

    async def _act(self, key: str, job: Job, actions: Iterable[JobAction]) -> None:
        """Objects one after the other, since pods need them; then pods, several at a time."""
        pods: list[CreatePod | DeletePod] = []
        for action in actions:
            match action:
                case EnsureObject():
                    await self._ensure(job, action)
                case CreatePod() | DeletePod():
                    pods.append(action)
                case DeleteCommand():
                    await self._reconciler.led()
                    await self._writer.delete_command(job, action)
                case DeleteJob():
                    await self._reconciler.led()
                    await self._writer.delete_job(job)
        await self._together(job, pods)
        self._troubles.forget(key)

    async def _ensure(self, job: Job, action: EnsureObject) -> None:
        if self._cache.is_made(job.uid, action):
            return
        await self._reconciler.led()
        # Before the write: who deletes it at once may be heard of before the answer is.
        self._cache.made(job.uid, action)
        try:
            await self._writer.ensure(job, action)
        except KubernetesFault:
            self._cache.not_made(job.uid, action)
            raise

    async def _together(self, job: Job, actions: Iterable[CreatePod | DeletePod]) -> None:
        """All are tried, whatever becomes of one; the first fault is raised then. But where the API server forbids a
        pod, such as by a quota, the others of this look are left for the next: thousands would be refused likewise.
        """
        left, faults = iter(actions), list[KubernetesFault]()

        async def some() -> None:
            for action in left:
                if isinstance(action, CreatePod) and any(fault.status == _FORBIDDEN for fault in faults):
                    continue
                try:
                    await self._reconciler.led()
                    if isinstance(action, CreatePod):
                        await self._writer.create_pod(job, action)
                    else:
                        await self._writer.delete_pod(job, action)
                except KubernetesFault as fault:
                    faults.append(fault)

        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITES):
                group.create_task(some())
        if faults:
            raise faults[0]

    def _look_again(self, key: str, seconds: float) -> None:
        if seconds <= 0:
            return
        timer = self._timers.pop(key, None)
        loop = asyncio.get_running_loop()
        if timer is not None and not timer.cancelled() and timer.when() > loop.time():
            if timer.when() <= loop.time() + seconds:
                self._timers[key] = timer
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._reconciler.add, key)

    def _forget(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._written.pop(key, None)
        self._troubles.forget(key)
        self._gone(key.partition(" ")[2])

    def _failed(self, key: str, fault: KubernetesFault, seconds: float) -> None:
        source = self._cache.source(key)
        self._troubles.failed(key, _about(source) if source is not None else None, fault, seconds)


def _about(source: AnyJob) -> ObjectRef:
    metadata, dialect = source.metadata, reading.dialect_of(source)
    kind, version = reading.KINDS[dialect], reading.API_VERSIONS[dialect]
    return ObjectRef(kind, metadata.name, metadata.namespace, metadata.uid, version)


def _by_counts_alone(before: JobStatus, after: JobStatus) -> bool:
    """Whether nothing differs that decides anything, or that people wait for."""
    decisive = (
        "phase", "run", "floors", "failures", "evictions", "scale", "reason", "events", "command", "world", "in_a_row",
    )  # fmt: skip
    return all(getattr(before, name) == getattr(after, name) for name in decisive)
