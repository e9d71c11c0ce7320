"""A bounded queue between the store and one reader that may be slow."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

T = TypeVar("T")
LIMIT_BYTES = 64 << 20


class Watcher(Generic[T]):
    """Events wait here until their reader takes them; one that falls too far behind is cut off.

    Cutting is safe where blocking would not be: the reader starts over from its last revision, and no other
    reader waits for it.
    """

    def __init__(self, limit: int, limit_bytes: int | None = LIMIT_BYTES) -> None:
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._waiting: deque[T] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._closers: list[Callable[[], None]] = []
        self.cut = False
        self.closed = False

    def preload(self, events: Collection[T]) -> None:
        """Events that happened before the reader came; the limits do not apply to them."""
        self._limit += len(events)
        self._waiting.extend(events)
        if self._waiting:
            self._wake.set()

    @property
    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def offer(self, event: T, size_bytes: int = 0) -> None:
        if self.cut:
            return
        self._waiting_bytes += size_bytes
        too_much = self._limit_bytes is not None and self._waiting_bytes > self._limit_bytes
        if too_much or len(self._waiting) >= self._limit:
            self._waiting.clear()
            self.cut = True
        else:
            self._waiting.append(event)
        self._wake.set()

    def take(self) -> list[T]:
        """Everything that waits, without waiting for more."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        self._wake.clear()
        return taken

    async def ready(self, timeout_seconds: float | None) -> None:
        """Return when something waits, when the time is over, or when the watcher was cut or closed."""
        if not (self._waiting or self.cut or self.closed):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_seconds):
                    await self._wake.wait()

    async def wait(self, timeout_seconds: float | None) -> list[T]:
        """What has come; empty when the time is over, or when the watcher was cut or closed."""
        await self.ready(timeout_seconds)
        return self.take()

    def on_close(self, closer: Callable[[], None]) -> None:
        self._closers.append(closer)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._wake.set()
            for closer in self._closers:
                closer()
