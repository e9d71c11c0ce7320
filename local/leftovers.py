"""Leftovers of a run: cgroups named after it, the processes in them, and its own programs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from embedded.cgroups import trees
from embedded.cgroups.drivers import CgroupDriver
from embedded.cgroups.layout import prefix_of
from embedded.cgroups.ownership import started_ticks
from embedded.simkernel import tree

CGROUP_ROOT = Path("/sys/fs/cgroup")
_POLL_SECONDS = 0.02


class NodeCgroups(msgspec.Struct, frozen=True):
    """The top cgroups of one cluster's nodes: `ids` names them; whatever a simulated kernel left is in `simulated`."""

    ids: tuple[str, ...]
    simulated: Path
    root: Path = CGROUP_ROOT

    def cgroups(self) -> list[Path]:
        """Those that exist, in every controller's hierarchy (v1), in the unified one, and the simulated."""
        return [*self._real(), *self._imitated()]

    def processes(self) -> set[int]:
        """The processes that sit anywhere below them."""
        folders = [folder for top in self._imitated() for folder in tree.cgroups_below(top)]
        return trees.members(self._real()) | tree.members_of(folders)

    async def sweep(self, bound_seconds: float = 5.0) -> list[Path]:
        """Kill what runs in them and remove them; returns those that resisted for the bound."""
        resisted = await trees.kill_and_remove(self._real(), bound_seconds)
        for top in self._imitated():
            resisted += await tree.sweep(top, bound_seconds)
        return resisted

    def _names(self) -> list[str]:
        return [prefix_of(id_, driver).strip("/") for id_ in self.ids for driver in CgroupDriver]

    def _real(self) -> list[Path]:
        found = {path for name in self._names() for path in (*self.root.glob(name), *self.root.glob(f"*/{name}"))}
        return sorted(found)

    def _imitated(self) -> list[Path]:
        return sorted(path for path in self.simulated.glob("*/*") if path.is_dir())


async def end_processes(started: Mapping[int, int], bound_seconds: float = 15.0) -> None:
    """Wait until processes have ended; kill them at the bound. `started` maps a pid to its start time in ticks.

    For the programs of a run whose parent was killed: the kernel has told them to stop, and they are at it. A process
    that began at another time got its pid from a program that had ended, and is nobody's business here.
    """
    deadline = time.monotonic() + bound_seconds
    while (left := _living(started)) and time.monotonic() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
    for pid in left:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _living(started: Mapping[int, int]) -> list[int]:
    return [pid for pid, ticks in started.items() if pid > 0 and started_ticks(pid) == ticks]
