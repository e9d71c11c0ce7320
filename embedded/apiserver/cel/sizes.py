"""How large the values of a schema can be, which is what the cost of a rule over them is estimated from.

Source: kubernetes `apiserver/pkg/cel/common/schemas.go` (SchemaDeclType), `apiserver/pkg/cel/limits.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.cel.schema_types import escaped

LARGEST_REQUEST_BYTES = 3 << 20
_LONGEST_TEXT = LARGEST_REQUEST_BYTES - 2  # without its quotes
# format → the most characters, the fewest bytes of JSON
_OF_FORMAT = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
_TEXT_BYTES = 2
_SCALAR_BYTES = {"boolean": 4, "integer": 1, "number": 1}
_TEXT: Object = {"type": "string"}
_METADATA = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_OF_ROOT: Object = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}


@dataclass(frozen=True, slots=True)
class SizeBounds:
    """Bounds of the values of one schema, as JSON of a request that is accepted."""

    most_elements: int  # characters of a text, items of a list, entries of a map; 0 of anything else
    least_bytes: int
    fields: dict[str, SizeBounds] = field(default_factory=dict)  # by their names in expressions
    items: SizeBounds | None = None
    keys: SizeBounds | None = None  # of a map

    def at(self, path: Iterable[str]) -> SizeBounds | None:
        """What is at a path of fields, `@items`, `@values` and `@keys`; None where the schema has nothing."""
        here: SizeBounds | None = self
        for step in path:
            if here is None:
                return None
            if step in ("@items", "@values"):
                here = here.items
            else:
                here = here.keys if step == "@keys" else here.fields.get(step)
        return here


def extent_of(schema: Object, root: bool = False) -> SizeBounds | None:
    """None for what expressions know nothing of."""
    if schema.get("x-kubernetes-int-or-string"):
        return SizeBounds(_longest(schema), 1)
    kind, rest = schema.get("type"), schema.get("additionalProperties")
    if kind == "array":
        return _collection(schema.get("items") or {}, schema.get("maxItems"), _most_items)
    if kind == "object" and isinstance(rest, dict):
        found = _collection(rest, schema.get("maxProperties"), _most_entries)
        return None if found is None else replace(found, keys=SizeBounds(0, _TEXT_BYTES))
    if kind == "object":
        return _object(schema, root)
    if kind == "string":
        return _text(schema)
    return SizeBounds(0, _SCALAR_BYTES[kind]) if kind in _SCALAR_BYTES else None


def _longest(schema: Object) -> int:
    """A character takes up to four bytes."""
    most = schema.get("maxLength")
    return _LONGEST_TEXT if most is None else max(most, 0) * 4


def _collection(inner: Object, most: int | None, guess: Callable[[int], int]) -> SizeBounds | None:
    found = extent_of(inner, bool(inner.get("x-kubernetes-embedded-resource")))
    if found is None:
        return None
    return SizeBounds(guess(found.least_bytes) if most is None else max(most, 0), 2, items=found)


def _most_items(least_bytes: int) -> int:
    return (LARGEST_REQUEST_BYTES - 2) // (least_bytes + 1)


def _most_entries(least_bytes: int) -> int:
    return (LARGEST_REQUEST_BYTES - 2) // (least_bytes + 6)


def _object(schema: Object, root: bool) -> SizeBounds:
    fields, least, needed = {}, 2, set(schema.get("required") or ())
    for name, child in ((schema.get("properties") or {}) | (_OF_ROOT if root else {})).items():
        found = extent_of(child, bool(child.get("x-kubernetes-embedded-resource")))
        if found is None:
            continue
        if (text := escaped(name)) is not None:
            fields[text] = found
        if name in needed and child.get("default") is None:
            least += len(name.encode()) + found.least_bytes + 4
    return SizeBounds(0, least, fields)


def _text(schema: Object) -> SizeBounds:
    form, choices = schema.get("format") or "", schema.get("enum") or ()
    if form in _OF_FORMAT:
        return SizeBounds(*_OF_FORMAT[form])
    if form == "byte" and schema.get("maxLength") is not None:
        return SizeBounds(max(schema["maxLength"], 0), _TEXT_BYTES)
    if choices and form != "byte" and schema.get("maxLength") is None:
        return SizeBounds(
            max((len(each.encode()) for each in choices if isinstance(each, str)), default=0), _TEXT_BYTES
        )
    return SizeBounds(_longest(schema), _TEXT_BYTES)
