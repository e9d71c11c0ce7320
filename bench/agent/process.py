"""The whole agent as a process beside a real API server and a full node: CPU, memory and late ticks."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import psutil

from bench.agent.workers import Workers
from bench.hierarchies import Hierarchies
from bench.tree import CONTAINERS_PER_POD, BenchTree, PodCgroups, place, tier_of
from embedded.child_process import Child
from kube.client import KubeClient
from local.accounts import write_kubeconfigs, write_secrets
from local.choices import Choices
from local.programs import api_address, embedded_programs
from local.rundir import RunDirectory

_NODE = "bench"
_PODS = "/api/v1/namespaces/default/pods"
_READY_BOUND_SECONDS = 60.0
_STOP_BOUND_SECONDS = 10.0
_REQUESTS_AT_ONCE = 16


class AgentResult(msgspec.Struct, frozen=True):
    """`cpu_pct` of one core over `seconds`; counts are None where the agent does not publish such a metric."""

    pods: int
    seconds: float
    cpu_pct: float
    rss_mib: float
    ticks: int | None
    late_ticks: int | None
    unmeasured_pods: int | None


class Duration(msgspec.Struct, frozen=True):
    """The agent settles for `warm_seconds` and is then measured for `seconds`."""

    warm_seconds: float = 20.0
    seconds: float = 60.0


def measure_agent(hierarchies: Hierarchies, pods: int, active: int, duration: Duration) -> AgentResult:
    """Start everything, measure, stop everything. Raises a Fault where a program does not come up."""
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        return asyncio.run(_measure(Path(folder), hierarchies, pods, active, duration))


async def _measure(folder: Path, hierarchies: Hierarchies, pods: int, active: int, duration: Duration) -> AgentResult:
    async with AsyncExitStack() as stack:
        run = stack.enter_context(RunDirectory(folder / "run"))
        client = await _api_server(stack, run)
        places = await create_objects(client, pods)
        tree = stack.enter_context(BenchTree(hierarchies, places))
        stack.enter_context(Workers(tree, active))
        agent = await _started(stack, run, "agent", _agent_command(run, tree))
        addresses = await agent.wait_ready(_READY_BOUND_SECONDS)
        await asyncio.sleep(duration.warm_seconds)
        return await _observe(psutil.Process(agent.pid), str(addresses["http"]), pods, duration.seconds)


async def _api_server(stack: AsyncExitStack, run: RunDirectory) -> KubeClient:
    """The embedded API server over TLS on loopback, and its administrator's client."""
    choices = Choices(_NODE, "bench")
    tokens = write_secrets(run, choices)
    (program,) = [program for program in embedded_programs(run, choices) if program.name == "apiserver"]
    server = await _started(stack, run, program.name, program.argv({}))
    bound = {program.name: await server.wait_ready(program.ready_bound_seconds)}
    write_kubeconfigs(run, api_address(bound), tokens)
    return await stack.enter_async_context(await KubeClient.connect(run.kubeconfig, "sublet-bench"))


async def _started(stack: AsyncExitStack, run: RunDirectory, name: str, command: list[str]) -> Child:
    child = await Child.start(name, command, run.log_of(name), run.ready_file_of(name))
    stack.push_async_callback(child.stop, _STOP_BOUND_SECONDS)
    return child


def _agent_command(run: RunDirectory, tree: BenchTree) -> list[str]:
    return [
        *(sys.executable, "-m", "agent"),
        *("--kubeconfig", str(run.kubeconfig)),
        *("--node-name", _NODE),
        *("--kubepods", tree.kubepods),
        *("--state-file", str(run.path / "agent.state")),
        *("--socket", str(run.agent_socket)),
        *("--grpc-listen", "127.0.0.1:0"),
        *("--http-listen", "127.0.0.1:0"),
        *("--ready-file", str(run.ready_file_of("agent"))),
    ]


async def _observe(process: psutil.Process, http: str, pods: int, seconds: float) -> AgentResult:
    loop = asyncio.get_running_loop()
    before, counted, begun = process.cpu_times(), await _metrics(http), loop.time()
    await asyncio.sleep(seconds)
    after, counts, ended = process.cpu_times(), await _metrics(http), loop.time()
    used = after.user + after.system - before.user - before.system
    return AgentResult(
        pods=pods,
        seconds=round(ended - begun, 1),
        cpu_pct=100 * used / (ended - begun),
        rss_mib=process.memory_info().rss / 2**20,
        ticks=_grown(counted, counts, "sublet_agent_ticks_total"),
        late_ticks=_grown(counted, counts, "sublet_agent_late_ticks_total"),
        unmeasured_pods=counts.get("sublet_agent_unmeasured_pods"),
    )


async def _metrics(address: str) -> dict[str, int]:
    """The agent's metrics that have no label, rounded down."""

    def fetch() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
            return str(response.read().decode())

    lines = (await asyncio.to_thread(fetch)).splitlines()
    pairs = [line.split(" ") for line in lines if line and line[0] != "#" and "{" not in line]
    return {name: int(float(value)) for name, value in pairs}


def _grown(before: dict[str, int], after: dict[str, int], name: str) -> int | None:
    return after[name] - before[name] if name in before and name in after else None


async def create_objects(client: KubeClient, pods: int) -> list[PodCgroups]:
    """The Node and its running Pods; returns the cgroup names their uids and container ids ask for."""
    await client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _NODE}})
    room = {"cpu": str(os.cpu_count()), "memory": str(psutil.virtual_memory().total), "pods": str(pods)}
    ready = [{"type": "Ready", "status": "True", "reason": "Bench", "message": "made by the benchmark"}]
    await client.patch(
        f"/api/v1/nodes/{_NODE}/status", {"status": {"capacity": room, "allocatable": room, "conditions": ready}}
    )
    gate = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def create(index: int) -> PodCgroups:
        async with gate:
            created = msgspec.json.decode(await client.create(_PODS, pod(index)))
            found = place(index, created["metadata"]["uid"])
            await client.patch(f"{_PODS}/{created['metadata']['name']}/status", {"status": running(found)})
            return found

    return list(await asyncio.gather(*(create(index) for index in range(pods))))


def pod(index: int) -> dict[str, Any]:
    """A Burstable online pod, or a best-effort one that asks for batch resources, already on the node."""
    batch = tier_of(index) == "besteffort"
    amounts = {"kubernetes.io/batch-cpu": "2", "kubernetes.io/batch-memory": "8Mi"} if batch else {"cpu": "2m"}
    resources = {"requests": amounts, "limits": amounts} if batch else {"requests": amounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"bench-{index}",
            "labels": {"koordinator.sh/qosClass": "BE" if batch else "LS"},
        },
        "spec": {
            "nodeName": _NODE,
            "priorityClassName": "koord-batch" if batch else "koord-prod",
            "containers": [{"name": name, "image": "bench", "resources": resources} for name in _container_names()],
        },
    }


def running(found: PodCgroups) -> dict[str, Any]:
    """The status a kubelet would report."""
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady")],
        "startTime": "2026-01-01T00:00:00Z",
        "containerStatuses": [
            {
                "name": name,
                "image": "bench",
                "imageID": "bench",
                "containerID": f"containerd://{container}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": started,
            }
            for name, container in zip(_container_names(), found.containers, strict=True)
        ],
    }


def _container_names() -> Sequence[str]:
    return [f"c{number}" for number in range(CONTAINERS_PER_POD)]
