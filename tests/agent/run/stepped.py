"""An event loop whose time stands still while there is work, and jumps to the next timer when there is none."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

_LONGEST_SECONDS = 100_000.0


class _Jumping(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None and self.seconds < _LONGEST_SECONDS, "nothing will ever happen"
            self.seconds += max(timeout, 0)
        return ready


class SteppedLoop(asyncio.SelectorEventLoop):
    """For coroutines that wait for timers and each other; not for threads."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.seconds

    def stall(self, seconds: float) -> None:
        """Something that does not give way."""
        self._jumping.seconds += seconds


def run_stepped(main: Coroutine[Any, Any, Any]) -> None:
    """`asyncio.run` in stepped time, which begins at 0."""
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        runner.run(main)
