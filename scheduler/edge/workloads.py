"""Statuses of Kueue's Workloads, written on the version that was read."""

from __future__ import annotations

import time
from collections.abc import Callable

from kube import objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.suspended.workload import RESOURCE, status_patch, workload
from model.fault import KubernetesFault
from model.suspended import transitions
from model.suspended.workload import EvictionReason, WorkloadAdmission, WorkloadObject, WorkloadStatus
from scheduler.ports import NamedObject

_REASONS = {each.value: each for each in EvictionReason}


class WorkloadStatuses:
    """Each write reads the Workload first, and fails where it has changed since."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def admit(self, named: NamedObject, admission: WorkloadAdmission) -> None:
        """Raises KubernetesFault, also where it waits no more."""

        def change(found: WorkloadObject) -> WorkloadStatus | None:
            if not found.waiting:
                raise KubernetesFault(f"Workload {named.key}", "waits no more", status=409)
            return transitions.admitted(found.status, admission, time.time())

        await self._write(named, change)

    async def pending(self, named: NamedObject, message: str) -> None:
        """What it waits for. Raises KubernetesFault."""

        def change(found: WorkloadObject) -> WorkloadStatus | None:
            return transitions.pending(found.status, message, time.time()) if found.waiting else None

        await self._write(named, change)

    async def evict(self, named: NamedObject, reason: str, message: str) -> None:
        """It is to go; done where it is not admitted. Raises KubernetesFault."""

        def change(found: WorkloadObject) -> WorkloadStatus | None:
            known = _REASONS.get(reason, EvictionReason.PREEMPTED)
            return transitions.evicted(found.status, known, message, time.time()) if found.status.admitted else None

        await self._write(named, change)

    async def _write(self, named: NamedObject, change: Callable[[WorkloadObject], WorkloadStatus | None]) -> None:
        path = path_of(RESOURCE, namespace=named.namespace, name=named.name)
        raw = await self._client.get(path, objects.Workload)
        found = workload(raw)
        if found.uid != named.uid:
            raise KubernetesFault(f"Workload {named.key}", "is another by now", status=404)
        status = change(found)
        patch = status_patch(raw.status, status) if status is not None else {}
        if patch:
            metadata = {"uid": found.uid, "resourceVersion": found.version}
            await self._client.patch(f"{path}/status", {"metadata": metadata, "status": patch}, PatchKind.MERGE)
