"""Draining: pods of queues that are stopped for good go, those of a ClusterQueue or LocalQueue with HoldAndDrain."""

from __future__ import annotations

from collections.abc import Iterator

from model.queue import QueueState
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.queues.tree import QueueTree
from scheduler.steps.turn import Eviction, Turn

QUEUE_STOPPED, LOCAL_QUEUE_STOPPED = "ClusterQueueStopped", "LocalQueueStopped"
"""Reasons of the condition DisruptionTarget, as Kueue's condition Evicted has them."""
_AGAIN_SECONDS = 60.0


class Draining:
    """A pod is asked to go once, and again where it is still there a minute later."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._asked: dict[str, float] = {}

    def turn(self, tree: QueueTree, now: float) -> Turn:
        """Evictions of this turn; time is Unix seconds."""
        turn = Turn()
        stopped = {name for name in tree.top_down if _drained(tree, name)}
        held = {key for key, each in self._cache.queues.kueue.submissions.items() if each.state is QueueState.DRAIN}
        if not stopped and not held:
            self._asked.clear()
            return turn
        found = {eviction.pod.uid: eviction for eviction in self._evictions(stopped, held)}
        self._asked = {uid: at for uid, at in self._asked.items() if uid in found}
        for uid, eviction in sorted(found.items()):
            if now - self._asked.get(uid, 0.0) >= _AGAIN_SECONDS:
                self._asked[uid] = now
                turn.evictions.append(eviction)
        return turn

    def _evictions(self, stopped: set[str], held: set[str]) -> Iterator[Eviction]:
        for charge in self._cache.ledger.charges():
            record = self._cache.record(charge.uid)
            if record is None or charge.pod is None or charge.pod.deleting or not record.pod.spec.node_name:
                continue
            local = charge.pod.submission_key
            if charge.governed_by in stopped:
                told = f"queue {charge.governed_by} is drained"
                yield Eviction(record.leaves_as, QUEUE_STOPPED, told, told)
            elif local in held and charge.counts:
                told = f"LocalQueue {local} is drained"
                yield Eviction(record.leaves_as, LOCAL_QUEUE_STOPPED, told, told)


def _drained(tree: QueueTree, name: str) -> bool:
    return any(tree.queues[each].state is QueueState.DRAIN for each in tree.path(name) if each in tree.queues)
