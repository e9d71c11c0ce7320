"""Use table: what pods use of nodes, one growing matrix, read by node name or as rows of a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts

LARGEST_REQUEST = 1 << 53
LARGEST_USE = 1 << 61
"""No sum counts as more: what is left of a node, and sums of two, stay inside int64."""
_REQUESTED, _SCORED, _KINDS = 0, 1, 2
_HIGH_BITS = 20
_Sums: TypeAlias = tuple[int, int, int, int]
"""Requested and scored, then the high parts of both: the sums of these say where the others left int64."""
_NOTHING: _Sums = (0, 0, 0, 0)


class UseTable(Mapping[str, Mapping[str, int]]):
    """Node → resource → amount used. Rows and columns are its own, in the order in which they were first seen.

    Beside what pods request it sums what scores count for them (`Estimate.scored`, else the request). A resource has a
    column once a snapshot asks for it, which is what some node lists. A pod may name thousands that nobody lists, and
    its author may choose its node, too: those are kept apart, at the price of what the pod itself takes.
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._classes: dict[PodClass, int] = {}
        self._sums = np.zeros((64, 2 * _KINDS, 8), np.int64)
        self._class_sums = np.zeros((64, 2 * _KINDS, 8), np.int64)
        self._apart: dict[int, dict[str, _Sums]] = {}
        self._without_column: dict[int, tuple[tuple[str, _Sums], ...]] = {}
        self._known: tuple[Sequence[str], int, npt.NDArray[np.int64]] | None = None

    @property
    def height(self) -> int:
        """How many rows it has."""
        return len(self._rows)

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self._columns)

    @property
    def classes(self) -> int:
        """How many classes it knows."""
        return len(self._classes)

    def row(self, node: str) -> int:
        """The row of a node, made where it has none."""
        known = self._rows.get(node)
        if known is not None:
            return known
        self._rows[node] = len(self._rows)
        self._sums = _grown(self._sums, 0, len(self._rows))
        return self._rows[node]

    def pod_class(self, pod_class: PodClass) -> int:
        """The number of a class, made where it has none."""
        known = self._classes.get(pod_class)
        if known is not None:
            return known
        number = self._classes[pod_class] = len(self._classes)
        self._class_sums = _grown(self._class_sums, 0, len(self._classes))
        self._fill(number, tuple(_amounts(pod_class)))
        return number

    def numbers_of_rows(self, nodes: Sequence[str]) -> list[int]:
        """`row` of each."""
        known = self._rows
        return [known[node] if node in known else self.row(node) for node in nodes]

    def numbers_of_classes(self, classes: Sequence[PodClass]) -> list[int]:
        """`pod_class` of each."""
        known = self._classes
        return [known[each] if each in known else self.pod_class(each) for each in classes]

    def add(self, nodes: Sequence[str], pod_class: PodClass) -> None:
        """One pod of the class more on each of `nodes`, which may repeat."""
        number = self.pod_class(pod_class)
        self._set_apart(nodes, number, 1)
        if len(nodes) == 1:
            row = self.row(nodes[0])
            self._sums[row] += self._class_sums[number]
            return
        numbers = Counter(nodes)
        rows = np.array([self.row(node) for node in numbers], np.int64)
        times = np.array(list(numbers.values()), np.int64)
        self._sums[rows] += times[:, None, None] * self._class_sums[number]

    def remove(self, node: str, pod_class: PodClass) -> None:
        """One pod of the class less."""
        number = self.pod_class(pod_class)
        self._sums[self.row(node)] -= self._class_sums[number]
        self._set_apart((node,), number, -1)

    def requested(self, names: Sequence[str], resources: Sequence[str]) -> Amounts:
        """What pods request, node × resource; nodes and resources without any pod count 0."""
        return self._table(_REQUESTED, self.rows_of(names), resources)

    def scored(self, names: Sequence[str], resources: Sequence[str]) -> Amounts:
        """What scores count, node × resource."""
        return self._table(_SCORED, self.rows_of(names), resources)

    def class_requests(self, resources: Sequence[str]) -> Amounts:
        """What one pod of each class requests, class × resource."""
        return self._of_classes(_REQUESTED, resources)

    def class_scored(self, resources: Sequence[str]) -> Amounts:
        """What scores count for one pod of each class, class × resource."""
        return self._of_classes(_SCORED, resources)

    def _of_classes(self, kind: int, resources: Sequence[str]) -> Amounts:
        self._list(resources)
        table = self._class_sums[: len(self._classes), kind]
        return np.ascontiguousarray(_columns(table, [self._columns.get(name, -1) for name in resources]))

    def rows_of(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """The row of each node, −1 where nothing was ever on it."""
        if self._known is None or self._known[0] is not names or self._known[1] != self.height:
            rows = np.fromiter((self._rows.get(name, -1) for name in names), np.int64, len(names))
            self._known = (names, self.height, rows)
        return self._known[2]

    def __getitem__(self, node: str) -> Mapping[str, int]:
        row = self._rows[node]
        amounts = _bounded(self._sums[row], _REQUESTED).tolist()
        found = {name: amounts[column] for name, column in self._columns.items() if amounts[column]}
        found |= {name: sums[_REQUESTED] for name, sums in self._apart.get(row, {}).items() if sums[_REQUESTED]}
        if not found:
            raise KeyError(node)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, row in self._rows.items() if row in self._apart or np.any(self._sums[row, _REQUESTED]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _fill(self, number: int, amounts: tuple[tuple[str, _Sums], ...]) -> None:
        """Write what has a column into the class's row, and note what has none."""
        for name, sums in amounts:
            if name in self._columns:
                self._class_sums[number, :, self._columns[name]] = sums
        rest = tuple(each for each in amounts if each[0] not in self._columns)
        self._without_column.pop(number, None)
        if rest:
            self._without_column[number] = rest

    def _set_apart(self, nodes: Iterable[str], number: int, sign: int) -> None:
        """Count what of the class has no column."""
        rest = self._without_column.get(number, ())
        for row in [self.row(node) for node in nodes] if rest else ():
            known = self._apart.setdefault(row, {})
            for name, sums in rest:
                requested, scored, high, scored_high = known.pop(name, _NOTHING)
                now = (requested + sign * sums[0], scored + sign * sums[1])
                if any(now):
                    known[name] = (*now, high + sign * sums[2], scored_high + sign * sums[3])
            if not known:
                del self._apart[row]

    def _list(self, resources: Iterable[str]) -> None:
        """Columns for those of the resources that have none, with what was kept apart of them."""
        fresh = [name for name in resources if name not in self._columns]
        if not fresh:
            return
        self._columns |= {name: len(self._columns) + index for index, name in enumerate(fresh)}
        self._sums = _grown(self._sums, 2, len(self._columns))
        self._class_sums = _grown(self._class_sums, 2, len(self._columns))
        for row, known in list(self._apart.items()):
            for name in fresh:
                self._sums[row, :, self._columns[name]] = [_wrapped(amount) for amount in known.pop(name, _NOTHING)]
            if not known:
                del self._apart[row]
        for number, rest in list(self._without_column.items()):
            self._fill(number, rest)

    def _table(self, kind: int, rows: npt.NDArray[np.int64], resources: Sequence[str]) -> Amounts:
        self._list(resources)
        if not len(self._rows):
            return np.zeros((len(rows), len(resources)), np.int64)
        table = _columns(_bounded(self._sums, kind), [self._columns.get(name, -1) for name in resources])[rows]
        table[rows < 0] = 0
        return np.asarray(table)


def _amounts(pod_class: PodClass) -> Iterator[tuple[str, _Sums]]:
    """What one pod of the class requests of each resource, and what scores count."""
    requested = dict(pod_class.request)
    for name, scored in (requested | dict(pod_class.estimate.scored)).items():
        amounts = min(requested.get(name, 0), LARGEST_REQUEST), min(scored, LARGEST_REQUEST)
        yield name, (*amounts, amounts[0] >> _HIGH_BITS, amounts[1] >> _HIGH_BITS)


def _bounded(sums: Amounts, kind: int) -> Amounts:
    """Of one kind, and at most `LARGEST_USE`.

    Whoever makes pods may choose their node: thousands of them, each asking for more than there is, must not come out
    as room. Beyond int64 a sum begins again at its lower end, so pods that go leave what is right.
    """
    amounts, high = sums[..., kind, :], sums[..., kind + _KINDS, :]
    return np.asarray(np.where(high >= LARGEST_USE >> _HIGH_BITS, LARGEST_USE, amounts))


def _wrapped(amount: int) -> int:
    """As int64 has it."""
    return (amount + (1 << 63)) % (1 << 64) - (1 << 63)


def _columns(table: Amounts, columns: Sequence[int]) -> Amounts:
    """The columns asked for; −1 is a column of zeros."""
    chosen = table[:, columns]
    chosen[:, [column < 0 for column in columns]] = 0
    return np.asarray(chosen)


def _grown(table: Amounts, axis: int, size: int) -> Amounts:
    """The table with at least `size` entries along `axis`, doubled until that is so."""
    if table.shape[axis] >= size:
        return table
    return _grown(np.concatenate([table, np.zeros_like(table)], axis=axis), axis, size)
