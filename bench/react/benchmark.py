"""bench/react: from the begin of an online surge to the first lower ceiling of best effort, with and without the brake.

Both are the real agent with a tick of one second. `surge` and `trace` (bench/loads) date both moments by one clock.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

from bench.colocate.cluster import Agent, BenchCluster, BenchPod
from bench.colocate.loads import LoadFault, LoadProgram, Programs, started
from bench.colocate.node import Home, NodeTree
from bench.hierarchies import Hierarchies
from bench.machine import Machine, this_machine
from bench.react.restart import Restarts, RestartSetup, measure_restarts
from bench.react.trace import CeilingTrace

WITH, WITHOUT = "brake", "tick only"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    WITH: {"brake_interval_seconds": 0.1},
    # No pressure that wakes it, and a brake as slow as the tick: what is left of that makes this side faster.
    WITHOUT: {
        "brake_interval_seconds": 1.0,
        "suppress": {"online_stall_pct": None, "online_throttled_pct": None},
    },
}
_SERVICE_MILLIS = 100
"""What the service requests: little, since use within requests lowers no ceiling."""
_TRACE_US = 1000
_TICK_SECONDS = 1.0
MISSED_SECONDS = 5.0
_NOT_LIFTED_SECONDS = 60.0
_NUDGE_SECONDS = 0.3
NOTICED_SHARE = 0.05
"""Of the node: what the ceiling must fall by to count. It follows other work too, and that is no reaction."""
_HIGH_SHARE = 0.5
"""A surge begins only while best effort may use this much of the node."""


class ReactionEffort(msgspec.Struct, frozen=True):
    """`surges` for each of both, how long the agent's CPU time is taken without any, and `restarts` for each start."""

    surges: int = 50
    restarts: int = 3
    cost_seconds: float = 15.0
    settle_seconds: float = 3.0


QUICK = ReactionEffort(surges=3, restarts=1, cost_seconds=2.0, settle_seconds=1.0)


class Reactions(msgspec.Struct, frozen=True):
    """One side: seconds from surge to cut (None: none within five), and the agent's CPU time between surges."""

    name: str
    delays: tuple[float | None, ...]
    cpu_pct: float


class React(msgspec.Struct, frozen=True):
    """Both sides, as measured."""

    machine: Machine
    sides: tuple[Reactions, ...]
    restarts: tuple[Restarts, ...] = ()


def measure_reaction(hierarchies: Hierarchies, effort: ReactionEffort) -> React:
    """Raises a Fault where a program or a cgroup does not come up."""
    machine = this_machine()
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as name:
        sides, restarts = asyncio.run(_measure(Path(name), hierarchies, effort))
    return React(machine, tuple(sides), tuple(restarts))


async def _measure(
    folder: Path, hierarchies: Hierarchies, effort: ReactionEffort
) -> tuple[list[Reactions], list[Restarts]]:
    programs, cpus = Programs(folder), psutil.cpu_count() or 1
    async with BenchCluster.started(folder / "run", cpus) as cluster:
        await cluster.make_node_slo()
        online = await cluster.add(BenchPod("service", cpu_millis=_SERVICE_MILLIS, memory_mib=64))
        batch = [await cluster.add(BenchPod(f"batch-{slot}", batch_millis=150)) for slot in range(2 * cpus)]
        found = []
        for name, settings in SETTINGS.items():
            async with _scene(folder, programs, cluster, hierarchies, online, batch, settings) as scene:
                found.append(await scene.reactions(name, effort))
        async with _scene(folder, programs, cluster, hierarchies, online, batch, None) as scene:
            return found, await scene.restarts(effort.restarts)


