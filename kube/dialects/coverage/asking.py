"""Values that ask for a row's field, and where they stand in a document.

What cannot be read asks for nothing: whoever reads it says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from kube.dialects.coverage.rows import Asked, Asks, CoverageRow

_MOST_PLACES = 1000


def asks(row: CoverageRow, value: object) -> bool:
    """Whether this value at the row's field asks for what the field is for."""
    if row.values and value not in row.values:
        return False
    match row.asks:
        case Asks.ON:
            return isinstance(value, dict) and any(
                key.casefold() == "enable" and on is True for key, on in value.items()
            )
        case Asks.VALUE:
            return bool(value) and value != "0"
        case Asks.POLICY:
            return _policy(value) not in ("", "none", None)
    return value is not None


def _policy(value: object) -> object:
    """Of a text that is a JSON object its `policy`; an object without one says something all the same."""
    if not isinstance(value, str):
        return None
    try:
        return msgspec.json.decode(value, type=dict[str, Any]).get("policy") or "default"
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return value


def places(value: object, parts: Sequence[str], place: str) -> Iterator[tuple[str, object]]:
    """Each place below `place` that a field's path leads to, with what stands there."""
    if not parts:
        yield place, value
    elif isinstance(value, dict):
        name, items = parts[0].removesuffix("[]").casefold(), parts[0].endswith("[]")
        for key, inner in value.items():
            if not fnmatchcase(key.casefold(), name):
                continue
            if not items:
                yield from places(inner, parts[1:], f"{place}.{key}")
            for index, each in enumerate(inner if items and isinstance(inner, list) else ()):
                yield from places(each, parts[1:], f"{place}.{key}[{index}]")


def first(rows: Iterable[CoverageRow], key: str, value: object) -> CoverageRow | None:
    """The first row that is about this key and value."""
    return next((row for row in rows if fnmatchcase(key, row.field) and (not row.values or value in row.values)), None)


def keyed(rows: Sequence[CoverageRow], told: Mapping[str, str] | None, place: str) -> Iterator[tuple[CoverageRow, str]]:
    """Rows that warn, and the places, of labels or annotations."""
    for key, value in (told or {}).items():
        row = first(rows, key, value)
        if row is not None and row.warns and asks(row, value):
            yield row, f"{place}[{key}]" + (f"={value}" if row.values else "")


def gathered(found: Iterable[tuple[CoverageRow, str]]) -> tuple[Asked, ...]:
    """By row, in the order in which rows were found first."""
    by_row: dict[tuple[str, str], tuple[CoverageRow, list[str]]] = {}
    for row, place in found:
        known = by_row.setdefault((row.surface.value, row.name), (row, []))[1]
        if len(known) < _MOST_PLACES:
            known.append(place)
    return tuple(Asked(row, tuple(dict.fromkeys(where))) for row, where in by_row.values())
