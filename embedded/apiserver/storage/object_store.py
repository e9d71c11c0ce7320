"""The object store: encoded bytes with a small index, one revision counter, an event log per type.

Objects are kept encoded because ten thousand decoded pods cost three times the memory and make every cyclic
garbage collection pause the server. Callers decode a copy of their own, so nothing stored is ever shared.
"""

from collections.abc import Iterator
from typing import Protocol

from embedded.apiserver.apimachinery.objects import Clock, Object
from embedded.apiserver.apimachinery.resource_types import STORED_AS, ResourceType
from embedded.apiserver.apimachinery.selectors import Filter
from embedded.apiserver.apimachinery.status import StatusError, expired, from_the_future
from embedded.apiserver.storage.records import Change, Event, Record, WatchEvent, record_of
from embedded.apiserver.storage.watch_cache import TypeCache
from embedded.apiserver.storage.watch_queue import Watcher

__all__ = ["Change", "Event", "Record", "WatchEvent", "Store"]  # a reader of the store needs no other module

_EPOCH_2020_SECONDS = 1_577_836_800
MOST_OBJECT_BYTES = 3 << 19  # 1.5 MiB, etcd's `--max-request-bytes`


def check_size(object_bytes: int) -> None:
    """Raises 500 for what is too large to be kept, in the words that come from etcd."""
    if object_bytes > MOST_OBJECT_BYTES:
        raise StatusError(500, "", "etcdserver: request is too large")


class Log(Protocol):
    """Where changes are written down so that they outlive the process."""

    @property
    def least_revision(self) -> int:
        """Above every revision of earlier runs."""

    def begin(self, revision: int) -> None:
        """The revision this run starts at."""

    def admit(self) -> None:
        """Raises StatusError where no further change can be kept."""

    def kept(self, type_id: str, record: Record) -> None: ...

    def gone(self, type_id: str, record: Record) -> None: ...

    async def settled(self) -> None:
        """Return when every change so far will be found again after a restart; raises StatusError if it is not."""


class NoLog:
    """Everything is in memory only."""

    least_revision = 0

    def begin(self, revision: int) -> None: ...

    def admit(self) -> None: ...

    def kept(self, type_id: str, record: Record) -> None: ...

    def gone(self, type_id: str, record: Record) -> None: ...

    async def settled(self) -> None: ...


