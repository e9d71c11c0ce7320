"""Kubernetes Events (core/v1), repeated ones counted instead of posted again.

Posting is best effort by nature: a failure is logged and never holds up the caller. The queue is bounded;
what does not fit is counted and said once it fits again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from kube.client import KubeClient, PatchKind, path_of
from model.fault import KubernetesFault

log = structlog.get_logger()

_MESSAGE_LIMIT = 1024
_QUEUE_LIMIT = 1000
_REMEMBERED = 500


class ObjectRef(msgspec.Struct, frozen=True, rename="camel"):
    """What an Event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


class _Event(msgspec.Struct, frozen=True):
    about: ObjectRef
    type: str
    reason: str
    message: str


class EventRecorder:
    """`record` returns at once; `run` posts. Events of cluster-scoped objects go to namespace `default`."""

    def __init__(
        self, client: KubeClient, component: str, host: str, now: Callable[[], datetime] | None = None
    ) -> None:
        self._client = client
        self._source = {"component": component, "host": host}
        self._now = now or (lambda: datetime.now(UTC))
        self._queue: asyncio.Queue[_Event] = asyncio.Queue(_QUEUE_LIMIT)
        self._posted: OrderedDict[_Event, tuple[str, int]] = OrderedDict()
        self._serial = 0
        self.dropped = 0

    def record(self, about: ObjectRef, reason: str, message: str, *, warning: bool = False) -> None:
        """Queue one Event; the message is cut at 1,024 bytes as Kubernetes wants it."""
        text = message if len(message) <= _MESSAGE_LIMIT else message[: _MESSAGE_LIMIT - 4] + " ..."
        try:
            self._queue.put_nowait(_Event(about, "Warning" if warning else "Normal", reason, text))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Post what is queued, for ever."""
        while True:
            event = await self._queue.get()
            try:
                await self._post(event)
            except KubernetesFault as fault:
                log.warning("event not posted", about=event.about.name, reason=event.reason, error=str(fault))
            finally:
                self._queue.task_done()

    async def flush(self, timeout_seconds: float) -> None:
        """Wait until the queue is empty, at most `timeout_seconds`; for a clean stop."""
        try:
            await asyncio.wait_for(self._queue.join(), timeout_seconds)
        except TimeoutError:
            log.warning("events not posted before the stop", waiting=self._queue.qsize())

    async def _post(self, event: _Event) -> None:
        stamp = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        namespace = event.about.namespace or "default"
        if event in self._posted:
            name, count = self._posted[event]
            try:
                path = path_of("v1/events", namespace=namespace, name=name)
                await self._client.patch(path, {"count": count + 1, "lastTimestamp": stamp}, PatchKind.MERGE)
                self._posted[event] = (name, count + 1)
                return
            except KubernetesFault as fault:
                if fault.status != 404:
                    raise
        name = self._name(event)
        await self._client.create(path_of("v1/events", namespace=namespace), self._body(event, name, namespace, stamp))
        self._posted[event] = (name, 1)
        while len(self._posted) > _REMEMBERED:
            self._posted.popitem(last=False)

    def _name(self, event: _Event) -> str:
        self._serial += 1
        unique = int(self._now().timestamp() * 1_000_000)
        return f"{event.about.name[:200]}.{unique:x}{self._serial:x}"

    def _body(self, event: _Event, name: str, namespace: str, stamp: str) -> dict[str, Any]:
        about = msgspec.to_builtins(event.about)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in about.items() if value},
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": self._source,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source["host"],
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
