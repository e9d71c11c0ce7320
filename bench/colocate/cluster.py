"""An API server with one node and its pods, and the real agent as a process beside them."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil

from bench.colocate.node import Home, NodeTree
from embedded.child_process import Child
from kube.client import KubeClient
from local.accounts import write_kubeconfigs, write_secrets
from local.choices import Choices
from local.programs import api_address, embedded_programs
from local.rundir import RunDirectory
from model.fault import KubernetesFault

NODE = "bench"
_PODS = "/api/v1/namespaces/default/pods"
_SLO = "/apis/slo.koordinator.sh/v1alpha1/nodeslos"
_READY_BOUND_SECONDS = 240.0
_STOP_BOUND_SECONDS = 10.0
_ENV = "/usr/bin/env"
"""Its -C is coreutils'."""
_STARTED_AT = "2026-01-01T00:00:00Z"


class BenchPod(msgspec.Struct, frozen=True):
    """A pod to make: online and Burstable with native requests, or best effort with batch ones (no limits)."""

    name: str
    cpu_millis: int = 0
    memory_mib: int = 0
    batch_millis: int = 0

    @property
    def best_effort(self) -> bool:
        return self.batch_millis > 0


class BenchCluster:
    """The API server's side of the bench; `agent` runs the other."""

    def __init__(self, run: RunDirectory, client: KubeClient, server_pid: int) -> None:
        self._run = run
        self.client = client
        self.server_pid = server_pid

    @classmethod
    @asynccontextmanager
    async def started(cls, folder: Path, cpus: int) -> AsyncIterator[BenchCluster]:
        """An API server over TLS on loopback with the Node. Raises a Fault where it does not come up."""
        async with AsyncExitStack() as stack:
            run = stack.enter_context(RunDirectory(folder))
            choices = Choices(NODE, "bench")
            tokens = write_secrets(run, choices)
            (program,) = [program for program in embedded_programs(run, choices) if program.name == "apiserver"]
            server = await _child(stack, run, program.name, program.argv({}))
            bound = {program.name: await server.wait_ready(_READY_BOUND_SECONDS)}
            write_kubeconfigs(run, api_address(bound), tokens)
            client = await stack.enter_async_context(await KubeClient.connect(run.kubeconfig, "sublet-bench"))
            cluster = cls(run, client, server.pid)
            await cluster._make_node(cpus)
            yield cluster

    async def add(self, spec: BenchPod) -> Home:
        """Make the pod, running on the node; returns where its cgroups belong."""
        created = msgspec.json.decode(await self.client.create(_PODS, _pod(spec)))
        uid = created["metadata"]["uid"]
        tier = "besteffort" if spec.best_effort else "burstable"
        home = Home(spec.name, uid, tier, hashlib.sha256(uid.encode()).hexdigest(), spec.cpu_millis)
        await self.client.patch(f"{_PODS}/{spec.name}/status", {"status": _running(home)})
        return home

    async def leaving(self) -> list[str]:
        """Names of the pods that were told to end."""
        found = await self.client.get(_PODS, dict)
        return [pod["metadata"]["name"] for pod in found["items"] if pod["metadata"].get("deletionTimestamp")]

    async def forget(self, name: str) -> None:
        """Delete the pod at once, as a kubelet does in the end; one that is gone already is no fault."""
        with suppress(KubernetesFault):
            await self.client.delete(f"{_PODS}/{name}", grace_seconds=0)

    async def report_failed(self, name: str) -> None:
        """Its processes ended by another's hand."""
        with suppress(KubernetesFault):
            await self.client.patch(f"{_PODS}/{name}/status", {"status": {"phase": "Failed"}})

    async def set_ceiling(self, enabled: bool) -> None:
        """Say in the NodeSLO whether best effort has a ceiling at all."""
        spec = {"resourceUsedThresholdWithBE": {"enable": enabled}}
        await self.client.patch(f"{_SLO}/{NODE}", {"spec": spec})

    async def make_node_slo(self) -> None:
        metadata = {"name": NODE}
        body = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": metadata, "spec": {}}
        await self.client.create(_SLO, body)

    @asynccontextmanager
    async def agent(
        self, tree: NodeTree, settings: Mapping[str, Any], folder: Path | None = None
    ) -> AsyncIterator[Agent]:
        """The agent over this tree, that of the checkout in `folder` where one is given, ready; it starts with no
        memory of an earlier one.
        """
        written = self.agent_settings(settings)
        async with AsyncExitStack() as stack:
            child = await _child(stack, self._run, "agent", self.agent_command(tree, written, folder))
            addresses = await child.wait_ready(_READY_BOUND_SECONDS)
            yield Agent(child.pid, str(addresses["http"]), self._run.log_of("agent"))

    def agent_settings(self, settings: Mapping[str, Any]) -> Path:
        """The file of them, for an agent with no memory of an earlier one."""
        for name in ("agent.state", "agent.json", "prediction.json", "guard.json"):
            (self._run.path / name).unlink(missing_ok=True)
        self.heartbeat.unlink(missing_ok=True)
        written = self._run.path / "agent-settings.json"
        written.write_bytes(msgspec.json.encode(settings))
        return written

    def agent_command(self, tree: NodeTree, settings: Path, folder: Path | None = None) -> list[str]:
        """The program, that of the checkout in `folder`, that starts it so finds its ready file by `agent_ready`."""
        self._run.ready_file_of("agent").unlink(missing_ok=True)
        place = [_ENV, "-C", str(folder)] if folder else []
        return [*place, *_agent_command(self._run, tree, settings)]

    def guard_options(self, tree: NodeTree) -> list[str]:
        """Of a guard beside that agent that keeps plans and holds no share."""
        where = ("--kubepods", tree.kubepods, "--state-file", str(self._run.path / "agent.state"))
        return ["--guard", "--guard-silence", "3600", *where, "--heartbeat", str(self.heartbeat)]

    @property
    def heartbeat(self) -> Path:
        return self._run.agent_socket.with_name("agent.heartbeat")

    async def agent_ready(self) -> None:
        """Raises TimeoutError."""
        async with asyncio.timeout(_READY_BOUND_SECONDS):
            while not self._run.ready_file_of("agent").exists():
                await asyncio.sleep(0.02)

    async def _make_node(self, cpus: int) -> None:
        await self.client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        room = {"cpu": str(cpus), "memory": str(psutil.virtual_memory().total), "pods": "110"}
        ready = [{"type": "Ready", "status": "True", "reason": "Bench", "message": "made by the benchmark"}]
        status = {"capacity": room, "allocatable": room, "conditions": ready}
        await self.client.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})


