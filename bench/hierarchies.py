"""Cgroup hierarchies of this machine: where they are mounted, and whether the benchmark may make its own there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from model.fault import KernelFault

CGROUP_ROOT = Path("/sys/fs/cgroup")
_NEEDED = ("cpu", "cpuacct", "memory")
_WELCOME = ("cpuset", "blkio", "unified")
_FIX = "run as root on a host whose cgroups are writable"


class Hierarchies(msgspec.Struct, frozen=True):
    """`mounts` maps a v1 controller to its mount, `unified` among them where usable; on v2 its one key is empty."""

    version: int
    root: Path
    mounts: Mapping[str, Path]


def discover(root: Path = CGROUP_ROOT) -> Hierarchies:
    """Raises KernelFault where cgroups cannot be made below `root`."""
    if (root / "cgroup.controllers").exists():
        missing = {"cpu", "memory"} - set((root / "cgroup.controllers").read_text().split())
        if missing:
            raise KernelFault(str(root), f"offers no {', '.join(sorted(missing))} controller", _FIX)
        found = {"": root}
    else:
        found = {name: root / name for name in _NEEDED}
        found.update({name: root / name for name in _WELCOME if _writable(root / name)})
    for mount in found.values():
        if not _writable(mount):
            raise KernelFault(str(mount), "is not a cgroup mount this user may write", _FIX)
    return Hierarchies(2 if "" in found else 1, root, found)


def _writable(mount: Path) -> bool:
    return os.access(mount / "cgroup.procs", os.W_OK)
