"""Request queue: requests that wait for the API server, few, the newest of each pod, tried again later and later."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from agent.core.evict.eviction_request import EvictionRequest

BOUND = 64
LONGEST_SECONDS = 60.0
"""A request older than this is about a node that is another by now: the tick decides again."""
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 8.0


class QueuedRequest(msgspec.Struct, frozen=True):
    """A request that came at `since_seconds` and may be tried from `due_seconds` on (both monotonic)."""

    request: EvictionRequest
    since_seconds: float
    due_seconds: float
    attempts: int = 0


class RequestQueue:
    """At most `bound` requests, beside those that were taken and come back by `retry`."""

    def __init__(self, bound: int = BOUND) -> None:
        self._bound = bound
        self._waiting: dict[str, QueuedRequest] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: EvictionRequest, now: float) -> EvictionRequest | None:
        """An older request about the same pod makes place; so does the oldest of a full queue, which is returned."""
        self.withdraw(request.uid)
        oldest = next(iter(self._waiting)) if len(self._waiting) >= self._bound else None
        dropped = self._waiting.pop(oldest).request if oldest is not None else None
        self._waiting[request.uid] = QueuedRequest(request, now, now)
        return dropped

    def withdraw(self, uid: str) -> None:
        """Forget what waits for this pod."""
        self._waiting.pop(uid, None)

    def retry(self, waiting: QueuedRequest, now: float, at_least_seconds: float = 0.0) -> None:
        """Put a request back that could not be carried out yet, unless a newer one about its pod has come."""
        delay = min(_FIRST_DELAY_SECONDS * 2**waiting.attempts, _LONGEST_DELAY_SECONDS)
        due = now + max(delay, at_least_seconds)
        again = msgspec.structs.replace(waiting, due_seconds=due, attempts=waiting.attempts + 1)
        self._waiting.setdefault(waiting.request.uid, again)

    def take(self, now: float, busy: Collection[str], room: int) -> list[QueuedRequest]:
        """At most `room` requests that are due, none about a `busy` pod; they leave the queue."""
        due = [waiting for uid, waiting in self._waiting.items() if waiting.due_seconds <= now and uid not in busy]
        taken = due[: max(room, 0)]
        for waiting in taken:
            del self._waiting[waiting.request.uid]
        return taken

    def expire(self, now: float) -> list[EvictionRequest]:
        """Requests that have waited too long; they leave the queue."""
        old = [waiting.request for waiting in self._waiting.values() if now - waiting.since_seconds >= LONGEST_SECONDS]
        for request in old:
            del self._waiting[request.uid]
        return old

    def clear(self) -> list[EvictionRequest]:
        """Everything leaves the queue."""
        requests = [waiting.request for waiting in self._waiting.values()]
        self._waiting.clear()
        return requests

    def next_change(self, now: float) -> float | None:
        """When a request becomes due or too old, if nothing else happens; None: never."""
        moments = [waiting.since_seconds + LONGEST_SECONDS for waiting in self._waiting.values()]
        moments += [waiting.due_seconds for waiting in self._waiting.values() if waiting.due_seconds > now]
        return min(moments, default=None)
