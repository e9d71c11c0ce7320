"""JSON patch and JSON merge patch."""

import pytest

from embedded.apiserver.apimachinery.json_patch import MOST_COPIED_BYTES, json_patch, merge_patch
from embedded.apiserver.apimachinery.status import StatusError

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
    "lists at the root": (["a", "b"], ["c", "d"], ["c", "d"]),
    "a map becomes a list": ({"a": "b"}, ["c"], ["c"]),
    "null at the root": ({"a": "foo"}, None, None),
    "text at the root": ({"a": "foo"}, "bar", "bar"),
    "a null that was there stays": ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    "a list becomes a map, its nulls left out": ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
}


@pytest.mark.parametrize(("target", "patch", "expected"), MERGE_CASES.values(), ids=MERGE_CASES)
def test_merge_patch(target, patch, expected):
    """RFC 7386, appendix A."""
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
    "a child of the root by an empty name": ({}, [{"op": "add", "path": "/", "value": 1}], {"": 1}),
    "the whole document": ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    "an unknown member is ignored": ({}, [{"op": "add", "path": "/a", "value": 1, "x": 2}], {"a": 1}),
    "a list inside a list": ({"l": ["a"]}, [{"op": "add", "path": "/l/-", "value": ["b"]}], {"l": ["a", ["b"]]}),
    "move within a list": ({"l": [1, 2, 3]}, [{"op": "move", "from": "/l/0", "path": "/l/2"}], {"l": [2, 3, 1]}),
    "tilde before slash": ({"~1": 1}, [{"op": "test", "path": "/~01", "value": 1}], {"~1": 1}),
    "numbers are equal by value": ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    "operations build on each other": (
        {},
        [{"op": "add", "path": "/a", "value": {}}, {"op": "add", "path": "/a/b", "value": 1}],
        {"a": {"b": 1}},
    ),
    "null is a value": ({"a": 1}, [{"op": "add", "path": "/b", "value": None}], {"a": 1, "b": None}),
}


@pytest.mark.parametrize(("target", "patch", "expected"), JSON_CASES.values(), ids=JSON_CASES)
def test_json_patch(target, patch, expected):
    """RFC 6902, appendix A; the target itself stays as it was."""
    before = repr(target)
    assert json_patch(target, patch) == expected
    assert repr(target) == before


FAILING = {
    "test fails": ([{"op": "test", "path": "/a", "value": 2}], 422),
    "remove what is not there": ([{"op": "remove", "path": "/b"}], 422),
    "replace what is not there in a list": ([{"op": "replace", "path": "/l/0", "value": 1}], 422),
    "replace below nothing": ([{"op": "replace", "path": "/b/c", "value": 1}], 422),
    "add the whole": ([{"op": "add", "path": "", "value": {}}], 422),
    "remove the whole": ([{"op": "remove", "path": ""}], 422),
    "before the first": ([{"op": "add", "path": "/l", "value": [1]}, {"op": "remove", "path": "/l/-2"}], 422),
    "add below nothing": ([{"op": "add", "path": "/b/c", "value": 1}], 422),
    "out of bounds": ([{"op": "add", "path": "/l/7", "value": 1}], 422),
    "true is not 1": ([{"op": "test", "path": "/a", "value": True}], 422),
    "text is not a number": ([{"op": "test", "path": "/a", "value": "1"}], 422),
    "a list is not its first item": ([{"op": "test", "path": "/l", "value": [1]}], 422),
    "nothing to test": ([{"op": "test", "path": "/c", "value": 1}], 422),
    "below a scalar": ([{"op": "add", "path": "/a/b", "value": 1}], 422),
    "into itself": ([{"op": "add", "path": "/m", "value": {}}, {"op": "move", "from": "/m", "path": "/m/n"}], 422),
    "thousands of digits": ([{"op": "add", "path": "/l/" + "9" * 5000, "value": 1}], 422),
    "not an index": ([{"op": "add", "path": "/l/1e0", "value": 1}], 422),
    "from nowhere": ([{"op": "copy", "from": "/b/d", "path": "/c"}], 422),
    "nothing to move": ([{"op": "move", "from": "/b", "path": "/c"}], 422),
    "unknown operation": ([{"op": "frob", "path": "/a"}], 422),
    "no from": ([{"op": "move", "path": "/c"}], 422),
    "no path": ([{"op": "add", "value": 1}], 422),
    "too many": ([{"op": "test", "path": "/a", "value": 1}] * 10_001, 413),
    "not a pointer": ([{"op": "remove", "path": "a"}], 422),
    "not a list": ({"a": 1}, 400),
}


