"""Values that ask for a row's field, and where they stand in a document.

What cannot be read asks for nothing: whoever reads it says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from operator import itemgetter
from typing import Any

import msgspec

from kube.dialects.coverage.rows import Asked, Asks, CoverageRow

_MOST_PLACES = 1000
_PATTERN = frozenset("*?[")


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


class RowsByKey:
    """Rows about names: of labels, annotations, resources or arguments. Whoever writes a document chooses how many it
    has, so a name is looked up, and compared with those rows alone of which `*` ends a prefix.
    """

    def __init__(self, rows: Iterable[CoverageRow]) -> None:
        self._named: dict[str, list[tuple[int, CoverageRow]]] = {}
        self._others: list[tuple[int, CoverageRow]] = []
        for number, row in enumerate(rows):
            if _PATTERN.isdisjoint(row.field):
                self._named.setdefault(row.field, []).append((number, row))
            else:
                self._others.append((number, row))
        self._other = re.compile("|".join(translate(row.field) for _, row in self._others) or r"(?!)")

    def first(self, key: str, value: object) -> CoverageRow | None:
        """The first row that is about this key and value."""
        found = self._named.get(key, [])
        if self._other.match(key):
            others = (each for each in self._others if fnmatchcase(key, each[1].field))
            found = sorted((*found, *others), key=itemgetter(0))
        return next((row for _, row in found if not row.values or value in row.values), None)


def keyed(rows: RowsByKey, told: Mapping[str, str] | None, place: str) -> Iterator[tuple[CoverageRow, str]]:
    """Rows that warn, and the places, of labels or annotations."""
    for key, value in (told or {}).items():
        row = rows.first(key, value)
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
