"""Answers per equivalence class, kept while rows change one by one: how many more fit, why not, and the scores.

What a filter or a score says of a node depends on that node's row alone here, so only rows that changed are asked
again; a kept answer equals one worked out again.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from scheduler.core.filters.room_view import RoomView
from scheduler.core.load.arrays import LoadArrays
from scheduler.core.load.arrays import LoadView as Use
from scheduler.core.placement.domains import Domains, domains_of
from scheduler.core.placement.row_log import RowLog
from scheduler.core.placement.working_amounts import WorkingAmounts
from scheduler.core.scores.node_scores import ScoreAsk, row_scores
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, Mask

_REMEMBERED = 256


class _Scores:
    """Scores of all rows for one class, up to a position of the log."""

    def __init__(self) -> None:
        self.scores: Amounts = np.zeros(0, np.int64)
        self.position = -1


class Views:
    """For one working snapshot after the other: `renew` finds out what differs, `touch` is told within one."""

    def __init__(self, state: WorkingAmounts) -> None:
        self._start(state)

    def _start(self, state: WorkingAmounts) -> None:
        """With nothing known."""
        self._state = state
        self._log = RowLog()
        self._rooms: dict[Hashable, RoomView] = {}
        self._scores: dict[Hashable, _Scores] = {}
        self._domains: dict[tuple[str, ...], Domains] = {}

    def alike(self, state: WorkingAmounts) -> Views:
        """For another state of the same snapshot: what is known of its nodes alone is known there too."""
        other = Views(state)
        other._domains = self._domains
        return other

    def renew(self, state: WorkingAmounts) -> None:
        """The next working snapshot's state; rows that are the same keep their answers."""
        before, self._state = self._state, state
        if state.snapshot.traits is not before.snapshot.traits or not _same_load(before.load, state.load):
            self._start(state)
            return
        changed = (state.free != before.free).any(axis=1) | (state.scored != before.scored).any(axis=1)
        changed |= (state.snapshot.allocatable != before.snapshot.allocatable).any(axis=1)
        if before.load is not None and state.load is not None:
            changed |= _moved(before.load, state.load)
        self._log.add(np.flatnonzero(changed).tolist())

    def touch(self, rows: list[int]) -> None:
        """These rows of the state changed."""
        self._log.add(rows)

    def room(self, pod_class: PodClass, held_key: Hashable = None, held: Amounts | None = None) -> RoomView:
        """How many more pods fit by amounts and the nodes' traits, with `held` (node × resource) counted as used."""
        view = self._rooms.get((pod_class, held_key))
        if view is None:
            _forget_oldest(self._rooms)
            view = self._rooms[pod_class, held_key] = RoomView(self._state.snapshot, pod_class)
        if view.position != self._log.position:
            view.catch_up(self._state.free, held, self._log.since(view.position))
            view.position = self._log.position
        return view

    def drop_held(self) -> None:
        """Forget answers that counted something held: it is another thing from here on."""
        for key in [key for key in self._rooms if isinstance(key, tuple) and key[1] is not None]:
            del self._rooms[key]

    def scores(self, pod_class: PodClass, policy: ScorePolicy) -> Amounts:
        """The row-local scores of all rows; not to be written to."""
        view = self._scores.get((pod_class, policy))
        if view is None:
            _forget_oldest(self._scores)
            view = self._scores[pod_class, policy] = _Scores()
        if view.position != self._log.position:
            self._score(view, pod_class, policy)
            view.position = self._log.position
        return view.scores

    def ask(self, pod_class: PodClass, policy: ScorePolicy) -> ScoreAsk:
        """The question that `scores` answers."""
        state = self._state
        return ScoreAsk(state.snapshot, state.free, state.scored, pod_class, policy, state.load)

    def domains(self, keys: tuple[str, ...]) -> Domains:
        """The domains of nested node labels, widest first."""
        if keys not in self._domains:
            self._domains[keys] = domains_of(self._state.snapshot.traits, keys)
        return self._domains[keys]

    def _score(self, view: _Scores, pod_class: PodClass, policy: ScorePolicy) -> None:
        ask = self.ask(pod_class, policy)
        rows = self._log.since(view.position)
        if rows is None or 2 * len(rows) > len(view.scores):
            view.scores = row_scores(ask)
        elif rows:
            at = np.array(rows, np.int64)
            view.scores[at] = row_scores(ask, at)


def _forget_oldest(views: dict[Hashable, RoomView] | dict[Hashable, _Scores]) -> None:
    if len(views) >= _REMEMBERED:
        del views[next(iter(views))]


def _same_load(before: LoadArrays | None, after: LoadArrays | None) -> bool:
    """Whether rows can be compared one by one."""
    if before is None or after is None:
        return before is after
    return before.policy == after.policy


def _moved(before: LoadArrays, after: LoadArrays) -> Mask:
    """Rows whose measured or estimated use differs, or came to be too old."""
    pairs = ((before.scored, after.scored), (before.prod, after.prod))
    moved = np.zeros(len(after.scored.used), bool)
    for old, new in pairs:
        moved |= (old.used != new.used).any(axis=1) | (_fresh(before, old) != _fresh(after, new))
    return moved


def _fresh(arrays: LoadArrays, use: Use) -> Mask:
    return np.asarray(np.isfinite(use.seconds) & ~arrays.expired(use))
