"""Amounts that change within a working snapshot: what is left, what scores count, and the load, all by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy

import numpy as np

from scheduler.core.filters.room_view import need_of
from scheduler.core.load.arrays import LoadArrays
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot


class WorkingAmounts:
    """What answers are about; the arrays are the working snapshot's own, and change with it."""

    def __init__(self, snapshot: ClusterSnapshot, load: LoadArrays | None = None) -> None:
        self.snapshot = snapshot
        self.free: Amounts = snapshot.free
        self.scored: Amounts = snapshot.scored.copy()
        self.load = load

    def copy(self) -> WorkingAmounts:
        """An independent copy."""
        other = copy(self)
        other.free, other.scored = self.free.copy(), self.scored.copy()
        other.load = self.load.copy() if self.load is not None else None
        return other

    def give_back(self, rows: Amounts, classes: Sequence[PodClass], used: Amounts, scored: Amounts) -> list[int]:
        """One pod less on each of `rows` (a line each of the rest); returns the rows, each once."""
        np.add.at(self.free, rows, used)
        np.subtract.at(self.scored, rows, scored)
        if self.load is not None:
            for (row, pod_class), number in Counter(zip(rows.tolist(), classes, strict=True)).items():
                self.load.put(row, pod_class, -number)
        return list(np.unique(rows).tolist())

    def charge(self, pod_class: PodClass, rows: Sequence[int], count: int) -> list[int]:
        """`count` pods more of the class for each time a row is named (negative: less); returns the rows, each once."""
        need = need_of(self.snapshot.resources, pod_class)
        numbers = {row: number * count for row, number in Counter(rows).items()}
        if len(numbers) == 1:
            ((row, number),) = numbers.items()
            self.free[row] -= number * need.used
            self.scored[row] += number * need.scored
        else:
            at, times = np.array(list(numbers), np.int64), np.array(list(numbers.values()), np.int64)[:, None]
            self.free[at] -= times * need.used
            self.scored[at] += times * need.scored
        if self.load is not None:
            for row, number in numbers.items():
                self.load.put(row, pod_class, number)
        return list(numbers)