@pytest.mark.parametrize(("patch", "code"), FAILING.values(), ids=FAILING)
def test_a_json_patch_that_cannot_be_applied_is_refused(patch, code):
    """Never a 500, whatever the patch asks."""
    with pytest.raises(StatusError) as refused:
        json_patch({"a": 1, "l": []}, patch)
    assert refused.value.code == code


# As evanphx/json-patch 4 does, which kube-apiserver uses and manifests rely on.
LENIENT = {
    "replace what is not there": ([{"op": "replace", "path": "/b", "value": 1}], {"a": 1, "l": [7], "b": 1}),
    "before the first slash": ([{"op": "replace", "path": "l/a", "value": 2}], {"a": 2, "l": [7]}),
    "no value": ([{"op": "add", "path": "/b"}], {"a": 1, "l": [7], "b": None}),
    "copy what is not there": ([{"op": "copy", "from": "/b", "path": "/c"}], {"a": 1, "l": [7], "c": None}),
    "what is not there is null": ([{"op": "test", "path": "/b", "value": None}], {"a": 1, "l": [7]}),
    "from the end": ([{"op": "replace", "path": "/l/-1", "value": 8}], {"a": 1, "l": [8]}),
    "replace the whole": ([{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
}


@pytest.mark.parametrize(("patch", "expected"), LENIENT.values(), ids=LENIENT)
def test_what_the_rfc_refuses_and_kube_apiserver_does(patch, expected):
    """The same document."""
    assert json_patch({"a": 1, "l": [7]}, patch) == expected


def doubling(times):
    """Each copies the whole document into itself."""
    return [{"op": "copy", "from": "", "path": f"/c{number}"} for number in range(times)]


def of_bytes(count):
    """A value of so many bytes as JSON."""
    return "x" * (count - 2)


COPIES = {
    "forty that double": ({"a": "x" * 100}, doubling(40)),
    "of one large value": (
        {"a": of_bytes(MOST_COPIED_BYTES // 2 + 1)},
        [{"op": "copy", "from": "/a", "path": "/b"}] * 2,
    ),
    "taken away again": (
        {"a": of_bytes(MOST_COPIED_BYTES)},
        [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "remove", "path": "/b"}] * 2,
    ),
}


@pytest.mark.parametrize(("target", "patch"), COPIES.values(), ids=COPIES)
def test_the_sum_of_copies_is_bounded(target, patch):
    """`AccumulatedCopySizeLimit` of kube-apiserver, in its words: 3 MiB for all copies of a patch together."""
    with pytest.raises(StatusError) as refused:
        json_patch(target, patch)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert "Unable to complete the copy, the accumulated size increase of copy is " in refused.value.message
    assert refused.value.message.endswith(f"exceeding the limit {MOST_COPIED_BYTES}")


def test_copies_up_to_the_bound_are_made():
    """No byte less."""
    target = {"a": of_bytes(MOST_COPIED_BYTES // 2)}
    patched = json_patch(target, [{"op": "copy", "from": "/a", "path": f"/{to}"} for to in "bc"])
    assert patched == {"a": target["a"], "b": target["a"], "c": target["a"]}


def test_the_object_stays_as_it_was(api):
    """A client that asks for too much gets a Status, and nothing is stored."""
    maps = "/api/v1/namespaces/default/configmaps"
    api.call("POST", maps, {"metadata": {"name": "m"}, "data": {"k": "x" * 1000}})
    before = api.call("GET", f"{maps}/m")
    code, told = api.call("PATCH", f"{maps}/m", doubling(40), content_type="application/json-patch+json")
    assert (code, told["reason"]) == (422, "Invalid")
    assert api.call("GET", f"{maps}/m") == before
