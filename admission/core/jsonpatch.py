"""The JSON patch that turns one document into another (RFC 6902), as small as fields and list items allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]


def difference(old: Any, new: Any) -> list[Operation]:
    """Operations in an order in which they can be applied; none where nothing differs."""
    return list(_between(old, new, ""))


def _between(old: Any, new: Any, path: str) -> Iterator[Operation]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _maps(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(old, new, path)
    elif type(old) is not type(new) or old != new:
        yield {"op": "replace", "path": path, "value": new}


def _maps(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Operation]:
    # What a new document shares with the old one is not gone through: a pod may have a hundred thousand labels.
    shared = {key for key, value in old.items() if key in new and new[key] is value}
    for key in sorted((old.keys() | new.keys()) - shared):
        inner = f"{path}/{_escaped(key)}"
        if key not in new:
            yield {"op": "remove", "path": inner}
        elif key not in old:
            yield {"op": "add", "path": inner, "value": new[key]}
        else:
            yield from _between(old[key], new[key], inner)


def _lists(old: list[Any], new: list[Any], path: str) -> Iterator[Operation]:
    """Items by their place; those beyond the shorter one's end are added, or removed from the end."""
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        yield from _between(before, after, f"{path}/{index}")
    for value in new[len(old) :]:
        yield {"op": "add", "path": f"{path}/-", "value": value}
    for index in reversed(range(len(new), len(old))):
        yield {"op": "remove", "path": f"{path}/{index}"}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
