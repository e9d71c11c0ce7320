"""JSON patch and JSON merge patch."""

import pytest

from local.apiserver.patch import json_patch, merge_patch
from local.apiserver.status import StatusError

MERGE_CASES = {  # the examples of RFC 7386
    "replace a value": ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    "add a value": ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    "remove the only one": ({"a": "b"}, {"a": None}, {}),
    "remove one of two": ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    "list replaced": ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    "list set": ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    "nested": ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    "list of maps": ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    "nested null in a new map": ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    "text becomes a map": ({"a": "foo"}, {"a": {"b": "c"}}, {"a": {"b": "c"}}),
}


@pytest.mark.parametrize(("target", "patch", "expected"), MERGE_CASES.values(), ids=MERGE_CASES)
def test_merge_patch(target, patch, expected):
    """RFC 7386."""
    assert merge_patch(target, patch) == expected


JSON_CASES = {
    "add a member": ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "q"}], {"foo": "bar", "baz": "q"}),
    "insert": ({"l": [1, 3]}, [{"op": "add", "path": "/l/1", "value": 2}], {"l": [1, 2, 3]}),
    "append": ({"l": [1]}, [{"op": "add", "path": "/l/-", "value": 2}], {"l": [1, 2]}),
    "remove": ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
    "remove an item": ({"l": [1, 2]}, [{"op": "remove", "path": "/l/0"}], {"l": [2]}),
    "replace": ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
    "replace an item": ({"l": [1, 2]}, [{"op": "replace", "path": "/l/1", "value": 3}], {"l": [1, 3]}),
    "move": ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    "copy": ({"a": {"x": 1}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": 1}, "b": {"x": 1}}),
    "test passes": ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
    "escaped": (
        {"a/b": {"~": 1}},
        [{"op": "replace", "path": "/a~1b/~0", "value": 2}],
        {"a/b": {"~": 2}},
    ),
    "null is a value": ({"a": 1}, [{"op": "add", "path": "/b", "value": None}], {"a": 1, "b": None}),
}


@pytest.mark.parametrize(("target", "patch", "expected"), JSON_CASES.values(), ids=JSON_CASES)
def test_json_patch(target, patch, expected):
    """RFC 6902; the target itself stays as it was."""
    before = repr(target)
    assert json_patch(target, patch) == expected
    assert repr(target) == before


FAILING = {
    "test fails": ([{"op": "test", "path": "/a", "value": 2}], 422),
    "remove what is not there": ([{"op": "remove", "path": "/b"}], 422),
    "replace what is not there": ([{"op": "replace", "path": "/b", "value": 1}], 422),
    "add below nothing": ([{"op": "add", "path": "/b/c", "value": 1}], 422),
    "out of bounds": ([{"op": "add", "path": "/l/7", "value": 1}], 422),
    "unknown operation": ([{"op": "frob", "path": "/a"}], 400),
    "no value": ([{"op": "add", "path": "/b"}], 400),
    "not a pointer": ([{"op": "remove", "path": "a"}], 400),
    "not a list": ({"a": 1}, 400),
}


@pytest.mark.parametrize(("patch", "code"), FAILING.values(), ids=FAILING)
def test_a_json_patch_that_cannot_be_applied_is_refused(patch, code):
    """Never a 500, whatever the patch asks."""
    with pytest.raises(StatusError) as refused:
        json_patch({"a": 1, "l": []}, patch)
    assert refused.value.code == code
