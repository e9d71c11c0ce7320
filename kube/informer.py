"""List, then watch, for ever: a local copy of a collection that says what changed.

A broken watch resumes at the last resourceVersion; 410 Gone or an ERROR event lists again and reports the
differences, deletions included. An object that cannot be decoded is reported once and left out, so that one
malformed object never costs the whole list: a page or an event is decoded in one pass, and only where that fails each
object by itself. 404 says that a resource is not defined, but only where it may be so:
core resources always exist, and a 404 for one comes from something that stands in for the API server.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from kube.client import KubeClient, decode, path_of
from model.fault import TOO_LONG, KubernetesFault

log = structlog.get_logger()

T = TypeVar("T")

_FIRST_DELAY_SECONDS = 0.2
_LONGEST_DELAY_SECONDS = 10.0
SOON_SECONDS = 2.0
"""For resources that somebody may define while a program of few replicas runs and waits for their objects."""
_WATCH_SECONDS = 300
_SILENT_SECONDS = 130.0
"""A server says at least once a minute how far it is, with a bookmark; one that missed two is not there any more."""
_HEALTHY_WATCH_SECONDS = 5.0
_PAGE = 2000
"""Objects an answer: each page costs the server and us the same once more, and 2,000 pods are some 10 MB."""
_MOST_BYTES = 64 << 20
"""An answer: whoever may create pods makes objects of 9 MB, since what is 1.5 MB where it is stored may be six times as
long in JSON. A longer answer is given up, and fewer objects are asked for."""
_FEWER = 8
_PAGE_SECONDS = 30.0
"""For an answer. A server that takes longer for 2,000 objects may be through with fewer."""
_SLOW = 1 / 3
"""Of that time: who takes so much of it is not asked for more objects, and for fewer where nothing came."""
_CORE = "/api/"


class ChangeKind(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One change of one object; a deleted object is its last known state."""

    kind: ChangeKind
    object: T


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, Generic[T], frozen=True):
    metadata: _ListMetadata
    items: list[T] | None = None


class _WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    type: str
    object: T


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct, frozen=True):
    metadata: _Identity = _Identity()


class _Gone(Exception):
    """The resourceVersion is too old: list again."""


