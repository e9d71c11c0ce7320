"""Order queue: orders that wait for the API server, few, the newest of each pod, tried again later and later."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from agent.core.evict.eviction_request import EvictionRequest

BOUND = 64
LONGEST_SECONDS = 60.0
"""An order older than this is about a node that is another by now: the tick decides again."""
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 8.0


class QueuedRequest(msgspec.Struct, frozen=True):
    """An order that came at `since_seconds` and may be tried from `due_seconds` on (both monotonic)."""

    order: EvictionRequest
    since_seconds: float
    due_seconds: float
    attempts: int = 0


class RequestQueue:
    """At most `bound` orders, beside those that were taken and come back by `retry`."""

    def __init__(self, bound: int = BOUND) -> None:
        self._bound = bound
        self._waiting: dict[str, QueuedRequest] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, order: EvictionRequest, now: float) -> EvictionRequest | None:
        """An older order about the same pod makes place; so does the oldest of a full queue, which is returned."""
        self.withdraw(order.uid)
        oldest = next(iter(self._waiting)) if len(self._waiting) >= self._bound else None
        dropped = self._waiting.pop(oldest).order if oldest is not None else None
        self._waiting[order.uid] = QueuedRequest(order, now, now)
        return dropped

    def withdraw(self, uid: str) -> None:
        """Forget what waits for this pod."""
        self._waiting.pop(uid, None)

    def retry(self, waiting: QueuedRequest, now: float, at_least_seconds: float = 0.0) -> None:
        """Put an order back that could not be carried out yet, unless a newer one about its pod has come."""
        delay = min(_FIRST_DELAY_SECONDS * 2**waiting.attempts, _LONGEST_DELAY_SECONDS)
        due = now + max(delay, at_least_seconds)
        again = msgspec.structs.replace(waiting, due_seconds=due, attempts=waiting.attempts + 1)
        self._waiting.setdefault(waiting.order.uid, again)

    def take(self, now: float, busy: Collection[str], room: int) -> list[QueuedRequest]:
        """At most `room` orders that are due, none about a `busy` pod; they leave the queue."""
        due = [waiting for uid, waiting in self._waiting.items() if waiting.due_seconds <= now and uid not in busy]
        taken = due[: max(room, 0)]
        for waiting in taken:
            del self._waiting[waiting.order.uid]
        return taken

    def expire(self, now: float) -> list[EvictionRequest]:
        """Orders that have waited too long; they leave the queue."""
        old = [waiting.order for waiting in self._waiting.values() if now - waiting.since_seconds >= LONGEST_SECONDS]
        for order in old:
            del self._waiting[order.uid]
        return old

    def clear(self) -> list[EvictionRequest]:
        """Everything leaves the queue."""
        orders = [waiting.order for waiting in self._waiting.values()]
        self._waiting.clear()
        return orders

    def next_change(self, now: float) -> float | None:
        """When an order becomes due or too old, if nothing else happens; None: never."""
        moments = [waiting.since_seconds + LONGEST_SECONDS for waiting in self._waiting.values()]
        moments += [waiting.due_seconds for waiting in self._waiting.values() if waiting.due_seconds > now]
        return min(moments, default=None)
