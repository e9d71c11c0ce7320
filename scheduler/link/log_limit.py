"""Log lines that others cause: at most one in a while, which says how many it stands for."""

from __future__ import annotations


class LogLimit:
    """A limit of log lines, so that no peer fills the disk; `now` is in seconds of a clock that never goes back."""

    def __init__(self, interval_seconds: float = 1.0) -> None:
        self._interval = interval_seconds
        self._quiet_until = float("-inf")
        self._untold = 0

    def due(self, now: float) -> int | None:
        """How many were not told since the last line, where one may be written; None where this one is not told."""
        if now < self._quiet_until:
            self._untold += 1
            return None
        untold, self._untold = self._untold, 0
        self._quiet_until = now + self._interval
        return untold
