"""Fields of a document that nobody reads: most are misspelt, and a misspelt limit limits nothing.

They are told and not refused, since a document may be newer than this program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import inspect


def unknown_fields(raw: object, kinds: Iterable[Any], where: str) -> Iterator[str]:
    """One sentence for each field below `where` that is in none of the types that read the document.

    Names count in upper or lower case, as the readers take them.
    """
    return _unknown(raw, [inspect.type_info(kind) for kind in kinds], where)


def not_known(name: str, known: Iterable[str], where: str) -> str:
    """The sentence for one name."""
    likely = get_close_matches(name, sorted(known), n=1)
    return f"{where}: nothing reads {name!r}" + (f"; did you mean {likely[0]!r}?" if likely else "")


def _unknown(raw: object, types: list[Any], where: str) -> Iterator[str]:
    plain = [each for kind in types for each in getattr(kind, "types", (kind,))]
    if isinstance(raw, list):
        items = [each.item_type for each in plain if isinstance(each, inspect.ListType)]
        for index, item in enumerate(raw if items else ()):
            yield from _unknown(item, items, f"{where}[{index}]")
    elif isinstance(raw, dict):
        yield from _in_map(raw, plain, where)


def _in_map(raw: Mapping[str, Any], plain: list[Any], where: str) -> Iterator[str]:
    free = [each.value_type for each in plain if isinstance(each, inspect.DictType)]
    fields = _fields(plain)
    for key, value in raw.items():
        kinds = [*free, *fields.get(key.casefold(), {}).values()]
        if kinds:
            yield from _unknown(value, kinds, f"{where}.{key}")
        elif fields:
            yield not_known(key, (name for found in fields.values() for name in found), where)


def _fields(plain: list[Any]) -> dict[str, dict[str, Any]]:
    """Of all structs, by their names in lower case: name as written → type."""
    found: dict[str, dict[str, Any]] = {}
    for struct in plain:
        if isinstance(struct, inspect.StructType):
            for field in struct.fields:
                found.setdefault(field.encode_name.casefold(), {})[field.encode_name] = field.type
    return found
