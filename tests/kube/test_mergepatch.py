"""Merge patches make of one object the other."""

from __future__ import annotations

from typing import Any

import pytest

from kube.mergepatch import merge_patch

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "the same": ({"a": 1, "b": {"c": [1]}}, {"a": 1, "b": {"c": [1]}}, {}),
    "a field more": ({}, {"a": 1}, {"a": 1}),
    "a field less": ({"a": 1, "b": 2}, {"b": 2}, {"a": None}),
    "within an object": ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "d": 3}}, {"a": {"c": None, "d": 3}}),
    "a list is whole": ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
    "an object in the place of a text": ({"a": "b"}, {"a": {}}, {"a": {}}),
}


@pytest.mark.parametrize(("before", "wanted", "patch"), CASES.values(), ids=CASES)
def test_patches(before: dict[str, Any], wanted: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_patch(before, wanted) == patch
