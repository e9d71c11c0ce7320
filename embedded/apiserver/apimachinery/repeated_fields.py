"""Request bodies as values, with what plain decoding loses: that a field was written twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from embedded.apiserver.apimachinery.objects import Object, copy, decode, encode


class Repeating(dict[str, Any]):
    """A JSON map some of whose keys were written more than once; the last value is kept.

    `lines` says the same of a whole YAML document, whose reader knows lines but no paths.
    """

    repeated: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()


def decode_json(body: bytes) -> Any:
    """The value of a JSON body. Every map in it is a `Repeating` if any of them repeats a key."""
    value = decode(body)
    # Outside texts there is one colon to a key, so a repeated key leaves colons behind; an escaped one is rare.
    if b"\\u003" in body or body.count(b":") != encode(value).count(b":"):
        noticed = json.loads(body, object_pairs_hook=_repeating)
        return noticed if any(_maps_that_repeat(noticed)) else value
    return value


def _repeating(pairs: list[tuple[str, Any]]) -> Repeating:
    found = Repeating(pairs)
    if len(found) < len(pairs):
        found.repeated = frozenset(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return found


def _maps_that_repeat(value: Any) -> Iterator[Repeating]:
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    if isinstance(value, Repeating) and value.repeated:
        yield value
    for item in inner:
        yield from _maps_that_repeat(item)


def repeated_fields(value: Any, path: str = "") -> Iterator[str]:
    """What clients are told about every repeated field of a decoded body."""
    if isinstance(value, Repeating):
        yield from value.lines
    if isinstance(value, dict):
        for key, item in value.items():
            here = f"{path}.{key}" if path else key
            yield from repeated_fields(item, here)
            if isinstance(value, Repeating) and key in value.repeated:
                yield f'duplicate field "{here}"'
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from repeated_fields(item, f"{path}[{index}]")


def copy_body(body: Object) -> Object:
    """A deep copy that still knows what was repeated."""
    return deepcopy(body) if isinstance(body, Repeating) else copy(body)
