"""Kubernetes: statuses, pods and objects of jobs are written there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kube import objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.jobs.reading import RESOURCES
from kube.dialects.jobs.volcano_command import RESOURCE as COMMANDS
from kube.mergepatch import merge_patch
from model.fault import KubernetesFault
from model.job.actions import CreatePod, DeleteCommand, DeletePod, EnsureObject, MadeKind
from model.job.job import Job

_RESOURCES = {
    MadeKind.POD_GROUP: "scheduling.sigs.k8s.io/v1alpha1/podgroups",
    MadeKind.VOLCANO_POD_GROUP: "scheduling.volcano.sh/v1beta1/podgroups",
    MadeKind.SERVICE: "v1/services",
    MadeKind.CONFIG_MAP: "v1/configmaps",
    MadeKind.SECRET: "v1/secrets",
    MadeKind.NETWORK_POLICY: "networking.k8s.io/v1/networkpolicies",
}
_PODS = "v1/pods"


class _Owned(msgspec.Struct, frozen=True):
    metadata: objects.Metadata = objects.Metadata()


class KubernetesJobWriter:
    """jobs.ports.JobWriter; `new_keys` makes a pair of SSH keys, by name of file."""

    def __init__(self, client: KubeClient, new_keys: Callable[[], Mapping[str, str]]) -> None:
        self._client = client
        self._new_keys = new_keys

    async def status(self, job: Job, before: Any, wanted: dict[str, Any]) -> bool:
        """A merge patch with the resourceVersion that was read: a conflict says that another was faster."""
        path = path_of(RESOURCES[job.id.dialect], namespace=job.id.namespace, name=job.id.name, subresource="status")
        told = merge_patch(before if isinstance(before, Mapping) else {}, wanted)
        return await self._client.patch_as_read(path, job.uid, job.version, {"status": told})

    async def create_pod(self, job: Job, action: CreatePod) -> None:
        await self._create(job, _PODS, action.body)

    async def delete_pod(self, job: Job, action: DeletePod) -> None:
        """With its uid, so that the pod of the next run is never hit."""
        await self._client.delete_as_read(path_of(_PODS, namespace=job.id.namespace, name=action.name), action.uid)

    async def delete_command(self, job: Job, action: DeleteCommand) -> None:
        await self._client.delete_as_read(path_of(COMMANDS, namespace=job.id.namespace, name=action.name), action.uid)

    async def ensure(self, job: Job, action: EnsureObject) -> None:
        """Keys are made where none are: whose they are is not asked of a Secret, since nobody may read those."""
        resource, body = _RESOURCES[action.kind], action.body
        if action.kind is MadeKind.SECRET:
            await self._client.create_missing(
                path_of(resource, namespace=job.id.namespace), await self._with_keys(body)
            )
        elif not await self._create(job, resource, body) and action.changes:
            path = path_of(resource, namespace=job.id.namespace, name=action.name)
            await self._client.patch(path, action.changes, PatchKind.MERGE)

    async def delete_job(self, job: Job) -> None:
        path = path_of(RESOURCES[job.id.dialect], namespace=job.id.namespace, name=job.id.name)
        await self._client.delete_as_read(path, job.uid)

    async def _create(self, job: Job, resource: str, body: Mapping[str, Any]) -> bool:
        """False where the job has it already. Raises KubernetesFault where the name is another's: for a job that was
        made anew that is so until what the old one had is gone.
        """
        if await self._client.create_missing(path_of(resource, namespace=job.id.namespace), body):
            return True
        name = body["metadata"]["name"]
        found = await self._client.get(path_of(resource, namespace=job.id.namespace, name=name), _Owned)
        if job.uid not in {each.uid for each in found.metadata.owner_references or ()}:
            where = f"{body['kind']} {job.id.namespace}/{name}"
            raise KubernetesFault(
                where, f"is not of {job.id.text}, which needs this name", "delete it, or rename the job"
            )
        return False

    async def _with_keys(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The Secret with a new pair, made in a thread: it takes some tenths of a second."""
        return {**body, "stringData": {**body["stringData"], **await asyncio.to_thread(self._new_keys)}}
