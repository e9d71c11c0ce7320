"""Ending on a signal: the running task is cancelled once, so that its clean-up runs and nothing cuts it short."""

from __future__ import annotations

import asyncio
import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndingSignal:
    """Cancels `task` at the first ending signal and remembers which it was; later ones change nothing."""

    def __init__(self, task: asyncio.Task[int]) -> None:
        self._task = task
        self.signal: signal.Signals | None = None

    def listen(self) -> None:
        """Take over the ending signals of this process's event loop."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._received, number)

    def _received(self, number: signal.Signals) -> None:
        if self.signal is None:
            self.signal = number
            self._task.cancel()
