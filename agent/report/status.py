"""The newest state of the agent, for whoever asks: diagnostics, metrics, probes."""

from __future__ import annotations

import time
from collections.abc import Callable

from agent.ports import TickResult


class AgentStatus:
    """A sink of the tick. `ready` once usage is measured and the API server was read; `alive` while ticks go on."""

    def __init__(self, tick_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._longest_silence = max(10.0, 5 * tick_seconds)
        self._monotonic = monotonic
        self._started = monotonic()
        self._at: float | None = None
        self.newest: TickResult | None = None
        self.ticks = 0
        self.late_ticks = 0

    def take(self, result: TickResult) -> None:
        self.newest = result
        self.ticks += 1
        self._at = self._monotonic()

    @property
    def alive(self) -> bool:
        return self._monotonic() - (self._at or self._started) < self._longest_silence

    @property
    def ready(self) -> bool:
        return self.newest is not None and self.newest.usage is not None and self.newest.facts.pods is not None
