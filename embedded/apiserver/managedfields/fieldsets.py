"""The fields a value has, and how those of two values differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.managedfields.paths import NONE, Path, Paths
from embedded.apiserver.managedfields.structure import ABSENT, Kind, joint, members, schema_below, structure


@dataclass(frozen=True, slots=True)
class Difference:
    """What a new value has added to, changed in and removed from an old one."""

    added: Paths = NONE
    changed: Paths = NONE
    removed: Paths = NONE

    @property
    def written(self) -> Paths:
        return self.added | self.changed


def fields_of(schema: Object, value: Any) -> Paths:
    """What somebody owns who applies this value: leaves, items, and the entries of free-form maps."""
    return frozenset(_fields(schema, value, ()))


def _fields(schema: Object, value: Any, path: Path) -> Iterator[Path]:
    found = structure(schema, value)
    if found.kind is Kind.LEAF:
        if path:
            yield path
        return
    for step, item in members(found, value).items():
        here = (*path, step)
        if found.is_list or item is None or item == {} or step.removeprefix("f:") not in found.fields:
            yield here
        yield from _fields(schema_below(found, step), item, here)


def difference(schema: Object, old: Any, new: Any) -> Difference:
    """How `new` differs from `old`, at leaves and at maps and items that one of them does not have."""
    kinds: dict[str, set[Path]] = {"added": set(), "changed": set(), "removed": set()}
    for kind, path in _differences(schema, old, new, ()):
        kinds[kind].add(path)
    return Difference(*(frozenset(kinds[kind]) for kind in ("added", "changed", "removed")))


def _differences(schema: Object, old: Any, new: Any, path: Path) -> Iterator[tuple[str, Path]]:
    if old is ABSENT or new is ABSENT:
        yield "added" if old is ABSENT else "removed", path
    elif old == new:
        return
    found = joint(schema, old, new)
    before, after = members(found, old), members(found, new)
    if not before and not after:
        if old is not ABSENT and new is not ABSENT:
            yield "changed", path
        return
    for step in before | after:
        inside = schema_below(found, step)
        yield from _differences(inside, before.get(step, ABSENT), after.get(step, ABSENT), (*path, step))
