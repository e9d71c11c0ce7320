"""Memory levels between ticks: two cheap files, and memory.stat on demand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from agent.core.observe.files import FILES, FileKind, FilePart
from agent.core.observe.layout import Layout
from agent.core.observe.parse import counter, meminfo
from agent.files.openfile import OpenFile
from agent.files.pinnedcaches import PinnedCaches

T = TypeVar("T")

_MEMINFO_BYTES = 4096


class MemoryLevels:
    """`root` is where cgroups are mounted, `proc` holds meminfo, `sys` tells of the kernel's caches."""

    def __init__(self, root: Path, layout: Layout, proc: Path, sys: Path) -> None:
        kinds = {kind.part: kind for kind in FILES[layout.version]}
        charge, stat = kinds[FilePart.LEVEL], kinds[FilePart.MEMORY]
        self._tree, self._level, self._memory = root / charge.controller, charge, stat
        self._meminfo = OpenFile(str(proc / "meminfo"), _MEMINFO_BYTES)
        self._pinned = PinnedCaches(proc, sys)
        self._charge, self._stat = self._file(layout.root, charge), self._file(layout.root, stat)
        self.unreadable = 0

    def available(self) -> int | None:
        """MemAvailable without what cannot be dropped after all, bytes."""
        return self._read(self._meminfo, lambda text: max(meminfo(text)[1] - self._pinned.read(text), 0))

    def kubepods_charge(self) -> int | None:
        """All memory of all pods, page cache included, bytes."""
        return self._read(self._charge, counter)

    def kubepods_page_cache(self) -> int | None:
        """Of that what the kernel drops before it kills: file pages, inactive and active, bytes."""
        return self._read(self._stat, lambda text: self._memory.parse(text)[1])

    def held(self, cgroup: str) -> int | None:
        """What the end of one cgroup's processes gives back, bytes: kernel memory included, page cache not."""
        charge = self._once(cgroup, self._level, counter)
        cache = self._once(cgroup, self._memory, lambda text: self._memory.parse(text)[1])
        return None if charge is None or cache is None else max(charge - cache, 0)

    def close(self) -> None:
        for file in (self._meminfo, self._pinned, self._charge, self._stat):
            file.close()

    def _file(self, cgroup: str, kind: FileKind) -> OpenFile:
        return OpenFile(f"{self._tree}{cgroup}/{kind.file}", kind.size)

    def _once(self, cgroup: str, kind: FileKind, parse: Callable[[bytes], int]) -> int | None:
        file = self._file(cgroup, kind)
        try:
            return self._read(file, parse)
        finally:
            file.close()

    def _read(self, file: OpenFile, parse: Callable[[bytes], T]) -> T | None:
        try:
            return parse(file.read())
        except (OSError, ValueError):
            self.unreadable += 1
            return None
