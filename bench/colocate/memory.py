"""Batch pods that want more memory than there is, and what a kubelet does about pods that end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

import psutil

from bench.colocate.cluster import BenchCluster, BenchPod
from bench.colocate.loads import LoadProgram, Programs
from bench.colocate.node import Home, NodeTree
from bench.colocate.rows import HOGS, PROCESSES_PER_HOG, ColocationRow
from bench.figures import MemoryOutcome

_QUIET_SECONDS = 1.0
"""Measured before the batch pods begin to grow."""
_LOOK_SECONDS = 0.1
_PREFIX = "hog-"
_BATCH_MILLIS = 50


def hog_specs() -> list[BenchPod]:
    return [BenchPod(f"{_PREFIX}{index}", batch_millis=_BATCH_MILLIS) for index in range(HOGS)]


class HungryBatch:
    """The hogs of `homes`, started but still; kubepods has its limit from the beginning.

    While they grow this is the node's kubelet: it ends pods that were deleted and reports those that died.
    """

    def __init__(
        self, programs: Programs, cluster: BenchCluster, tree: NodeTree, homes: Sequence[Home], row: ColocationRow
    ) -> None:
        self._program = programs.path("hog")
        self._cluster = cluster
        self._tree = tree
        self._row = row
        self._service = homes[0]
        self._living = {home.name: home for home in homes if home.name.startswith(_PREFIX)}
        self._loads: dict[str, LoadProgram] = {}
        self._kernel_kills: dict[str, int] = {}
        self._evicted = 0
        self._dead: set[str] = set()
        self._stack = ExitStack()

    def __enter__(self) -> HungryBatch:
        self._tree.limit_memory(self._tree.kubepods, self._row.pods_memory_mib << 20)
        growth = self._row.growth
        words = [str(self._program), str(PROCESSES_PER_HOG), str(growth.mib_per_second), str(growth.most_mib)]
        with ExitStack() as stack:
            for home in self._living.values():
                load = stack.enter_context(LoadProgram(words))
                load.line()
                load.into(self._tree.directories(self._tree.container(home)))
                load.oom_score(0)
                self._loads[home.name] = load
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    async def feed(self, end: float, service: LoadProgram) -> MemoryOutcome:
        """Let them grow after a quiet second and look after them until `end` of the monotonic clock."""
        await asyncio.sleep(_QUIET_SECONDS)
        for load in self._loads.values():
            load.say("go")
        while time.monotonic() < end - _LOOK_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._look()
        online = self._tree.oom_kills(self._tree.container(self._service))
        batch, dead = sum(self._kernel_kills.values()), sum(1 for name in self._dead if not self._kernel_kills[name])
        peak = self._tree.memory_peak_mib(self._tree.kubepods)
        return MemoryOutcome(service.alive, online, batch, self._evicted, dead, peak)

    async def _look(self) -> None:
        for name, home in self._living.items():
            cgroup = self._tree.container(home)
            self._kernel_kills[name] = max(self._kernel_kills.get(name, 0), self._tree.oom_kills(cgroup))
            if name not in self._dead and not self._has_processes(cgroup):
                self._dead.add(name)
                await self._cluster.report_failed(name)
        for name in await self._cluster.leaving():
            if name in self._living:
                self._evicted += name not in self._dead
                self._tree.discard(self._living.pop(name))
                await self._cluster.forget(name)

    def _has_processes(self, cgroup: str) -> bool:
        """A zombie is none: its starter, which is this program, takes no notice before the end."""
        procs = self._tree.file(cgroup, "memory", "cgroup.procs").read_text().split()
        return any(_runs(int(pid)) for pid in procs)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
