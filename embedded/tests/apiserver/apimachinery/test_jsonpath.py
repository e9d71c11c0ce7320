"""JSONPath of printer columns: every step, alone and after others.

https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

from typing import Any

import pytest

from embedded.apiserver.apimachinery.jsonpath import find, is_valid

OBJECT: dict[str, Any] = {
    "a": {"b": 1, "c.d": 2, "kind": "x"},
    "items": [{"name": "one", "n": 1, "on": True}, {"name": "two", "n": 2}, {"name": "three", "n": 3, "kind": "y"}],
}
CASES: dict[str, list[Any]] = {
    ".a.b": [1],
    "a.b": [1],
    ".a['c.d']": [2],
    r".a.c\.d": [2],
    ".a.none": [],
    ".none.b": [],
    ".items[0].name": ["one"],
    ".items[-1].name": ["three"],
    ".items[3].name": [],
    ".items[-4].name": [],
    ".items[1:].n": [2, 3],
    ".items[:2].n": [1, 2],
    ".items[1:2].n": [2],
    ".items[*].n": [1, 2, 3],
    ".a.*": [1, 2, "x"],
    ".a[0]": [],
    "..kind": ["x", "y"],
    '.items[?(@.name=="two")].n': [2],
    ".items[?(@.n>1)].name": ["two", "three"],
    ".items[?(@.n<=1)].name": ["one"],
    ".items[?(@.n!=2)].name": ["one", "three"],
    ".items[?(@.on)].name": ["one"],
    ".items[?(@.on==true)].name": ["one"],
    ".items[?(@.name>1)].name": [],
}


@pytest.mark.parametrize(("path", "found"), CASES.items())
def test_find(path: str, found: list[Any]) -> None:
    """In order; nothing where nothing is."""
    assert is_valid(path)
    assert find(path, OBJECT) == found


@pytest.mark.parametrize("path", [".a[", ".a]", ".a[x]", "[?(@.n)", ".a['b'"])
def test_what_is_no_path(path: str) -> None:
    """It finds nothing."""
    assert not is_valid(path)
    assert find(path, OBJECT) == []
