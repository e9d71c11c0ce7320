"""Reclaimer: the kernel reclaims memory of single best-effort pods, by memory.reclaim of cgroup v2.

The kernel reclaims before it answers, so a thread writes; nobody waits for it, and no limit's thread is held up. What
was freed is the difference of memory.stat around the write. The kernel answers EAGAIN where it freed less than asked:
that is an answer, not an error. Nothing is left behind: there is no value to put back.
Source: kernel Documentation/admin-guide/cgroup-v2.rst (memory.reclaim since 5.19, `swappiness=` 6.9, its `max` 6.16).
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.core.limit.shrink import PodLook, ReclaimAnswer, ReclaimOrder
from agent.core.observe.layout import Layout
from agent.core.observe.parse import stalls, v2_anonymous
from agent.worker import WorkerThread

_BYTES = 8192
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PATIENCE_SECONDS = 5.0
_MOST_THREADS = 4
_FORMS = (b"%d swappiness=max", b"%d swappiness=200", b"%d")
"""Anonymous memory alone where the kernel can, else rather than page cache, else as it likes."""


class MemoryReclaimer:
    """`root` is where cgroups are mounted; only what lies below `layout`'s best-effort root is ever touched."""

    def __init__(self, root: Path, layout: Layout, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._below = layout.best_effort
        self._worker = WorkerThread(
            "reclaim", patience_seconds=_PATIENCE_SECONDS, most=_MOST_THREADS, monotonic=monotonic
        )
        self._lock = threading.Lock()
        self._answers: list[ReclaimAnswer] = []
        self._form = 0

    def submit(self, orders: tuple[ReclaimOrder, ...]) -> None:
        """Never waits; one that finds no thread is answered as a pod that cannot be read."""
        for order in orders:
            if not self._may_touch(order.cgroup) or not self._worker.submit(order.uid, partial(self._do, order)):
                self._answer(ReclaimAnswer(order.uid, order.bytes))

    def drain(self) -> tuple[ReclaimAnswer, ...]:
        """What came of orders since the last call."""
        with self._lock:
            taken, self._answers = self._answers, []
        return tuple(taken)

    def idle(self, seconds: float = 0.0) -> bool:
        """Every order is answered, within so long."""
        return self._worker.idle(seconds)

    def close(self) -> None:
        """What waits is forgotten."""
        self._worker.close()

    def _do(self, order: ReclaimOrder) -> None:
        folder = self._root / order.cgroup.lstrip("/")
        try:
            before = _look(folder)
            if order.bytes:
                self._reclaim(folder / "memory.reclaim", order.bytes)
                after = _look(folder)
            else:
                after = before
        except (OSError, ValueError) as error:
            unsupported = _is_unsupported(error, folder)
            self._answer(ReclaimAnswer(order.uid, order.bytes, unsupported=unsupported))
            return
        freed = max(before.memory_bytes - after.memory_bytes, 0) if order.bytes else 0
        self._answer(ReclaimAnswer(order.uid, order.bytes, freed, after))

    def _reclaim(self, file: Path, wanted: int) -> None:
        """Raises OSError. An argument that the kernel does not know is not tried again."""
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            while True:
                try:
                    os.write(descriptor, _FORMS[self._form] % wanted)
                    return
                except OSError as error:
                    if error.errno == errno.EAGAIN:
                        return
                    if error.errno != errno.EINVAL or self._form + 1 >= len(_FORMS):
                        raise
                    self._form += 1
        finally:
            os.close(descriptor)

    def _may_touch(self, cgroup: str) -> bool:
        steps = cgroup.removeprefix(f"{self._below}/").split("/")
        return cgroup.startswith(f"{self._below}/") and not {"", ".", ".."}.intersection(steps)

    def _answer(self, answer: ReclaimAnswer) -> None:
        with self._lock:
            self._answers.append(answer)


def _look(folder: Path) -> PodLook:
    """Raises OSError, ValueError."""
    memory, inactive, refaulted = v2_anonymous(_content(folder / "memory.stat"))
    some, _ = stalls(_content(folder / "memory.pressure"))
    return PodLook(memory, inactive, refaulted * _PAGE_BYTES, some.avg10_pct)


def _is_unsupported(error: OSError | ValueError, folder: Path) -> bool:
    """The cgroup is there, the file is not."""
    absent = isinstance(error, FileNotFoundError) and str(error.filename).endswith("memory.reclaim")
    return absent and (folder / "memory.stat").exists()


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _BYTES)
    finally:
        os.close(descriptor)
