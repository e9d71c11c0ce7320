"""Early ticks: when the tick is woken before its time, and by whom."""

from __future__ import annotations

import select
from collections.abc import Callable, Mapping
from typing import Protocol

from agent.core.limit.watch import Mechanism, WakeCause, Watch

_SOONEST_SECONDS = 0.5
"""From one wake to the next: a tick that often costs little, and sees what came in between."""


class KernelEvents(Protocol):
    """Descriptors that the kernel makes ready when something happens; used by one thread alone.

    All wait in the thread's own epoll: asking one within another takes a pressure event away unseen.
    """

    @property
    def unreadable(self) -> int:
        """How often a file refused, absent ones aside."""
        ...

    def place(self, watch: Watch, epoll: select.epoll) -> None:
        """Wait in `epoll` for what `watch` says from now on; never raises for a file that is not there."""
        ...

    def take(self, ready: Mapping[int, int]) -> tuple[WakeCause, ...]:
        """What happened, one entry for each descriptor of ours among those that are ready (descriptor to events)."""
        ...

    def look(self, monotonic_seconds: float) -> tuple[WakeCause, ...]:
        """What only looking tells, once an interval."""
        ...

    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What works here, as placed last."""
        ...

    def close(self) -> None: ...


class EarlyTicks:
    """At most one `wake` per half second: the first at once, whatever follows together at the end of it."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._owed: set[WakeCause] = set()
        self._earliest = float("-inf")
        self.fired: dict[str, int] = dict.fromkeys(WakeCause, 0)
        self.wakes: dict[str, int] = dict.fromkeys(WakeCause, 0)

    def saw(self, cause: WakeCause) -> None:
        """It happened, whether or not a tick is due for it."""
        self.fired[cause] += 1

    def ask(self, cause: WakeCause) -> None:
        """A tick is due; `wake_if_due` starts it."""
        self._owed.add(cause)

    def wake_if_due(self, now: float) -> None:
        """Wake if a tick is owed and may start; `now` is monotonic. A wake counts for each cause it serves."""
        if not self._owed or now < self._earliest:
            return
        self._earliest = now + _SOONEST_SECONDS
        for cause in self._owed:
            self.wakes[cause] += 1
        self._owed.clear()
        self._wake()
