"""Trees of cgroups, whoever made them: what runs in them, ending it, removing them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_RETRY_SECONDS = 0.01


def members(tops: Iterable[Path]) -> set[int]:
    """Ids of all processes in the trees but this one."""
    found: set[int] = set()
    for top in tops:
        for directory in _tree(top):
            with suppress(OSError):
                found.update(int(pid) for pid in (directory / "cgroup.procs").read_text().split())
    # 0 is a process of another PID namespace; kill(0) would hit our own process group.
    return found - {0, os.getpid()}


def kill(tops: Sequence[Path]) -> bool:
    """SIGKILL to everything inside once; True when nothing was left to kill."""
    for top in tops:
        # Cgroup v1, and a kernel before 5.14, has no such file: the loop below does it alone.
        with suppress(OSError), (top / "cgroup.kill").open("r+") as file:
            file.write("1")
    inside = members(tops)
    for pid in inside:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return not inside


def remove_empty(tops: Iterable[Path]) -> list[Path]:
    """Remove the trees from the leaves up; returns the directories that stay."""
    return [directory for top in tops for directory in reversed(list(_tree(top))) if not _removed(directory)]


async def kill_and_remove(tops: Sequence[Path], bound_seconds: float) -> list[Path]:
    """Kill and remove until nothing is left; returns the directories that resisted for the bound."""
    deadline = time.monotonic() + bound_seconds
    while True:
        kill(tops)
        remaining = remove_empty(tops)
        if not remaining or time.monotonic() > deadline:
            return remaining
        # A killed process stays a member until it is reaped, and rmdir answers EBUSY so long.
        await asyncio.sleep(_RETRY_SECONDS)


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:
        return not directory.exists()
    return True


def _tree(directory: Path) -> Iterator[Path]:
    """The directory and all below it, parents first; nothing when it does not exist."""
    for root, _, _ in os.walk(directory):
        yield Path(root)
