"""The controller of jobs that wait whole: follows them and their Workloads, and writes what the plan says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from jobs.controllers.look_limit import LookLimit
from jobs.controllers.suspended_cache import SuspendedCache
from jobs.controllers.suspended_writes import SuspendedWrites, about
from jobs.controllers.troubles import Troubles
from jobs.core.suspended.actions import SuspendedPlan
from jobs.core.suspended.plan import plan
from jobs.core.suspended.policy import SuspendedFacts, SuspendedPolicy
from jobs.ports import SuspendedWriter
from kube import objects
from kube.client import KubeClient
from kube.dialects.suspended import reading
from kube.dialects.suspended import workload as words
from kube.events import EventRecorder
from kube.informer import SOON_SECONDS, Informer
from kube.reconcile import Reconciler
from model.fault import KubernetesFault
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
        self._keeps = keeps
        self._clock = clock
        self._policy = policy or SuspendedPolicy()
        self._decide = decide
        self._reconciler = Reconciler(self._reconcile, leading, self._failed, workers=_WORKERS)
        self._cache = cache = SuspendedCache(self._reconciler.add)
        self._troubles = Troubles(recorder)
        self._writes = SuspendedWrites(writer, recorder, self._troubles)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._looks = LookLimit()
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
                objects.UnreadJob,
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
        """A job about which we fail ourselves is set aside until it changes, and holds up no other."""
        try:
            await self._look(key)
        except KubernetesFault:
            raise
        except Exception as error:
            if (job := self._cache.unread(key)) is not None:
                self._troubles.set_aside(key, about(job), error)

    async def _look(self, key: str) -> None:
        unread = self._cache.unread(key)
        if unread is None:
            await self._stray(key)
            return
        if not await self._keeps(words.DEFINITION):
            return
        namespace, now = unread.namespace, asyncio.get_running_loop().time()
        rest = self._looks.rest(namespace, now)
        if not self._cache.take_urgent(key) and rest > 0:
            self._look_again(key, rest)
            return
        found = self._cache.job(key)
        if found is None:
            return
        self._looks.looked(namespace, 0, now, spec_bytes=self._cache.spec_bytes(key))
        job, source = found
        known = self._cache.workload(job.uid)
        workload = known[0] if known is not None else None
        wanted = self._decide(job, workload, self._cache.facts, self._policy, self._clock())
        if wanted.action is not None:
            await self._reconciler.led()
            await self._writes.carry_out(key, job, source, known, wanted.action)
        self._look_again(key, wanted.again_seconds)

    async def _stray(self, key: str) -> None:
        """A job that is gone, or names no queue any more: whoever may change it is not spared from eviction by that.

        The Workload of one that is gone goes, too: its author may not delete it, and no quota of his counts it.
        """
        orphan = self._cache.orphan(key)
        if orphan is not None and await self._keeps(words.DEFINITION):
            await self._reconciler.led()
            await self._writes.delete_orphan(orphan)
            return
        job = self._cache.stray(key)
        if job is None:
            self._forget(key)
        elif await self._keeps(words.DEFINITION):
            await self._reconciler.led()
            await self._writes.stop_stray(job)

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
        found = self._cache.unread(key)
        self._troubles.failed(key, about(found) if found is not None else None, fault, seconds)
