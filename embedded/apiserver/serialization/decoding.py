"""Objects of built-in types as Kubernetes decodes them: typed, without nulls and empty lists, without unknown fields.

One walk over the object does all of it, quantities and time stamps in canonical form included.
Messages are those of Go's encoding/json in the fork that kube-apiserver uses (sigs.k8s.io/json).
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from embedded.apiserver.apiextensions.schema import prune
from embedded.apiserver.apimachinery.objects import Object, parse_time, rfc3339
from embedded.apiserver.apimachinery.repeated_fields import Repeating, repeated_fields
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import undecodable
from embedded.apiserver.definitions.field_types import METADATA, FieldType, struct_type, type_of
from embedded.quantity import QuantityError, canonical

MAX_TOLD = 100  # as many as kube-apiserver collects
# resource.ErrFormatWrong
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")
_FRACTION = re.compile(r"[.,]\d+")
_LONGEST_TIME = 64
"""Characters of a time that is remembered; with nanoseconds and an offset there are 35."""
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_BITS = {"int32": 31, "int64": 63}


class DecodingError(Exception):
    """A value that does not fit its field; the text is what Go would say."""


@dataclass(slots=True)
class Decoded:
    """An object in the form it is kept, and what strict decoding holds against the body it came from."""

    value: Object
    told: list[str] = field(default_factory=list)


def decode_object(rtype: ResourceType, obj: Object) -> Decoded:
    """An object of any type. Raises Undecodable (400) where a field has the wrong JSON type."""
    try:
        whole = type_of(rtype)
        return _decode_typed(whole, obj) if whole is not None else _decode_custom(rtype, obj)
    except DecodingError as error:
        raise undecodable(rtype, str(error)) from None


def _decode_typed(whole: FieldType, obj: Object) -> Decoded:
    walk = _Walk()
    walk.told += getattr(obj, "lines", ())
    value = walk.struct(whole, obj)
    value.setdefault("metadata", {})
    return Decoded(value, walk.told)


def _decode_custom(rtype: ResourceType, obj: Object) -> Decoded:
    """Metadata as everywhere, the rest pruned, in place, by the definition's schema; its types are checked later."""
    told = list(repeated_fields(obj)) if isinstance(obj, Repeating) else []
    walk = _Walk(["metadata"])
    obj["metadata"] = walk.struct(struct_type(METADATA), obj.get("metadata") or {})
    if rtype.custom is not None and rtype.custom.schema is not None:
        told += [f'unknown field "{path}"' for path in prune(rtype.custom.schema, obj, root=True)]
    return Decoded(obj, [*told, *walk.told][:MAX_TOLD])


