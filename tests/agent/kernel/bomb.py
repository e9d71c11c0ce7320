"""A fork bomb that ends by itself, for a cgroup with a limit of its own and another around it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

SECONDS = 30
BOMB = f"""
import os, time
end = time.monotonic() + {SECONDS}
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        time.sleep(0.2)
"""
"""Each process doubles itself as often as the kernel lets it, and is gone after half a minute whatever happens."""


def processes(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]


def defused(folder: Path) -> None:
    """Nobody there makes another process, then all end."""
    (folder / "pids.max").write_text("0")
    deadline = time.monotonic() + 20
    while (left := processes(folder)) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)
    assert not left
