"""The arithmetic of room: what classes that look at nothing but amounts and the nodes themselves need, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub

import msgspec
import numpy as np

from scheduler.core.snapshot.snapshot import Amounts


class RoomRequest(msgspec.Struct, frozen=True, eq=False):
    """`want` pods of one class; `request` by demanded column; no row takes more than `most`, whatever is evicted."""

    request: Amounts
    most: Amounts
    want: int


class Capacity(msgspec.Struct, frozen=True, eq=False):
    """All asks, the largest pods first; `free` is row × demanded column with what is coming free by itself."""

    asks: tuple[RoomRequest, ...]
    free: Amounts

    @property
    def want(self) -> int:
        return sum(ask.want for ask in self.asks)

    def fits(self, free: Amounts, rows: Amounts) -> bool:
        """Whether all asks fit on these rows; several classes are packed the largest first, which may miss a fit."""
        if len(self.asks) == 1:
            return int(room(self.asks[0], free, rows).sum()) >= self.asks[0].want
        left = free.copy()
        return all(assignment(ask, left, rows) for ask in self.asks)

    def within(self, inside: Amounts) -> Capacity:
        """The same asks where only these rows count."""
        mask = np.zeros(len(self.free), np.int64)
        mask[inside] = 1
        asks = (msgspec.structs.replace(ask, most=ask.most * mask) for ask in self.asks)
        return Capacity(tuple(asks), self.free)


def room(ask: RoomRequest, free: Amounts, rows: Amounts) -> Amounts:
    """How many pods of the ask each of the rows takes; `free` has a line for each of `rows`."""
    fitting = ask.most[rows]
    for column in np.flatnonzero(ask.request):
        fitting = np.minimum(fitting, free[:, column] // ask.request[column])
    return np.asarray(fitting.clip(min=0))


def taken(ask: RoomRequest, fitting: Amounts) -> Amounts:
    """How many of the ask each row gets when they are packed on the fewest rows."""
    order = np.lexsort((np.arange(len(fitting)), -np.minimum(fitting, ask.want)))
    before = np.concatenate([[0], np.cumsum(fitting[order])[:-1]])
    got = np.zeros(len(fitting), np.int64)
    got[order] = np.minimum(fitting[order], (ask.want - before).clip(min=0))
    return got


def useful_rows(capacity: Capacity) -> Amounts:
    """Rows with room already, for each ask no more of them than it needs."""
    found: set[int] = set()
    every = np.arange(len(capacity.free))
    for ask in capacity.asks:
        got = taken(ask, room(ask, capacity.free, every))
        found.update(np.flatnonzero(got).tolist())
    return np.array(sorted(found), np.int64)


def merged(asks: Sequence[RoomRequest], most: int) -> tuple[RoomRequest, ...]:
    """At most so many asks: neighbours as one of the largest amounts and the fewest places among them.

    What has room for these has room for the asks; whoever makes a gang chooses how many unlike pods are in it.
    """
    size = -(-len(asks) // most)
    parts = [asks[start : start + size] for start in range(0, len(asks), size)]
    return tuple(
        RoomRequest(
            np.maximum.reduce([ask.request for ask in part]),
            np.minimum.reduce([ask.most for ask in part]),
            sum(ask.want for ask in part),
        )
        for part in parts
    )


def assignment(ask: RoomRequest, left: Amounts, rows: Amounts) -> bool:
    """Takes the ask's room out of `left`; False where it does not fit."""
    got = taken(ask, room(ask, left, rows))
    left -= got[:, None] * ask.request[None, :]
    return int(got.sum()) >= ask.want


class RoomBalance:
    """One ask on some rows, while victims are put back one group after the other."""

    def __init__(self, ask: RoomRequest, free: Amounts, rows: Amounts) -> None:
        """`free` has a line for each of `rows`, with the room of all victims."""
        self._columns = [(int(c), int(ask.request[c])) for c in np.flatnonzero(ask.request)]
        self._free: dict[int, list[int]] = {
            int(row): line for row, line in zip(rows.tolist(), free.tolist(), strict=True)
        }
        self._most: dict[int, int] = {
            int(row): most for row, most in zip(rows.tolist(), ask.most[rows].tolist(), strict=True)
        }
        rooms = room(ask, free, rows)
        self._room: dict[int, int] = dict(zip(self._free, rooms.tolist(), strict=True))
        self._over = int(rooms.sum()) - ask.want

    def put_back(self, victims: Sequence[tuple[int, list[int]]]) -> bool:
        """Take the room of these (row, amounts) away if everything still fits without it."""
        lines: dict[int, list[int]] = {}
        for row, amounts in victims:
            lines[row] = list(map(sub, lines.get(row) or self._free[row], amounts))
        rooms, lost = {}, 0
        for row, line in lines.items():
            rooms[row] = left = self._room_in(row, line)
            lost += self._room[row] - left
        if lost > self._over:
            return False
        self._over -= lost
        self._free.update(lines)
        self._room.update(rooms)
        return True

    def _room_in(self, row: int, line: list[int]) -> int:
        fitting = self._most[row]
        for column, request in self._columns:
            most = line[column] // request
            fitting = most if most < fitting else fitting
        return fitting if fitting > 0 else 0