class Informer(Generic[T]):
    """Keeps `items` (by `namespace/name`, or `name`) equal to the server's collection.

    `unread` says why an object cannot be decoded; what `items` has of it, if anything, is an older version.

    `on_change` is called in the event loop for every change, in order; it must not block or raise. `kept` is what
    `items` holds of an object, and what `on_change` is told of one that is gone: its metadata's uid at least. `page`
    bounds how many objects an answer has, `most_bytes` how long one of several is, and so what is in memory at once;
    after an answer that did not come within `page_seconds` fewer are asked for.
    A resource that is not defined is asked for again after `undefined_seconds` at most: 10 where every node has one.
    `synced` is set after the first complete list.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: str,
        type_: type[T],
        *,
        namespace: str | None = None,
        field_selector: str = "",
        label_selector: str = "",
        on_change: Callable[[Change[T]], None] = lambda change: None,
        kept: Callable[[T], T] = lambda item: item,
        page: int = _PAGE,
        most_bytes: int = _MOST_BYTES,
        page_seconds: float = _PAGE_SECONDS,
        undefined_seconds: float = _LONGEST_DELAY_SECONDS,
    ) -> None:
        self.items: dict[str, T] = {}
        self.unread: dict[str, str] = {}
        self.synced = asyncio.Event()
        self._client = client
        self._path = path_of(resource, namespace=namespace)
        self._type = type_
        self._whole = _reads_identity(type_)
        self._pages = msgspec.json.Decoder(_List[type_], strict=False)  # type: ignore[valid-type]
        self._events = msgspec.json.Decoder(_WatchEvent[type_], strict=False)  # type: ignore[valid-type]
        self._on_change = on_change
        self._kept = kept
        self._page_size = self._limit = page
        self._most_bytes = most_bytes
        self._page_seconds = page_seconds
        self._undefined_seconds = undefined_seconds
        self._undefined = False
        self._query: dict[str, str | int] = {
            k: v for k, v in (("fieldSelector", field_selector), ("labelSelector", label_selector)) if v
        }
        self._versions: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self._resource_version = ""
        self._heard = -math.inf
        self._delivered = 0

    async def run(self) -> None:
        """Never returns and never raises a KubernetesFault; cancel it to stop."""
        delay, told = _FIRST_DELAY_SECONDS, ""
        while True:
            began, self._delivered = time.monotonic(), 0
            trouble = await self._list_and_watch()
            if self._delivered or time.monotonic() - began > _HEALTHY_WATCH_SECONDS:
                delay, told = _FIRST_DELAY_SECONDS, ""
            if trouble and trouble != told:
                log.warning("informer is waiting", path=self._path, error=trouble)
                told = trouble
            if self._undefined:
                delay = min(delay, self._undefined_seconds)
            # However a watch ended, a server that ends each one at once must not be hammered.
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    @property
    def silent_seconds(self) -> float:
        """How long nothing was heard of this collection; infinite before the first list."""
        return time.monotonic() - self._heard

    async def _list_and_watch(self) -> str:
        """What went wrong; nothing when the server ended the watch in the ordinary way."""
        try:
            if not self._resource_version:
                await self._list()
            await self._watch()
            self._heard = time.monotonic()
            return ""
        except _Gone:
            self._resource_version = ""
            return ""
        except KubernetesFault as fault:
            if fault.status == 410:
                self._resource_version = ""
            if fault.status == 404 and not self._path.startswith(_CORE):
                self._nothing_there()
            return str(fault)

    def _nothing_there(self) -> None:
        """The server does not know the resource: the collection is empty, and that is known."""
        self._resource_version, self._undefined = "", True
        for key in [*self.items, *self.unread]:
            self._forget(key)
        self._heard = time.monotonic()
        self.synced.set()

    async def _list(self) -> None:
        seen: set[str] = set()
        query = dict(self._query)
        while True:
            began = time.monotonic()
            try:
                payload = await self._ask_for_page(query)
            except KubernetesFault as fault:
                if fault.reason == TOO_LONG or self._slow(began):
                    self._limit = max(self._limit // _FEWER, 1)
                if fault.reason == TOO_LONG:
                    continue
                raise
            slow, page = self._slow(began), self._page(payload, seen)
            if not slow and len(payload) * 2 < self._most_bytes:
                self._limit = min(self._limit * 2, self._page_size)
            if not page.continue_:
                break
            query["continue"] = page.continue_
        for key in [key for key in {**self.items, **self.unread} if key not in seen]:
            self._forget(key)
        self._resource_version, self._undefined = page.resource_version, False
        self._heard = time.monotonic()
        self.synced.set()

    async def _ask_for_page(self, query: dict[str, str | int]) -> bytes:
        bound = self._most_bytes if self._limit > 1 else 0
        asked = dict(query, limit=self._limit)
        return await self._client.request(
            "GET", self._path, query=asked, timeout_seconds=self._page_seconds, most_bytes=bound
        )

    def _slow(self, began: float) -> bool:
        """Whether an answer that was asked for then took long, or does not come."""
        return time.monotonic() - began >= self._page_seconds * _SLOW

    def _page(self, payload: bytes, seen: set[str]) -> _ListMetadata:
        """Take in a page of a list, and note in `seen` which objects there are."""
        try:
            page = self._pages.decode(payload) if self._whole else None
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            page = None
        if page is None:
            raw = decode(payload, _List[msgspec.Raw], self._path)
            seen.update(self._store(item) for item in raw.items or ())
            return raw.metadata
        seen.update(self._keep(item, _identity_of(item)) for item in page.items or ())
        return page.metadata

    async def _watch(self) -> None:
        query: dict[str, str | int] = dict(
            self._query,
            watch="true",
            resourceVersion=self._resource_version,
            allowWatchBookmarks="true",
            timeoutSeconds=_WATCH_SECONDS,
        )
        async for line in self._client.stream(self._path, query, idle_seconds=_SILENT_SECONDS):
            self._apply(line)
            self._heard = time.monotonic()
            self._delivered += 1

    def _apply(self, line: bytes) -> None:
        try:
            event = self._events.decode(line) if self._whole else None
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            event = None
        if event is None:
            self._apply_raw(decode(line, _WatchEvent[msgspec.Raw], self._path))
            return
        identity = _identity_of(event.object)
        if self._advanced(event.type, identity):
            self._keep(event.object, identity)

    def _apply_raw(self, event: _WatchEvent[msgspec.Raw]) -> None:
        """An event whose object is not of our type: an error, or one object that cannot be read."""
        if event.type == "ERROR":
            raise _Gone
        if self._advanced(event.type, decode(bytes(event.object), _Identified, self._path).metadata):
            self._store(event.object)

    def _advanced(self, kind: str, identity: _Identity) -> bool:
        """Note how far the watch has come, and deletions; whether there is an object to take in."""
        if kind == "ERROR":
            raise _Gone
        self._resource_version = identity.resource_version or self._resource_version
        if kind == "DELETED":
            self._forget(_key(identity))
        return kind not in ("DELETED", "BOOKMARK")

    def _store(self, raw: msgspec.Raw) -> str:
        """Take in one object; returns its key, or nothing where it cannot even be named."""
        try:
            identity = decode(bytes(raw), _Identified, self._path).metadata
        except KubernetesFault as fault:
            log.error("object left out", path=self._path, error=str(fault))
            return ""
        key = _key(identity)
        if self._versions.get(key) == identity.resource_version:
            return key
        self._versions[key] = identity.resource_version
        try:
            item = decode(bytes(raw), self._type, f"{self._path}/{identity.name}")
        except KubernetesFault as fault:
            log.error("object left out", path=self._path, name=key, error=str(fault))
            self.unread[key] = str(fault)
            return key
        self._replace(key, item, identity)
        return key

    def _keep(self, item: T, identity: _Identity) -> str:
        """Take in one object that could be read; returns its key."""
        key = _key(identity)
        if self._versions.get(key) != identity.resource_version:
            self._replace(key, item, identity)
        return key

    def _replace(self, key: str, item: T, identity: _Identity) -> None:
        """A new version; another uid is another object of the same name."""
        known = key in self.items
        if known and self._uid(key) != identity.uid:
            self._forget(key)
            known = False
        if not self._whole:
            self._uids[key] = identity.uid
        self._versions[key] = identity.resource_version
        self.unread.pop(key, None)
        self.items[key] = self._kept(item)
        self._on_change(Change(ChangeKind.MODIFIED if known else ChangeKind.ADDED, item))

    def _uid(self, key: str) -> str:
        """Kept apart for a type that does not say it."""
        return _uid(self.items[key]) if self._whole else self._uids[key]

    def _forget(self, key: str) -> None:
        self._uids.pop(key, None)
        self._versions.pop(key, None)
        self.unread.pop(key, None)
        if key in self.items:
            self._on_change(Change(ChangeKind.DELETED, self.items.pop(key)))


def _key(identity: _Identity) -> str:
    return f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name


def _reads_identity(type_: Any) -> bool:
    """Whether an object of the type says all that tells it from others; else that is read beside it."""
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return True
    metadata = {field.name: field.type for field in msgspec.structs.fields(type_)}.get("metadata", Any)
    read = getattr(metadata, "__struct_fields__", None)
    return read is None or set(_Identity.__struct_fields__) <= set(read)


def _identity_of(item: Any) -> _Identity:
    """The same four fields of any type that an informer may be of, untyped ones included."""
    metadata = item.get("metadata") or {} if isinstance(item, dict) else item.metadata
    if isinstance(metadata, dict):
        return msgspec.convert(metadata, _Identity, strict=False)
    identity: _Identity = metadata
    return identity


def _uid(item: Any) -> str:
    metadata = item.get("metadata") or {} if isinstance(item, dict) else item.metadata
    return str(metadata.get("uid", "") if isinstance(metadata, dict) else metadata.uid)
