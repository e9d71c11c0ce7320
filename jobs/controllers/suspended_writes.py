"""Actions for jobs that wait whole, carried out: the patches, and the Events that tell of them."""

from __future__ import annotations

from jobs.controllers.troubles import Troubles
from jobs.core.suspended.actions import (
    Deactivate,
    MakeWorkload,
    ReshapeWorkload,
    RestoreJob,
    StartJob,
    StopJob,
    SuspendedAction,
    Tell,
    WriteStatus,
)
from jobs.core.suspended.policy import PriorityFound
from jobs.ports import SuspendedWriter
from kube import objects
from kube.dialects.suspended import reading
from kube.dialects.suspended import workload as words
from kube.dialects.suspended.templates import pod_of
from kube.events import EventRecorder, ObjectRef
from model.fault import ConfigurationFault
from model.suspended.job import SuspendedJob
from model.suspended.workload import WorkloadObject


class SuspendedWrites:
    """One write an action."""

    def __init__(self, writer: SuspendedWriter, recorder: EventRecorder, troubles: Troubles) -> None:
        self._writer = writer
        self._recorder = recorder
        self._troubles = troubles

    async def carry_out(
        self,
        key: str,
        job: SuspendedJob,
        source: objects.UntypedObject,
        known: tuple[WorkloadObject, objects.Workload] | None,
        action: SuspendedAction,
    ) -> None:
        """`source` is the job's object; `known` its Workload, with its object. Raises KubernetesFault."""
        match action:
            case Tell(reason, message):
                self._troubles.tell(key, about(job), reason, message)
            case MakeWorkload(priority):
                await self._try(job)
                made = words.body(job, reading.owner_reference(job), _spec(job, priority))
                await self._writer.make_workload(job, made)
            case StopJob():
                if await self._writer.job_spec(job, reading.stop_patch(source)):
                    self._recorder.record(about(job), "Stopped", "it is suspended until its queue admits it")
            case _ if known is not None:
                await self._act_on_workload(key, job, source, known, action)

    async def stop_stray(self, job: SuspendedJob) -> None:
        """A job that was evicted, and of which nothing but its name is known. Raises KubernetesFault."""
        if await self._writer.job_spec(job, {"suspend": True}):
            told = (
                "its Workload was evicted, and it names no queue any more; name one, and its queue may admit it again"
            )
            self._recorder.record(about(job), "Stopped", told)

    async def delete_orphan(self, workload: WorkloadObject) -> None:
        """One whose job is gone. Raises KubernetesFault."""
        await self._writer.delete_workload(workload)

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
                    self._recorder.record(about(job), reason, message)
            case Deactivate():
                await self._writer.workload_spec(workload, {"active": False})
            case ReshapeWorkload(priority):
                await self._try(job)
                await self._writer.workload_spec(workload, _spec(job, priority))
            case RestoreJob():
                await self._writer.job_spec(job, reading.restore_patch(job, source, workload))
            case StartJob(injections):
                try:
                    patch = reading.start_patch(job, source, workload.name, injections)
                except ConfigurationFault as fault:
                    self._troubles.tell(key, about(job), "FlavorMismatch", str(fault))
                    return
                if await self._writer.job_spec(job, patch):
                    admission = workload.status.admission
                    queue = admission.queue if admission is not None else ""
                    self._recorder.record(about(job), "Started", f"Admitted by clusterQueue {queue}")

    async def _try(self, job: SuspendedJob) -> None:
        """Quotas, Pod Security and policies are asked of pods, and a job that waits whole has none: what its namespace
        may not have would go before others, and keep seats from them.
        """
        for pods in job.pod_sets:
            await self._writer.try_pod(job, pod_of(job, pods))


def about(job: SuspendedJob) -> ObjectRef:
    """What Events are about."""
    version = reading.SHAPES[job.kind].api_version
    return ObjectRef(job.kind.value, job.name, job.namespace, job.uid, version)


def _spec(job: SuspendedJob, priority: PriorityFound) -> dict[str, object]:
    source = words.CLASS_SOURCE if priority.of_workloads else words.POD_CLASS_SOURCE
    return words.spec_of(job, priority.value, priority.name, source)
