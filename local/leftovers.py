"""What a run may have left behind: cgroups named after it, the processes in them, and its own programs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
_POLL_SECONDS = 0.02


def cgroups_of(name: str, root: Path = CGROUP_ROOT) -> list[Path]:
    """The top directories called `name`, in every controller's hierarchy (v1) and in the unified one."""
    return sorted({*root.glob(name), *root.glob(f"*/{name}")})


def processes_of(name: str, root: Path = CGROUP_ROOT) -> set[int]:
    """The processes that sit anywhere below the cgroups called `name`."""
    found: set[int] = set()
    for top in cgroups_of(name, root):
        for directory in (top, *(d for d in top.rglob("*") if d.is_dir())):
            found |= _members(directory)
    return found


def sweep(name: str, root: Path = CGROUP_ROOT, bound_seconds: float = 5.0) -> list[Path]:
    """Kill what runs in the cgroups called `name` and remove them; returns those that resisted for the bound."""
    deadline = time.monotonic() + bound_seconds
    while left := cgroups_of(name, root):
        for pid in processes_of(name, root):
            _kill(pid)
        for top in left:
            _remove_tree(top)
        if time.monotonic() > deadline:
            break
        # A killed process stays a member until it is reaped, and rmdir answers EBUSY so long.
        time.sleep(_POLL_SECONDS)
    return cgroups_of(name, root)


async def end_processes(pids: Iterable[int], mark: str, bound_seconds: float = 15.0) -> None:
    """Wait until those of `pids` whose command line mentions `mark` have ended; kill them at the bound.

    For the programs of a run whose parent was killed: the kernel has told them to stop, and they are at it.
    """
    ours = [pid for pid in pids if _mentions(pid, mark)]
    deadline = time.monotonic() + bound_seconds
    while any(_mentions(pid, mark) for pid in ours) and time.monotonic() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
    for pid in ours:
        if _mentions(pid, mark):
            _kill(pid)


def _mentions(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _members(directory: Path) -> set[int]:
    try:
        return {int(line) for line in (directory / "cgroup.procs").read_text().split()}
    except (OSError, ValueError):
        return set()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _remove_tree(top: Path) -> None:
    directories = [top, *(d for d in top.rglob("*") if d.is_dir())]
    for directory in sorted(directories, key=lambda d: len(d.parts), reverse=True):
        try:
            directory.rmdir()
        except OSError:
            continue
