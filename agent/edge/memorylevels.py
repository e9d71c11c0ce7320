"""How much memory is left, for whoever must know within a moment: two cheap files, and memory.stat on demand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agent.core.files import FILES, Part
from agent.core.layout import Layout
from agent.core.parse import counter, meminfo
from agent.core.watch import inactive_file_bytes
from agent.openfile import OpenFile

_MEMINFO_BYTES = 4096


class MemoryLevels:
    """`root` is where cgroups are mounted, `proc` holds meminfo."""

    def __init__(self, root: Path, layout: Layout, proc: Path) -> None:
        kinds = {kind.part: kind for kind in FILES[layout.version]}
        charge, stat = kinds[Part.LEVEL], kinds[Part.MEMORY]
        folder = root / charge.controller / layout.root.lstrip("/")
        self._meminfo = OpenFile(str(proc / "meminfo"), _MEMINFO_BYTES)
        self._charge = OpenFile(str(folder / charge.file), charge.size)
        self._stat = OpenFile(str(folder / stat.file), stat.size)
        self.unreadable = 0

    def available(self) -> int | None:
        """MemAvailable, bytes."""
        return self._read(self._meminfo, lambda text: meminfo(text)[1])

    def kubepods_charge(self) -> int | None:
        """All memory of all pods, page cache included, bytes."""
        return self._read(self._charge, counter)

    def kubepods_inactive_file(self) -> int | None:
        """Of that the cache that the kernel drops first, bytes."""
        return self._read(self._stat, inactive_file_bytes)

    def close(self) -> None:
        for file in (self._meminfo, self._charge, self._stat):
            file.close()

    def _read(self, file: OpenFile, parse: Callable[[bytes], int]) -> int | None:
        try:
            return parse(file.read())
        except (OSError, ValueError):
            self.unreadable += 1
            return None
