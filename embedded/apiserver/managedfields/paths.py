"""Sets of field paths, and their two written forms: FieldsV1 in `managedFields`, and the text in conflict messages.

A step of a path is written as in FieldsV1: `f:name` is a field of a map, `k:{"name":"a"}` an item of a list with keys,
`v:"a"` an item of a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from embedded.apiserver.apimachinery.objects import Object, encode

Path = tuple[str, ...]
Paths = frozenset[Path]
NONE: Paths = frozenset()
ITSELF = "."  # in FieldsV1: the field that holds this map is owned too, not only what is inside


def field_step(name: str) -> str:
    return f"f:{name}"


def key_step(keys: Mapping[str, Any]) -> str:
    return "k:" + encode({name: keys[name] for name in sorted(keys)}).decode()


def value_step(value: Any) -> str:
    return "v:" + encode(value).decode()


def to_fields(paths: Iterable[Path]) -> Object:
    """FieldsV1 of a set of paths."""
    root: Object = {}
    members = set(paths)
    for path in sorted(members):
        here = root
        for depth, step in enumerate(path, 1):
            inside = here.setdefault(step, {})
            if depth < len(path) and path[:depth] in members:
                inside[ITSELF] = {}
            here = inside
    return root


def from_fields(fields: Any) -> Paths:
    """The set of paths that FieldsV1 stands for; raises ValueError when it is not FieldsV1."""
    return frozenset(_walk(fields, ()))


def _walk(fields: Any, path: Path) -> Iterator[Path]:
    if not isinstance(fields, dict):
        raise ValueError("FieldsV1 is made of maps")
    for written, inside in fields.items():
        if written == ITSELF:
            continue
        here = (*path, _canonical(written))
        if inside == {} or (isinstance(inside, dict) and ITSELF in inside):
            yield here
        yield from _walk(inside, here)


def _canonical(step: str) -> str:
    """The same step always written the same way, whichever spacing and order of keys a client uses."""
    kind, mark, rest = step.partition(":")
    if not mark or kind not in ("f", "k", "v", "i"):
        raise ValueError(f"{step!r} is not a step of FieldsV1")
    if kind == "f":
        return step
    try:
        value = msgspec.json.decode(rest)
    except msgspec.DecodeError:
        raise ValueError(f"{step!r} is not a step of FieldsV1") from None
    if kind != "k":
        return f"{kind}:{encode(value).decode()}"
    if not isinstance(value, dict):
        raise ValueError(f"{step!r} is not a step of FieldsV1")
    return key_step(value)


def shown(path: Path) -> str:
    """As conflict messages show it: `.spec.containers[name="c"].image`."""
    return "".join(map(_shown, path))


def _shown(step: str) -> str:
    kind, _, rest = step.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        keys = msgspec.json.decode(rest)
        return "[" + ",".join(f"{name}={encode(value).decode()}" for name, value in keys.items()) + "]"
    return f"[={rest}]" if kind == "v" else f"[{rest}]"
