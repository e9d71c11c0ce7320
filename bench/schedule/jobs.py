"""Jobs end to end: from the creation of TrainingJobs to the bindings of all their pods, through the embedded API server
and the real scheduler, whose leader makes the pods.

The baseline is the same client that creates the same pods, and a PodGroup for each gang, itself.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bench.schedule.cluster import SCHEDULER
from bench.schedule.effort import SchedulingEffort, tell
from bench.schedule.end import EndFault, ListedPod, WatchedPod, make_node, running_cluster
from kube.client import KubeClient
from model.fault import KubernetesFault
from scheduler.settings import SchedulerSettings

MEMBERS = 8
_PODS = "/api/v1/namespaces/default/pods"
_JOBS = "/apis/sublet.dev/v1alpha1/namespaces/default/trainingjobs"
_GROUPS = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_FILE = Path(__file__).parent.parent.parent / "deploy/crds/optional/sublet/trainingjobs.yaml"
_WORKERS = 16
_NOTICED_SECONDS = 5.0
"""By then the scheduler follows a kind that is new."""
_BOUND_SECONDS = 600.0
_IDLE_SECONDS = 120.0


class JobsEndToEnd(msgspec.Struct, frozen=True):
    """Pods bound a second from the first request on, round by round: made by the controller, and by the client."""

    nodes: int
    jobs: int
    members: int
    ours: tuple[float, ...]
    alone: tuple[float, ...]


def measure_jobs(effort: SchedulingEffort) -> JobsEndToEnd:
    """Raises a Fault where a program does not come up, or a pod stays unbound."""
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        return asyncio.run(_measured(Path(folder) / "run", effort))


async def _measured(folder: Path, effort: SchedulingEffort) -> JobsEndToEnd:
    async with running_cluster(folder, SchedulerSettings().concurrent_binds) as client:
        await client.create(_DEFINITIONS, yaml.safe_load(_FILE.read_text()))
        for number in range(effort.end_nodes):
            await make_node(client, f"node-{number:03d}")
        await asyncio.sleep(_NOTICED_SECONDS)
        # Connections, and what is compiled or looked up once, are in nobody's figure.
        await _round(client, "warm", min(4, effort.jobs), own=True)
        pairs = []
        for number in range(effort.end_rounds):
            tell(f"{effort.jobs} jobs of {MEMBERS} pods, round {number + 1}")
            ours = await _round(client, f"own-{number}", effort.jobs, own=True)
            pairs.append((ours, await _round(client, f"alone-{number}", effort.jobs, own=False)))
        own, alone = zip(*pairs, strict=True)
        return JobsEndToEnd(effort.end_nodes, effort.jobs, MEMBERS, own, alone)


async def _round(client: KubeClient, prefix: str, jobs: int, *, own: bool) -> float:
    """Create all, see all bound, delete all; `own`: the controller makes the pods, else the client does."""
    since = (await client.get(_PODS, dict, limit=1))["metadata"]["resourceVersion"]
    watching = asyncio.create_task(_all_bound(client, f"{prefix}-", jobs * MEMBERS, since))
    began = time.monotonic()
    await _each(jobs, lambda number: _submit(client, f"{prefix}-{number}", own=own))
    try:
        ended = await asyncio.wait_for(watching, _BOUND_SECONDS)
    except TimeoutError:
        raise EndFault("jobs", f"not all of {jobs * MEMBERS} pods were bound in time") from None
    await _each(jobs, lambda number: _clean(client, f"{prefix}-{number}", own=own))
    while await _left(client, prefix):
        await asyncio.sleep(0.5)
    return jobs * MEMBERS / (ended - began)


async def _each(jobs: int, work: Any) -> None:
    left = iter(range(jobs))

    async def one() -> None:
        for number in left:
            await work(number)

    await asyncio.gather(*(one() for _ in range(_WORKERS)))


async def _submit(client: KubeClient, name: str, *, own: bool) -> None:
    if own:
        await client.create(_JOBS, _job(name))
        return
    group = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
    await client.create(_GROUPS, {**group, "spec": {"minMember": MEMBERS}})
    for body in _pods(name):
        await client.create(_PODS, body)


async def _clean(client: KubeClient, name: str, *, own: bool) -> None:
    if own:
        await client.delete(f"{_JOBS}/{name}")
    else:
        await client.delete(f"{_GROUPS}/{name}")
    for index in range(MEMBERS):
        try:
            await client.delete(f"{_PODS}/{name}-worker-{index}", grace_seconds=0)
        except KubernetesFault as fault:
            if fault.status != 404:
                raise


async def _left(client: KubeClient, prefix: str) -> bool:
    found = await client.get(_PODS, _Pods)
    return any(each.metadata.name.startswith(prefix) for each in found.items or ())


async def _all_bound(client: KubeClient, prefix: str, number: int, since: str) -> float:
    """When the last of so many pods was seen bound (monotonic seconds)."""
    bound: set[str] = set()
    query: dict[str, str | int] = {"watch": "true", "resourceVersion": since}
    async for line in client.stream(_PODS, query, _IDLE_SECONDS):
        pod = msgspec.json.decode(line, type=WatchedPod).object
        if pod.spec.node_name and pod.metadata.name.startswith(prefix):
            bound.add(pod.metadata.name)
            if len(bound) == number:
                return time.monotonic()
    raise EndFault("jobs", f"{len(bound)} of {number} pods were bound when the watch ended")


class _Pods(msgspec.Struct, frozen=True):
    items: list[ListedPod] | None = None


def _container() -> dict[str, Any]:
    return {"name": "main", "image": "bench", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}


def _job(name: str) -> dict[str, Any]:
    spec = {
        "jobType": "PyTorchJob",
        "resources": {"minReplicas": MEMBERS},
        "schedulingConfig": {"schedulerName": SCHEDULER},
        "template": {"spec": {"containers": [_container()]}},
    }
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": spec}


def _pods(name: str) -> Iterator[dict[str, Any]]:
    labels = {"pod-group.scheduling.sigs.k8s.io": name, "sublet.dev/queue": "default"}
    for index in range(MEMBERS):
        metadata = {"name": f"{name}-worker-{index}", "labels": labels}
        spec = {"schedulerName": SCHEDULER, "containers": [_container()]}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
