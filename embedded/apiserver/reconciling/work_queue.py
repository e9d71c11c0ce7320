"""Which objects a controller has to look at: those that changed, those whose time has come, those to try again."""

from __future__ import annotations

import heapq

Key = tuple[str, str]  # namespace and name
_FIRST_RETRY_SECONDS = 1.0
_LAST_RETRY_SECONDS = 60.0
_MOST_VOID = 64  # entries of objects that are gone, whose time may be a day ahead


class WorkQueue:
    """Keys to look at, each once however often it was asked for. Times are seconds."""

    def __init__(self) -> None:
        self._dirty: set[Key] = set()
        self._due: dict[Key, float] = {}
        self._order: list[tuple[float, Key]] = []  # heap; an entry that `_due` does not confirm is void
        self._failures: dict[Key, int] = {}
        self._refused_until: dict[Key, float] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing has to be looked at before the next due time."""
        return not self._dirty

    def now(self, key: Key) -> None:
        self._dirty.add(key)

    def at(self, key: Key, moment: float) -> None:
        """Look at it then, or earlier where that is due already."""
        if moment < self._due.get(key, float("inf")):
            self._due[key] = moment
            heapq.heappush(self._order, (moment, key))
            if len(self._order) > 2 * len(self._due) + _MOST_VOID:
                self._order = [(due, each) for each, due in self._due.items()]
                heapq.heapify(self._order)

    def refused(self, key: Key, now: float) -> None:
        """What it needs was refused: again after a pause that doubles."""
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(_FIRST_RETRY_SECONDS * 2.0 ** min(count - 1, 10), _LAST_RETRY_SECONDS)
        self._refused_until[key] = now + pause
        self.at(key, now + pause)

    def must_pause(self, key: Key, now: float) -> bool:
        """Whether it was refused so lately that trying again would be hammering; asks for a look when it is over."""
        until = self._refused_until.get(key, 0.0)
        if until > now:
            self.at(key, until)
        return until > now

    def accepted(self, key: Key) -> None:
        self._failures.pop(key, None)
        self._refused_until.pop(key, None)

    def forget(self, key: Key) -> None:
        self._dirty.discard(key)
        self._due.pop(key, None)
        self.accepted(key)

    def next_due(self) -> float | None:
        while self._order and self._due.get(self._order[0][1]) != self._order[0][0]:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None

    def take(self, now: float) -> list[Key]:
        """All that is to be looked at, in order; it waits no more."""
        while (due := self.next_due()) is not None and due <= now:
            key = heapq.heappop(self._order)[1]
            del self._due[key]
            self._dirty.add(key)
        keys, self._dirty = sorted(self._dirty), set()
        return keys
