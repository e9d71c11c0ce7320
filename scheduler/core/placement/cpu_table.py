"""CPU table: whole CPUs of all nodes as one turn sees them, while pods come and go by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

import msgspec
import numpy as np

from model.cpubinding import BoundCpus, CpuLayout, CpuRequest, NodeCpus
from scheduler.core.cpus.free_cpus import NOT_ENOUGH, REASONS, FreeCpus, free_cpus
from scheduler.core.cpus.room import chosen, room
from scheduler.core.filters.fit import Refused
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot

_UNKNOWN = NodeCpus()
_REMEMBERED = 256
"""Answers by request: pods may ask in as many ways as their authors like."""


class CpuRoom(msgspec.Struct, frozen=True, eq=False):
    """By row, how many more pods get their CPUs; `refused` are rows that take none, by reason."""

    most: Amounts
    refused: tuple[Refused, ...]


class _Answers(msgspec.Struct, frozen=True, eq=False):
    """How many pods of one request each row takes, and by index of its words why it takes none; copies share them."""

    most: Amounts
    reason_of: Amounts


class CpuTable:
    """Costs nothing until a pod asks for CPUs; rows are read from the ledger when they are first asked for."""

    def __init__(self, snapshot: ClusterSnapshot, ledger: Ledger | None) -> None:
        self._names = snapshot.names
        self._nodes = snapshot.traits.related.cpus
        self._rules = snapshot.traits.cpu_rules
        self._ledger = ledger
        self._bound: dict[int, Mapping[str, BoundCpus]] = {}
        self._free: dict[int, FreeCpus] = {}
        self._answers: dict[CpuRequest, _Answers] = {}
        self._stale: dict[CpuRequest, set[int]] = {}

    def copy(self) -> CpuTable:
        """An independent copy."""
        other = copy(self)
        other._bound, other._free, other._answers = dict(self._bound), dict(self._free), dict(self._answers)
        other._stale = {request: set(rows) for request, rows in self._stale.items()}
        return other

    def room(self, request: CpuRequest) -> CpuRoom:
        """For one more pod that asks so; not to be written to, and valid until the table next changes."""
        if request.problem:
            nobody = np.zeros(len(self._names), np.int64)
            return CpuRoom(nobody, ((np.ones(len(self._names), bool), request.problem),))
        answers = self._up_to_date(request)
        refused = ((np.asarray(answers.reason_of == index), reason) for index, reason in enumerate(REASONS))
        return CpuRoom(answers.most, tuple(each for each in refused if each[0].any()))

    def put(self, row: int, uid: str, request: CpuRequest) -> int:
        """The mask of CPUs that the pod has from here on; 0 where there are none for it."""
        known = self._holders(row).get(uid)
        if known is not None:
            return known.cpus
        cpus = 0 if request.problem else chosen(self._row(row), request)
        if cpus:
            self._change(row, {**self._holders(row), uid: BoundCpus(cpus, request.exclusive)})
        return cpus

    def remove(self, row: int, uid: str) -> None:
        """The pod has none any more."""
        holders = self._holders(row)
        if uid in holders:
            self._change(row, {other: cpus for other, cpus in holders.items() if other != uid})

    def layout(self, row: int) -> CpuLayout:
        """The CPUs of a row's node."""
        return self._nodes.get(self._names[row], _UNKNOWN).layout

    def _change(self, row: int, holders: Mapping[str, BoundCpus]) -> None:
        self._bound[row] = holders
        self._free.pop(row, None)
        for request in self._answers:
            self._stale.setdefault(request, set()).add(row)

    def _up_to_date(self, request: CpuRequest) -> _Answers:
        """Rows that changed since are worked out once it is asked for again."""
        answers, size = self._answers.get(request), len(self._names)
        if answers is None:
            if len(self._answers) >= _REMEMBERED:
                oldest = next(iter(self._answers))
                del self._answers[oldest]
                self._stale.pop(oldest, None)
            stale: Iterable[int] = range(size)
            answers = _Answers(np.zeros(size, np.int64), np.full(size, -1, np.int64))
        else:
            stale = self._stale.pop(request, ())
            answers = _Answers(answers.most.copy(), answers.reason_of.copy()) if stale else answers
        for row in stale:
            self._answer(answers, row, request)
        self._answers[request] = answers
        return answers

    def _answer(self, answers: _Answers, row: int, request: CpuRequest) -> None:
        number, why = room(self._row(row), request)
        answers.most[row], answers.reason_of[row] = number, -1 if number else REASONS.index(why or NOT_ENOUGH)

    def _row(self, row: int) -> FreeCpus:
        if row not in self._free:
            node, rules = self._nodes.get(self._names[row], _UNKNOWN), self._rules[row]
            self._free[row] = free_cpus(node, self._holders(row).values(), rules)
        return self._free[row]

    def _holders(self, row: int) -> Mapping[str, BoundCpus]:
        if row not in self._bound:
            self._bound[row] = dict(self._ledger.cpus.of(self._names[row])) if self._ledger is not None else {}
        return self._bound[row]
