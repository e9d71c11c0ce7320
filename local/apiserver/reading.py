"""GET: single objects, lists with paging, and watches."""

from __future__ import annotations

import asyncio
import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from local.apiserver import status
from local.apiserver.messages import Request, Response, Stream, answer
from local.apiserver.objects import Object, encode
from local.apiserver.registry import ResourceType
from local.apiserver.resources import Resources
from local.apiserver.routes import Target
from local.apiserver.selectors import Filter, parse_fields, parse_labels
from local.apiserver.status import StatusError
from local.apiserver.store import Event, Record
from local.apiserver.table import table, wants_table
from local.apiserver.watching import Watcher

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class _Continue(msgspec.Struct):
    """Where a paged list goes on: the revision it began at and the last key sent."""

    revision: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """How long a watch lasts when the client does not say, and how often it is told where it stands."""

    bookmark_seconds: float = 60.0
    least_timeout_seconds: float = 1800.0
    queue_events: int = 8192


def read_object(resources: Resources, target: Target, request: Request) -> Response:
    obj = resources.get(target.rtype, target.namespace, target.name)
    if wants_table(request.accept):
        rows = table(target.rtype, [obj], request.query.get("includeObject", "Metadata"), resources.clock())
        rows["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
        return answer(rows)
    return answer(obj)


def filter_of(target: Target, request: Request) -> Filter:
    fields = parse_fields(request.query.get("fieldSelector", ""), target.rtype)
    if target.name:
        fields += parse_fields(f"metadata.name={target.name}", target.rtype)
    return Filter(target.namespace, parse_labels(request.query.get("labelSelector", "")), fields)


def _revision(request: Request) -> int | None:
    """The asked resourceVersion; None when there is none."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    if not text.isdecimal():
        raise status.bad_request(f"invalid resource version {text!r}: it must be a number")
    return int(text)


def read_list(resources: Resources, target: Target, request: Request) -> Response:
    """A list in (namespace, name) order, whole or page by page.

    Later pages come from the live store, under the revision of the first: what changed in between is exactly
    what a watch from that revision replays, so a reader misses nothing.
    """
    rtype, store = target.rtype, resources.store
    revision = store.revision
    wanted, asked = filter_of(target, request), _revision(request)
    if asked is not None and asked > revision:
        raise status.from_the_future(asked, revision)
    after = None
    if token := request.query.get("continue"):
        point = _decode_token(token)
        store.check_reachable(rtype.id, point.revision)
        revision, after = point.revision, (point.namespace, point.name)
    limit = _limit(request)
    found = list(islice(store.select(rtype.id, wanted, after), limit + 1 if limit else None))
    meta: Object = {"resourceVersion": str(revision)}
    if limit and len(found) > limit:
        found.pop()
        meta["continue"] = _encode_token(revision, found[-1])
    if wants_table(request.accept):
        objects = (resources.decoded(rtype, record) for record in found)
        rows = table(rtype, objects, request.query.get("includeObject", "Metadata"), resources.clock())
        return answer({**rows, "metadata": meta})
    head = {"kind": rtype.listing_kind, "apiVersion": rtype.api_version, "metadata": meta}
    items = b",".join(resources.encoded(rtype, record) for record in found)
    return Response(200, encode(head)[:-1] + b',"items":[' + items + b"]}")


def _limit(request: Request) -> int:
    text = request.query.get("limit", "0") or "0"
    if not text.isdecimal():
        raise status.bad_request(f"invalid limit {text!r}: it must be a number")
    return int(text)


def _encode_token(revision: int, last: Record) -> str:
    return urlsafe_b64encode(encode(_Continue(revision, last.namespace, last.name))).decode()


def _decode_token(token: str) -> _Continue:
    try:
        return msgspec.json.decode(urlsafe_b64decode(token), type=_Continue)
    except (ValueError, msgspec.MsgspecError):
        raise status.bad_request("continue key is not valid") from None


def watch(resources: Resources, target: Target, request: Request, limits: WatchLimits) -> Stream:
    """Start a watch. A revision out of reach is reported inside the stream, as Kubernetes does."""
    wanted, asked = filter_of(target, request), _revision(request)
    initial = request.query.get("sendInitialEvents", "")
    if initial and request.query.get("resourceVersionMatch") != "NotOlderThan":
        error = status.not_allowed(
            "resourceVersionMatch", "sendInitialEvents requires resourceVersionMatch=NotOlderThan"
        )
        raise status.invalid(target.rtype, "", [error])
    listing = not asked if not initial else request.flag("sendInitialEvents")
    if asked is not None and asked > resources.store.revision:
        raise status.from_the_future(asked, resources.store.revision)
    session = _Session(resources, target.rtype, request, limits)
    try:
        since = None if listing else asked or None
        watcher = resources.store.watch(target.rtype.id, wanted, since, limits.queue_events)
    except StatusError as error:
        return Stream(200, _once(_line("ERROR", encode(error.body))))
    backlog = list(resources.store.select(target.rtype.id, wanted)) if listing else []
    # The revision of the backlog, not of the moment the client starts reading: what happens in between is queued.
    end = resources.store.revision if listing and initial else None
    return Stream(200, session.chunks(watcher, wanted, backlog, end), release=watcher.close)


async def _once(line: bytes) -> AsyncIterator[bytes]:
    yield line


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


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
        self._include = request.query.get("includeObject", "Metadata")
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._timeout_seconds = _timeout_seconds(request, limits)
        self._columns_sent = False

    async def chunks(
        self, watcher: Watcher[Event], wanted: Filter, backlog: list[Record], initial_end: int | None
    ) -> AsyncIterator[bytes]:
        try:
            if backlog:
                yield b"".join(self._shown("ADDED", record) for record in backlog)
            if initial_end is not None:
                yield self._bookmark(initial_end, {_INITIAL_EVENTS_END: "true"})
            async for chunk in self._live(watcher, wanted):
                yield chunk
        finally:
            watcher.close()

    async def _live(self, watcher: Watcher[Event], wanted: Filter) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._timeout_seconds
        while not watcher.closed:
            left = end - loop.time()
            if left <= 0:
                break
            revision = self._resources.store.revision
            events = await watcher.wait(min(left, self._limits.bookmark_seconds))
            if watcher.cut:
                yield _line("ERROR", encode(status.expired("the watcher fell too far behind; list again").body))
                return
            if events:
                yield b"".join(self._event(event, wanted) for event in events)
            elif self._bookmarks and not watcher.closed:
                # Nothing waits, so everything up to the revision before the wait has been sent.
                yield self._bookmark(revision, {})

    def _event(self, event: Event, wanted: Filter) -> bytes:
        kind = event.seen_by(wanted)
        return b"" if kind is None else self._shown(kind.value, event.record)

    def _shown(self, kind: str, record: Record) -> bytes:
        if not self._as_table:
            return _line(kind, self._resources.encoded(self._rtype, record))
        obj = self._resources.decoded(self._rtype, record)
        rows = table(self._rtype, [obj], self._include, self._resources.clock(), not self._columns_sent)
        rows["metadata"]["resourceVersion"] = str(record.revision)
        self._columns_sent = True
        return _line(kind, encode(rows))

    def _bookmark(self, revision: int, annotations: Object) -> bytes:
        meta: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        obj: Object = {"kind": self._rtype.kind, "apiVersion": self._rtype.api_version, "metadata": meta}
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