class Agent(msgspec.Struct, frozen=True):
    """A running agent: its process, where it serves metrics, its log."""

    pid: int
    http: str
    log: Path


async def _child(stack: AsyncExitStack, run: RunDirectory, name: str, command: list[str]) -> Child:
    child = await Child.start(name, command, run.log_of(name), run.ready_file_of(name))
    stack.push_async_callback(child.stop, _STOP_BOUND_SECONDS)
    return child


def _agent_command(run: RunDirectory, tree: NodeTree, settings: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "agent"),
        *("--kubeconfig", str(run.kubeconfig)),
        *("--node-name", NODE),
        *("--kubepods", tree.kubepods),
        *("--settings", str(settings)),
        *("--state-file", str(run.path / "agent.state")),
        *("--socket", str(run.agent_socket)),
        *("--grpc-listen", "127.0.0.1:0"),
        *("--http-listen", "127.0.0.1:0"),
        *("--ready-file", str(run.ready_file_of("agent"))),
    ]


def _pod(spec: BenchPod) -> dict[str, Any]:
    batch = {"kubernetes.io/batch-cpu": str(spec.batch_millis), "kubernetes.io/batch-memory": "64Mi"}
    native = {"cpu": f"{spec.cpu_millis}m", "memory": f"{spec.memory_mib}Mi"}
    container = {"name": "main", "image": "bench", "resources": {"requests": batch if spec.best_effort else native}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": spec.name, "labels": {"koordinator.sh/qosClass": "BE" if spec.best_effort else "LS"}},
        "spec": {
            "nodeName": NODE,
            "priorityClassName": "koord-batch" if spec.best_effort else "koord-prod",
            "containers": [container],
        },
    }


def _running(home: Home) -> dict[str, Any]:
    """The status a kubelet would report."""
    container = {
        "name": "main",
        "image": "bench",
        "imageID": "bench",
        "containerID": f"containerd://{home.container_id}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _STARTED_AT}},
    }
    conditions = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady")]
    return {"phase": "Running", "conditions": conditions, "startTime": _STARTED_AT, "containerStatuses": [container]}
