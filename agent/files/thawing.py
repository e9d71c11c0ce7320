"""Thawing on cgroup v1: whoever is root in a container may freeze its processes below its own cgroup, where every
signal waits until they are thawed.

Source: kernel Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from agent.files.folders import reachable_folders

FREEZER = "freezer"


def thaw(top: str, most: int) -> int:
    """The cgroup of this folder and those below it, level by level, `most` of them; how many were frozen. Never
    raises."""
    with reachable_folders(top, most) as looked_into:
        return sum([thawed(folder.path) for folder in looked_into])


def thawed(folder: str) -> bool:
    """Whether it was frozen by itself; a parent that is frozen keeps it so."""
    with contextlib.suppress(OSError):
        state = Path(folder, "freezer.state")
        if state.read_bytes().strip() != b"THAWED":
            state.write_bytes(b"THAWED")
            return True
    return False
