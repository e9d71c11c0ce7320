"""The patch turns the one document into the other, by the rules of RFC 6902 as another program reads them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.core.jsonpatch import difference
from embedded.apiserver.apimachinery.json_patch import json_patch

CASES: dict[str, tuple[Any, Any, list[Any]]] = {
    "nothing": ({"a": 1}, {"a": 1}, []),
    "add": ({}, {"a": 1}, [{"op": "add", "path": "/a", "value": 1}]),
    "remove": ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
    "replace": ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
    "deep": ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 2}]}}, [{"op": "replace", "path": "/a/b/0/c", "value": 2}]),
    "escapes": ({}, {"a/b~c": 1}, [{"op": "add", "path": "/a~1b~0c", "value": 1}]),
    "appends": ({"a": [1]}, {"a": [1, 2, 3]}, [{"op": "add", "path": "/a/-", "value": n} for n in (2, 3)]),
    "cuts from the end": ({"a": [1, 2, 3]}, {"a": [1]}, [{"op": "remove", "path": f"/a/{n}"} for n in (2, 1)]),
    "true is not 1": ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
}


@pytest.mark.parametrize(("old", "new", "patch"), CASES.values(), ids=CASES)
def test_difference(old: Any, new: Any, patch: list[Any]) -> None:
    """As small as fields and items allow."""
    assert difference(old, new) == patch


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/", "~"]), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abc"), values), st.dictionaries(st.sampled_from("abc"), values))
def test_applied_it_gives_the_new_document(old: Any, new: Any) -> None:
    """Whatever the documents; and equal ones need no patch."""
    patch = difference(old, new)
    assert json_patch(copy.deepcopy(old), patch) == new
    assert difference(new, new) == []
