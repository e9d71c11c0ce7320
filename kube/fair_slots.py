"""Bounded writes at once; those who wait have their turn by lanes, so that thousands of one hold up nobody else."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class FairSlots:
    """`number` at once. Lanes have their turn one after the other; in each who came first goes first."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def taken(self, lane: Hashable) -> AsyncIterator[None]:
        """A slot from the turn of this lane until the block ends."""
        await self._take(lane)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, lane: Hashable) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(lane, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        """To the next lane, which is the last of all then."""
        while self._waiting:
            lane = next(iter(self._waiting))
            line = self._waiting.pop(lane)
            turn = line.popleft()
            if line:
                self._waiting[lane] = line
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
