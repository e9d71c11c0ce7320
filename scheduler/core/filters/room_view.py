"""Room view: how many more pods of one class each node takes, and why others take none, kept up to date by row."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from scheduler.core.filters import fit
from scheduler.core.filters.static import verdicts
from scheduler.core.snapshot.podclass import ClassMemo, PodClass
from scheduler.core.snapshot.snapshot import LARGEST_AMOUNT, Amounts, ClusterSnapshot, Mask, Verdicts

_FEW = 6
"""Up to so many rows plain integers are faster than arrays."""
_MOST_TOLD = 12
"""What nodes are short of is counted by combination, of which each resource doubles the number."""


class RoomNeed(msgspec.Struct, frozen=True, eq=False):
    """The columns a class asks for and how much; `unlisted` are resources that no node lists.

    `used` is one amount for each column of the snapshot, `scored` the same as scores count it.
    """

    columns: tuple[int, ...]
    amounts: tuple[int, ...]
    unlisted: tuple[str, ...]
    used: Amounts
    scored: Amounts


_NEEDS: ClassMemo[RoomNeed] = ClassMemo()


def need_of(resources: tuple[str, ...], pod_class: PodClass) -> RoomNeed:
    """What a class asks for, in columns."""
    return _NEEDS.get(pod_class, resources, lambda: _need(resources, pod_class))


def _need(resources: tuple[str, ...], pod_class: PodClass) -> RoomNeed:
    column_of = {name: column for column, name in enumerate(resources)}
    listed = [(column_of[name], min(n, LARGEST_AMOUNT)) for name, n in pod_class.request if name in column_of]
    scored = dict(pod_class.request) | dict(pod_class.estimate.scored)
    return RoomNeed(
        tuple(column for column, _ in listed),
        tuple(amount for _, amount in listed),
        tuple(name for name, _ in pod_class.request if name not in column_of),
        _row(resources, dict(pod_class.request)),
        _row(resources, scored),
    )


def _row(resources: tuple[str, ...], amounts: dict[str, int]) -> Amounts:
    row = np.array([min(amounts.get(name, 0), LARGEST_AMOUNT) for name in resources], np.int64)
    row.setflags(write=False)
    return row


class RoomView:
    """`room` is by row, not to be written to by others; `position` is for who keeps the view."""

    def __init__(self, snapshot: ClusterSnapshot, pod_class: PodClass) -> None:
        self.position = -1
        self._snapshot = snapshot
        self._need = need_of(snapshot.resources, pod_class)
        verdict = verdicts(snapshot.traits, pod_class.tolerance)
        self._refused = _refusals(verdict)
        self._words_of: dict[int, tuple[str, ...]] = {}
        self._admissible: Mask = verdict.admissible
        self._candidates = int(np.count_nonzero(self._admissible))
        self._all_admissible = self._candidates == len(self._admissible)
        self.room: Amounts = np.zeros(len(snapshot.names), np.int64)
        self._patterns: Amounts | None = None
        self._tally: list[int] = []

    def catch_up(self, free: Amounts, held: Amounts | None, rows: list[int] | None) -> None:
        """Ask again for the rows that changed (None: all); `held` counts as used."""
        if self._need.unlisted:
            return
        if rows is None or 4 * len(rows) > len(self.room):
            left = free if held is None else free - held
            self.room = self._counts(left)
            self._patterns = None
        elif len(rows) <= _FEW:
            self._few(free, held, rows)
        elif rows:
            self._some(free, held, np.array(rows, np.int64))

    def _counts(self, left: Amounts) -> Amounts:
        """For all rows."""
        counts = np.full(len(left), LARGEST_AMOUNT, np.int64)
        for column, amount in zip(self._need.columns, self._need.amounts, strict=True):
            np.minimum(counts, left[:, column] // amount, out=counts)
        np.maximum(counts, 0, out=counts)
        if not self._all_admissible:
            counts[~self._admissible] = 0
        return counts

    def _few(self, free: Amounts, held: Amounts | None, rows: list[int]) -> None:
        need = list(zip(self._need.columns, self._need.amounts, strict=True))
        for row in rows:
            left = (free[row] if held is None else free[row] - held[row]).tolist()
            fitting = min(left[column] // amount for column, amount in need)
            self.room[row] = max(fitting, 0) if self._admissible[row] else 0
            if self._patterns is not None and self._admissible[row]:
                pattern = sum(1 << bit for bit, (column, amount) in enumerate(need) if left[column] < amount)
                self._tally[int(self._patterns[row])] -= 1
                self._tally[pattern] += 1
                self._patterns[row] = pattern

    def _some(self, free: Amounts, held: Amounts | None, rows: Amounts) -> None:
        rows = rows if self._all_admissible else rows[self._admissible[rows]]
        left = free[rows] if held is None else free[rows] - held[rows]
        left = left[:, self._need.columns]
        self.room[rows] = (left // np.array(self._need.amounts, np.int64)).min(axis=1).clip(min=0)
        if self._patterns is not None:
            patterns = self._pattern(left)
            change = np.bincount(patterns, minlength=len(self._tally))
            change -= np.bincount(self._patterns[rows], minlength=len(self._tally))
            self._tally = (np.array(self._tally) + change).tolist()
            self._patterns[rows] = patterns

    def _pattern(self, left: Amounts) -> Amounts:
        """A bit for each resource of the class that is short; `left` is row × resource asked for."""
        short = left < np.array(self._need.amounts, np.int64)
        return np.asarray(short @ (1 << np.arange(short.shape[1], dtype=np.int64)))

    def report(self, free: Amounts, held: Amounts | None) -> fit.FitReport:
        """`fit.report` from what is known; `free` and `held` as at the last `catch_up`. Only for a `plain` class."""
        if self._patterns is None:
            self._tell_apart(free, held)
        refused = sorted((*self._refused, *self._short()))
        return fit.FitReport(len(self.room), self._tally[0], tuple(refused))

    def _tell_apart(self, free: Amounts, held: Amounts | None) -> None:
        """Patterns once more: an admissible node is short of something exactly where it has no room."""
        rows = np.flatnonzero((self.room == 0) & self._admissible)
        left = free[rows] if held is None else free[rows] - held[rows]
        patterns = self._pattern(left[:, self._need.columns])
        self._patterns = np.zeros(len(self.room), np.int64)
        self._patterns[rows] = patterns
        self._tally = np.bincount(patterns, minlength=1 << len(self._need.columns)).tolist()
        self._tally[0] += self._candidates - len(rows)

    def _short(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Admissible nodes by what they are short of."""
        for pattern, number in enumerate(self._tally):
            if number and pattern:
                yield self._words(pattern), number

    def _words(self, pattern: int) -> tuple[str, ...]:
        if pattern not in self._words_of:
            names = (self._snapshot.resources[c] for bit, c in enumerate(self._need.columns) if pattern >> bit & 1)
            self._words_of[pattern] = tuple(sorted(fit.insufficient(name) for name in names))
        return self._words_of[pattern]


def plain(resources: tuple[str, ...], pod_class: PodClass) -> bool:
    """Whether every node is told by its traits or by what it is short of, and that is counted in little memory."""
    need = need_of(resources, pod_class)
    return not pod_class.tolerance.claims and not need.unlisted and len(need.columns) <= _MOST_TOLD


def _refusals(verdict: Verdicts) -> tuple[tuple[tuple[str, ...], int], ...]:
    if not verdict.reasons:
        return ()
    numbers = np.bincount(verdict.reason_of + 1, minlength=len(verdict.reasons) + 1).tolist()[1:]
    return tuple(((reason,), number) for reason, number in zip(verdict.reasons, numbers, strict=True) if number)
