"""The controller of jobs that wait whole: follows them and their Workloads, and writes what the plan says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from jobs.controllers.suspended_cache import SuspendedCache
from jobs.controllers.troubles import Troubles
from jobs.core.suspended.actions import (
    Deactivate,
    MakeWorkload,
    ReshapeWorkload,
    RestoreJob,
    StartJob,
    StopJob,
    SuspendedAction,
    SuspendedPlan,
    Tell,
    WriteStatus,
)
from jobs.core.suspended.plan import plan
from jobs.core.suspended.policy import PriorityFound, SuspendedFacts, SuspendedPolicy
from jobs.ports import SuspendedWriter
from kube import objects
from kube.client import KubeClient
from kube.dialects.suspended import reading
from kube.dialects.suspended import workload as words
from kube.events import EventRecorder, ObjectRef
from kube.informer import SOON_SECONDS, Informer
from kube.reconcile import Reconciler
from model.fault import ConfigurationFault, KubernetesFault
from model.suspended.job import QUEUE_NAME, SuspendedJob
from model.suspended.workload import WorkloadObject

_WORKERS = 8
_CLASSES = "scheduling.k8s.io/v1/priorityclasses"
_WORKLOAD_CLASSES = "kueue.x-k8s.io/v1beta1/workloadpriorityclasses"
_FLAVORS = "kueue.x-k8s.io/v1beta1/resourceflavors"

Decide = Callable[[SuspendedJob, WorkloadObject | None, SuspendedFacts, SuspendedPolicy, float], SuspendedPlan]


class SuspendedJobs:
    """`keeps` tells of a definition whether its objects are ours to act on; `decide` is the plan."""

    def __init__(
        self,
        client: KubeClient,
        writer: SuspendedWriter,
        recorder: EventRecorder,
        leading: Callable[[], bool],
        keeps: Callable[[str], Awaitable[bool]],
        clock: Callable[[], float],
        *,
        policy: SuspendedPolicy | None = None,
        decide: Decide = plan,
    ) -> None:
        self._writer = writer
        self._recorder = recorder
        self._keeps = keeps
        self._clock = clock
        self._policy = policy or SuspendedPolicy()
        self._decide = decide
        self._reconciler = Reconciler(self._reconcile, leading, self._failed, workers=_WORKERS)
        self._cache = cache = SuspendedCache(self._reconciler.add)
        self._troubles = Troubles(recorder)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        soon = SOON_SECONDS
        self._around: tuple[Informer[objects.PriorityClass] | Informer[objects.UntypedObject], ...] = (
            Informer(client, _CLASSES, objects.PriorityClass, on_change=cache.saw_class),
            Informer(
                client,
                _WORKLOAD_CLASSES,
                objects.PriorityClass,
                on_change=cache.saw_workload_class,
                undefined_seconds=soon,
            ),
            Informer(client, _FLAVORS, objects.UntypedObject, on_change=cache.saw_flavor, undefined_seconds=soon),
        )
        self._workloads = Informer(
            client, words.RESOURCE, objects.Workload, on_change=cache.saw_workload, undefined_seconds=soon
        )
        self._jobs = tuple(
            Informer(
                client,
                shape.resource,
                objects.UntypedObject,
                label_selector=QUEUE_NAME,
                on_change=partial(cache.saw_job, kind),
                undefined_seconds=soon,
            )
            for kind, shape in reading.SHAPES.items()
        )

    async def run(self) -> None:
        """Never returns, unless there is nothing to do. Jobs are listed last: one whose Workload is not known yet would
        be stopped.
        """
        if not self._policy.enabled:
            return
        async with asyncio.TaskGroup() as group:
            for informers in (self._around, (self._workloads,), self._jobs):
                for informer in informers:
                    group.create_task(informer.run())
                for informer in informers:
                    await informer.synced.wait()
            group.create_task(self._reconciler.run())

    async def _reconcile(self, key: str) -> None:
        found = self._cache.job(key)
        if found is None:
            self._forget(key)
            return
        if not await self._keeps(words.DEFINITION):
            return
        job, source = found
        known = self._cache.workload(job.uid)
        wanted = self._planned(key, job, known[0] if known is not None else None)
        if wanted is None:
            return
        if wanted.action is not None:
            await self._reconciler.led()
            await self._act(key, job, source, known, wanted.action)
        self._look_again(key, wanted.again_seconds)

    def _planned(self, key: str, job: SuspendedJob, workload: WorkloadObject | None) -> SuspendedPlan | None:
        """None for a job about which we fail ourselves: it is set aside until it changes, and holds up no other."""
        try:
            return self._decide(job, workload, self._cache.facts, self._policy, self._clock())
        except Exception as error:
            self._troubles.set_aside(key, _about(job), error)
            return None

    async def _act(
        self,
        key: str,
        job: SuspendedJob,
        source: objects.UntypedObject,
        known: tuple[WorkloadObject, objects.Workload] | None,
        action: SuspendedAction,
    ) -> None:
        match action:
            case Tell(reason, message):
                self._troubles.tell(key, _about(job), reason, message)
            case MakeWorkload(priority):
                made = words.body(job, reading.owner_reference(job), _spec(job, priority))
                await self._writer.make_workload(job, made)
            case StopJob():
                if await self._writer.job_spec(job, reading.stop_patch(job, source.spec)):
                    self._recorder.record(_about(job), "Stopped", "it is suspended until its queue admits it")
            case _ if known is not None:
                await self._act_on_workload(key, job, source, known, action)

    async def _act_on_workload(
        self,
        key: str,
        job: SuspendedJob,
        source: objects.UntypedObject,
        known: tuple[WorkloadObject, objects.Workload],
        action: SuspendedAction,
    ) -> None:
        workload, raw = known
        match action:
            case WriteStatus(status, reason, message):
                patch = words.status_patch(raw.status, status)
                if await self._writer.workload_status(workload, patch) and reason:
                    self._recorder.record(_about(job), reason, message)
            case Deactivate():
                await self._writer.workload_spec(workload, {"active": False})
            case ReshapeWorkload(priority):
                await self._writer.workload_spec(workload, _spec(job, priority))
            case RestoreJob():
                await self._writer.job_spec(job, reading.restore_patch(job, source.spec, workload))
            case StartJob(injections):
                try:
                    patch = reading.start_patch(job, source.spec, workload.name, injections)
                except ConfigurationFault as fault:
                    self._troubles.tell(key, _about(job), "FlavorMismatch", str(fault))
                    return
                if await self._writer.job_spec(job, patch):
                    admission = workload.status.admission
                    queue = admission.queue if admission is not None else ""
                    self._recorder.record(_about(job), "Started", f"Admitted by clusterQueue {queue}")

    def _look_again(self, key: str, seconds: float) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if seconds > 0:
            self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._reconciler.add, key)

    def _forget(self, key: str) -> None:
        self._look_again(key, 0.0)
        self._troubles.forget(key)

    def _failed(self, key: str, fault: KubernetesFault, seconds: float) -> None:
        found = self._cache.job(key)
        self._troubles.failed(key, _about(found[0]) if found is not None else None, fault, seconds)


def _spec(job: SuspendedJob, priority: PriorityFound) -> dict[str, object]:
    source = words.CLASS_SOURCE if priority.of_workloads else words.POD_CLASS_SOURCE
    return words.spec_of(job, priority.value, priority.name, source)


def _about(job: SuspendedJob) -> ObjectRef:
    version = reading.SHAPES[job.kind].api_version
    return ObjectRef(job.kind.value, job.name, job.namespace, job.uid, version)
