"""An event loop in which sleeping takes no time, so that a story with retries is the same each time it is told."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Sleepless(selectors.PollSelector):
    """Where the loop would wait, its time moves on instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everything waits for something that never comes")
        self.now += timeout
        return super().select(0)


class DreamLoop(asyncio.SelectorEventLoop):
    """Its time is that of its sleeps alone; nothing from outside can wake it."""

    def __init__(self) -> None:
        self._sleepless = _Sleepless()
        super().__init__(self._sleepless)

    def time(self) -> float:
        return self._sleepless.now


def dream(story: Coroutine[Any, Any, None]) -> None:
    """Run to the end."""
    with asyncio.Runner(loop_factory=DreamLoop) as runner:
        runner.run(story)
