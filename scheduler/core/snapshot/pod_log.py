"""Log of pods added and removed: (number of PodTraits, row, how many), so that counts catch up."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np

from scheduler.core.snapshot.snapshot import Amounts, Mask

Entry: TypeAlias = tuple[int, int, int]
_TAIL = 2048
_FIRST_CAPACITY = 8192


class PodLogEntries(msgspec.Struct, frozen=True, eq=False):
    """Parallel arrays; a negative number of pods left."""

    numbers: Amounts
    rows: Amounts
    amounts: Amounts


class PodLog:
    """An append-only log. Copies share what was written before them: nobody overwrites what another can read."""

    def __init__(self) -> None:
        self._store = np.zeros((3, _FIRST_CAPACITY), np.int64)
        self._stored = 0
        self._owned = True
        self._tail: list[Entry] = []

    def __len__(self) -> int:
        return self._stored + len(self._tail)

    def extend(self, entries: list[Entry]) -> None:
        self._tail += entries
        if len(self._tail) >= _TAIL:
            self._flush()

    def copy(self) -> PodLog:
        """An independent log with the same entries."""
        other = PodLog.__new__(PodLog)
        other._store, other._stored, other._owned = self._store, self._stored, False
        other._tail = self._tail.copy()
        return other

    def since(self, position: int) -> PodLogEntries:
        """All entries from `position` on."""
        stored = self._store[:, position : self._stored]
        late = self._tail[max(0, position - self._stored) :]
        if late:
            stored = np.concatenate((stored, np.array(late, np.int64).T), axis=1)
        return PodLogEntries(stored[0], stored[1], stored[2])

    def fresh(self, position: int) -> list[Entry] | None:
        """The entries from `position` on where they are few, None where `since` is the way to read them."""
        return self._tail[position - self._stored :] if position >= self._stored else None

    def replace(self, entries: PodLogEntries) -> None:
        """These entries stand for all before."""
        self._store = np.array((entries.numbers, entries.rows, entries.amounts), np.int64)
        self._stored, self._owned, self._tail = len(entries.rows), True, []

    def _flush(self) -> None:
        end = self._stored + len(self._tail)
        if not self._owned or end > self._store.shape[1]:
            wider = np.zeros((3, max(_FIRST_CAPACITY, 2 * end)), np.int64)
            wider[:, : self._stored] = self._store[:, : self._stored]
            self._store, self._owned = wider, True
        self._store[:, self._stored : end] = np.array(self._tail, np.int64).T
        self._stored, self._tail = end, []


def merged(entries: PodLogEntries) -> PodLogEntries:
    """One entry for each number and row where any pod is left, in order of both."""
    if not len(entries.rows):
        return entries
    width = int(entries.rows.max()) + 1
    keys, inverse = np.unique(entries.numbers * width + entries.rows, return_inverse=True)
    amounts = np.bincount(inverse, entries.amounts, len(keys)).astype(np.int64)
    return kept(PodLogEntries(keys // width, keys % width, amounts), amounts != 0)


def kept(entries: PodLogEntries, mask: Mask) -> PodLogEntries:
    """The entries that the mask names."""
    return PodLogEntries(entries.numbers[mask], entries.rows[mask], entries.amounts[mask])
