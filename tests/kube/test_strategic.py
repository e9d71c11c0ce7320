"""Strategic merge patches: by rule, by directive, and what is refused.

https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kube.strategic import MergeError, strategic_merge


class Merging(msgspec.Struct, frozen=True):
    """A Rule."""

    kind: str = "struct"
    fields: Mapping[str, Any] = {}
    items: Any = None
    merge_key: str = ""
    strategies: tuple[str, ...] = ()


ITEM = Merging(fields={"env": Merging("list", merge_key="name", strategies=("merge",), items=Merging())})
RULE = Merging(
    fields={
        "items": Merging("list", merge_key="name", strategies=("merge",), items=ITEM),
        "words": Merging("list", strategies=("merge",)),
        "plain": Merging("list"),
        "whole": Merging(strategies=("replace",)),
        "part": Merging(fields={"words": Merging("list", strategies=("merge",))}),
    }
)
A, B, C = {"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "c", "x": 3}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a field": ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
    "null removes": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "null of what is not there": ({"b": 2}, {"a": None}, {"b": 2}),
    "a map inside": ({"part": {"a": 1, "b": 2}}, {"part": {"a": 3}}, {"part": {"a": 3, "b": 2}}),
    "a map in place of something else": ({"part": 1}, {"part": {"a": 3}}, {"part": {"a": 3}}),
    "a map that is replaced as a whole": ({"whole": {"a": 1, "b": 2}}, {"whole": {"a": 3}}, {"whole": {"a": 3}}),
    "a list replaces": ({"plain": [1, 2]}, {"plain": [3]}, {"plain": [3]}),
    "an unknown list replaces": ({"other": [1, 2]}, {"other": [3]}, {"other": [3]}),
    "scalars are added once": ({"words": ["a", "b"]}, {"words": ["b", "c"]}, {"words": ["a", "b", "c"]}),
    "scalars deep inside": ({"part": {"words": ["a"]}}, {"part": {"words": ["b"]}}, {"part": {"words": ["b", "a"]}}),
    "an item by its key": ({"items": [A, B]}, {"items": [{"name": "b", "y": 9}]}, {"items": [A, B | {"y": 9}]}),
    "a new item stands before those that only the server has": ({"items": [A]}, {"items": [B]}, {"items": [B, A]}),
    "an item's own list": (
        {"items": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]},
        {"items": [{"name": "a", "env": [{"name": "X", "value": "2"}]}]},
        {"items": [{"name": "a", "env": [{"name": "X", "value": "2"}]}]},
    ),
    "an item goes": ({"items": [A, B]}, {"items": [{"name": "a", "$patch": "delete"}]}, {"items": [B]}),
    "all items are replaced": ({"items": [A, B]}, {"items": [{"$patch": "replace"}, C]}, {"items": [C]}),
    "a map is replaced": ({"part": {"a": 1}}, {"part": {"$patch": "replace", "b": 2}}, {"part": {"b": 2}}),
    "a map goes": ({"part": {"a": 1}, "b": 2}, {"part": {"$patch": "delete"}}, {"b": 2}),
    "one that is not there goes too": ({"b": 2}, {"part": {"$patch": "delete"}}, {"b": 2}),
    "merge is the default, said aloud": ({"a": 1}, {"$patch": "merge", "b": 2}, {"a": 1, "b": 2}),
    "scalars go": ({"words": ["a", "b", "c"]}, {"$deleteFromPrimitiveList/words": ["b"]}, {"words": ["a", "c"]}),
    "only some keys are kept": ({"a": 1, "b": 2, "c": 3}, {"$retainKeys": ["a", "d"], "d": 4}, {"a": 1, "d": 4}),
    "items in order": (
        {"items": [A, B, C]},
        {"$setElementOrder/items": [{"name": "c"}, {"name": "a"}, {"name": "b"}]},
        {"items": [C, A, B]},
    ),
    "items that only the server has keep their place": (
        {"items": [A, B, C]},
        {"$setElementOrder/items": [{"name": "c"}, {"name": "a"}], "items": [{"name": "a", "x": 9}]},
        {"items": [B, C, {"name": "a", "x": 9}]},
    ),
    "scalars in order": (
        {"words": ["a", "b"]},
        {"$setElementOrder/words": ["c", "b", "a"], "words": ["c"]},
        {"words": ["c", "b", "a"]},
    ),
    "directives are no content": ({}, {"plain": [{"$patch": "x", "a": None, "b": 1}]}, {"plain": [{"b": 1}]}),
}


@pytest.mark.parametrize(("target", "patch", "wanted"), CASES.values(), ids=CASES)
def test_merge(target: dict[str, Any], patch: dict[str, Any], wanted: dict[str, Any]) -> None:
    """The target stays as it is."""
    before, told = copy.deepcopy(target), copy.deepcopy(patch)
    assert strategic_merge(target, patch, RULE) == wanted
    assert (target, patch) == (before, told)


def test_without_a_rule_maps_merge_and_lists_replace() -> None:
    """As of a kind that nobody knows."""
    merged = strategic_merge({"a": {"b": [1], "c": 1}}, {"a": {"b": [2]}}, None)
    assert merged == {"a": {"b": [2], "c": 1}}


REFUSED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "no map": ({}, [], "must be a map"),
    "an unknown directive": ({}, {"$patch": "erase"}, "unknown .patch directive 'erase'"),
    "an item without its key": ({}, {"items": [{"x": 1}]}, "does not contain declared merge key: name"),
    "an item that is no map": ({}, {"items": ["a"]}, "items merged by 'name' must be maps"),
    "keys that are kept, without one that is set": ({}, {"$retainKeys": ["a"], "b": 1}, "contains all fields"),
    "keys that are kept, no list": ({}, {"$retainKeys": "a"}, "must be a list"),
    "an order that is no list": ({}, {"$setElementOrder/items": {}}, "setElementOrder/items must be a list"),
    "scalars that go, no list": ({}, {"$deleteFromPrimitiveList/words": "a"}, "must be a list"),
    "scalars that go from no list": ({"words": 1}, {"$deleteFromPrimitiveList/words": ["a"]}, "words is not a list"),
}


@pytest.mark.parametrize(("target", "patch", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(target: dict[str, Any], patch: Any, words: str) -> None:
    """The words name what is wrong."""
    with pytest.raises(MergeError, match=words):
        strategic_merge(target, patch, RULE)
