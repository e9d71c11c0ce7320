"""Packing: the fewest nodes for members alike, the last of them the one they fill best."""

from __future__ import annotations

import numpy as np

from scheduler.core.snapshot.snapshot import Amounts

_NONE = np.zeros(0, np.int64)
_NO_ROOM = np.iinfo(np.int64).max


def pack(room: Amounts, want: int) -> Amounts:
    """Rows for `want` pods on the fewest nodes, the last one filled best; `room` is how many fit per node.

    Returns one row a pod, ascending; all there is room for where that is less than `want`. Ties go to the first row.
    """
    if want <= 0 or not len(room):
        return _NONE
    largest = int(room.max())
    if largest >= want:
        return np.full(want, _tightest(room, want), np.int64)
    if largest <= 0:
        return _NONE
    return _over_several(room, want)


def _tightest(room: Amounts, want: int) -> int:
    """The first row with the least room of those that hold `want`."""
    fitting = np.where(room >= want, room, _NO_ROOM)
    return int(fitting.argmin())


def _over_several(room: Amounts, want: int) -> Amounts:
    """No row holds all, so nodes are taken from the roomiest on; `numbers` counts nodes by their room."""
    numbers = np.bincount(room.clip(min=0), minlength=want)
    filled = np.cumsum((numbers * np.arange(len(numbers)))[::-1])
    if int(filled[-1]) <= want:
        return np.repeat(np.arange(len(room)), room.clip(min=0))
    least = len(numbers) - 1 - int(np.searchsorted(filled, want))
    roomier = np.flatnonzero(room > least)
    left = want - int(room[roomier].sum())
    alike = np.flatnonzero(room == least)
    full, rest = (left - 1) // least, (left - 1) % least + 1
    last = int(alike[full])
    if rest < least:
        fitting = rest + int(np.flatnonzero(numbers[rest:])[0])
        last = last if fitting == least else int((room == fitting).argmax())
    rows = np.concatenate([roomier, alike[:full]])
    return np.sort(np.concatenate([np.repeat(rows, room[rows]), np.full(rest, last, np.int64)]))
