"""Node labels as numbers: what a filter reads of one label, for all rows at once, read out once per NodeTraits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from model.pod.affinity import PodTerm
from model.selector import Operator, Requirement

Codes: TypeAlias = npt.NDArray[np.int64]
_Mask: TypeAlias = npt.NDArray[np.bool_]
_REMEMBERED = 1024
_ABSENT = ""
"""The key of no label."""


class Column:
    """One label: `codes` are indexes into `values` by row, −1 where the node lacks it. Equal values are one domain."""

    def __init__(self, labels: Iterable[str | None]) -> None:
        code_of: dict[str, int] = {}
        codes = [-1 if label is None else code_of.setdefault(label, len(code_of)) for label in labels]
        self.codes: Codes = np.array(codes, np.int64)
        self.code_of: Mapping[str, int] = code_of
        self.values = tuple(code_of)

    @cached_property
    def present(self) -> _Mask:
        """Rows that have the label."""
        return np.asarray(self.codes >= 0)

    @cached_property
    def singular(self) -> bool:
        """Whether no two rows share a domain, as with kubernetes.io/hostname."""
        return len(self.values) == int(np.count_nonzero(self.present))

    def sums(self, amounts: npt.NDArray[np.int64]) -> Codes:
        """Sum of `amounts` (by row) per domain; exact below 2^53."""
        rows = self._rows
        return np.bincount(self.codes[rows], amounts[rows], len(self.values)).astype(np.int64)

    def spread_out(self, per_domain: npt.NDArray[np.int64]) -> Codes:
        """A number per domain as a number per row, 0 where the label is missing."""
        return np.asarray(np.append(per_domain, 0)[self.codes])

    def occupied(self, amounts: npt.NDArray[np.int64]) -> _Mask:
        """Rows in whose domain any of `amounts` (by row, none negative) is above 0."""
        domains = np.zeros(len(self.values) + 1, bool)
        domains[self.codes[np.flatnonzero(amounts)]] = True
        domains[-1] = False
        return np.asarray(domains[self.codes])

    def holding(self, requirement: Requirement) -> _Mask:
        """Rows for which the requirement holds."""
        listed = [self.code_of[value] for value in requirement.values if value in self.code_of]
        match requirement.operator:
            case Operator.IN | Operator.NOT_IN:
                found = np.zeros(len(self.values) + 1, bool)
                found[listed] = True
                return np.asarray((found if requirement.operator is Operator.IN else ~found)[self.codes])
            case Operator.EXISTS:
                return self.present
            case Operator.DOES_NOT_EXIST:
                return ~self.present
            case _:
                held = [requirement.holds({requirement.key: value}) for value in self.values]
                return np.asarray(np.array([*held, False], bool)[self.codes])

    @cached_property
    def _rows(self) -> Codes:
        return np.flatnonzero(self.present)


class NodeIndex:
    """What filters have read out of one NodeTraits so far; `masks` and `namespaces` forget all when they grow large.

    Labels that no node has share one column, since pods may ask for thousands of them.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self._present: frozenset[str] | None = None
        self._names: Column | None = None
        self.masks: dict[object, _Mask] = {}
        self.namespaces: dict[tuple[PodTerm, str], frozenset[str] | None] = {}

    def column(self, labels: tuple[Mapping[str, str], ...], key: str) -> Column:
        """The column of a label."""
        if key not in self.keys(labels):
            key = _ABSENT
        if key not in self._columns:
            self._columns[key] = Column(row.get(key) for row in labels)
        return self._columns[key]

    def keys(self, labels: tuple[Mapping[str, str], ...]) -> frozenset[str]:
        """All labels that any node has."""
        if self._present is None:
            self._present = frozenset().union(*labels)
        return self._present

    def names(self, names: tuple[str, ...]) -> Column:
        """The nodes' own names, as a column."""
        if self._names is None:
            self._names = Column(names)
        return self._names

    def remember(self, key: object, mask: _Mask) -> _Mask:
        """Keep a mask for whoever asks again."""
        if len(self.masks) >= _REMEMBERED:
            self.masks.clear()
        mask.setflags(write=False)
        self.masks[key] = mask
        return mask
