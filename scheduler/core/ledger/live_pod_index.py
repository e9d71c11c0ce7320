"""Live pod index: who is where, as far as other pods' terms ask, kept in step with the ledger once anybody asks."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from scheduler.core.ledger.ledger import Ledger, Move
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.snapshot import ClusterSnapshot


class LivePodIndex:
    """Costs nothing until the first pod with terms about others is seen."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._pod_index: PodIndex | None = None
        self._names: tuple[str, ...] = ()
        self._moves: list[Move] = []

    @property
    def live(self) -> bool:
        """Whether somebody asked already, or a resident has terms about others."""
        return self._pod_index is not None or self.ledger.with_terms > 0

    def pod_index(self, snapshot: ClusterSnapshot) -> PodIndex:
        """All charged pods on the snapshot's rows, for the caller to change."""
        if self._pod_index is None:
            self._moves = self.ledger.follow()
            self._pod_index, self._names = PodIndex(len(snapshot.names)), snapshot.names
            self._arrive(self._pod_index, snapshot, set(snapshot.names))
        else:
            self._catch_up(self._pod_index, snapshot)
        return self._pod_index.copy()

    def forget(self) -> None:
        """What is known of pods that are gone; the next to ask has to wait for a new look."""
        self.ledger.unfollow(self._moves)
        self._pod_index, self._moves = None, []

    def _catch_up(self, pod_index: PodIndex, snapshot: ClusterSnapshot) -> None:
        if self._names != snapshot.names:
            self._renumber(pod_index, snapshot)
            return
        for move in self._moves:
            row = snapshot.rows.get(move.node)
            if row is not None:
                pod_index.put(move.pod_traits, row, move.count)
        self._moves.clear()

    def _renumber(self, pod_index: PodIndex, snapshot: ClusterSnapshot) -> None:
        """Nodes came or went: who moved meanwhile is put where the rows are still the old ones."""
        old = {name: row for row, name in enumerate(self._names)}
        for move in self._moves:
            if move.node in old:
                pod_index.put(move.pod_traits, old[move.node], move.count)
        self._moves.clear()
        rows = np.array([snapshot.rows.get(name, -1) for name in self._names], np.int64)
        pod_index.remap(rows, len(snapshot.names))
        self._names = snapshot.names
        self._arrive(pod_index, snapshot, snapshot.rows.keys() - old.keys())

    def _arrive(self, pod_index: PodIndex, snapshot: ClusterSnapshot, nodes: Collection[str]) -> None:
        """Pods on nodes that were not known before."""
        found = [charge for charge in self.ledger.charges() if charge.node in nodes] if nodes else []
        pod_index.put_all((charge.pod_traits for charge in found), (snapshot.rows[charge.node] for charge in found))
