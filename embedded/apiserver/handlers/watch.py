"""GET with `watch`: the changes of a collection as a stream of events."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.objects import Object, encode
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers.get import filter_of, revision_of
from embedded.apiserver.presentation.tables import included, metadata_only, table, wants_metadata, wants_table
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.messages import Request, Stream
from embedded.apiserver.request.target import Target
from embedded.apiserver.storage.object_store import Record, WatchEvent
from embedded.apiserver.storage.watch_queue import Watcher

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_CHUNK_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """How long a watch lasts when the client does not say, and how often it is told where it stands."""

    bookmark_seconds: float = 60.0
    least_timeout_seconds: float = 1800.0
    queue_events: int = 8192


def watch(resources: Resources, target: Target, request: Request, limits: WatchLimits) -> Stream:
    """Start a watch. A revision that is too old is reported inside the stream, as Kubernetes does.

    One of the future is refused (504), where kube-apiserver waits for it: what a client has seen of a state that was
    lost since is told to it, not kept from it.
    """
    wanted, asked = filter_of(target, request), revision_of(request)
    initial = request.query.get("sendInitialEvents", "")
    listing = not asked if not initial else request.flag("sendInitialEvents")
    if asked is not None and asked > resources.store.revision:
        refusal = status.from_the_future(asked, resources.store.revision)
        if not initial:
            raise refusal
        return Stream(200, _once(_line("ERROR", encode(refusal.body))))
    session = _Session(resources, target.rtype, request, limits)
    try:
        since = None if listing else asked or None
        watcher = resources.store.watch(target.rtype.id, wanted, since, limits.queue_events)
    except StatusError as error:
        return Stream(200, _once(_line("ERROR", encode(error.body))))
    backlog = list(resources.store.select(target.rtype.id, wanted)) if listing else []
    # The revision of the backlog, not of the moment the client starts reading: what happens in between is queued.
    bookmarks = request.flag("allowWatchBookmarks")
    end = resources.store.revision if listing and initial and bookmarks else None
    return Stream(200, session.chunks(watcher, backlog, end), release=watcher.close)


async def _once(line: bytes) -> AsyncIterator[bytes]:
    yield line


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


def _chunked(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in pieces large enough to be cheap, and small enough not to hold up the other clients."""
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _timeout_seconds(request: Request, limits: WatchLimits) -> float:
    text = request.query.get("timeoutSeconds", "")
    if text.isdecimal() and int(text):
        return float(text)
    # Spread out, so that clients that started together do not come back together.
    return limits.least_timeout_seconds * (1.0 + random.random())


class _Session:
    """One running watch: how its events look on the wire."""

    def __init__(self, resources: Resources, rtype: ResourceType, request: Request, limits: WatchLimits) -> None:
        self._resources = resources
        self._rtype = rtype
        self._limits = limits
        self._as_table = wants_table(request.accept)
        self._as_metadata = wants_metadata(request.accept)
        self._include = included(request)
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._timeout_seconds = _timeout_seconds(request, limits)
        self._columns_sent = False

    async def chunks(
        self, watcher: Watcher[WatchEvent], backlog: list[Record], initial_end: int | None
    ) -> AsyncIterator[bytes]:
        try:
            for chunk in _chunked(self._shown("ADDED", record) for record in backlog):
                yield chunk
            backlog.clear()
            if initial_end is not None:
                yield self._bookmark(initial_end, {_INITIAL_EVENTS_END: "true"})
            async for chunk in self._live(watcher):
                yield chunk
        finally:
            watcher.close()

    async def _live(self, watcher: Watcher[WatchEvent]) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._timeout_seconds
        while not (watcher.closed and watcher.idle):
            left = end - loop.time()
            if left <= 0:
                break
            revision = self._resources.store.revision
            seen = await watcher.wait(min(left, self._limits.bookmark_seconds))
            if watcher.cut:
                yield _line("ERROR", encode(status.expired("the watcher fell too far behind; list again").body))
                return
            if seen:
                for chunk in _chunked(self._shown(item.change.value, item.record) for item in seen):
                    yield chunk
            elif self._bookmarks and not watcher.closed:
                # Nothing waits, so everything up to the revision before the wait has been sent.
                yield self._bookmark(revision, {})

    def _shown(self, kind: str, record: Record) -> bytes:
        if not (self._as_table or self._as_metadata):
            return _line(kind, self._resources.encoded(self._rtype, record))
        obj = self._resources.decoded(self._rtype, record)
        if self._as_metadata:
            return _line(kind, encode(metadata_only(obj)))
        rows = table(self._rtype, [obj], self._include, self._resources.clock(), not self._columns_sent)
        rows["metadata"]["resourceVersion"] = str(record.revision)
        self._columns_sent = True
        return _line(kind, encode(rows))

    def _bookmark(self, revision: int, annotations: Object) -> bytes:
        meta: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        obj: Object = {"kind": self._rtype.kind, "apiVersion": self._rtype.api_version, "metadata": meta}
        if self._as_metadata:
            obj = metadata_only(obj)
        if self._as_table:
            rows = {"cells": [], "object": obj}
            obj = {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta,
                "columnDefinitions": None,
                "rows": [rows],
            }
        return _line("BOOKMARK", encode(obj))
