"""Events: writing those of our own controllers, and keeping all of them from growing without bound."""

from __future__ import annotations

from collections import Counter

import msgspec

from local.apiserver.objects import Object, name_of, namespace_of, parse_time, rfc3339, uid_of
from local.apiserver.registry import EVENTS
from local.apiserver.resources import Resources, random_suffix
from local.apiserver.selectors import EVERYTHING, Filter
from local.apiserver.status import StatusError
from local.apiserver.store import Record

TTL_SECONDS = 3600.0
NAMESPACE_CAP = 2000
_SLACK = 200  # trimming in batches costs less than trimming at every event


def record_event(
    resources: Resources, about: Object, reason: str, message: str, component: str, kind: str = "Normal"
) -> None:
    """Write an Event about an object. One that cannot be written is not worth failing for."""
    now = rfc3339(resources.clock())
    namespace = namespace_of(about) or "default"
    event: Object = {
        "metadata": {"name": f"{name_of(about)}.{random_suffix()}{random_suffix()}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": name_of(about),
            "namespace": namespace_of(about),
            "uid": uid_of(about),
            "resourceVersion": about["metadata"].get("resourceVersion", ""),
        },
        "reason": reason,
        "message": message[:1024],
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
    }
    try:
        resources.create(EVENTS, namespace, event)
    except StatusError:
        return


class _Born(msgspec.Struct, rename="camel"):
    creation_timestamp: str


class _Times(msgspec.Struct, rename="camel"):
    metadata: _Born
    last_timestamp: str | None = None
    event_time: str | None = None


_TIMES = msgspec.json.Decoder(_Times)


def _last_seen(record: Record) -> float:
    times = _TIMES.decode(record.body)
    return parse_time(times.last_timestamp or times.event_time or times.metadata.creation_timestamp) or 0.0


def expire_events(resources: Resources, ttl_seconds: float = TTL_SECONDS) -> int:
    """Delete events not seen for longer than their time to live; returns how many."""
    oldest = resources.clock() - ttl_seconds
    old = [record for record in resources.store.select(EVENTS.id, EVERYTHING) if _last_seen(record) < oldest]
    for record in old:
        resources.delete(EVENTS, record.namespace, record.name)
    return len(old)


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
