"""Structural schemas of custom resources: pruning, defaulting and validation."""

from collections.abc import Iterator
from typing import Any

from embedded.apiserver.apiextensions import formats
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_type,
    bad_value,
    duplicate,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.objects import Object, copy, encode
from embedded.apiserver.cel import patterns

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_TYPE_META = frozenset({"apiVersion", "kind", "metadata"})
NOWHERE = "<nil>"  # the path of what is said of a whole, as Go prints none
_NEW: Any = object()  # in place of the earlier value of what had none


def prune(schema: Object, value: Any, path: str = "", root: bool = False) -> list[str]:
    """Remove, in place, fields the schema does not know; returns their paths. Metadata is not its business."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [gone for index, item in enumerate(value) for gone in prune(items, item, f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    skipped = _TYPE_META if root or schema.get(_EMBEDDED) else frozenset()
    gone = []
    for key in list(value):
        here = f"{path}.{key}" if path else key
        if key in skipped:
            continue
        if key in known:
            gone += prune(known[key], value[key], here)
        elif isinstance(rest, dict):
            gone += prune(rest, value[key], here)
        elif not (schema.get(_PRESERVE) or rest):
            del value[key]
            gone.append(here)
    return gone


def default(schema: Object, value: Any) -> None:
    """Fill in defaults, in place. A null for a field that is not nullable counts as absent."""
    if isinstance(value, list):
        for item in value:
            default(schema.get("items") or {}, item)
        return
    if not isinstance(value, dict):
        return
    known = schema.get("properties") or {}
    for key, child in known.items():
        if key in value and value[key] is None and not child.get("nullable"):
            del value[key]
        if key not in value and "default" in child:
            value[key] = copy(child["default"])
        if key in value:
            default(child, value[key])
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        for key, item in value.items():
            if key not in known:
                default(rest, item)


def errors(schema: Object, value: Any, path: str = "", old: Any = _NEW) -> Iterator[FieldError]:
    """Everything about a value that the schema does not allow, but for what it leaves as it is in `old`.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting
    """
    if old is not _NEW and encode(value, order="sorted") == encode(old, order="sorted"):
        return
    if value is None and schema.get("nullable"):
        return
    if wrong := _type_error(schema, value, path):
        yield wrong
        return
    if "enum" in schema and value not in schema["enum"]:
        yield not_supported(path, value, schema["enum"])
    if isinstance(value, dict):
        yield from _map_errors(schema, value, path, old if isinstance(old, dict) else {})
        yield from _embedded_errors(schema, value, path)
    elif isinstance(value, list):
        yield from _list_errors(schema, value, path, old if isinstance(old, list) else [])
    elif isinstance(value, str):
        yield from _text_errors(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_errors(schema, value, path)
    yield from _combination_errors(schema, value, path, old)


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int,),
}


def _type_error(schema: Object, value: Any, path: str) -> FieldError | None:
    wanted = schema.get("type")
    if schema.get(_INT_OR_STRING):
        fits, wanted = isinstance(value, int | str) and not isinstance(value, bool), "integer,string"
    elif wanted not in _TYPES:
        return None
    else:
        fits = isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
        fits = fits or (wanted == "integer" and isinstance(value, float) and value.is_integer())
    if fits:
        return None
    return bad_type(path, _type_name(value), f'{path} in body must be of type {wanted}: "{_type_name(value)}"')


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return names.get(type(value), "unknown")


def _map_errors(schema: Object, value: Object, path: str, old: Object) -> Iterator[FieldError]:
    def here(key: str) -> str:
        return f"{path}.{key}" if path else key

    for key in schema.get("required") or ():
        if key not in value:
            yield required(here(key))
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        if key in known:
            yield from errors(known[key], item, here(key), old.get(key, _NEW))
        elif isinstance(rest, dict):
            yield from errors(rest, item, here(key), old.get(key, _NEW))
    yield from _size_errors(path, len(value), schema.get("minProperties"), schema.get("maxProperties"), "properties")


def _list_errors(schema: Object, value: list[Any], path: str, old: list[Any]) -> Iterator[FieldError]:
    items = schema.get("items") or {}
    before: dict[bytes | None, Any] = {key: item for item in old if (key := _identity(schema, item)) is not None}
    for index, item in enumerate(value):
        yield from errors(items, item, f"{path}[{index}]", before.get(_identity(schema, item), _NEW))
    yield from _size_errors(path, len(value), schema.get("minItems"), schema.get("maxItems"), "items")
    yield from _duplicate_errors(schema, value, path)


def _identity(schema: Object, item: Any) -> bytes | None:
    """What makes an item of a list map the same as one of an earlier list; other lists are one value (None)."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(item, dict):
        return None
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return encode({key: item[key] for key in keys if key in item}, order="sorted")