class _Walk:
    """One walk; `path` is where it is."""

    def __init__(self, path: list[str | int] | None = None) -> None:
        self.path: list[str | int] = path or []
        self.told: list[str] = []
        self.owner = struct_type(METADATA)  # the innermost struct, for messages

    def struct(self, of: FieldType, value: Any) -> Object:
        if not isinstance(value, dict):
            raise self.misfit(of, value)
        fields, kept, above, self.owner = of.fields, {}, self.owner, of
        repeated = value.repeated if isinstance(value, Repeating) else ()
        for key, item in value.items():
            inner = fields.get(key)
            if inner is None:
                self.tell("unknown", key)
                continue
            if type(item) is inner.plain:
                kept[key] = item
            elif item is not None:
                self.path.append(key)
                item = _TAKE[inner.kind](self, inner, item)
                self.path.pop()
                if item or (inner.kind != "list" and inner.kind != "map"):  # Go's `omitempty`
                    kept[key] = item
            if key in repeated:
                self.tell("duplicate", key)
        for key, inner in of.zeros.items():
            if key not in kept:
                kept[key] = self.zero(inner)
        self.owner = above
        return kept

    def map(self, of: FieldType, value: Any) -> Object:
        items = of.items
        assert items is not None
        if not isinstance(value, dict):
            raise self.misfit(of, value)
        kept = {}
        repeated = value.repeated if isinstance(value, Repeating) else ()
        for key, item in value.items():
            kept[key] = item if type(item) is items.plain else self.item(items, item, key)
            if key in repeated:
                self.tell("duplicate", key)
        return kept

    def list(self, of: FieldType, value: Any) -> list[Any]:
        items = of.items
        assert items is not None
        if not isinstance(value, list):
            raise self.misfit(of, value)
        plain = items.plain
        return [item if type(item) is plain else self.item(items, item, index) for index, item in enumerate(value)]

    def item(self, of: FieldType, value: Any, at: str | int) -> Any:
        """One item of a list or map, where a null is Go's zero value."""
        if value is None:
            return self.zero(of)
        self.path.append(at)
        taken = _TAKE[of.kind](self, of, value)
        self.path.pop()
        return taken

    def zero(self, of: FieldType) -> Any:
        if of.kind == "struct":
            return self.struct(of, {})
        return [] if of.kind == "list" else _ZERO.get(of.kind)

    def integer(self, of: FieldType, value: Any) -> int:
        limit = 1 << _BITS[of.go]
        if type(value) is not int or not -limit <= value < limit:
            raise self.misfit(of, value, shown=type(value) in (int, float))
        return value

    def float(self, of: FieldType, value: Any) -> float:
        if type(value) not in (int, float):
            raise self.misfit(of, value)
        return value  # type: ignore[no-any-return]

    def quantity(self, of: FieldType, value: Any) -> str:
        if type(value) not in (str, int, float):
            raise DecodingError(f"{self.here}: {_QUANTITY_RULE}")
        try:
            return _canonical(value)
        except QuantityError as error:
            raise DecodingError(f"{self.here}: {_QUANTITY_RULE}: {error}") from None

    def int_or_string(self, of: FieldType, value: Any) -> int | str:
        if type(value) not in (int, str):
            raise DecodingError(f"json: cannot unmarshal {_json_type(value)} into Go value of type int32")
        return value  # type: ignore[no-any-return]

    def time(self, of: FieldType, value: Any) -> str:
        if type(value) is not str:
            raise DecodingError(f"json: cannot unmarshal {_json_type(value)} into Go value of type string")
        seconds = _whole_seconds(value)
        if seconds is None:
            raise DecodingError(f'{self.here}: parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse it')
        return seconds

    def micro_time(self, of: FieldType, value: Any) -> str:
        if type(value) is not str:
            raise DecodingError(f"json: cannot unmarshal {_json_type(value)} into Go value of type string")
        moment = _microseconds(value)
        if moment is None:
            layout = "2006-01-02T15:04:05.000000Z07:00"
            raise DecodingError(f'{self.here}: parsing time "{value}" as "{layout}": cannot parse it')
        return moment

    def bytes(self, of: FieldType, value: Any) -> str:
        if type(value) is not str:
            raise self.misfit(of, value)
        try:
            binascii.a2b_base64(value, strict_mode=True)
        except (binascii.Error, ValueError):
            raise DecodingError(f"{self.here}: illegal base64 data") from None
        return value

    def schema_or_list(self, of: FieldType, value: Any) -> Any:
        if isinstance(value, list):
            return [self.item(struct_type(of.definition), item, index) for index, item in enumerate(value)]
        return self.struct(struct_type(of.definition), value)

    def schema_or_bool(self, of: FieldType, value: Any) -> Any:
        return value if type(value) is bool else self.struct(struct_type(of.definition), value)

    def any(self, of: FieldType, value: Any) -> Any:
        return value

    def plain(self, of: FieldType, value: Any) -> Any:
        raise self.misfit(of, value)

    @property
    def here(self) -> str:
        return _joined(self.path)

    def tell(self, what: str, key: str) -> None:
        told = f'{what} field "{_joined([*self.path, key])}"'
        if len(self.told) < MAX_TOLD and told not in self.told:
            self.told.append(told)

    def misfit(self, of: FieldType, value: Any, shown: bool = False) -> DecodingError:
        """Go names the innermost struct, then the way from the root without indices and map keys' brackets."""
        what = f"{_json_type(value)} {value}" if shown else _json_type(value)
        steps = ".".join(step for step in self.path if isinstance(step, str))
        return DecodingError(
            f"json: cannot unmarshal {what} into Go struct field {self.owner.struct}.{steps} of type {of.go}"
        )


@lru_cache(maxsize=4096)
def _canonical(value: str | int | float) -> str:
    return canonical(value)


def _whole_seconds(text: str) -> str | None:
    """metav1.Time as it is kept; None for what is not a time. A client may write any text: a long one is not kept."""
    return _remembered_seconds(text) if len(text) <= _LONGEST_TIME else _read_seconds(text)


def _read_seconds(text: str) -> str | None:
    moment = parse_time(_FRACTION.sub("", text)) if _TIME.fullmatch(text) else None
    return None if moment is None else rfc3339(moment)


_remembered_seconds = lru_cache(maxsize=4096)(_read_seconds)


def _microseconds(text: str) -> str | None:
    """metav1.MicroTime as it is kept; None for what is not one."""
    if not _MICRO_TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return None


def _joined(path: list[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _json_type(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    return {bool: "bool", str: "string", int: "number", float: "number", list: "array"}.get(type(value), "null")


_ZERO: dict[str, Any] = {"text": "", "bytes": "", "bool": False, "integer": 0, "quantity": "0"}
_TAKE: dict[str, Callable[[_Walk, FieldType, Any], Any]] = {
    "struct": _Walk.struct,
    "map": _Walk.map,
    "list": _Walk.list,
    "text": _Walk.plain,
    "bool": _Walk.plain,
    "integer": _Walk.integer,
    "float": _Walk.float,
    "quantity": _Walk.quantity,
    "int-or-string": _Walk.int_or_string,
    "time": _Walk.time,
    "micro-time": _Walk.micro_time,
    "bytes": _Walk.bytes,
    "schema-or-list": _Walk.schema_or_list,
    "schema-or-bool": _Walk.schema_or_bool,
    "any": _Walk.any,
}
