"""Scores of a node that no other node has a part in: a row that changed is scored again, the others keep theirs."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np

from model.resources import CPU, MEMORY
from model.scoring import ScorePlugin
from scheduler.core.load.arrays import LoadArrays
from scheduler.core.load.score import load_scores
from scheduler.core.scores.allocation import balanced, fit_scores
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.snapshot.podclass import ClassMemo, PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot, NodeTraits

_LARGEST = 1 << 56
"""Larger amounts are cut: a hundred times as much stays inside int64."""


class ScoreAsk(msgspec.Struct, frozen=True, eq=False):
    """What is scored: one pod of the class more on each row.

    `free` is node × resource what is not requested, `scored` what those on the node count in scores (PodSpec.scored,
    which is the request but for cpu and memory not asked for). `load` is None where no node's use is known.
    """

    snapshot: ClusterSnapshot
    free: Amounts
    scored: Amounts
    pod_class: PodClass
    policy: ScorePolicy = ScorePolicy()
    load: LoadArrays | None = None

    def of(self, rows: Amounts) -> ScoreAsk:
        """The same question about these rows alone, as they are now; it holds nothing of the others."""
        allocatable = self.snapshot.allocatable[rows]
        names = tuple(self.snapshot.names[row] for row in rows.tolist())
        cut = ClusterSnapshot(names, self.snapshot.resources, allocatable, allocatable, allocatable, _NO_TRAITS, {})
        load = None if self.load is None else self.load.of(rows)
        return ScoreAsk(cut, self.free[rows], self.scored[rows], self.pod_class, self.policy, load)


_NO_TRAITS = NodeTraits((), (), np.zeros(0, bool), np.zeros(0, bool))


class _Columns(msgspec.Struct, frozen=True, eq=False):
    """Columns that count, what a pod of the class adds to each (resource × 1), and their weights."""

    columns: Amounts
    added: Amounts
    weights: Amounts


def row_scores(ask: ScoreAsk, rows: Amounts | None = None) -> Amounts:
    """The weighted sum for `rows` (ascending indexes; None: all), whatever the filters say of them.

    A row scores the same however it is asked for.
    """
    at = slice(None) if rows is None else rows
    total = np.zeros(len(ask.free) if rows is None else len(rows), np.int64)
    for score in ROW_SCORES:
        weight = score.weight(ask.policy)
        if weight:
            total += weight * score.points(ask, at)
    return total


def _fit(ask: ScoreAsk, at: Amounts | slice) -> Amounts:
    about = (ask.snapshot.resources, ask.policy)
    counted = _FIT.get(ask.pod_class, about, lambda: _fit_columns(*about, ask.pod_class))
    allocatable = _cut(ask.snapshot.allocatable, counted.columns, at)
    requested = _cut(ask.scored, counted.columns, at)
    requested += counted.added
    return fit_scores(ask.policy, requested, allocatable, counted.weights)


def _balance(ask: ScoreAsk, at: Amounts | slice) -> Amounts | int:
    """0 for a pod that asks for none of these: it would gather with others of the kind on one node."""
    about = (ask.snapshot.resources, ask.policy)
    counted = _BALANCE.get(ask.pod_class, about, lambda: _balance_columns(*about, ask.pod_class))
    if not counted.added.any():
        return 0
    allocatable = _cut(ask.snapshot.allocatable, counted.columns, at)
    requested = allocatable - _cut(ask.free, counted.columns, at)
    requested += counted.added
    return balanced(requested, allocatable)


def _load(ask: ScoreAsk, at: Amounts | slice) -> Amounts | int:
    """0 where no node's use is known."""
    if ask.load is None:
        return 0
    return load_scores(ask.load, ask.snapshot, ask.pod_class, None if isinstance(at, slice) else at)


class RowScore(NamedTuple):
    """A score by its plugin's name: `points` (0 to 100) for rows, or one number for all of them."""

    name: ScorePlugin
    weight: Callable[[ScorePolicy], int]
    points: Callable[[ScoreAsk, Amounts | slice], Amounts | int]


ROW_SCORES = (
    RowScore(ScorePlugin.FIT, attrgetter("fit_weight"), _fit),
    RowScore(ScorePlugin.BALANCE, attrgetter("balance_weight"), _balance),
    RowScore(ScorePlugin.LOAD, attrgetter("load_weight"), _load),
)


def _cut(amounts: Amounts, columns: Amounts, at: Amounts | slice) -> Amounts:
    """Resource × row."""
    taken = amounts.T[columns] if isinstance(at, slice) else amounts[at[None, :], columns[:, None]]
    return np.minimum(taken, _LARGEST, out=taken)


_FIT: ClassMemo[_Columns] = ClassMemo()
_BALANCE: ClassMemo[_Columns] = ClassMemo()


def _fit_columns(resources: tuple[str, ...], policy: ScorePolicy, pod_class: PodClass) -> _Columns:
    asked = dict(pod_class.request) | dict(pod_class.estimate.scored)
    weights = {resource.name: resource.weight for resource in policy.resources}
    return _columns(resources, asked, weights)


def _balance_columns(resources: tuple[str, ...], policy: ScorePolicy, pod_class: PodClass) -> _Columns:
    return _columns(resources, dict(pod_class.request), dict.fromkeys(policy.balanced, 1))


def _columns(resources: tuple[str, ...], asked: dict[str, int], weights: dict[str, int]) -> _Columns:
    """cpu and memory count always, anything else where it is asked for."""
    names = [name for name in weights if name in resources and (name in (CPU, MEMORY) or asked.get(name))]
    return _Columns(
        np.array([resources.index(name) for name in names], np.intp),
        np.array([[min(asked.get(name, 0), _LARGEST)] for name in names], np.int64).reshape(len(names), 1),
        np.array([weights[name] for name in names], np.int64),
    )