def _duplicate_errors(schema: Object, value: list[Any], path: str) -> Iterator[FieldError]:
    """Items of a set, and the keys of a list map's items, are unique."""
    kind, seen = schema.get("x-kubernetes-list-type"), set()
    if kind not in ("set", "map"):
        return
    for index, item in enumerate(value):
        if kind == "map" and not isinstance(item, dict):
            continue  # which its own type error tells
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        identity = item if kind == "set" else {key: item[key] for key in keys if key in item}
        known = encode(identity, order="sorted")
        if known in seen:
            yield duplicate(f"{path}[{index}]", identity)
        seen.add(known)


def _embedded_errors(schema: Object, value: Object, path: str) -> Iterator[FieldError]:
    if schema.get(_EMBEDDED):
        for key in ("apiVersion", "kind"):
            if not value.get(key):
                yield required(f"{path}.{key}", "must not be empty")


def _size_errors(path: str, size: int, least: int | None, most: int | None, what: str) -> Iterator[FieldError]:
    if least is not None and size < least:
        yield bad_value(path, size, f"{path} in body should have at least {least} {what}")
    if most is not None and size > most:
        yield FieldError(path, "FieldValueTooMany", f"Too many: {size}: must have at most {most} {what}")


def _text_errors(schema: Object, value: str, path: str) -> Iterator[FieldError]:
    form = schema.get("format") or ""
    if form and not formats.admits_text(form, value):
        yield bad_type(path, value, f'{path} in body must be of type {form}: "{value}"')
    pattern = schema.get("pattern")
    if pattern is not None and not patterns.found_in(value, pattern):
        yield bad_value(path, value, f"{path} in body should match '{pattern}'")
    least, most = schema.get("minLength"), schema.get("maxLength")
    if least is not None and len(value) < least:
        yield bad_value(path, value, f"{path} in body should be at least {least} chars long")
    if most is not None and len(value) > most:
        yield FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")


def _number_errors(schema: Object, value: int | float, path: str) -> Iterator[FieldError]:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    strictly_above, strictly_below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if least is not None and (value < least or (strictly_above and value == least)):
        word = "greater than" if strictly_above else "greater than or equal to"
        yield bad_value(path, value, f"{path} in body should be {word} {least}")
    if most is not None and (value > most or (strictly_below and value == most)):
        word = "less than" if strictly_below else "less than or equal to"
        yield bad_value(path, value, f"{path} in body should be {word} {most}")
    if step and value % step:
        yield bad_value(path, value, f"{path} in body should be a multiple of {step}")


def _combination_errors(schema: Object, value: Any, path: str, old: Any) -> Iterator[FieldError]:
    for part in schema.get("allOf") or ():
        yield from errors(part, value, path, old)
    fitting = _fitting(schema.get("anyOf"), value, path)
    if fitting == 0:
        yield bad_value(NOWHERE, "", f'"{path}" must validate at least one schema (anyOf)')
    fitting = _fitting(schema.get("oneOf"), value, path)
    if fitting not in (None, 1):
        found = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
        yield bad_value(NOWHERE, "", f'"{path}" must validate one and only one schema (oneOf). {found}')
    if "not" in schema and not any(errors(schema["not"], value, path)):
        yield bad_value(NOWHERE, "", f'"{path}" must not validate the schema (not)')


def _fitting(parts: list[Object] | None, value: Any, path: str) -> int | None:
    """How many of the schemas the value fits; None without any."""
    return sum(not any(errors(part, value, path)) for part in parts) if parts else None
