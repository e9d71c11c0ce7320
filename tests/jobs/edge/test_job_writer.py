"""On a real API server: what is written for jobs, and what is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from job_cases import job as case
from scheduler_processes import Cluster

from jobs.edge.job_writer import KubernetesJobWriter
from kube.client import KubeClient
from model.fault import KubernetesFault
from model.job.actions import CreatePod, DeleteCommand, DeletePod, EnsureObject, MadeKind
from model.job.job import Job, JobDialect, JobId, Member

pytestmark = pytest.mark.e2e

CRDS = Path(__file__).parent.parent.parent.parent / "deploy/crds/optional"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/sublet.dev/v1alpha1/namespaces/default/trainingjobs"
CORE = "/api/v1/namespaces/default"
SPEC = {
    "jobType": "PyTorchJob",
    "resources": {"minReplicas": 1},
    "template": {"spec": {"containers": [{"name": "main", "image": "image"}]}},
}


def body(kind: str, job: Job, **more: Any) -> dict[str, Any]:
    owner = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "name": "train", "uid": job.uid}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "ownerReferences": [owner]}, **more}


def play(cluster: Cluster, working: Callable[[KubernetesJobWriter, Job], Awaitable[None]]) -> None:
    """With a job that is there."""
    for file in ("sublet/trainingjobs.yaml", "volcano/commands.yaml"):
        cluster.request("POST", DEFINITIONS, yaml.safe_load((CRDS / file).read_text()))
    made = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "train"}, "spec": SPEC}

    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            found = await asyncio.to_thread(_posted, cluster, made)
            identity = JobId(JobDialect.TRAINING, "default", "train")
            meta = found["metadata"]
            job = msgspec.structs.replace(case(), id=identity, uid=meta["uid"], version=meta["resourceVersion"])
            await working(KubernetesJobWriter(client, lambda: {"id_rsa": "secret"}), job)

    asyncio.run(whole())


def _posted(cluster: Cluster, made: dict[str, Any], path: str = JOBS) -> Any:
    """Once the definition is served."""
    for _ in range(100):
        try:
            return cluster.request("POST", path, made)
        except Exception:
            pass
    return cluster.request("POST", path, made)


def test_a_status_of_the_version_that_was_read(cluster: Cluster) -> None:
    """A second write by the same version changes nothing, and says so."""

    async def working(writer: KubernetesJobWriter, job: Job) -> None:
        told = {"phase": "Running", "failures": 1}
        assert await writer.status(job, None, told)
        assert not await writer.status(job, None, {"phase": "Failed"})
        found = await asyncio.to_thread(cluster.request, "GET", f"{JOBS}/train")
        assert found["status"] == told
        newer = msgspec.structs.replace(job, version=found["metadata"]["resourceVersion"])
        assert await writer.status(newer, told, {"phase": "Queued"})
        found = await asyncio.to_thread(cluster.request, "GET", f"{JOBS}/train")
        assert found["status"] == {"phase": "Queued"}
        gone = msgspec.structs.replace(job, id=JobId(JobDialect.TRAINING, "default", "gone"))
        assert not await writer.status(gone, None, told)

    play(cluster, working)


def test_pods_are_made_once_and_deleted_by_their_uid(cluster: Cluster) -> None:
    async def working(writer: KubernetesJobWriter, job: Job) -> None:
        made = body("Pod", job, **SPEC["template"])
        action = CreatePod(Member("worker", 0), lambda member: made)
        for _ in range(2):
            await writer.create_pod(job, action)
        uid = (await asyncio.to_thread(cluster.request, "GET", f"{CORE}/pods/x"))["metadata"]["uid"]
        await writer.delete_pod(job, DeletePod("x", "another"))
        assert (await asyncio.to_thread(cluster.request, "GET", f"{CORE}/pods/x"))["metadata"]["uid"] == uid
        for _ in range(2):
            await writer.delete_pod(job, DeletePod("x", uid))
        assert (await asyncio.to_thread(cluster.request, "GET", f"{CORE}/pods"))["items"] == []

    play(cluster, working)


def test_objects_are_made_changed_and_never_taken(cluster: Cluster) -> None:
    """Of another's object of that name the sentence says what to do."""

    async def working(writer: KubernetesJobWriter, job: Job) -> None:
        for text in ("1", "2"):
            data = {"data": {"a": text}}
            await writer.ensure(job, EnsureObject(MadeKind.CONFIG_MAP, "x", body("ConfigMap", job, **data), data))
        found = await asyncio.to_thread(cluster.request, "GET", f"{CORE}/configmaps/x")
        assert found["data"] == {"a": "2"}
        other = msgspec.structs.replace(job, uid="another")
        data = {"data": {"a": "3"}}
        with pytest.raises(
            KubernetesFault, match="ConfigMap default/x: is not of TrainingJob default/train, which needs"
        ):
            await writer.ensure(other, EnsureObject(MadeKind.CONFIG_MAP, "x", body("ConfigMap", other, **data), data))
        found = await asyncio.to_thread(cluster.request, "GET", f"{CORE}/configmaps/x")
        assert found["data"] == {"a": "2"}

    play(cluster, working)


def test_keys_are_made_with_their_secret_and_stay(cluster: Cluster) -> None:
    async def working(writer: KubernetesJobWriter, job: Job) -> None:
        action = EnsureObject(MadeKind.SECRET, "x", body("Secret", job, stringData={"config": "c"}))
        for _ in range(2):
            await writer.ensure(job, action)
        found = await asyncio.to_thread(cluster.request, "GET", f"{CORE}/secrets/x")
        assert sorted(found["data"]) == ["config", "id_rsa"]

    play(cluster, working)


def test_a_job_is_deleted_once(cluster: Cluster) -> None:
    async def working(writer: KubernetesJobWriter, job: Job) -> None:
        await writer.delete_job(msgspec.structs.replace(job, uid="another"))
        assert len((await asyncio.to_thread(cluster.request, "GET", JOBS))["items"]) == 1
        for _ in range(2):
            await writer.delete_job(job)
        assert (await asyncio.to_thread(cluster.request, "GET", JOBS))["items"] == []

    play(cluster, working)


def test_a_command_is_deleted_by_its_uid(cluster: Cluster) -> None:
    async def working(writer: KubernetesJobWriter, job: Job) -> None:
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": job.uid}
        order = {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"name": "c"},
            "target": target,
        }
        await asyncio.to_thread(_posted, cluster, order | {"action": "AbortJob"}, COMMANDS)
        uid = (await asyncio.to_thread(cluster.request, "GET", f"{COMMANDS}/c"))["metadata"]["uid"]
        await writer.delete_command(job, DeleteCommand("c", "another"))
        assert len((await asyncio.to_thread(cluster.request, "GET", COMMANDS))["items"]) == 1
        for _ in range(2):
            await writer.delete_command(job, DeleteCommand("c", uid))
        assert (await asyncio.to_thread(cluster.request, "GET", COMMANDS))["items"] == []

    play(cluster, working)
