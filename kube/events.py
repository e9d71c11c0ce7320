"""Kubernetes Events (core/v1), repeated ones counted instead of posted again.

`record` never holds up the caller; a few posts are under way at a time. While the API server does not answer, Events
wait as far as there is room. What the server refuses is logged and counted as dropped, as is what finds no room.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from kube.client import KubeClient, PatchKind, path_of
from kube.eventqueue import Event, EventQueue, ObjectRef, WaitingEvent
from model.fault import KubernetesFault

__all__ = ["EventCapacity", "EventRecorder", "ObjectRef"]

log = structlog.get_logger()

_MESSAGE_LIMIT = 1024
_TRIES = 12
"""client-go's maxTriesPerEvent. Tries that no server answered are not counted: then nobody's Events get through."""
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.2, 10.0


class EventCapacity(msgspec.Struct, frozen=True):
    """How many different Events may wait, how many posts are under way, and of how many posted ones repeats count."""

    waiting: int = 1000
    posts: int = 2
    remembered: int = 500


class _Posted(msgspec.Struct, frozen=True):
    name: str
    count: int


class EventRecorder:
    """`record` returns at once; `run` posts. Events of cluster-scoped objects go to namespace `default`.

    While `give_way` says that more urgent writes are under way, Events are posted one at a time, unless half the
    room is taken.
    """

    def __init__(
        self,
        client: KubeClient,
        component: str,
        host: str,
        now: Callable[[], datetime] | None = None,
        capacity: EventCapacity | None = None,
    ) -> None:
        self._client = client
        self.give_way: Callable[[], bool] = lambda: False
        self._source = {"component": component, "host": host}
        self._now = now or (lambda: datetime.now(UTC))
        self._capacity = capacity or EventCapacity()
        self._queue = EventQueue(self._capacity.waiting)
        self._posted: OrderedDict[Event, _Posted] = OrderedDict()
        self._posters: asyncio.TaskGroup | None = None
        self._under_way = 0
        self._failures = 0
        self._refused = 0
        self._told_full = False
        self._empty, self._ending = asyncio.Event(), asyncio.Event()
        self._empty.set()
        self._serial = 0

    @property
    def dropped(self) -> int:
        """Occurrences that no Event on the server tells of."""
        return self._queue.dropped + self._refused

    def record(
        self, about: ObjectRef, reason: str, message: str, *, warning: bool = False, component: str = ""
    ) -> None:
        """Queue one Event; the message is cut at 1,024 characters as Kubernetes wants it.

        `component` tells it in place of the recorder's own.
        """
        text = message if len(message) <= _MESSAGE_LIMIT else message[: _MESSAGE_LIMIT - 4] + " ..."
        dropped = self._queue.dropped
        self._queue.put(Event(about, "Warning" if warning else "Normal", reason, text, component), self._now())
        if self._queue.dropped > dropped and not self._told_full:
            self._told_full = True
            log.warning("events are dropped, ordinary ones first", waiting=len(self._queue), dropped=self.dropped)
        self._empty.clear()
        self._post_more()

    async def run(self) -> None:
        """Post what is queued, for ever."""
        async with asyncio.TaskGroup() as self._posters:
            self._post_more()
            try:
                await asyncio.Event().wait()
            finally:
                self._posters = None

    async def flush(self, timeout_seconds: float) -> None:
        """Wait until everything is posted, at most `timeout_seconds`; for a clean stop.

        A server that does not answer is not asked again meanwhile.
        """
        dropped = self.dropped
        self._ending.set()
        self._post_more()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), timeout_seconds)
        self._ending.clear()
        lost = len(self._queue) + self._under_way + self.dropped - dropped
        if lost:
            log.warning("events not posted before the stop", events=lost)

    def _post_more(self) -> None:
        while self._posters is not None and self._under_way < self._posts_now():
            waiting = self._queue.take()
            if waiting is None:
                return
            self._under_way += 1
            self._posters.create_task(self._deliver(waiting))

    def _posts_now(self) -> int:
        """A poster that ends starts the next ones, so those that gave way come back by themselves."""
        calm = len(self._queue) <= self._capacity.waiting // 2 and not self._ending.is_set()
        return 1 if calm and self.give_way() else self._capacity.posts

    async def _deliver(self, waiting: WaitingEvent) -> None:
        """One try; an Event that shall be tried again goes back before this poster pauses."""
        try:
            await self._post(waiting)
            self._failures = 0
            self._queue.done(waiting)
        except KubernetesFault as fault:
            if self._once_more(waiting, fault):
                self._queue.back(waiting)
                await self._pause(fault)
            else:
                self._give_up(waiting, fault)
        finally:
            self._under_way -= 1
            self._post_more()
            if self._queue.empty:
                self._told_full = False
                self._empty.set()

    def _once_more(self, waiting: WaitingEvent, fault: KubernetesFault) -> bool:
        """Whether the fault is of the moment and not of the Event."""
        if fault.status == 0:
            return not self._ending.is_set()
        waiting.tries += 1
        return (fault.status == 429 or fault.status >= 500) and waiting.tries < _TRIES

    def _give_up(self, waiting: WaitingEvent, fault: KubernetesFault) -> None:
        """Those that found no server during a stop are counted together by `flush`."""
        self._refused += waiting.count
        self._queue.done(waiting)
        if fault.status:
            about, reason = waiting.event.about.name, waiting.event.reason
            log.warning("event not posted", about=about, reason=reason, error=str(fault))

    async def _pause(self, fault: KubernetesFault) -> None:
        """Longer from failure to failure; a stop ends it."""
        if not self._failures:
            log.warning("events wait", waiting=len(self._queue), error=str(fault))
        self._failures += 1
        delay = min(_FIRST_DELAY_SECONDS * 2 ** min(self._failures - 1, 10), _LONGEST_DELAY_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), max(delay, fault.retry_after_seconds))

    async def _post(self, waiting: WaitingEvent) -> None:
        """PATCH the count of one that was posted before, unless the server has forgotten it; else POST."""
        if waiting.event in self._posted and await self._count(waiting, self._posted[waiting.event]):
            return
        waiting.name = waiting.name or self._name(waiting.event)
        namespace = _namespace(waiting.event)
        try:
            await self._client.create(path_of("v1/events", namespace=namespace), self._body(waiting, namespace))
        except KubernetesFault as fault:
            # An earlier try arrived and only its answer was lost.
            if fault.status != 409 or not await self._count(waiting, _Posted(waiting.name, 0)):
                raise
            return
        self._remember(waiting.event, _Posted(waiting.name, waiting.count))

    async def _count(self, waiting: WaitingEvent, posted: _Posted) -> bool:
        path = path_of("v1/events", namespace=_namespace(waiting.event), name=posted.name)
        count = posted.count + waiting.count
        try:
            await self._client.patch(path, {"count": count, "lastTimestamp": _stamp(waiting.last)}, PatchKind.MERGE)
        except KubernetesFault as fault:
            if fault.status != 404:
                raise
            self._posted.pop(waiting.event, None)
            return False
        self._remember(waiting.event, _Posted(posted.name, count))
        return True

    def _remember(self, event: Event, posted: _Posted) -> None:
        self._posted[event] = posted
        self._posted.move_to_end(event)
        while len(self._posted) > self._capacity.remembered:
            self._posted.popitem(last=False)

    def _name(self, event: Event) -> str:
        self._serial += 1
        unique = int(self._now().timestamp() * 1_000_000)
        return f"{event.about.name[:200]}.{unique:x}{self._serial:x}"

    def _body(self, waiting: WaitingEvent, namespace: str) -> dict[str, Any]:
        event, about = waiting.event, msgspec.to_builtins(waiting.event.about)
        source = self._source | ({"component": event.component} if event.component else {})
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": waiting.name, "namespace": namespace},
            "involvedObject": {key: value for key, value in about.items() if value},
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": source,
            "reportingComponent": source["component"],
            "reportingInstance": source["host"],
            "firstTimestamp": _stamp(waiting.first),
            "lastTimestamp": _stamp(waiting.last),
            "count": waiting.count,
        }


def _namespace(event: Event) -> str:
    return event.about.namespace or "default"


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
