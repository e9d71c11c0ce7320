"""Who is tried in a turn where more are ready than it tries: an eighth of the attempts go to the passed over.

News ends a back-off at once, so workloads that fit nowhere are ready again and again, whoever stands before others in
the order. By the order alone a turn's worth of them would be all that is ever tried, and anybody may make so many pods.
The eighth is small, so that where many fit the order counts; among those that are tried it stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from model.workload import WorkloadId

_PART = 8


class Attempts:
    """Counts the attempts of a turn; remembers who was ready and passed over, the longest first."""

    def __init__(self) -> None:
        self._passed_over: dict[WorkloadId, None] = {}
        self._ready: dict[WorkloadId, None] = {}
        self._due: set[WorkloadId] = set()
        self._left = 0

    def begin(self, ready: Iterable[WorkloadId], most: int) -> None:
        """A turn of at most so many attempts begins; who is not ready any more waits anew once it is."""
        self._ready = dict.fromkeys(ready)
        self._passed_over = {subject: None for subject in self._passed_over if subject in self._ready}
        self._due = set(islice(self._passed_over, max(most // _PART, 1)))
        self._left = most - len(self._due)

    @property
    def spent(self) -> bool:
        """Whether nobody else is tried in this turn."""
        return not (self._left or self._due)

    def may(self, subject: WorkloadId) -> bool:
        """Whether it is tried in this turn, now that it is its turn in the order."""
        return self._left > 0 or subject in self._due

    def looked_at(self, subject: WorkloadId, *, tried: bool) -> None:
        """It had its turn, and counts as an attempt where it was tried."""
        self._left -= tried and subject not in self._due
        self._due.discard(subject)
        self._ready.pop(subject, None)
        self._passed_over.pop(subject, None)

    def end(self) -> bool:
        """Who was ready and had no turn is passed over; whether there is anybody."""
        self._passed_over |= dict.fromkeys(subject for subject in self._ready if subject not in self._passed_over)
        return bool(self._ready)
