"""What jobs ask of the outside: objects to make, change and delete. The edge implements it, a fake does in tests."""

from __future__ import annotations

from typing import Any, Protocol

from model.job.actions import CreatePod, DeleteCommand, DeletePod, EnsureObject
from model.job.job import Job


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
