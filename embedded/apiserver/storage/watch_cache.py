"""All objects of one type in order, their recent changes, and the watchers interested in them."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator

from embedded.apiserver.apimachinery.selectors import Filter
from embedded.apiserver.storage.records import Event, Record, WatchEvent
from embedded.apiserver.storage.watch_queue import Watcher

# Lists and watches that demand one value of this field go by an index: each of a thousand nodes asks for its own pods.
PINNED_FIELD = "spec.nodeName"
Key = tuple[str, str]
_Pin = tuple[str, str | None]  # a namespace (all when empty) and a value of the pinned field (any when None)


_RECORD_BYTES, _LABEL_BYTES = 768, 160  # what an event holds besides the body: its record, fields and names; a label


class TypeCache:
    """Objects by (namespace, name), and an event log bounded in number; whoever holds the shelf bounds its bytes."""

    def __init__(self, floor: int, ring_events: int) -> None:
        self.records: dict[Key, Record] = {}
        self.floor = floor  # events up to this revision are gone
        self.changes = 0  # moves with everything that is kept or goes
        self._order: list[Key] = []
        self._pinned: dict[str, set[Key]] = {}
        self._events: deque[Event] = deque()
        self._ring_events = ring_events
        self.history_bytes = 0  # about what the event log takes of memory
        self._watchers: dict[_Pin, dict[Watcher[WatchEvent], Filter]] = {}

    # -- objects -------------------------------------------------------------------------------------------

    def put(self, record: Record) -> Record | None:
        """Keep a record; the one it replaces, if any."""
        self.changes += 1
        old = self.records.get(record.key)
        if old is None:
            insort(self._order, record.key)
        self.records[record.key] = record
        self._repin(record.key, old, record)
        return old

    def pop(self, key: Key) -> Record:
        self.changes += 1
        del self._order[bisect_left(self._order, key)]
        old = self.records.pop(key)
        self._repin(key, old, None)
        return old

    def _repin(self, key: Key, old: Record | None, new: Record | None) -> None:
        before, after = (None if record is None else record.fields.get(PINNED_FIELD) for record in (old, new))
        if before == after:
            return
        if before is not None:
            self._pinned[before].discard(key)
            if not self._pinned[before]:
                del self._pinned[before]
        if after is not None:
            self._pinned.setdefault(after, set()).add(key)

    def select(self, wanted: Filter, after: Key | None = None) -> Iterator[Record]:
        """Matching records in (namespace, name) order, from just after a key if one is given."""
        pin = wanted.pinned(PINNED_FIELD)
        order = self._order if pin is None else sorted(self._pinned.get(pin, ()))
        return _matching(self.records, order, wanted, after)

    def select_at(self, revision: int, wanted: Filter, after: Key | None = None) -> Iterator[Record]:
        """The same as it was at a revision that is not below the floor."""
        then: dict[Key, Record | None] = {}
        for event in reversed(self._events):
            if event.record.revision <= revision:
                break
            then[event.record.key] = event.old  # going back in time: the oldest change is the last to say
        if not then:
            return self.select(wanted, after)
        records = self.records | {key: record for key, record in then.items() if record is not None}
        for key in [key for key, record in then.items() if record is None]:
            records.pop(key, None)
        return _matching(records, sorted(records), wanted, after)

    # -- changes -------------------------------------------------------------------------------------------

    def since(self, revision: int, wanted: Filter) -> list[WatchEvent]:
        """The changes after a revision, as a watcher with this filter sees them."""
        newest_first: list[Event] = []
        for event in reversed(self._events):
            if event.record.revision <= revision:
                break
            newest_first.append(event)
        return [seen for event in reversed(newest_first) if (seen := event.seen_by(wanted)) is not None]

    def publish(self, event: Event) -> None:
        """Remember a change and offer it to whom it concerns."""
        self._events.append(event)
        self.history_bytes += _bytes_of(event)
        if len(self._events) > self._ring_events:
            self.forget_oldest()
        size = event.record.size_bytes
        for pin in self._pins(event):
            for watcher, wanted in self._watchers.get(pin, _NOBODY).items():
                seen = event.seen_by(wanted)
                if seen is not None:
                    watcher.offer(seen, size)

    def forget_oldest(self) -> int:
        """Drop the oldest change from the event log, so that who has not seen it must list again; the bytes freed."""
        gone = self._events.popleft()
        freed = _bytes_of(gone)
        self.history_bytes -= freed
        self.floor = gone.record.revision
        return freed

    def _pins(self, event: Event) -> list[_Pin]:
        nodes = {None, event.record.fields.get(PINNED_FIELD)}
        if event.old is not None:
            nodes.add(event.old.fields.get(PINNED_FIELD))
        return [(namespace, node) for namespace in {"", event.record.namespace} for node in nodes]

    def attach(self, watcher: Watcher[WatchEvent], wanted: Filter) -> None:
        """Offer the watcher what its filter admits, until it is closed."""
        pin = (wanted.namespace, wanted.pinned(PINNED_FIELD))
        self._watchers.setdefault(pin, {})[watcher] = wanted
        watcher.on_close(lambda: self._detach(pin, watcher))

    def end_watches(self) -> None:
        for watcher in [watcher for held in self._watchers.values() for watcher in held]:
            watcher.close()

    def _detach(self, pin: _Pin, watcher: Watcher[WatchEvent]) -> None:
        held = self._watchers.get(pin, {})
        held.pop(watcher, None)
        if not held:
            self._watchers.pop(pin, None)


_NOBODY: dict[Watcher[WatchEvent], Filter] = {}


def _bytes_of(event: Event) -> int:
    """About what is kept for an event. What was there before it is another event's to count, or still there."""
    return event.record.size_bytes + _RECORD_BYTES + _LABEL_BYTES * len(event.record.labels)


def _matching(records: dict[Key, Record], order: list[Key], wanted: Filter, after: Key | None) -> Iterator[Record]:
    start = max((wanted.namespace, ""), (*after[:1], after[1] + "\0") if after else ("", ""))
    stop = (wanted.namespace + "\0", "") if wanted.namespace else None
    last = bisect_left(order, stop) if stop else len(order)
    keys = order[bisect_left(order, start) : last]
    if wanted.admits_namespace_only:
        return filter(None, map(records.get, keys))
    # Read beside the event loop, an object may have gone since.
    return (record for key in keys if (record := records.get(key)) is not None and record.admitted_by(wanted))
