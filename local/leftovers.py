"""What a run may have left behind: cgroups named after it, the processes in them, and its own programs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from local import cgrouptree
from local.node.ownership import started_ticks

CGROUP_ROOT = Path("/sys/fs/cgroup")
_POLL_SECONDS = 0.02


def cgroups_of(name: str, root: Path = CGROUP_ROOT) -> list[Path]:
    """The top directories called `name`, in every controller's hierarchy (v1) and in the unified one."""
    return sorted({*root.glob(name), *root.glob(f"*/{name}")})


def processes_of(name: str, root: Path = CGROUP_ROOT) -> set[int]:
    """The processes that sit anywhere below the cgroups called `name`."""
    return cgrouptree.members(cgroups_of(name, root))


async def sweep(name: str, root: Path = CGROUP_ROOT, bound_seconds: float = 5.0) -> list[Path]:
    """Kill what runs in the cgroups called `name` and remove them; returns those that resisted for the bound."""
    return await cgrouptree.kill_and_remove(cgroups_of(name, root), bound_seconds)


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