class Store:
    """Objects by type, namespace and name. Synchronous throughout: one call is one atomic step.

    The event logs keep `ring_events` changes of a type, and all types together about `history_bytes`.
    """

    def __init__(
        self,
        clock: Clock,
        ring_events: int = 8192,
        history_bytes: int = 48 << 20,
        log: Log | None = None,
    ) -> None:
        self.log = log or NoLog()
        # A revision taken from the clock makes clients of an earlier run see 410 instead of a silent gap;
        # what the log knows holds where that clock was set back.
        self.revision = max(int((clock() - _EPOCH_2020_SECONDS) * 1000), self.log.least_revision)
        self.log.begin(self.revision)
        self._floor = self.revision
        self._ring_events = ring_events
        self._history_bytes = history_bytes
        self._shelves: dict[str, TypeCache] = {}
        self._uids: dict[str, tuple[str, str, str]] = {}
        self._children: dict[str, set[tuple[str, str, str]]] = {}
        self._listeners: list[Watcher[tuple[str, Event]]] = []

    def get(self, type_id: str, namespace: str, name: str) -> Record | None:
        return self._shelf(type_id).records.get((namespace, name))

    def select(self, type_id: str, wanted: Filter, after: tuple[str, str] | None = None) -> Iterator[Record]:
        """Matching records in (namespace, name) order, from just after a key if one is given."""
        return self._shelf(type_id).select(wanted, after)

    def select_at(
        self, type_id: str, revision: int, wanted: Filter, after: tuple[str, str] | None = None
    ) -> Iterator[Record]:
        """The same as it was at a revision; raises 410 or 504 when that revision is out of reach."""
        self.check_reachable(type_id, revision)
        return self._shelf(type_id).select_at(revision, wanted, after)

    def count(self, type_id: str) -> int:
        return len(self._shelf(type_id).records)

    def changes(self, type_id: str) -> int:
        """How often objects of a type have come, changed or gone: what is derived from them is kept until then."""
        return self._shelf(type_id).changes

    def put(self, rtype: ResourceType, obj: Object) -> Record:
        """Store a new or changed object under the next revision, and tell the watchers.

        The object is stamped with that resourceVersion in place; it is the caller's own copy.
        """
        record, type_id = self._stamped(rtype, obj), STORED_AS.get(rtype.id, rtype.id)
        check_size(record.size_bytes)
        shelf = self._shelf(type_id)
        old = shelf.put(record)
        if old is not None:
            self._unlink(type_id, old)
        self._link(type_id, record)
        self.log.kept(type_id, record)
        self._publish(type_id, shelf, Event(Change.MODIFIED if old else Change.ADDED, record, old))
        return record

    def remove(self, rtype: ResourceType, obj: Object) -> Record:
        """Drop an object; `obj` is its last state, which watchers receive under the next revision."""
        record, type_id = self._stamped(rtype, obj), STORED_AS.get(rtype.id, rtype.id)
        shelf = self._shelf(type_id)
        old = shelf.pop(record.key)
        self._unlink(type_id, old)
        self.log.gone(type_id, record)
        self._publish(type_id, shelf, Event(Change.DELETED, record, old))
        return record

    def load(self, rtype: ResourceType, obj: Object, original: bytes | None = None) -> None:
        """Put back an object of an earlier run or definition, under the revision it had. Nobody is told.

        `original` is how it was written, where `obj` is how it is read.
        """
        record = record_of(rtype, obj, int(obj["metadata"]["resourceVersion"]), original)
        self._shelf(rtype.id).put(record)
        self._link(rtype.id, record)

    def place_of(self, uid: str) -> tuple[str, str, str] | None:
        """(type, namespace, name) of the live object with this uid."""
        return self._uids.get(uid)

    def children(self, uid: str) -> list[tuple[str, str, str]]:
        """(type, namespace, name) of every object that names this uid as an owner."""
        return sorted(self._children.get(uid, ()))

    def watch(self, type_id: str, wanted: Filter, since: int | None, limit: int = 8192) -> Watcher[WatchEvent]:
        """Changes after a revision (None: from now on); raises 410 or 504 when that revision is out of reach."""
        shelf = self._shelf(type_id)
        watcher: Watcher[WatchEvent] = Watcher(limit)
        if since is not None:
            self.check_reachable(type_id, since)
            watcher.preload(shelf.since(since, wanted))
        shelf.attach(watcher, wanted)
        return watcher

    def end_watches(self, type_id: str) -> None:
        """End the watches of a type that looks different from here on; their clients start again."""
        self._shelf(type_id).end_watches()

    def forget(self, type_id: str) -> None:
        """End the watches of a type that is served no more, and drop its event log once it has no objects."""
        self.end_watches(type_id)
        if not self.count(type_id):
            del self._shelves[type_id]
            self._floor = self.revision  # what a type that comes back under this id did before is not told again

    def check_reachable(self, type_id: str, since: int) -> None:
        if since > self.revision:
            raise from_the_future(since, self.revision)
        floor = self._shelf(type_id).floor
        if since < floor:
            raise expired(f"too old resource version: {since} ({floor})")

    def listen(self, limit: int = 1 << 20) -> Watcher[tuple[str, Event]]:
        """Every event of every type, for the controllers inside this process; first, what exists, as if just added."""
        listener: Watcher[tuple[str, Event]] = Watcher(limit, limit_bytes=None)
        found = [(type_id, record) for type_id, shelf in self._shelves.items() for record in shelf.records.values()]
        found.sort(key=lambda item: item[1].revision)
        listener.preload([(type_id, Event(Change.ADDED, record, None)) for type_id, record in found])
        self._listeners.append(listener)
        listener.on_close(lambda: self._listeners.remove(listener))
        return listener

    def _shelf(self, type_id: str) -> TypeCache:
        type_id = STORED_AS.get(type_id, type_id)
        shelf = self._shelves.get(type_id)
        if shelf is None:
            shelf = self._shelves[type_id] = TypeCache(self._floor, self._ring_events)
        return shelf

    def _stamped(self, rtype: ResourceType, obj: Object) -> Record:
        self.log.admit()
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return record_of(rtype, obj, self.revision)

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

    def _publish(self, type_id: str, shelf: TypeCache, event: Event) -> None:
        shelf.publish(event)
        self._trim()
        for listener in self._listeners:
            listener.offer((type_id, event))

    def _trim(self) -> None:
        """Forget where most is kept: one type's history does not cost another's."""
        kept = sum(shelf.history_bytes for shelf in self._shelves.values())
        while kept > self._history_bytes:
            kept -= max(self._shelves.values(), key=lambda shelf: shelf.history_bytes).forget_oldest()
