"""The object store: encoded bytes with a small index, one revision counter, an event log per type.

Objects are kept encoded because ten thousand decoded pods cost three times the memory and make every cyclic
garbage collection pause the server. Callers decode a copy of their own, so nothing stored is ever shared.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from local.apiserver.objects import Clock, Object, encode
from local.apiserver.registry import ResourceType, field_values
from local.apiserver.selectors import Filter
from local.apiserver.status import expired, from_the_future
from local.apiserver.watching import Watcher

_EPOCH_2020_SECONDS = 1_577_836_800
# Watches that demand one value of this field are indexed by it: each of a thousand nodes asks for its own pods.
PINNED_FIELD = "spec.nodeName"


class Change(StrEnum):
    """Event types of the watch protocol."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored object: its bytes, and what lists and watches select by."""

    namespace: str
    name: str
    uid: str
    revision: int
    labels: dict[str, str]
    fields: dict[str, str]
    owners: tuple[str, ...]
    deleting: bool
    body: bytes

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change of one object, with the labels and fields it had before (None: it was not there)."""

    change: Change
    record: Record
    old_labels: dict[str, str] | None
    old_fields: dict[str, str] | None

    def seen_by(self, wanted: Filter) -> Change | None:
        """What this change is to someone who sees only part of the objects; None when they see nothing."""
        record = self.record
        before = self.old_labels is not None and wanted.admits(record.namespace, self.old_labels, self.old_fields or {})
        after = self.change is not Change.DELETED and wanted.admits(record.namespace, record.labels, record.fields)
        if after:
            return Change.MODIFIED if before else Change.ADDED
        return Change.DELETED if before else None


class _Shelf:
    """All objects of one type, with their recent events and the watchers interested in them."""

    def __init__(self, floor: int) -> None:
        self.records: dict[tuple[str, str], Record] = {}
        self.order: list[tuple[str, str]] = []
        self.events: deque[Event] = deque()
        self.event_bytes = 0
        self.floor = floor  # events up to this revision are gone
        self.watchers: dict[str | None, set[Watcher[Event]]] = {}


class Store:
    """Objects by type, namespace and name. Synchronous throughout: one call is one atomic step."""

    def __init__(self, clock: Clock, ring_events: int = 8192, ring_bytes: int = 64 << 20) -> None:
        # A revision taken from the clock makes clients of an earlier run see 410 instead of a silent gap.
        self.revision = int((clock() - _EPOCH_2020_SECONDS) * 1000)
        self._floor = self.revision
        self._ring_events = ring_events
        self._ring_bytes = ring_bytes
        self._shelves: dict[str, _Shelf] = {}
        self._uids: dict[str, tuple[str, str, str]] = {}
        self._children: dict[str, set[tuple[str, str, str]]] = {}
        self._listeners: list[Watcher[tuple[str, Event]]] = []

    def get(self, type_id: str, namespace: str, name: str) -> Record | None:
        return self._shelf(type_id).records.get((namespace, name))

    def select(self, type_id: str, wanted: Filter, after: tuple[str, str] | None = None) -> Iterator[Record]:
        """Matching records in (namespace, name) order, from just after a key if one is given."""
        shelf = self._shelf(type_id)
        start = max((wanted.namespace, ""), (*after[:1], after[1] + "\0") if after else ("", ""))
        stop = (wanted.namespace + "\0", "") if wanted.namespace else None
        last = bisect_left(shelf.order, stop) if stop else len(shelf.order)
        for key in shelf.order[bisect_left(shelf.order, start) : last]:
            record = shelf.records[key]
            if wanted.admits(record.namespace, record.labels, record.fields):
                yield record

    def count(self, type_id: str) -> int:
        return len(self._shelf(type_id).records)

    def put(self, rtype: ResourceType, obj: Object) -> Record:
        """Store a new or changed object under the next revision, and tell the watchers.

        The object is stamped with that resourceVersion in place; it is the caller's own copy.
        """
        self.revision += 1
        meta = obj["metadata"]
        meta["resourceVersion"] = str(self.revision)
        record = self._record(rtype, obj)
        shelf = self._shelf(rtype.id)
        old = shelf.records.get(record.key)
        if old is None:
            insort(shelf.order, record.key)
        else:
            self._unlink(rtype.id, old)
        shelf.records[record.key] = record
        self._link(rtype.id, record)
        self._publish(rtype.id, shelf, _event(Change.MODIFIED if old else Change.ADDED, record, old))
        return record

    def remove(self, rtype: ResourceType, obj: Object) -> Record:
        """Drop an object; `obj` is its last state, which watchers receive under the next revision."""
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        record = self._record(rtype, obj)
        shelf = self._shelf(rtype.id)
        old = shelf.records.pop(record.key)
        del shelf.order[bisect_left(shelf.order, record.key)]
        self._unlink(rtype.id, old)
        self._publish(rtype.id, shelf, _event(Change.DELETED, record, old))
        return record

    def place_of(self, uid: str) -> tuple[str, str, str] | None:
        """(type, namespace, name) of the live object with this uid."""
        return self._uids.get(uid)

    def children(self, uid: str) -> list[tuple[str, str, str]]:
        """(type, namespace, name) of every object that names this uid as an owner."""
        return sorted(self._children.get(uid, ()))

    def watch(self, type_id: str, wanted: Filter, since: int | None, limit: int = 8192) -> Watcher[Event]:
        """Events after a revision (None: from now on); raises 410 or 504 when that revision is out of reach."""
        shelf = self._shelf(type_id)
        backlog: list[Event] = []
        if since is not None:
            self.check_reachable(type_id, since)
            for event in reversed(shelf.events):
                if event.record.revision <= since:
                    break
                backlog.append(event)
        watcher: Watcher[Event] = Watcher(limit, lambda event: event.seen_by(wanted) is not None)
        watcher.preload(reversed(backlog))
        pin = wanted.pinned(PINNED_FIELD)
        shelf.watchers.setdefault(pin, set()).add(watcher)
        watcher.on_close(lambda: shelf.watchers.get(pin, set()).discard(watcher))
        return watcher

    def check_reachable(self, type_id: str, since: int) -> None:
        if since > self.revision:
            raise from_the_future(since, self.revision)
        floor = self._shelf(type_id).floor
        if since < floor:
            raise expired(f"too old resource version: {since} ({floor})")

    def listen(self, limit: int = 1 << 20) -> Watcher[tuple[str, Event]]:
        """Every event of every type, for the controllers inside this process."""
        listener: Watcher[tuple[str, Event]] = Watcher(limit)
        self._listeners.append(listener)
        listener.on_close(lambda: self._listeners.remove(listener))
        return listener

    def _shelf(self, type_id: str) -> _Shelf:
        shelf = self._shelves.get(type_id)
        if shelf is None:
            shelf = self._shelves[type_id] = _Shelf(self._floor)
        return shelf

    def _record(self, rtype: ResourceType, obj: Object) -> Record:
        meta = obj["metadata"]
        return Record(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta["uid"],
            revision=self.revision,
            labels=meta.get("labels") or {},
            fields=field_values(rtype, obj),
            owners=tuple(owner["uid"] for owner in meta.get("ownerReferences") or ()),
            deleting=bool(meta.get("deletionTimestamp")),
            body=encode(obj),
        )

    def _link(self, type_id: str, record: Record) -> None:
        place = (type_id, record.namespace, record.name)
        self._uids[record.uid] = place
        for owner in record.owners:
            self._children.setdefault(owner, set()).add(place)

    def _unlink(self, type_id: str, record: Record) -> None:
        self._uids.pop(record.uid, None)
        for owner in record.owners:
            found = self._children.get(owner, set())
            found.discard((type_id, record.namespace, record.name))
            if not found:
                self._children.pop(owner, None)

    def _publish(self, type_id: str, shelf: _Shelf, event: Event) -> None:
        shelf.events.append(event)
        shelf.event_bytes += len(event.record.body)
        while len(shelf.events) > self._ring_events or (shelf.event_bytes > self._ring_bytes and len(shelf.events) > 1):
            gone = shelf.events.popleft()
            shelf.event_bytes -= len(gone.record.body)
            shelf.floor = gone.record.revision
        for watcher in _interested(shelf.watchers, event):
            watcher.offer(event)
        for listener in self._listeners:
            listener.offer((type_id, event))


def _event(change: Change, record: Record, old: Record | None) -> Event:
    return Event(change, record, old.labels if old else None, old.fields if old else None)


def _interested(watchers: Mapping[str | None, set[Watcher[Event]]], event: Event) -> list[Watcher[Event]]:
    pins = {None, event.record.fields.get(PINNED_FIELD), (event.old_fields or {}).get(PINNED_FIELD)}
    return [watcher for pin in pins for watcher in watchers.get(pin, ())]
