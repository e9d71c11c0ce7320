"""Reading the protobuf bodies that kubectl's `create <kind>` generators send. Nothing is ever written in it.

A body is the four bytes `k8s\\0` and a runtime.Unknown: typeMeta (1) {apiVersion (1), kind (2)} and raw (2).
Field numbers are those of the generated.proto files of k8s.io/api and k8s.io/apimachinery.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from local.apiserver.objects import Object, rfc3339
from local.apiserver.status import bad_request, unsupported_media

MAGIC = b"k8s\0"
Kind = Literal["text", "int", "bool", "bytes", "message", "texts", "map", "bytesmap", "time", "list", "refused"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its JSON name, how to read it, and the fields inside a message."""

    name: str
    kind: Kind
    fields: "Table | None" = None


Table = dict[int, Field]

_TIME: Table = {1: Field("seconds", "int")}
_OWNER: Table = {
    1: Field("kind", "text"),
    3: Field("name", "text"),
    4: Field("uid", "text"),
    5: Field("apiVersion", "text"),
    6: Field("controller", "bool"),
    7: Field("blockOwnerDeletion", "bool"),
}
_METADATA: Table = {
    1: Field("name", "text"),
    2: Field("generateName", "text"),
    3: Field("namespace", "text"),
    5: Field("uid", "text"),
    6: Field("resourceVersion", "text"),
    8: Field("creationTimestamp", "time", _TIME),
    11: Field("labels", "map"),
    12: Field("annotations", "map"),
    13: Field("ownerReferences", "list", _OWNER),
    14: Field("finalizers", "texts"),
}
_META = Field("metadata", "message", _METADATA)
# Stands for every field that a table does not name. A pod that loses a field on the way is another pod, so where
# this is in the table such a field is refused; elsewhere it is skipped.
_REST = 0
_REFUSED = Field("", "refused")
_CONTAINER: Table = {
    1: Field("name", "text"),
    2: Field("image", "text"),
    3: Field("command", "texts"),
    4: Field("args", "texts"),
    5: Field("workingDir", "text"),
    14: Field("imagePullPolicy", "text"),
    _REST: _REFUSED,
}
_POD_SPEC: Table = {
    2: Field("containers", "list", _CONTAINER),
    3: Field("restartPolicy", "text"),
    4: Field("terminationGracePeriodSeconds", "int"),
    5: Field("activeDeadlineSeconds", "int"),
    7: Field("nodeSelector", "map"),
    8: Field("serviceAccountName", "text"),
    19: Field("schedulerName", "text"),
    24: Field("priorityClassName", "text"),
    _REST: _REFUSED,
}
_JOB_SPEC: Table = {
    1: Field("parallelism", "int"),
    2: Field("completions", "int"),
    3: Field("activeDeadlineSeconds", "int"),
    6: Field("template", "message", {1: _META, 2: Field("spec", "message", _POD_SPEC)}),
    7: Field("backoffLimit", "int"),
    8: Field("ttlSecondsAfterFinished", "int"),
    9: Field("completionMode", "text"),
    10: Field("suspend", "bool"),
    _REST: _REFUSED,
}
_REVIEW_SPEC: Table = {
    1: Field(
        "resourceAttributes",
        "message",
        {
            number: Field(name, "text")
            for number, name in enumerate(
                ("namespace", "verb", "group", "version", "resource", "subresource", "name"), start=1
            )
        },
    ),
    2: Field("nonResourceAttributes", "message", {1: Field("path", "text"), 2: Field("verb", "text")}),
}
_TABLES: dict[str, Table] = {
    "Job": {1: _META, 2: Field("spec", "message", _JOB_SPEC)},
    "SelfSubjectAccessReview": {1: _META, 2: Field("spec", "message", _REVIEW_SPEC)},
    "Namespace": {
        1: _META,
        2: Field("spec", "message", {1: Field("finalizers", "texts")}),
        3: Field("status", "message", {1: Field("phase", "text")}),
    },
    "ConfigMap": {
        1: _META,
        2: Field("data", "map"),
        3: Field("binaryData", "bytesmap"),
        4: Field("immutable", "bool"),
    },
    "Secret": {
        1: _META,
        2: Field("data", "bytesmap"),
        3: Field("type", "text"),
        4: Field("stringData", "map"),
        5: Field("immutable", "bool"),
    },
    "ServiceAccount": {1: _META, 4: Field("automountServiceAccountToken", "bool")},
    "PriorityClass": {
        1: _META,
        2: Field("value", "int"),
        3: Field("globalDefault", "bool"),
        4: Field("description", "text"),
        5: Field("preemptionPolicy", "text"),
    },
    "DeleteOptions": {
        1: Field("gracePeriodSeconds", "int"),
        2: Field("preconditions", "message", {1: Field("uid", "text"), 2: Field("resourceVersion", "text")}),
        3: Field("orphanDependents", "bool"),
        4: Field("propagationPolicy", "text"),
        5: Field("dryRun", "texts"),
    },
}


