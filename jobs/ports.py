"""What jobs ask of the outside: objects to make, change and delete. The edge implements it, a fake does in tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from model.job.actions import CreatePod, DeleteCommand, DeletePod, EnsureObject
from model.job.job import Job
from model.suspended.job import SuspendedJob
from model.suspended.workload import WorkloadObject


class JobWriter(Protocol):
    """Writes for one job at a time. Each raises KubernetesFault where the API server refuses, or does not answer."""

    async def status(self, job: Job, before: Any, wanted: dict[str, Any]) -> bool:
        """The status `wanted` in the place of `before`, only while the job's object is the very version that was read.

        False where it is another by now, or gone.
        """
        ...

    async def create_pod(self, job: Job, action: CreatePod) -> None:
        """One that is there already, and is this job's, is done; another's pod of that name is a fault."""
        ...

    async def delete_pod(self, job: Job, action: DeletePod) -> None:
        """One that is gone, or is another by now, is done."""
        ...

    async def ensure(self, job: Job, action: EnsureObject) -> None:
        """Made, or changed; another's object of that name is a fault."""
        ...

    async def delete_job(self, job: Job) -> None:
        """The object itself; what it owns goes with it."""
        ...

    async def delete_command(self, job: Job, action: DeleteCommand) -> None:
        """One that is gone, or is another by now, is done."""
        ...


class SuspendedWriter(Protocol):
    """Writes for jobs that wait whole. Each change is made only while the object is the very version that was read, and
    returns False where it is another by now, or gone. Raises KubernetesFault where the API server refuses, or does not
    answer.
    """

    async def try_pod(self, job: SuspendedJob, body: Mapping[str, Any]) -> None:
        """Ask whether such a pod would be let in, and make none. Raises KubernetesFault where it would not."""
        ...

    async def make_workload(self, job: SuspendedJob, body: Mapping[str, Any]) -> None:
        """One that is there already is done."""
        ...

    async def delete_workload(self, workload: WorkloadObject) -> None:
        """One that is gone, or is another by now, is done."""
        ...

    async def workload_spec(self, workload: WorkloadObject, spec: Mapping[str, Any]) -> bool:
        """Merge this into the Workload's spec."""
        ...

    async def workload_status(self, workload: WorkloadObject, status: Mapping[str, Any]) -> bool:
        """Merge this into the Workload's status."""
        ...

    async def job_spec(self, job: SuspendedJob, spec: Mapping[str, Any]) -> bool:
        """Merge this into the job's spec; whatever version it is, where none was read."""
        ...
