"""End to end: from the creation of pods to their bindings, through the embedded API server and the real scheduler.

The baseline is the same client that creates each pod and then binds it itself. A cap is on all requests of the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.schedule.cluster import SCHEDULER
from bench.schedule.effort import SchedulingEffort, tell
from embedded.child_process import Child
from kube.client import KubeClient
from local.accounts import NAMESPACE, write_kubeconfigs, write_secrets
from local.choices import Choices
from local.programs import api_address, embedded_programs
from local.rundir import RunDirectory
from model.fault import Fault
from scheduler.settings import SchedulerSettings

_PODS = "/api/v1/namespaces/default/pods"
_WORKERS = 16
_READY_SECONDS, _STOP_SECONDS, _BOUND_SECONDS = 240.0, 10.0, 300.0
_IDLE_SECONDS = 60.0
UNLIMITED, CAPPED = 0, 100
_OTHER_SCHEDULER = "bench"


class Round(msgspec.Struct, frozen=True):
    """Pods bound a second from the first request on, and how long a pod waited from its creation to its binding."""

    per_second: float
    p50_ms: float
    p99_ms: float


class EndToEnd(msgspec.Struct, frozen=True):
    """Rounds side by side: bound by the scheduler, and by the client alone; `qps` is the client's, 0 without a cap."""

    nodes: int
    pods: int
    qps: int
    binds: int
    ours: tuple[Round, ...]
    alone: tuple[Round, ...]

    def pair(self, figure: str) -> tuple[list[float], list[float]]:
        """One figure of each round, ours and alone."""
        ours, alone = ([getattr(one, figure) for one in side] for side in (self.ours, self.alone))
        return ours, alone


class EndFault(Fault):
    """Not every pod was bound in time."""


