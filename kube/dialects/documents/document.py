"""Untyped documents made typed; a fault names the field, what stands there and what may.

Fields that are not known are skipped, as Koordinator does: a document may be newer than this program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from kube.dialects.documents.duration import go_duration_seconds
from model.fault import ConfigurationFault

T = TypeVar("T")

MOST_LEVELS = 64
"""Objects and lists in one another; the deepest field of a pod lies a dozen levels down."""
_FLATTER = f"nest at most {MOST_LEVELS} objects and lists in one another"
_TYPES = re.compile(r"`([a-z |]+)`(?:, got `[a-z]+`)?")
_TYPE_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "an object",
    "str": "a text",
}
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")


class GoDuration(float):
    """Seconds, written as a Go duration such as `5m`: a field of this type is read from text."""


def parsed(text: str, where: str) -> dict[str, Any]:
    """The JSON object in `text`. Raises ConfigurationFault."""
    try:
        found = msgspec.json.decode(text)
    except RecursionError as error:
        raise too_deep(where) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ConfigurationFault(where, f"cannot be read: {error}", "write a JSON object") from error
    check_depth(found, where)
    return checked(found, dict[str, Any], where)


def check_depth(value: object, where: str) -> None:
    """Raises ConfigurationFault where a value is nested deeper than any reader of ours has to follow it."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise too_deep(where)


def too_deep(where: str) -> ConfigurationFault:
    """The fault of a document that is nested too deep."""
    return ConfigurationFault(where, f"is nested more than {MOST_LEVELS} levels deep", _FLATTER)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def document(text: str, kind: type[T], where: str) -> T:
    """The JSON object in `text` as `kind`. Raises ConfigurationFault naming the field below `where`."""
    return part(parsed(text, where), kind, where)


def annotated(annotations: Mapping[str, str], key: str, kind: type[T], where: str) -> T | None:
    """The JSON object in an annotation of the object `where`; None without one. Raises ConfigurationFault."""
    text = annotations.get(key, "").strip()
    return document(text, kind, f"{where}: annotation {key}") if text else None


def part(raw: object, kind: type[T], where: str) -> T:
    """A value of a JSON text as `kind`; fields are known in upper or lower case, as Go's encoding/json knows them.

    Not for objects of the API server, which knows a field by its exact name. Raises ConfigurationFault.
    """
    described: Any = kind
    return checked(_spelled(raw, _info(described)), kind, where)


def value_of(raw: dict[str, Any], name: str) -> Any:
    """What stands under a name in any case, the last one where it is given twice; None without it."""
    return next((value for key, value in reversed(raw.items()) if key.casefold() == name.casefold()), None)


def checked(raw: object, kind: type[T], where: str) -> T:
    """`raw` as `kind`. Raises ConfigurationFault naming the field below `where`."""
    try:
        return msgspec.convert(raw, kind, dec_hook=_custom)
    except RecursionError as error:
        raise too_deep(where) from error
    except msgspec.ValidationError as error:
        told, _, path = str(error).partition(" - at `$")
        path = path.removesuffix("`")
        wanted = _choices(kind, path) if told.startswith("Invalid enum") else _wanted(told)
        field, value = _located(raw, kind, path)
        raise ConfigurationFault(where + field, _shown(value, told.startswith("Expected")), wanted) from error


def _wanted(told: str) -> str:
    """msgspec's words without Python's: "Expected `int | null`, got `str`" → "expected a whole number"."""
    if not told.startswith("Expected"):
        return told
    return _TYPES.sub(_type_words, told.replace("Expected", "expected", 1))


def _type_words(found: re.Match[str]) -> str:
    return " or ".join(_TYPE_WORDS.get(name, name) for name in found[1].split(" | ") if name != "null")


@cache
def _info(kind: Any) -> Any:
    return inspect.type_info(kind)


def _spelled(raw: object, info: Any) -> object:
    """A copy in which the names of known fields are spelled as they are known."""
    kinds = getattr(info, "types", (info,))
    if isinstance(raw, list):
        items = next((kind.item_type for kind in kinds if isinstance(kind, inspect.ListType)), None)
        return [_spelled(item, items) for item in raw] if items else raw
    if not isinstance(raw, dict):
        return raw
    for kind in kinds:
        if isinstance(kind, inspect.DictType):
            return {key: _spelled(value, kind.value_type) for key, value in raw.items()}
        if isinstance(kind, inspect.StructType):
            return _fields_spelled(raw, {field.encode_name.casefold(): field for field in kind.fields})
    return raw


def _fields_spelled(raw: dict[str, Any], known: Mapping[str, inspect.Field]) -> dict[str, Any]:
    spelled = {}
    for key, value in raw.items():
        field = known.get(key.casefold())
        spelled[field.encode_name if field else key] = _spelled(value, field.type) if field else value
    return spelled


def _custom(kind: type, raw: object) -> object:
    """What msgspec does not know by itself; a ValueError becomes its error, with the path."""
    seconds = go_duration_seconds(raw) if kind is GoDuration and isinstance(raw, str) else None
    if seconds is None:
        raise ValueError("expected a duration such as 5m or 1h30m")
    return GoDuration(seconds)


def _steps(path: str) -> list[str | int]:
    return [int(index) if index else name for name, index in _STEP.findall(path)]


def _at(raw: Any, path: str) -> Any:
    for step in _steps(path):
        raw = raw[step]
    return raw


def _located(raw: object, kind: type, path: str) -> tuple[str, object]:
    """The path and what stands there. msgspec does not say which key of a free map it means (`[...]`): the one that
    fails alone."""
    before, in_map, after = path.partition("[...]")
    if not in_map:
        return path, _at(raw, path)
    for key, value in _at(raw, before).items():
        try:
            msgspec.convert(_replaced(raw, _steps(before), {key: value}), kind, dec_hook=_custom)
        except msgspec.ValidationError as error:
            # Another fault of the document is not this key's.
            if str(error).endswith(f" - at `${path}`"):
                return f"{before}[{key!r}]{after}", _at(value, after)
    return path, raw


def _replaced(raw: Any, steps: list[str | int], value: object) -> Any:
    """A copy of `raw` with another value at one place."""
    if not steps:
        return value
    copy = raw.copy()
    copy[steps[0]] = _replaced(raw[steps[0]], steps[1:], value)
    return copy


def _shown(value: object, of_wrong_type: bool) -> str:
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"is {kind}" if of_wrong_type else "is not valid"
    return "is null" if value is None else f"is {value!r}"[:80]


def _choices(kind: type, path: str) -> str:
    """The allowed texts of the enum field under a path."""
    info: Any = inspect.type_info(kind)
    for step in _steps(path):
        info = _plain(info)
        fields = {field.encode_name: field.type for field in getattr(info, "fields", ())}
        info = info.item_type if isinstance(step, int) else fields[step]
    found = _plain(info)
    words = found.values if isinstance(found, inspect.LiteralType) else [member.value for member in found.cls]
    return "write one of " + ", ".join(str(word) for word in words if word)


def _plain(info: Any) -> Any:
    """The type beside null."""
    others = [kind for kind in getattr(info, "types", ()) if not isinstance(kind, inspect.NoneType)]
    return others[0] if others else info
