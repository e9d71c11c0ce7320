"""Reading the protobuf bodies that kubectl's `create` commands and other Go clients send. Nothing is written in it.

A body is the four bytes `k8s\\0` and a runtime.Unknown: typeMeta (1) {apiVersion (1), kind (2)} and raw (2).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from embedded.apiserver.apimachinery.objects import Object, rfc3339
from embedded.apiserver.apimachinery.status import bad_request, unsupported_media
from embedded.apiserver.protobuf import Field, Message, message, message_of

MAGIC = b"k8s\0"
_TYPE_META: Message = {1: Field("apiVersion", "text"), 2: Field("kind", "text")}
_ENVELOPE_TYPE, _ENVELOPE_RAW = 1, 2
_NUMBERS = ("int", "bool")


def decode_protobuf(body: bytes) -> Object:
    """The JSON form of a protobuf body; 415 for a kind whose fields are not known, 400 for a malformed body."""
    if not body.startswith(MAGIC):
        raise bad_request("the body is not protobuf of Kubernetes: it does not start with k8s\\0")
    try:
        envelope = dict(entries(body[len(MAGIC) :]))
        who = _read(_bytes(envelope.get(_ENVELOPE_TYPE, b"")), _TYPE_META)
        fields = message_of(who.get("apiVersion", ""), who.get("kind", ""))
        if fields is None:
            raise unsupported_media(
                f"protobuf bodies of kind {who.get('kind', '')!r} are not supported by this server; "
                "send application/json"
            )
        return {**who, **_read(_bytes(envelope.get(_ENVELOPE_RAW, b"")), fields)}
    except (IndexError, UnicodeDecodeError, KeyError, OverflowError, msgspec.DecodeError) as error:
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


def entries(data: bytes) -> Iterator[tuple[int, Any]]:
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


def _bytes(raw: Any) -> bytes:
    if not isinstance(raw, bytes):
        raise IndexError("a number where a message belongs")
    return raw


def _read(data: bytes, fields: Message) -> Object:
    """One message; fields it has beyond the known ones are skipped, as every reader of protobuf does."""
    found: Object = {}
    for number, raw in entries(data):
        field = fields.get(number)
        if field is None:
            continue
        if isinstance(raw, int) != (field.kind in _NUMBERS):
            raise IndexError(f"{field.name} is written with the wrong wire type")
        if field.kind == "map":
            found.setdefault(field.name, {}).update([_map_entry(field, raw)])
            continue
        value = _READERS[field.kind](field, raw)
        if field.many:
            found.setdefault(field.name, []).append(value)
        elif not field.name:
            found |= value
        elif _is_set(field, value):
            found[field.name] = value
    return found


def _is_set(field: Field, value: Any) -> bool:
    """Go writes unset fields too, unless they are pointers; an empty message is as good as a set one."""
    return value is not None and (field.keep_zero or value not in ("", 0, False) or value == {})


def _map_entry(field: Field, raw: bytes) -> tuple[str, Any]:
    inner = Field("value", field.of if field.of in _READERS else "message", field.of, keep_zero=True)
    entry = _read(raw, {1: Field("key", "text", keep_zero=True), 2: inner})
    return entry.get("key", ""), entry.get("value", _READERS[inner.kind](inner, b""))


def _time(raw: bytes) -> tuple[int, int]:
    parts = dict(entries(raw))
    return parts.get(1, 0), parts.get(2, 0)


def _read_time(_: Field, raw: bytes) -> str | None:
    seconds, _nanos = _time(raw)
    return rfc3339(seconds) if seconds else None


def _read_micro_time(_: Field, raw: bytes) -> str | None:
    seconds, nanos = _time(raw)
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{nanos // 1000:06d}Z"


def _read_int_or_string(_: Field, raw: bytes) -> int | str:
    parts = dict(entries(raw))
    return _bytes(parts.get(3, b"")).decode() if parts.get(1, 0) == 1 else _signed(parts.get(2, 0))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _read_json(_: Field, raw: bytes) -> Any:
    text = _bytes(dict(entries(raw)).get(1, b""))
    return msgspec.json.decode(text) if text else None


_READERS: dict[str, Callable[[Field, Any], Any]] = {
    "text": lambda _, raw: raw.decode(),
    "int": lambda _, raw: _signed(raw),
    "bool": lambda _, raw: bool(raw),
    "bytes": lambda _, raw: b64encode(raw).decode(),
    "message": lambda field, raw: _read(raw, message(field.of)),
    "quantity": lambda _, raw: _bytes(dict(entries(raw)).get(1, b"")).decode(),
    "time": _read_time,
    "microtime": _read_micro_time,
    "intorstring": _read_int_or_string,
    "json": _read_json,
}
