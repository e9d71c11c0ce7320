"""Events: writing those of our own controllers, and keeping all of them from growing without bound."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import takewhile

from embedded.apiserver.apimachinery.objects import Object, name_of, namespace_of, rfc3339, uid_of
from embedded.apiserver.apimachinery.resource_types import EVENTS
from embedded.apiserver.apimachinery.selectors import EVERYTHING, Filter
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event

TTL_SECONDS = 3600.0
NAMESPACE_CAP = 2000
_NAME_CHARACTERS = 236  # what a digest leaves of a name
_SLACK = 200  # trimming in batches costs less than trimming at every event


def record_event(
    resources: Resources, about: Object, reason: str, message: str, component: str, kind: str = "Normal"
) -> None:
    """Write an Event about an object; the same one again only counts. One that cannot be written fails nothing."""
    namespace, now = namespace_of(about) or "default", rfc3339(resources.clock())
    event = _event(about, namespace, (kind, reason, message[:1024], component), now)
    try:
        if resources.store.get(EVENTS.id, namespace, name_of(event)) is None:
            resources.create(EVENTS, namespace, event)
        else:
            resources.update(EVENTS, namespace, name_of(event), lambda held: _again(held, now))
    except StatusError:
        return


def _event(about: Object, namespace: str, said: tuple[str, str, str, str], now: str) -> Object:
    """Its name follows from what it says, so that saying it again finds it."""
    kind, reason, message, component = said
    digest = blake2b("\0".join((uid_of(about), *said)).encode(), digest_size=8).hexdigest()
    return {
        "metadata": {"name": f"{name_of(about)[:_NAME_CHARACTERS]}.{digest}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": name_of(about),
            "namespace": namespace_of(about),
            "uid": uid_of(about),
            "resourceVersion": about["metadata"].get("resourceVersion", ""),
        },
        "reason": reason,
        "message": message,
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
    }


def _again(held: Object, now: str) -> Object:
    return {**held, "count": int(held.get("count") or 1) + 1, "lastTimestamp": now}


class EventExpiry:
    """Forgets events an hour after their last write; whatever times they carry are their writers' own.

    As in etcd, whose leases are renewed in full when it starts, an hour begins again with the process.
    """

    def __init__(self, resources: Resources, ttl_seconds: float = TTL_SECONDS) -> None:
        self._resources = resources
        self._ttl_seconds = ttl_seconds
        self._written: dict[tuple[str, str], float] = {}  # oldest first

    def react(self, type_id: str, event: Event) -> None:
        if type_id == EVENTS.id:
            self._written.pop(event.record.key, None)
            if event.change is not Change.DELETED:
                self._written[event.record.key] = self._resources.clock()

    def expire(self) -> int:
        """Delete the events whose time is over; returns how many."""
        oldest = self._resources.clock() - self._ttl_seconds
        over = list(takewhile(lambda key: self._written[key] < oldest, self._written))
        for namespace, name in over:
            del self._written[namespace, name]
            if self._resources.store.get(EVENTS.id, namespace, name) is not None:
                self._resources.delete(EVENTS, namespace, name)
        return len(over)


def trim_events(resources: Resources, cap: int = NAMESPACE_CAP, slack: int = _SLACK) -> int:
    """Delete the oldest written events of namespaces that hold many more than the cap; returns how many."""
    if resources.store.count(EVENTS.id) <= cap + slack:
        return 0
    counts = Counter(record.namespace for record in resources.store.select(EVENTS.id, EVERYTHING))
    trimmed = 0
    for namespace, count in sorted(counts.items()):
        if count <= cap + slack:
            continue
        records = sorted(resources.store.select(EVENTS.id, Filter(namespace)), key=lambda record: record.revision)
        for record in records[: count - cap]:
            resources.delete(EVENTS, namespace, record.name)
            trimmed += 1
    return trimmed