class _Seen(msgspec.Struct):
    """When a client created each pod, and when its watch saw it bound (monotonic seconds)."""

    created: dict[str, float] = msgspec.field(default_factory=dict)
    bound: dict[str, float] = msgspec.field(default_factory=dict)

    def round(self) -> Round:
        waits = sorted((self.bound[name] - at) * 1000 for name, at in self.created.items())
        taken = max(self.bound.values()) - min(self.created.values())
        return Round(len(waits) / taken, waits[len(waits) // 2], waits[len(waits) * 99 // 100])


class _Load(msgspec.Struct, frozen=True):
    pods: int
    qps: int


def measure_end_to_end(effort: SchedulingEffort) -> list[EndToEnd]:
    """As settings come. Raises a Fault where a program does not come up, or a pod stays unbound."""
    loads = (_Load(effort.end_pods, UNLIMITED), _Load(effort.end_pods, CAPPED), _Load(effort.end_burst, UNLIMITED))
    return _with_cluster(effort, SchedulerSettings().concurrent_binds, loads)


def measure_binds(effort: SchedulingEffort) -> list[EndToEnd]:
    """The same burst with each number of bindings at once; raises as `measure_end_to_end` does."""
    load = (_Load(2 * effort.end_pods, UNLIMITED),)
    return [found for binds in effort.end_binds for found in _with_cluster(effort, binds, load)]


def _with_cluster(effort: SchedulingEffort, binds: int, loads: Sequence[_Load]) -> list[EndToEnd]:
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        return asyncio.run(_measured(Path(folder) / "run", effort, binds, loads))


async def _measured(folder: Path, effort: SchedulingEffort, binds: int, loads: Sequence[_Load]) -> list[EndToEnd]:
    async with running_cluster(folder, binds) as client:
        nodes = [f"node-{number:03d}" for number in range(effort.end_nodes)]
        for name in nodes:
            await make_node(client, name)
        found = []
        for load in loads:
            tell(f"creating {load.pods} pods, client QPS {load.qps or 'unlimited'}, {binds} bindings at once")
            # Connections, and what is compiled or looked up once, are in nobody's figure.
            await _round(client, nodes, _Load(effort.end_nodes, UNLIMITED), own=True)
            pairs = [
                (await _round(client, nodes, load, own=True), await _round(client, nodes, load, own=False))
                for _ in range(effort.end_rounds)
            ]
            ours, alone = zip(*pairs, strict=True)
            found.append(EndToEnd(len(nodes), load.pods, load.qps, binds, ours, alone))
        return found


@asynccontextmanager
async def running_cluster(folder: Path, binds: int) -> AsyncIterator[KubeClient]:
    """The API server and the scheduler as processes, as `sublet up` starts them."""
    async with AsyncExitStack() as stack:
        run, choices = stack.enter_context(RunDirectory(folder)), Choices("bench", "bench")
        tokens = write_secrets(run, choices)
        settings = {"scheduler_names": [SCHEDULER], "lease": {"namespace": NAMESPACE}, "concurrent_binds": binds}
        run.scheduler_settings.write_bytes(msgspec.json.encode(settings))
        bound: dict[str, dict[str, Any]] = {}
        for program in embedded_programs(run, choices):
            if program.name not in ("apiserver", "scheduler"):
                continue
            child = await Child.start(
                program.name, program.argv(bound), run.log_of(program.name), run.ready_file_of(program.name)
            )
            stack.push_async_callback(child.stop, _STOP_SECONDS)
            bound[program.name] = await child.wait_ready(_READY_SECONDS)
            if program.name == "apiserver":
                write_kubeconfigs(run, api_address(bound), tokens)
        yield await stack.enter_async_context(await KubeClient.connect(run.kubeconfig, "sublet-bench"))


async def make_node(client: KubeClient, name: str) -> None:
    """Ready, with a lease that outlives the benchmark."""
    await client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "reason": "Bench", "message": "made by the benchmark"}]
    status = {"capacity": room, "allocatable": room, "conditions": ready}
    await client.patch(f"/api/v1/nodes/{name}/status", {"status": status})
    spec = {"holderIdentity": name, "leaseDurationSeconds": 3600}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
    with contextlib.suppress(Fault):
        await client.create("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease)


async def _round(client: KubeClient, nodes: Sequence[str], load: _Load, *, own: bool) -> Round:
    """Create all, see all bound, delete all; `own`: the scheduler binds, else the client does."""
    seen, pace = _Seen(), _Pace(load.qps)
    names = [f"{'own' if own else 'alone'}-{number}" for number in range(load.pods)]
    # The watch begins where nothing was created yet, however late it is opened.
    since = (await client.get(_PODS, dict, limit=1))["metadata"]["resourceVersion"]
    watching = asyncio.create_task(_watch(client, seen, set(names), since))
    queue = list(enumerate(names))

    async def work() -> None:
        while queue:
            number, name = queue.pop(0)
            await pace.next()
            seen.created[name] = time.monotonic()
            await client.create(_PODS, _pod(name, SCHEDULER if own else _OTHER_SCHEDULER))
            if not own:
                await pace.next()
                await client.create(f"{_PODS}/{name}/binding", _binding(name, nodes[number % len(nodes)]))

    await asyncio.gather(*(work() for _ in range(_WORKERS)))
    try:
        await asyncio.wait_for(watching, _BOUND_SECONDS)
    except TimeoutError:
        raise EndFault("end to end", f"{len(seen.bound)} of {len(names)} pods were bound in time") from None
    left = list(names)

    async def clean() -> None:
        while left:
            await client.delete(f"{_PODS}/{left.pop()}", grace_seconds=0)

    await asyncio.gather(*(clean() for _ in range(_WORKERS)))
    return seen.round()


async def _watch(client: KubeClient, seen: _Seen, names: set[str], since: str) -> None:
    query: dict[str, str | int] = {"watch": "true", "resourceVersion": since}
    async for line in client.stream(_PODS, query, _IDLE_SECONDS):
        pod = msgspec.json.decode(line, type=WatchedPod).object
        if pod.spec.node_name and pod.metadata.name in names:
            seen.bound.setdefault(pod.metadata.name, time.monotonic())
            if len(seen.bound) == len(names):
                return


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class ListedPod(msgspec.Struct, frozen=True):
    """Of a pod its name, and the node that it is bound to."""

    metadata: _Name = _Name()
    spec: _Spec = _Spec()


class WatchedPod(msgspec.Struct, frozen=True):
    """A line of a watch of pods."""

    object: ListedPod = ListedPod()


class _Pace:
    """At most so many requests a second, evenly; 0: as many as there are."""

    def __init__(self, qps: int) -> None:
        self._gap = 1.0 / qps if qps else 0.0
        self._next = 0.0

    async def next(self) -> None:
        if self._gap:
            now = time.monotonic()
            self._next = max(now, self._next + self._gap)
            await asyncio.sleep(self._next - now)


def _pod(name: str, scheduler: str) -> dict[str, Any]:
    container = {"name": "main", "image": "bench", "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _binding(name: str, node: str) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
