"""Events in their two forms: core/v1, as they are stored, and events.k8s.io/v1, the same with other field names.

Source: kubernetes `pkg/apis/events/v1/conversion.go` and `zz_generated.conversion.go`.
"""

from collections.abc import Iterator

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_supported, required
from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.apimachinery.resource_types import EVENTS, Form, ResourceType

# events.k8s.io name → core name
_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_RENAMED_BACK = {core: name for name, core in _RENAMED.items()}
_REGARDING = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
FIELD_ALIASES = {
    **{f"regarding.{name}": f"involvedObject.{name}" for name in _REGARDING},
    "reportingController": "reportingComponent",
    "reason": "reason",
    "type": "type",
}
_NOTE_LIMIT, _TEXT_LIMIT = 1024, 128


def shown(event: Object) -> Object:
    """A stored event as events.k8s.io/v1 has it."""
    return {**_renamed(event, _RENAMED_BACK), "apiVersion": "events.k8s.io/v1"}


def stored(event: Object) -> Object:
    """An events.k8s.io/v1 event as it is stored."""
    return {**_renamed(event, _RENAMED), "apiVersion": "v1"}


def _renamed(event: Object, names: dict[str, str]) -> Object:
    return {names.get(key, key): value for key, value in event.items()}


EVENTS_V1 = ResourceType(
    "events.k8s.io",
    "v1",
    "events",
    "Event",
    True,
    ("ev",),
    fields=EVENTS.fields,
    created_by_put=True,
    field_aliases=FIELD_ALIASES,
    form=Form(shown, stored),
)


def new_event_errors(event: Object) -> Iterator[FieldError]:
    """What a new events.k8s.io/v1 event must have besides the core rules.

    Source: kubernetes `pkg/apis/core/validation/events.go`, ValidateEventCreate.
    """
    if not event.get("eventTime"):
        yield required("eventTime")
    for field in ("reportingController", "reportingInstance", "action", "reason"):
        yield from _text_errors(field, event.get(field))
    if event.get("type") not in ("Normal", "Warning"):
        yield not_supported("type", event.get("type") or "", ("Normal", "Warning"))
    if len(str(event.get("note") or "")) > _NOTE_LIMIT:
        yield bad_value("note", "", f"can have at most {_NOTE_LIMIT} characters")
    for field in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount"):
        if event.get(field):
            yield bad_value(field, event[field], "must be unset")
    if (count := dig(event, "series.count")) is not None and count < 2:
        yield bad_value("series.count", count, "should be at least 2")


def _text_errors(field: str, value: object) -> Iterator[FieldError]:
    if not value:
        yield required(field)
    elif len(str(value)) > _TEXT_LIMIT:
        yield bad_value(field, value, f"can have at most {_TEXT_LIMIT} characters")


def event_change_errors(event: Object, old: Object) -> Iterator[FieldError]:
    """Of an event written through events.k8s.io, only the series goes on (ValidateEventUpdate)."""
    for field in ("eventTime", "regarding", "reason", "note", "action", "type", "reportingController", "related"):
        if event.get(field) != old.get(field):
            yield bad_value(field, event.get(field), "field is immutable")
