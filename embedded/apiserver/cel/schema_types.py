"""What the fields of custom resources are to CEL: a type for checking, and values made from JSON.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules
Source: kubernetes `apiserver/pkg/cel/common/schemas.go` (SchemaDeclType), `apiserver/pkg/cel/escaping.go`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.cel.messages import Fields, entry_name

PACKAGE = "fields"
Convert = Callable[[Any], Any]
_ACCESSIBLE = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_KEYWORDS = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return"),
    )
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[./-]")
_SPAN = re.compile(r"(\d+\.?\d*|\.\d+)\s*(ns|us|µs|μs|ms|s|m|h|d|w)")
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_NANOSECONDS |= {"m": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9, "w": 604_800 * 10**9}
_METADATA = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}
_OF_ROOT = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}
_SIMPLE = {"boolean": "bool", "integer": "int", "string": "string"}


@dataclass(frozen=True, slots=True)
class Shape:
    """One schema: the name of its type, as in `messages`, and how its values are made; None leaves them alone."""

    type: str
    convert: Convert | None = None
    children: dict[str, Shape] | None = None  # by property, or `items`


def escaped(name: str) -> str | None:
    """The name of a field in expressions; None for one that they cannot name."""
    if not _ACCESSIBLE.fullmatch(name):
        return None
    if name in _KEYWORDS:
        return f"__{name}__"
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


class Shapes:
    """The shapes of one schema; `messages` are the types its objects need."""

    def __init__(self) -> None:
        self.messages: dict[str, Fields] = {}

    def of(self, schema: Object, root: bool = False) -> Shape | None:
        """None for what CEL knows nothing of, such as a field that may be anything."""
        if schema.get("x-kubernetes-int-or-string"):
            return Shape("dyn")
        kind = schema.get("type")
        if kind == "array":
            return self._of_items(schema.get("items") or {}, "[]", _each_item)
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return self._of_items(schema["additionalProperties"], "{}", _each_value)
        if kind == "object":
            return self._of_object(schema, root or bool(schema.get("x-kubernetes-embedded-resource")))
        return _scalar(str(kind), schema.get("format") or "")

    def _of_items(self, schema: Object, mark: str, each: Callable[[Convert], Convert]) -> Shape | None:
        inner = self.of(schema)
        if inner is None:
            return None
        return Shape(mark + inner.type, inner.convert and each(inner.convert), {"items": inner})

    def _of_object(self, schema: Object, root: bool) -> Shape:
        name = f"T{len(self.messages)}"
        self.messages[name] = {}
        properties = {**(schema.get("properties") or {}), **(_OF_ROOT if root else {})}
        shapes = {key: shape for key, child in properties.items() if (shape := self.of(child)) is not None}
        names = {key: text for key in shapes if (text := escaped(key)) is not None}
        self.messages[name] = _fields({text: shapes[key].type for key, text in names.items()})
        converts = {key: shape.convert for key, shape in shapes.items() if shape.convert}
        changed = {key: text for key, text in names.items() if text != key}
        return Shape(name, _fields_made(converts, changed) if converts or changed else None, shapes)


def _fields(types: dict[str, str]) -> Fields:
    """Without what no message can hold: lists of lists are lists of anything."""
    taken, found = set(types), {}
    for name, kind in types.items():
        mark, inner = (kind[:2], kind[2:]) if kind[:2] in ("[]", "{}") else ("", kind)
        found[name] = mark + ("dyn" if inner[:2] in ("[]", "{}") else inner)
        if mark == "{}" and entry_name(name) in taken:
            found[name] = "dyn"
        taken.add(entry_name(name))
    return found


def _scalar(kind: str, form: str) -> Shape | None:
    if kind == "number":
        return Shape("double", float)
    if kind == "string" and form in _FORMATS:
        return _FORMATS[form]
    return Shape(_SIMPLE[kind]) if kind in _SIMPLE else None


def _fields_made(converts: dict[str, Convert], names: dict[str, str]) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {names.get(key, key): _made(converts.get(key), item) for key, item in value.items()}

    return convert


def _each_item(convert: Convert) -> Convert:
    return lambda value: [_made(convert, item) for item in value] if isinstance(value, list) else value


def _each_value(convert: Convert) -> Convert:
    return lambda value: {k: _made(convert, v) for k, v in value.items()} if isinstance(value, dict) else value


def _made(convert: Convert | None, value: Any) -> Any:
    """Null stays null, and what has not the form it should have stays what it is: rules see it all the same."""
    if convert is None or value is None:
        return value
    try:
        return convert(value)
    except (ValueError, TypeError):
        return value


def moment(text: str) -> Timestamp:
    """A time of RFC 3339; raises ValueError."""
    found = Timestamp()
    found.FromJsonString(text)
    return found


def _day(text: str) -> Timestamp:
    return moment(f"{text}T00:00:00Z")


def _duration(text: str) -> Duration:
    """As Go writes them, such as `1h30m`."""
    total = sum((Fraction(number) * _NANOSECONDS[unit] for number, unit in _SPAN.findall(text)), Fraction(0))
    found = Duration()
    found.FromNanoseconds(int(-total if text.startswith("-") else total))
    return found


_FORMATS = {
    "byte": Shape("bytes", b64decode),
    "date": Shape("timestamp", _day),
    "date-time": Shape("timestamp", moment),
    "duration": Shape("duration", _duration),
}
