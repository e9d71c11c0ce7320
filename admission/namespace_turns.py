"""Turns of namespaces: whoever has many large reviews at once holds up those of other namespaces by one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_REST_SECONDS, _REST_SHARE = 0.02, 0.25
"""After a review all else has this share of what it took, and at most so long: a request is read in several passes of
the event loop, and is in no line before.
"""
_MOST_BYTES = 16 << 20
"""Of a namespace's reviews that wait: they are held in memory meanwhile, and are some thousand of usual size."""


class NamespaceTurns:
    """One review at a time. Namespaces have their turn one after the other; in each who came first goes first."""

    def __init__(self) -> None:
        self._busy = False
        self._bytes = Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def crowded(self, namespace: str, size: int) -> bool:
        """Whether one of so many bytes more would be too much to wait."""
        return self._busy and self._bytes[namespace] + size > _MOST_BYTES

    async def review(self, namespace: str, size: int, answer: Callable[[], T]) -> T:
        """What `answer` says, once it is the turn of this namespace; `size` is that of the review in bytes."""
        self._bytes[namespace] += size
        try:
            await self._turn(namespace)
        finally:
            self._bytes[namespace] -= size
            if not self._bytes[namespace]:
                del self._bytes[namespace]
        began = time.monotonic()
        try:
            return answer()
        finally:
            rest = min(_REST_SECONDS, (time.monotonic() - began) * _REST_SHARE)
            asyncio.get_running_loop().call_later(rest, self._next)

    async def _turn(self, namespace: str) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._next()
            raise

    def _next(self) -> None:
        """To the next namespace, which is the last of all then."""
        while self._waiting:
            namespace = next(iter(self._waiting))
            line = self._waiting.pop(namespace)
            turn = line.popleft()
            if line:
                self._waiting[namespace] = line
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False
