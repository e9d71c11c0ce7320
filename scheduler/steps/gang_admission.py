"""Admission of gangs: whether a queue has room for what a PodGroup of Volcano needs at least, so that pods are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model.queue import DEFAULT_QUEUE, Cell, QueueState
from model.workload import Gang
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.gang_cache import GangRecord
from scheduler.core.ledger.queue_book import add, cells
from scheduler.core.queues.admission_rules import counts_to
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.steps.queue_quotas import QueueQuotas

_KEPT_SECONDS = 300.0
"""So long others wait for pods of an admitted gang, which nobody may ever make, or which fit nowhere."""
_MOST_KNOWN = 10_000
_MOST_A_TURN = 256
_PAUSE_SECONDS = 1.0
"""Between turns that are made for those alone who had no turn."""


class GangAdmission:
    """Of one turn after the other: what is admitted already is summed up once in each, however many wait, and so many
    of these are looked at.
    """

    def __init__(self, cache: ClusterCache, quotas: QueueQuotas) -> None:
        self._cache = cache
        self._quotas = quotas
        self._now = 0.0
        self._taken: dict[str, dict[Cell, int]] | None = None
        self._since: dict[str, float] = {}
        self._minima: dict[str, tuple[Gang, object, Mapping[Cell, int]]] = {}
        self._after: tuple[float, str] | None = None
        self._waits = False

    def begin(self, now: float) -> None:
        """A turn begins at Unix time `now`."""
        self._now, self._taken = now, None
        if len(self._minima) > _MOST_KNOWN:
            self._minima.clear()

    def in_turn(self, waiting: Sequence[GangRecord]) -> Sequence[GangRecord]:
        """Those that are looked at in this turn, of all that wait, the oldest first: all, or so many after the last."""
        self._waits = bool(waiting)
        if len(waiting) <= _MOST_A_TURN:
            self._after = None
            return waiting
        after = self._after
        left = [each for each in waiting if after is None or (each.gang.created_seconds, each.gang.key) > after]
        chosen = (left or waiting)[:_MOST_A_TURN]
        self._after = (chosen[-1].gang.created_seconds, chosen[-1].gang.key)
        return chosen

    def next_due(self) -> float | None:
        """Unix time at which those have their turn that had none, or at which one that is admitted keeps those that
        wait out no more; None where there is neither.
        """
        if self._after is not None:
            return self._now + _PAUSE_SECONDS
        ends = (since + _KEPT_SECONDS for since in self._since.values() if self._now - since < _KEPT_SECONDS)
        return min(ends, default=None) if self._waits else None

    def admits(self, gang: Gang) -> bool:
        """Whether a gang's queue takes its work, and may ever have what it has, what is admitted and what the gang
        needs; who is admitted counts for those after it.

        What others borrow at this moment does not count (Volcano's plugin capacity): it is taken back for pods, and a
        gang that is not admitted has none.
        """
        quota, tree = self._quotas.quota, self._quotas.tree
        if quota is None:
            return True
        queue = tree.queues.get(gang.queue or DEFAULT_QUEUE)
        if queue is None or not tree.leaf(queue.name) or queue.state is not QueueState.OPEN:
            return False
        if not counts_to(tree, queue.name, gang.namespace):
            return False
        asked, taken = self._minimum(quota, gang), self._taken_of(quota, queue.name)
        wanted = {cell: n + taken.get(cell, 0) + quota.used(queue.name, cell) for cell, n in asked.items()}
        if quota.potential_short(queue.name, wanted):
            return False
        add(taken, asked)
        self._since[gang.uid] = self._now
        return True

    def _taken_of(self, quota: TurnQuota, queue: str) -> dict[Cell, int]:
        """What gangs of the queue need whose pods may be made since a short while."""
        if self._taken is None:
            self._taken, before, self._since = {}, self._since, {}
            for gang in self._cache.gangs.admitted():
                named = gang.queue or DEFAULT_QUEUE
                self._since[gang.uid] = since = before.get(gang.uid, self._now)
                if self._now - since < _KEPT_SECONDS and counts_to(self._quotas.tree, named, gang.namespace):
                    add(self._taken.setdefault(named, {}), self._minimum(quota, gang))
        return self._taken.setdefault(queue, {})

    def _minimum(self, quota: TurnQuota, gang: Gang) -> Mapping[Cell, int]:
        """What it needs at least of what is counted; its author may name thousands of resources."""
        known = self._minima.get(gang.key)
        if known is None or known[0] is not gang or known[1] is not quota.cells:
            known = self._minima[gang.key] = gang, quota.cells, quota.counted(cells(gang.min_resources.amounts))
        return known[2]
