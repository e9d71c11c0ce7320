"""Strategic merge patch: lists merge by key where Kubernetes declares one, and replace where it does not.

How a type's fields merge is told by its rule; nothing here knows a type.
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Object = dict[str, Any]

_ORDER = "$setElementOrder/"
_DELETE_VALUES = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"
_DIRECTIVE = "$patch"


class Rule(Protocol):
    """How one field, item or object merges: `kind` is struct, map, list or another, `items` what is in the last two.

    `strategies` are those of x-kubernetes-patch-strategy, `merge_key` is what tells the items of a list apart.
    """

    @property
    def kind(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, Rule]: ...
    @property
    def items(self) -> Rule | None: ...
    @property
    def merge_key(self) -> str: ...
    @property
    def strategies(self) -> tuple[str, ...]: ...


class MergeError(ValueError):
    """The patch is malformed, or does not fit the object; the message says how."""


def strategic_merge(target: Object, patch: Any, rule: Rule | None) -> Object:
    """The target with the patch merged in by the rule of its type, None where nothing is known of it.

    The target stays as it is. Raises MergeError.
    """
    if not isinstance(patch, dict):
        raise MergeError("a strategic merge patch must be a map")
    return _merge_map(target, patch, rule)


def _inner(rule: Rule | None, key: str) -> Rule | None:
    """How a field of a map merges; None where nothing is known of it."""
    if rule is None:
        return None
    return rule.fields.get(key) if rule.kind == "struct" else rule.items


def _merges_items(rule: Rule | None) -> bool:
    return rule is not None and rule.kind == "list" and "merge" in rule.strategies


def _merge_map(target: Object, patch: Object, rule: Rule | None) -> Object:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        replaced: Object = _plain(patch)
        return replaced
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise MergeError(f"unknown {_DIRECTIVE} directive {directive!r}")
    _check_directives(patch)
    merged = _retained(target, patch.get(_RETAIN))
    for key in _deletion_keys(patch):
        merged[key] = [value for value in _live_list(merged, key) if value not in patch[_DELETE_VALUES + key]]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
            continue
        _merge_field(merged, key, value, patch.get(_ORDER + key), _inner(rule, key))
    for key in _ordered_only(patch):
        live = _live_list(merged, key)
        merged[key] = _sorted(live, patch[_ORDER + key], [], _merge_key(_inner(rule, key)), live)
    return merged


def _merge_key(rule: Rule | None) -> str:
    """The key that tells items apart; empty for lists of scalars, which are their own."""
    return "" if rule is None else rule.merge_key


def _check_directives(patch: Object) -> None:
    keep = patch.get(_RETAIN)
    if keep is not None:
        fields = [key for key, value in patch.items() if not key.startswith("$") and value is not None]
        if not isinstance(keep, list) or any(key not in keep for key in fields):
            raise MergeError(f"{_RETAIN} list must be a list that contains all fields present in the patch")
    for key, value in patch.items():
        if key.startswith((_ORDER, _DELETE_VALUES)) and not isinstance(value, list):
            raise MergeError(f"{key} must be a list")


def _retained(target: Object, keys: Any) -> Object:
    return dict(target) if keys is None else {key: value for key, value in target.items() if key in keys}


def _deletion_keys(patch: Object) -> list[str]:
    return [key.removeprefix(_DELETE_VALUES) for key in patch if key.startswith(_DELETE_VALUES)]


def _ordered_only(patch: Object) -> list[str]:
    """Lists that the patch puts in order without changing an item of them."""
    return [
        key.removeprefix(_ORDER) for key in patch if key.startswith(_ORDER) and key.removeprefix(_ORDER) not in patch
    ]


def _live_list(held: Object, key: str) -> list[Any]:
    """The list that a directive is about; raises 400 where the field holds something else."""
    live = held.get(key) or []
    if not isinstance(live, list):
        raise MergeError(f"{key} is not a list, so its items can be neither ordered nor deleted")
    return live


def _merge_field(merged: Object, key: str, value: Any, order: Any, rule: Rule | None) -> None:
    old = merged.get(key)
    if isinstance(value, dict) and not (rule is not None and "replace" in rule.strategies):
        if key not in merged and value.get(_DIRECTIVE) == "delete":
            return
        merged[key] = _merge_map(old if isinstance(old, dict) else {}, value, rule)
        if value.get(_DIRECTIVE) == "delete":
            del merged[key]
    elif isinstance(value, list) and rule is not None and _merges_items(rule):
        merged[key] = _merge_list(old if isinstance(old, list) else [], value, order, rule)
    else:
        merged[key] = _plain(value)


def _merge_list(old: list[Any], patch: list[Any], order: Any, rule: Rule) -> list[Any]:
    key = rule.merge_key
    if not key:
        return _sorted([*old, *(value for value in patch if value not in old)], order, patch, key, old)
    items = list(old)
    if any(not isinstance(item, dict) for item in patch):
        raise MergeError(f"items merged by {key!r} must be maps")
    if any(item.get(_DIRECTIVE) == "replace" for item in patch):
        return [_plain(item) for item in patch if item.get(_DIRECTIVE) != "replace"]
    for item in patch:
        items = _merge_item(items, item, key, rule.items)
    return _sorted(items, order, patch, key, old)


def _merge_item(items: list[Any], item: Object, key: str, rule: Rule | None) -> list[Any]:
    if key not in item:
        raise MergeError(f"map: {item} does not contain declared merge key: {key}")
    same = [index for index, found in enumerate(items) if found.get(key) == item[key]]
    if item.get(_DIRECTIVE) == "delete":
        return [found for index, found in enumerate(items) if index not in same]
    if not same:
        return [*items, _merge_map({}, item, rule)]
    return [_merge_map(found, item, rule) if index == same[0] else found for index, found in enumerate(items)]


def _identity(item: Any, key: str) -> str:
    return repr(item.get(key) if key and isinstance(item, dict) else item)


def _sorted(items: list[Any], order: Any, patch: list[Any], key: str, live: list[Any]) -> list[Any]:
    """Patched items in the order the patch asks for; items only the server has keep their place before those.

    An item only the server has goes in front of the first patched item that followed it in the live list;
    patched items that are new therefore stand before it.
    """
    place = {_identity(item, key): at for at, item in enumerate(live)}
    asked_order = order if isinstance(order, list) else patch
    wanted = {_identity(item, key): at for at, item in reversed(list(enumerate(asked_order)))}
    asked = sorted((item for item in items if _identity(item, key) in wanted), key=lambda i: wanted[_identity(i, key)])
    server_only = [item for item in items if _identity(item, key) not in wanted]
    result: list[Any] = []
    for item in asked:
        here = place.get(_identity(item, key), -1)
        while server_only and place.get(_identity(server_only[0], key), here) < here:
            result.append(server_only.pop(0))
        result.append(item)
    return [*result, *server_only]


def _plain(value: Any) -> Any:
    """A value without directives, which are instructions and not content."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if not key.startswith("$") and item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
