"""What a schema says about telling apart the fields of a value: which are owned one by one, which only as a whole.

https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.definitions import REFERENCE, resolve, schema_of
from embedded.apiserver.managedfields.paths import Path, field_step, key_step, value_step

ABSENT: Any = object()  # unlike None, which is a value
_DEDUCED: Object = {}  # a schema that says nothing: maps merge, lists are replaced
_OBJECT_META: Object = {"$ref": f"{REFERENCE}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_TEXT: Object = {"type": "string"}
# Defaults of list keys that the built-in schemas do not spell out; with them an item has its key before defaulting.
_KEY_DEFAULTS = {"protocol": "TCP"}


class Kind(Enum):
    """How a value is owned."""

    LEAF = "as a whole"
    MAP = "by field"
    KEYED = "by item, which its keys identify"
    SET = "by item, which is its own identity"


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of one value; `rest` is the schema of fields that are not named, None where there may be none."""

    kind: Kind
    fields: Mapping[str, Object] = field(default_factory=dict)
    rest: Object | None = None
    items: Object = field(default_factory=dict)
    keys: tuple[str, ...] = ()

    @property
    def is_list(self) -> bool:
        return self.kind in (Kind.KEYED, Kind.SET)


_LEAF = Structure(Kind.LEAF)


def whole_schema(rtype: ResourceType) -> Object:
    """The schema of a whole object, with the metadata that definitions of custom types leave out."""
    schema = schema_of(rtype)
    return _with_type_and_metadata(schema) if rtype.custom is not None else schema


def _with_type_and_metadata(schema: Object) -> Object:
    common = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _OBJECT_META}
    return {**schema, "properties": {**(schema.get("properties") or {}), **common}}


def structure(schema: Object, value: Any) -> Structure:
    """How this value is owned; a value that does not fit its schema is owned as a whole."""
    schema = resolve(schema)
    if isinstance(value, dict) and _describes_map(schema):
        return _map(schema)
    if isinstance(value, list):
        return _list(schema)
    return _LEAF


def _describes_map(schema: Object) -> bool:
    return schema.get("type", "object") == "object" and "oneOf" not in schema


def _map(schema: Object) -> Structure:
    if schema.get("x-kubernetes-map-type") == "atomic":
        return _LEAF
    if schema.get("x-kubernetes-embedded-resource"):
        schema = _with_type_and_metadata(schema)
    fields, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    if not isinstance(rest, dict):
        open_ended = rest or schema.get("x-kubernetes-preserve-unknown-fields") or not fields
        rest = _DEDUCED if open_ended else None
    return Structure(Kind.MAP, fields, rest)


def _list(schema: Object) -> Structure:
    items = schema.get("items") or _DEDUCED
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return Structure(Kind.KEYED, items=items, keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()))
        case "set":
            return Structure(Kind.SET, items=items)
    return _LEAF


def joint(schema: Object, one: Any, other: Any) -> Structure:
    """The structure of two values of one place, either of which may be absent; a leaf where they do not agree."""
    if one is ABSENT or other is ABSENT:
        return structure(schema, one if other is ABSENT else other)
    first, second = structure(schema, one), structure(schema, other)
    return first if first.kind == second.kind else _LEAF


def parts(found: Structure, value: Any) -> list[tuple[str, Any]]:
    """The parts of a value, each with its step, in the value's order. Items may share an identity."""
    if value is ABSENT or found.kind is Kind.LEAF:
        return []
    if found.kind is Kind.MAP:
        return [(field_step(name), item) for name, item in value.items()]
    return [(item_step(found, item), item) for item in value]


def members(found: Structure, value: Any) -> dict[str, Any]:
    """The parts of a value by their step. Of items that share an identity, the first."""
    by_step: dict[str, Any] = {}
    for step, item in parts(found, value):
        by_step.setdefault(step, item)
    return by_step


def item_step(found: Structure, item: Any) -> str:
    if found.kind is Kind.SET or not isinstance(item, dict):
        return value_step(item)
    return key_step({key: _key_value(found, item, key) for key in found.keys})


def _key_value(found: Structure, item: Object, key: str) -> Any:
    if key in item:
        return item[key]
    described = (resolve(found.items).get("properties") or {}).get(key) or {}
    return described.get("default", _KEY_DEFAULTS.get(key) if "$ref" in found.items else None)


def schema_below(found: Structure, step: str) -> Object:
    """The schema of the part that a step leads to."""
    if found.is_list:
        return found.items
    return found.fields.get(step.removeprefix("f:"), found.rest or _DEDUCED)


def with_named_parents(schema: Object, paths: frozenset[Path]) -> frozenset[Path]:
    """The paths and, of all that lead there, those to named fields, which nobody owns expressly."""
    return paths | {parent for path in paths for parent in _named_parents(schema, path)}


def _named_parents(schema: Object, path: Path) -> Iterator[Path]:
    for depth, step in enumerate(path[:-1], 1):
        schema = resolve(schema)
        if step.startswith("f:"):
            found = _map(schema)
            if step.removeprefix("f:") in found.fields:
                yield path[:depth]
            schema = schema_below(found, step)
        else:
            schema = schema.get("items") or _DEDUCED


def problems(schema: Object, value: Any, path: str = "") -> Iterator[str]:
    """What keeps an applied configuration from being merged, each with its place."""
    found = structure(schema, value)
    wanted = resolve(schema).get("type")
    if (
        wanted in ("object", "array")
        and value is not None
        and not isinstance(value, dict if wanted == "object" else list)
    ):
        yield f"{path}: expected {'map' if wanted == 'object' else 'list'}, got {value!r}"
    elif found.kind is Kind.MAP:
        for name, item in value.items():
            if name not in found.fields and found.rest is None:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from problems(schema_below(found, field_step(name)), item, f"{path}.{name}")
    elif found.is_list:
        yield from _list_problems(found, value, path)


def _list_problems(found: Structure, value: list[Any], path: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(value):
        here = f"{path}[{index}]"
        if found.kind is Kind.KEYED and not isinstance(item, dict):
            yield f"{here}: expected map, got {item!r}"
            continue
        missing = [key for key in found.keys if _key_value(found, item, key) is None]
        if missing:
            yield (
                f"{path}: element {index}: associative list with keys has an element that omits key field "
                f'"{missing[0]}" (and doesn\'t have default value)'
            )
        step = item_step(found, item)
        if step in seen:
            yield f"{path}: duplicate entries for key {step[2:]}"
        seen.add(step)
        yield from problems(found.items, item, here)