@asynccontextmanager
async def _scene(
    folder: Path,
    programs: Programs,
    cluster: BenchCluster,
    hierarchies: Hierarchies,
    online: Home,
    batch: Sequence[Home],
    settings: Mapping[str, Any] | None,
) -> AsyncIterator[ReactionScene]:
    """With an agent of these settings; None: without one."""
    cpus = psutil.cpu_count() or 1
    counters = folder / "counters"
    counters.write_bytes(bytes(4096))
    async with AsyncExitStack() as stack:
        tree = stack.enter_context(NodeTree(hierarchies, cpus))
        tree.add([online, *batch])
        # Before the batch work, beside which an emulated machine takes minutes to start anything.
        agent = await stack.enter_async_context(cluster.agent(tree, settings)) if settings is not None else None
        for slot, home in enumerate(batch):
            command: list[str | Path] = [programs.path("spinner"), counters, str(slot)]
            stack.enter_context(started(command, tree.directories(tree.container(home))))
        surge = started([programs.path("surge"), str(cpus)], tree.directories(tree.container(online)))
        stack.enter_context(surge)
        trace = stack.enter_context(started([programs.path("trace"), tree.quota_file, str(_TRACE_US)]))
        yield ReactionScene(cluster, tree, surge, CeilingTrace(trace, cpus), agent)


class ReactionScene:
    """A busy node whose service rests, and the agent that watches it."""

    def __init__(
        self, cluster: BenchCluster, tree: NodeTree, surge: LoadProgram, trace: CeilingTrace, agent: Agent | None
    ) -> None:
        self._cluster = cluster
        self._tree = tree
        self._surge = surge
        self._trace = trace
        self._agent = psutil.Process(agent.pid if agent else None)
        self._random = random.Random(1)

    async def reactions(self, name: str, effort: ReactionEffort) -> Reactions:
        await asyncio.sleep(effort.settle_seconds)
        cost = await self._cost(effort.cost_seconds)
        delays = []
        for number in range(effort.surges):
            await self._lift()
            # Not in step with the tick, which the lifting has just begun.
            await asyncio.sleep(self._random.uniform(0.2, 0.2 + _TICK_SECONDS))
            delays.append(self._surge_once())
            told = "none" if delays[-1] is None else f"{delays[-1] * 1000:.0f} ms"
            print(f"bench: {name} {number}: {told}", file=sys.stderr, flush=True)
        return Reactions(name, tuple(delays), cost)

    async def restarts(self, rounds: int) -> list[Restarts]:
        settings = self._cluster.agent_settings({})
        stage = RestartSetup(self._cluster, self._tree, self._surge, self._trace, settings, self._lift)
        return await measure_restarts(stage, rounds, NOTICED_SHARE)

    async def _cost(self, seconds: float) -> float:
        before, begun = self._agent.cpu_times(), time.monotonic()
        await asyncio.sleep(seconds)
        after, took = self._agent.cpu_times(), time.monotonic() - begun
        return 100 * (after.user + after.system - before.user - before.system) / took

    def _surge_once(self) -> float | None:
        """Seconds until the ceiling was noticeably lower than when the surge began."""
        self._trace.follow(0)
        wanted = self._trace.share - NOTICED_SHARE
        self._surge.say("1")
        begun = int(self._surge.line())
        try:
            cut = self._trace.below(wanted, MISSED_SECONDS)
        finally:
            self._surge.say("0")
            self._surge.line()
        return None if cut is None else (cut - begun) / 1e9

    async def _lift(self) -> None:
        """Raising by itself takes the agent ten seconds and more. Switched off and on again it begins at the top."""
        self._trace.follow(0)
        deadline = time.monotonic() + _NOT_LIFTED_SECONDS
        while self._trace.unlimited or self._trace.share < _HIGH_SHARE:
            if time.monotonic() > deadline:
                raise LoadFault(
                    "machine", "others use so much of it that no ceiling is high", "measure when it is quiet"
                )
            await self._until(enabled=False, reached=lambda: self._trace.unlimited)
            await self._until(enabled=True, reached=lambda: not self._trace.unlimited)

    async def _until(self, *, enabled: bool, reached: Callable[[], bool]) -> None:
        """Set the ceiling's switch; a cgroup that comes or goes starts a tick."""
        await self._cluster.set_ceiling(enabled)
        deadline, nudge = time.monotonic() + _NOT_LIFTED_SECONDS, 0.0
        while not reached():
            if time.monotonic() > deadline:
                raise LoadFault("agent", f"its ceiling did not follow `enable: {enabled}`", "see its log")
            if time.monotonic() > nudge:
                self._tree.nudge()
                nudge = time.monotonic() + _NUDGE_SECONDS
            await asyncio.sleep(0.01)
            self._trace.follow(0)
