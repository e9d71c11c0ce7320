"""Caches of the kernel that it counts as available and cannot drop, by four files that are read again and again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agent.core.observe import parse
from agent.files.openfile import OpenFile

_DENTRIES_BYTES = 128
_OBJECTS_BYTES = 4096
_VMSTAT_BYTES = 16_384


class PinnedCaches:
    """`proc` holds dentry-state, inode-state and vmstat, `sys` the slabs. Nothing counts of what the kernel does not
    tell."""

    def __init__(self, proc: Path, sys: Path) -> None:
        self._dentries = OpenFile(str(proc / "sys/fs/dentry-state"), _DENTRIES_BYTES)
        self._inodes = OpenFile(str(proc / "sys/fs/inode-state"), _DENTRIES_BYTES)
        self._nodes = OpenFile(str(sys / "kernel/slab/radix_tree_node/total_objects"), _OBJECTS_BYTES)
        self._vmstat = OpenFile(str(proc / "vmstat"), _VMSTAT_BYTES)

    def read(self, meminfo: bytes) -> int:
        """Bytes, beside what /proc/meminfo said a moment ago. Raises ValueError where that cannot be understood."""
        nodes = _told(self._nodes, parse.index_nodes)
        if nodes:
            nodes = parse.nodes_in_memory(nodes - _told(self._vmstat, parse.droppable_nodes), meminfo)
        names = _told(self._dentries, parse.dentries_in_use)
        # Who watches a file (inotify) keeps it, and not its name.
        unnamed = _told(self._inodes, parse.inodes_in_use) - _told(self._dentries, parse.dentries_of_files)
        return parse.pinned(parse.reclaimable(meminfo), names + max(unnamed, 0), nodes)

    def close(self) -> None:
        for file in (self._dentries, self._inodes, self._nodes, self._vmstat):
            file.close()


def _told(file: OpenFile, number: Callable[[bytes], int]) -> int:
    try:
        return number(file.read())
    except (OSError, ValueError):
        return 0
