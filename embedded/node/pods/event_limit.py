"""How many events one object may have: the kubelet's spam filter.

Source: client-go tools/record/events_cache.go: 25 at once, then one in five minutes.
"""

from __future__ import annotations

from datetime import datetime

_BURST = 25
_REFILL_SECONDS = 300.0


class EventLimit:
    """A bucket of events that fills up again."""

    def __init__(self, now: datetime) -> None:
        self._left = float(_BURST)
        self._at = now

    def take(self, now: datetime) -> bool:
        """True when one more may be posted."""
        refill = (now - self._at).total_seconds() / _REFILL_SECONDS
        self._left, self._at = min(_BURST, self._left + refill), now
        if self._left < 1:
            return False
        self._left -= 1
        return True
