"""bench/react, restarted: best effort fills the node, the agent is killed, and online load surges as it comes back.

It runs beside the pods with the weight of its request, as on a node: all the rest is the online pods'. Sides differ by
what is started, in a cgroup of which weight, and by whether the plan of the agent before it is there.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import msgspec
import psutil

from bench.colocate.cluster import BenchCluster
from bench.colocate.loads import LoadFault, LoadProgram
from bench.colocate.node import NodeTree
from bench.react.trace import CeilingTrace

_BOUND_SECONDS = 60.0
_SETTLE_SECONDS = 2.5
_POLL_SECONDS = 0.002
_LOADED_FIRST = (
    "import sys, rich.traceback, kubernetes.client, kubernetes.config, kubernetes.stream, pyroute2, aiohttp;"
    "import agent.run.wiring, agent.run.services, agent.edge.podlinks, kube.transport;"
    "from agent.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
"""What an agent loaded before its first tick when it loaded everything."""
# In its cgroup from its first instruction on.
_ENTER = (
    "import os,sys;n=int(sys.argv[1]);[open(p+'/cgroup.procs','w').write(str(os.getpid())) for p in sys.argv[2:2+n]];"
    "os.execv(sys.argv[2+n],sys.argv[2+n:])"
)


class RestartSide(msgspec.Struct, frozen=True):
    """`loads_first`: all modules before anything is done; `guard`: nothing is started, a guard has been there."""

    name: str
    cpu_millis: int = 200
    keeps_plan: bool = True
    loads_first: bool = False
    guard: bool = False


SIDES = (
    RestartSide("limits first, with the plan"),
    RestartSide("limits first, without a plan", keeps_plan=False),
    RestartSide("modules first, without a plan", keeps_plan=False, loads_first=True),
    RestartSide("modules first, at 50m", cpu_millis=50, keeps_plan=False, loads_first=True),
    RestartSide("the guard alone", cpu_millis=20, guard=True),
)
OURS, BEFORE = SIDES[0].name, SIDES[3].name


class Restarts(msgspec.Struct, frozen=True):
    """One side: seconds from surge and start to the first cut (None: none in a minute), CPU time to the first tick."""

    name: str
    delays: tuple[float | None, ...]
    cpu_seconds: tuple[float, ...]


class RestartSetup(msgspec.Struct, frozen=True):
    """A busy node whose service rests; `lift` brings the ceiling of a running agent to the top."""

    cluster: BenchCluster
    tree: NodeTree
    surge: LoadProgram
    trace: CeilingTrace
    settings: Path
    lift: Callable[[], Awaitable[None]]


async def measure_restarts(stage: RestartSetup, rounds: int, noticed_share: float) -> list[Restarts]:
    """The sides take turns within a round."""
    found: dict[str, list[tuple[float | None, float | None]]] = {side.name: [] for side in SIDES}
    for number in range(rounds):
        for side in SIDES:
            found[side.name].append(await _round(stage, side, noticed_share))
            delay, cpu = found[side.name][-1]
            told = "none" if delay is None else f"{delay * 1000:.0f} ms"
            print(f"bench: {side.name} {number}: {told}, {cpu or 0:.2f} CPU-s", file=sys.stderr, flush=True)
    return [
        Restarts(name, tuple(delay for delay, _ in seen), tuple(cpu for _, cpu in seen if cpu is not None))
        for name, seen in found.items()
    ]


async def _round(stage: RestartSetup, side: RestartSide, noticed_share: float) -> tuple[float | None, float | None]:
    async with AsyncExitStack() as stack:
        cluster, trace = stage.cluster, stage.trace
        command = cluster.agent_command(stage.tree, stage.settings)
        if side.guard:
            guard = [*command[:3], *cluster.guard_options(stage.tree)]
            stack.callback(_end, _started(stage.tree, guard, "guard", side.cpu_millis))
        agent = _started(stage.tree, command, "agent", 1000)
        stack.callback(_end, agent)
        await cluster.agent_ready()
        await stage.lift()
        # The plan of that ceiling is in the heartbeat.
        await asyncio.sleep(_SETTLE_SECONDS)
        trace.follow(0)
        _end(agent)
        if not side.keeps_plan:
            cluster.heartbeat.write_bytes(b"")
        beat, wanted = cluster.heartbeat.stat().st_mtime_ns, trace.share - noticed_share
        stage.surge.say("1")
        begun = int(stage.surge.line())
        stack.callback(stage.surge.line)
        stack.callback(stage.surge.say, "0")
        if side.guard:
            cut = trace.below(wanted, _BOUND_SECONDS)
            return _since(begun, cut), None
        chosen = [command[0], "-c", _LOADED_FIRST, *command[3:]] if side.loads_first else command
        again = _started(stage.tree, chosen, "agent", side.cpu_millis)
        stack.callback(_end, again)
        return _watched(stage, again, beat, begun, wanted)


def _watched(
    stage: RestartSetup, agent: subprocess.Popen[bytes], beat: int, begun: int, wanted: float
) -> tuple[float | None, float | None]:
    """Until there was a cut and a tick, each seen as soon as it is there."""
    cut: int | None = None
    cpu: float | None = None
    deadline = time.monotonic() + _BOUND_SECONDS
    process = psutil.Process(agent.pid)
    while time.monotonic() < deadline and (cut is None or cpu is None):
        if agent.poll() is not None:
            raise LoadFault("agent", "ended early", "see its log")
        if cpu is None and stage.cluster.heartbeat.stat().st_mtime_ns != beat:
            times = process.cpu_times()
            cpu = times.user + times.system
        if cut is None:
            cut = stage.trace.below(wanted, _POLL_SECONDS)
        else:
            time.sleep(_POLL_SECONDS)
    return _since(begun, cut), cpu


def _since(begun: int, cut: int | None) -> float | None:
    return None if cut is None else (cut - begun) / 1e9


def _started(tree: NodeTree, command: Sequence[str], name: str, cpu_millis: int) -> subprocess.Popen[bytes]:
    folders = tree.beside(name, cpu_millis)
    enter = [sys.executable, "-I", "-S", "-c", _ENTER, str(len(folders)), *map(str, folders)]
    log = subprocess.DEVNULL
    return subprocess.Popen([*enter, *command], stdin=log, stdout=log, stderr=log, start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    process.wait()