def decode_protobuf(body: bytes) -> Object:
    """The JSON form of a protobuf body; 415 for a kind without a table, 400 for a malformed body."""
    if not body.startswith(MAGIC):
        raise bad_request("the body is not protobuf of Kubernetes: it does not start with k8s\\0")
    try:
        envelope = _message(
            body[len(MAGIC) :],
            {
                1: Field("typeMeta", "message", {1: Field("apiVersion", "text"), 2: Field("kind", "text")}),
                2: Field("raw", "bytes"),
            },
        )
        kind = envelope.get("typeMeta", {}).get("kind", "")
        table = _TABLES.get(kind)
        if table is None:
            raise unsupported_media(
                f"protobuf bodies of kind {kind!r} are not supported by this server; send application/json"
            )
        return {**envelope["typeMeta"], **_message(envelope.get("raw", b""), table)}
    except (IndexError, UnicodeDecodeError, KeyError) as error:
        raise bad_request(f"malformed protobuf body: {error}") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise IndexError("a varint is longer than ten bytes")


def _entries(data: bytes) -> Iterator[tuple[int, Any]]:
    """(field number, number or bytes) of every entry of one message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise IndexError(f"wire type {wire} is not used by Kubernetes")
        if at + size > len(data):
            raise IndexError("the body ends inside a field")
        yield number, data[at : at + size]
        at += size


def _message(data: bytes, table: Table) -> Object:
    found: Object = {}
    for number, raw in _entries(data):
        field = table.get(number, table.get(_REST))
        if field is None:
            continue
        if field.kind != "refused":
            _store(found, field, raw)
        elif raw:  # Go writes every field that is no pointer, unset ones too
            raise unsupported_media(f"protobuf field {number} is not supported by this server; send application/json")
    return found


def _store(found: Object, field: Field, raw: Any) -> None:
    if isinstance(raw, int) != (field.kind in ("int", "bool")):
        raise IndexError(f"{field.name} is written with the wrong wire type")
    match field.kind:
        case "text":
            if raw:  # Go writes an unset text as an empty one
                found[field.name] = raw.decode()
        case "int":
            found[field.name] = raw - (1 << 64) if raw >= 1 << 63 else raw
        case "bool":
            found[field.name] = bool(raw)
        case "bytes":
            found[field.name] = raw
        case "message":
            found[field.name] = _message(raw, field.fields or {})
        case "time":
            seconds = _message(raw, field.fields or {}).get("seconds")
            if seconds:
                found[field.name] = rfc3339(seconds)
        case "texts":
            found.setdefault(field.name, []).append(raw.decode())
        case "list":
            found.setdefault(field.name, []).append(_message(raw, field.fields or {}))
        case _:
            _store_entry(found, field, raw)


def _store_entry(found: Object, field: Field, raw: bytes) -> None:
    value: Kind = "text" if field.kind == "map" else "bytes"
    entry = _message(raw, {1: Field("key", "text"), 2: Field("value", value)})
    text = entry.get("value", "" if value == "text" else b"")
    found.setdefault(field.name, {})[entry.get("key", "")] = text if value == "text" else _base64(text)


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()
