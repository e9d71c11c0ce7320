"""Memory marks: the kernel tells when best effort's memory passes one.

v1: an eventfd that fires when a cgroup's charge crosses a threshold. v2: memory.events of the best-effort root, which
counts each time memory.high stopped it. Both within a few ms; pressure does not warn of anonymous growth.
Source: kernel Documentation/admin-guide/cgroup-v1/memory.rst §9, cgroup-v2.rst memory.events.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.core.limit.watch import Mechanism, MemoryMark, WakeCause, Watch, mark_moved, mark_rested, mark_urgent
from agent.core.observe.files import FILES, FilePart
from agent.core.observe.layout import Layout
from agent.core.observe.parse import counter, v2_memory_events
from agent.files.openfile import OpenFile
from agent.waking import KernelEvents

_GONE = (errno.ENOENT, errno.ENODEV)
_EVENTS_FILE = "memory.events.local"
"""Without the descendants': a pod that meets its own limit is no shortage of the node's."""


def memory_alarms(root: Path, layout: Layout) -> KernelEvents:
    """What this cgroup version has."""
    return HighEvents(root, layout) if layout.version == 2 else Thresholds(root)


class _Threshold:
    """One registered mark. Raises OSError where the kernel takes none."""

    def __init__(self, folder: str, mark: MemoryMark, level: str, now: float) -> None:
        self.mark = mark
        self.since_seconds = now
        self._level = OpenFile(f"{folder}/{level}", 32)
        self.eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            passed = self.passed()
            control = os.open(f"{folder}/cgroup.event_control", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(control, f"{self.eventfd} {self._level.fileno()} {mark.bytes}".encode())
            finally:
                os.close(control)
        except (OSError, ValueError):
            self.close()
            raise
        if passed:
            # The kernel tells of crossings alone, and this one was before it was asked.
            os.eventfd_write(self.eventfd, 1)

    def passed(self) -> bool:
        """It also fires on the way down, and once more when the cgroup ends. Raises OSError, ValueError."""
        return counter(self._level.read()) >= self.mark.bytes

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.eventfd)

    def close(self) -> None:
        os.close(self.eventfd)
        self._level.close()


class Thresholds:
    """v1: each mark of the watch."""

    def __init__(self, root: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        kind = next(kind for kind in FILES[1] if kind.part is FilePart.LEVEL)
        self._folder, self._level = str(root / kind.controller), kind.file
        self._monotonic = monotonic
        self._set: dict[str, _Threshold] = {}
        self.unreadable = 0

    def place(self, watch: Watch, epoll: select.epoll) -> None:
        """At once where there is none or it would tell too late; of others that moved one at a time, the oldest."""
        wanted = {mark.cgroup: mark for mark in watch.memory}
        for cgroup in self._set.keys() - wanted.keys():
            self._drop(cgroup)
        now = self._monotonic()
        turn = self._next(wanted, now)
        for cgroup, mark in wanted.items():
            held = self._set.get(cgroup)
            if held is not None and (cgroup == turn or mark_urgent(held.mark.bytes, mark.bytes)):
                self._drop(cgroup)
            if cgroup not in self._set:
                self._add(mark, epoll, now)

    def take(self, ready: Mapping[int, int]) -> tuple[WakeCause, ...]:
        fired = [cgroup for cgroup, threshold in self._set.items() if threshold.eventfd in ready]
        return tuple(WakeCause.MEMORY_MARK for cgroup in fired if self._passed(cgroup))

    def look(self, monotonic_seconds: float) -> tuple[WakeCause, ...]:
        return ()

    def mechanisms(self) -> tuple[Mechanism, ...]:
        return (Mechanism("memory thresholds (eventfd)", len(self._set)),) if self._set else ()

    def close(self) -> None:
        for cgroup in tuple(self._set):
            self._drop(cgroup)

    def _next(self, wanted: Mapping[str, MemoryMark], now: float) -> str | None:
        """Whose mark may be registered again without haste; None where nobody's moved, or all are fresh."""
        moved = (held for held in self._set.values() if mark_moved(held.mark.bytes, wanted[held.mark.cgroup].bytes))
        rested = (held for held in moved if mark_rested(now - held.since_seconds))
        oldest = min(rested, key=lambda held: held.since_seconds, default=None)
        return oldest.mark.cgroup if oldest else None

    def _passed(self, cgroup: str) -> bool:
        threshold = self._set[cgroup]
        threshold.clear()
        try:
            return threshold.passed()
        except (OSError, ValueError):
            self._drop(cgroup)
            return False

    def _add(self, mark: MemoryMark, epoll: select.epoll, now: float) -> None:
        try:
            threshold = _Threshold(f"{self._folder}{mark.cgroup}", mark, self._level, now)
        except (OSError, ValueError) as error:
            self.unreadable += not _absent(error)
            return
        try:
            epoll.register(threshold.eventfd, select.EPOLLIN)
        except OSError:
            # It would never be heard: tried again with the next watch.
            self.unreadable += 1
            threshold.close()
            return
        self._set[mark.cgroup] = threshold

    def _drop(self, cgroup: str) -> None:
        self._set.pop(cgroup).close()


class HighEvents:
    """v2: the best-effort root's own events, whoever set its memory.high."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._events = OpenFile(f"{root}{layout.best_effort}/{_EVENTS_FILE}", 512)
        self._seen: int | None = None
        self.unreadable = 0

    def place(self, watch: Watch, epoll: select.epoll) -> None:
        """Looks for the file again where it was gone."""
        if self._seen is not None or (seen := self._count()) is None:
            return
        # A copy of the file cannot be waited for.
        with contextlib.suppress(OSError):
            epoll.register(self._events.fileno(), select.EPOLLPRI)
            self._seen = seen

    def take(self, ready: Mapping[int, int]) -> tuple[WakeCause, ...]:
        if self._events.fileno() not in ready:
            return ()
        # Reading is also what makes the kernel tell of the next.
        before, self._seen = self._seen, self._count()
        grown = before is not None and self._seen is not None and self._seen > before
        return (WakeCause.MEMORY_MARK,) if grown else ()

    def look(self, monotonic_seconds: float) -> tuple[WakeCause, ...]:
        return ()

    def mechanisms(self) -> tuple[Mechanism, ...]:
        return (Mechanism("memory.events"),) if self._seen is not None else ()

    def close(self) -> None:
        self._events.close()

    def _count(self) -> int | None:
        """How often best effort was stopped by its limits; None, and nothing left open, where that cannot be read."""
        try:
            found = v2_memory_events(self._events.read())
        except (OSError, ValueError) as error:
            self.unreadable += not _absent(error)
            self._events.close()
            return None
        return found.high + found.maximum


def _absent(error: OSError | ValueError) -> bool:
    return isinstance(error, OSError) and error.errno in _GONE
