"""Admission of gangs: whether a queue has room for what a PodGroup of Volcano needs at least, so that pods are made."""

from __future__ import annotations

from collections.abc import Mapping

from model.queue import DEFAULT_QUEUE, Cell, QueueState
from model.workload import Gang, WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.ledger.queue_book import add, cells
from scheduler.core.queues.admission_rules import barred
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.steps.queue_quotas import QueueQuotas

_WITHOUT_PODS_SECONDS = 300.0
"""So long others wait for pods that nobody makes."""
_MOST_KNOWN = 10_000


class GangAdmission:
    """Of one turn after the other: what is admitted already is summed up once in each, however many wait."""

    def __init__(self, cache: ClusterCache, quotas: QueueQuotas) -> None:
        self._cache = cache
        self._quotas = quotas
        self._now = 0.0
        self._taken: dict[str, dict[Cell, int]] = {}
        self._without_pods: dict[str, dict[str, float]] = {}
        self._minima: dict[str, tuple[Gang, object, Mapping[Cell, int]]] = {}

    def begin(self, now: float) -> None:
        """A turn begins at Unix time `now`."""
        self._now = now
        self._taken.clear()
        if len(self._minima) > _MOST_KNOWN:
            self._minima.clear()

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
        if barred(tree, queue.name, gang.namespace):
            return False
        asked, taken = self._minimum(quota, gang), self._taken_of(quota, queue.name)
        wanted = {cell: n + taken.get(cell, 0) + quota.used(queue.name, cell) for cell, n in asked.items()}
        if quota.potential_short(queue.name, wanted):
            return False
        add(taken, asked)
        self._without_pods[queue.name].setdefault(gang.key, self._now)
        return True

    def _taken_of(self, quota: TurnQuota, queue: str) -> dict[Cell, int]:
        """What gangs of the queue need whose pods may be made."""
        taken = self._taken.get(queue)
        if taken is None:
            self._taken[queue] = taken = {}
            before = self._without_pods.get(queue, {})
            self._without_pods[queue] = since = {}
            for gang in self._cache.gangs.admitted(queue):
                if not self._cache.exists(WorkloadId.gang(gang.key)):
                    since[gang.key] = begun = before.get(gang.key, self._now)
                    if self._now - begun >= _WITHOUT_PODS_SECONDS:
                        continue
                if not barred(self._quotas.tree, queue, gang.namespace):
                    add(taken, self._minimum(quota, gang))
        return taken

    def _minimum(self, quota: TurnQuota, gang: Gang) -> Mapping[Cell, int]:
        """What it needs at least of what is counted; its author may name thousands of resources."""
        known = self._minima.get(gang.key)
        if known is None or known[0] is not gang or known[1] is not quota.cells:
            known = self._minima[gang.key] = gang, quota.cells, quota.counted(cells(gang.min_resources.amounts))
        return known[2]
