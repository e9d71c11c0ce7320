"""Shares of LocalQueues over time, for ClusterQueues that serve their LocalQueues by these.

Kueue's admission fair sharing (KEP-4136): of what waits in such a queue that goes next whose LocalQueue used least over
time by its weight, as the largest share of any resource of the cluster; within a LocalQueue its own order holds. What
goes before in the same order counts as used, so that no LocalQueue gets all that is free at once. What is used is
looked at from time to time; between two looks nothing is forgotten and nothing added. It stands in the status of the
LocalQueue, from which whoever leads next goes on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

from model.queue import NO_FLAVOR, Cell
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.queue_book import add
from scheduler.core.queueing.bracket import Head
from scheduler.core.queues.usage_history import UsageHistory

_EVERY_SECONDS = 10.0
_PARTS = 10**9
"""A share of 1."""


class SubmissionShares:
    """`amounts_of` is what a workload asks for; times are Unix seconds."""

    def __init__(
        self, cache: ClusterCache, half_life_seconds: float, amounts_of: Callable[[Candidate], Mapping[Cell, int]]
    ) -> None:
        self._cache = cache
        self._amounts_of = amounts_of
        self._history = UsageHistory(half_life_seconds)
        self._restored: set[str] = set()
        self._at: float | None = None

    def observe(self, now: float) -> None:
        """What each LocalQueue uses, where some time has passed since the last look."""
        if self._at is not None and 0 <= now - self._at < _EVERY_SECONDS:
            return
        self._at = now
        used: dict[str, dict[Cell, int]] = defaultdict(dict)
        for charge in self._cache.ledger.charges():
            if charge.counts and charge.pod is not None and charge.pod.spec.local_queue:
                add(used[charge.pod.submission_key], charge.counted.cells())
        self._history.observe(used, now)
        for key in self._cache.queues.kueue.submissions.keys() - self._restored:
            self._restored.add(key)
            amounts, at = self._cache.queues.kueue.consumed(key)
            if amounts:
                self._history.restore(key, {(NO_FLAVOR, name): float(amount) for name, amount in amounts.items()}, at)

    def consumed(self, key: str) -> Mapping[str, int]:
        """What a LocalQueue used over time, by resource."""
        return {name: int(amount) for name, amount in _by_resource(self._history.average(key)).items()}

    def arranged(self, heads: list[Head], totals: Mapping[Cell, int]) -> list[Head]:
        """Those of one queue, the next one last, as they come; `totals` is what the cluster has."""
        lines: dict[str, list[Head]] = defaultdict(list)
        for head in heads:
            lines[self._submission(head[1])].append(head)
        if len(lines) < 2:
            return heads
        by_resource = _by_resource(totals)
        used = {key: {name: int(of) for name, of in _by_resource(self._history.average(key)).items()} for key in lines}
        waiting = [(self._share(key, used[key], by_resource), key) for key in lines]
        heapify(waiting)
        found: list[Head] = []
        while waiting:
            _, key = heappop(waiting)
            found.append(lines[key].pop())
            for (_, resource), amount in self._amounts_of(found[-1][1]).items():
                used[key][resource] = used[key].get(resource, 0) + amount
            if lines[key]:
                heappush(waiting, (self._share(key, used[key], by_resource), key))
        found.reverse()
        return found

    def _submission(self, candidate: Candidate) -> str:
        record = self._cache.pods.record(candidate.uids[0])
        return record.pod.submission_key if record is not None else ""

    def _share(self, key: str, used: Mapping[str, int], totals: Mapping[str, float]) -> int:
        known = self._cache.queues.kueue.submissions.get(key)
        shares = (amount * _PARTS // int(totals[name]) for name, amount in used.items() if totals.get(name, 0) >= 1)
        return max(shares, default=0) * 1000 // (known.weight_millis if known is not None else 1000)


def _by_resource(amounts: Mapping[Cell, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for (_, resource), amount in amounts.items():
        found[resource] = found.get(resource, 0) + amount
    return found
