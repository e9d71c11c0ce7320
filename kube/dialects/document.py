"""Untyped documents made typed; a fault names the field, what stands there and what may.

Fields that are not known are skipped, as Koordinator does: a document may be newer than this program.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from kube.dialects.duration import go_duration_seconds
from model.fault import ConfigurationFault

T = TypeVar("T")

_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")


class GoDuration(float):
    """Seconds, written as a Go duration such as `5m`: a field of this type is read from text."""


def parsed(text: str, where: str) -> dict[str, Any]:
    """The JSON object in `text`. Raises ConfigurationFault."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigurationFault(where, f"cannot be read: {error}", "write a JSON object") from error
    return checked(found, dict[str, Any], where)


def checked(raw: object, kind: type[T], where: str) -> T:
    """`raw` as `kind`. Raises ConfigurationFault naming the field below `where`."""
    try:
        return msgspec.convert(raw, kind, dec_hook=_custom)
    except msgspec.ValidationError as error:
        told, _, path = str(error).partition(" - at `$")
        path = path.removesuffix("`")
        wanted = _choices(kind, path) if told.startswith("Invalid enum") else told.replace("Expected", "expected", 1)
        field, value = _located(raw, kind, path)
        raise ConfigurationFault(where + field, _shown(value, told.startswith("Expected")), wanted) from error


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
        except msgspec.ValidationError:
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
    return "write one of " + ", ".join(member.value for member in _plain(info).cls if member.value)


def _plain(info: Any) -> Any:
    """The type beside null."""
    others = [kind for kind in getattr(info, "types", ()) if not isinstance(kind, inspect.NoneType)]
    return others[0] if others else info
