"""Log of changed rows: a cache by row remembers a position and catches up from there."""

from __future__ import annotations

from collections.abc import Iterable

_REMEMBERED = 1 << 15
_MANY = 1 << 11


class RowLog:
    """Positions only grow; what lies too far back is forgotten, and then everything counts as changed."""

    def __init__(self) -> None:
        self._start = 0
        self._rows: list[int] = []

    @property
    def position(self) -> int:
        """Where the log ends."""
        return self._start + len(self._rows)

    def add(self, rows: Iterable[int]) -> None:
        """These rows changed."""
        if len(self._rows) > _REMEMBERED:
            self._start = self.position
            self._rows.clear()
        self._rows.extend(rows)

    def since(self, position: int) -> list[int] | None:
        """The rows that changed after `position`, each once, ascending; None where these are many or not known."""
        if position < self._start or self.position - position > _MANY:
            return None
        fresh = self._rows[position - self._start :]
        return fresh if len(fresh) < 2 else sorted(set(fresh))
