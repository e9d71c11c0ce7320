"""Kubernetes: Workloads are made and changed there, and jobs that wait whole are started and stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.client import KubeClient, path_of
from kube.dialects.suspended.reading import SHAPES
from kube.dialects.suspended.workload import RESOURCE
from model.fault import KubernetesFault
from model.suspended.job import SuspendedJob
from model.suspended.workload import WorkloadObject

_PODS = "v1/pods"
_BAD_REQUEST = 400


class KubernetesSuspendedWriter:
    """jobs.ports.SuspendedWriter by merge patches with the resourceVersion that was read."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def try_pod(self, job: SuspendedJob, body: Mapping[str, Any]) -> None:
        """A webhook that knows no dry run answers 400, which says nothing of the pod."""
        path, told = path_of(_PODS, namespace=job.namespace), msgspec.json.encode(body)
        try:
            await self._client.request("POST", path, query={"dryRun": "All"}, body=told)
        except KubernetesFault as fault:
            if fault.status != _BAD_REQUEST:
                raise

    async def make_workload(self, job: SuspendedJob, body: Mapping[str, Any]) -> None:
        await self._client.create_missing(path_of(RESOURCE, namespace=job.namespace), body)

    async def delete_workload(self, workload: WorkloadObject) -> None:
        path = path_of(RESOURCE, namespace=workload.namespace, name=workload.name)
        await self._client.delete_as_read(path, workload.uid)

    async def workload_spec(self, workload: WorkloadObject, spec: Mapping[str, Any]) -> bool:
        path = path_of(RESOURCE, namespace=workload.namespace, name=workload.name)
        return await self._client.patch_as_read(path, workload.uid, workload.version, {"spec": spec})

    async def workload_status(self, workload: WorkloadObject, status: Mapping[str, Any]) -> bool:
        path = path_of(RESOURCE, namespace=workload.namespace, name=workload.name, subresource="status")
        return await self._client.patch_as_read(path, workload.uid, workload.version, {"status": status})

    async def job_spec(self, job: SuspendedJob, spec: Mapping[str, Any]) -> bool:
        path = path_of(SHAPES[job.kind].resource, namespace=job.namespace, name=job.name)
        return await self._client.patch_as_read(path, job.uid, job.version, {"spec": spec})
