"""Memory poll: level and refaults, looked at each interval, since no kernel tells of either."""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from pathlib import Path

from agent.core.limit.memory_signs import MemoryLook, SignsMemory, look
from agent.core.limit.watch import Mechanism, MemorySigns, WakeCause, Watch
from agent.core.observe.parse import meminfo, vmstat
from agent.files.openfile import OpenFile

_MEMINFO_BYTES = 4096
_VMSTAT_BYTES = 16_384


class MemoryPoll:
    """`proc` holds meminfo and vmstat. It has no descriptor to wait for."""

    def __init__(self, proc: Path, page_bytes: int = os.sysconf("SC_PAGE_SIZE")) -> None:
        self._meminfo = OpenFile(str(proc / "meminfo"), _MEMINFO_BYTES)
        self._vmstat = OpenFile(str(proc / "vmstat"), _VMSTAT_BYTES)
        self._page_bytes = page_bytes
        self._signs = MemorySigns()
        self._before = SignsMemory()
        self.unreadable = 0

    def place(self, watch: Watch, epoll: select.epoll) -> None:
        self._signs = watch.signs

    def take(self, ready: Mapping[int, int]) -> tuple[WakeCause, ...]:
        return ()

    def look(self, monotonic_seconds: float) -> tuple[WakeCause, ...]:
        """What came on since the last look; nothing is read of what nobody asked for."""
        if self._signs.available_bytes is None and self._signs.refault_pct is None:
            return ()
        counted = self._counted() if self._signs.refault_pct is not None else (None, None)
        now = MemoryLook(monotonic_seconds, self._available(), *counted)
        self._before, causes = look(self._before, self._signs, now)
        return causes

    def mechanisms(self) -> tuple[Mechanism, ...]:
        working = self._before.looks and self._before.looks[-1].refaulted_bytes is not None
        return (Mechanism("refaults each interval"),) if working else ()

    def close(self) -> None:
        self._meminfo.close()
        self._vmstat.close()

    def _available(self) -> int | None:
        try:
            return meminfo(self._meminfo.read())[1]
        except (OSError, ValueError):
            self.unreadable += 1
            return None

    def _counted(self) -> tuple[int | None, int | None]:
        """In bytes. A kernel that does not count them is no fault."""
        try:
            refaulted, reclaimed = vmstat(self._vmstat.read())
        except (OSError, ValueError):
            return None, None
        return refaulted * self._page_bytes, reclaimed * self._page_bytes
