"""Structural schemas beyond what the definitions in other tests use."""

import pytest

from embedded.apiserver.apiextensions import schema

CASES = {
    "nullable": ({"type": "string", "nullable": True}, None, []),
    "null": ({"type": "string"}, None, ["x"]),
    "whole float": ({"type": "integer"}, 3.0, []),
    "fraction": ({"type": "integer"}, 3.5, ["x"]),
    "exclusive": ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1, ["x"]),
    "multiple": ({"type": "integer", "multipleOf": 5}, 12, ["x"]),
    "too short": ({"type": "string", "minLength": 2}, "a", ["x"]),
    "too long": ({"type": "string", "maxLength": 2}, "abc", ["x"]),
    "too few": ({"type": "array", "minItems": 1}, [], ["x"]),
    "too many keys": ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, ["x"]),
    "anyOf, one fits": ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 1, []),
    "anyOf, none fits": ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, [], ["<nil>"]),
    "oneOf, two fit": ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 1, ["<nil>"]),
    "allOf": ({"allOf": [{"type": "integer", "minimum": 5}]}, 1, ["x"]),
    "not": ({"not": {"type": "string"}}, "a", ["<nil>"]),
    "required inside a list": (
        {"type": "array", "items": {"type": "object", "required": ["a"]}},
        [{"a": 1}, {}],
        ["x[1].a"],
    ),
}


@pytest.mark.parametrize(("found", "value", "paths"), CASES.values(), ids=CASES)
def test_errors_name_their_path(found, value, paths):
    """Each rule of a schema is enforced, and says where."""
    assert [error.field for error in schema.errors(found, value, "x")] == paths


def test_metadata_of_the_object_itself_is_never_pruned():
    """Only an embedded resource and the root know metadata without declaring it."""
    value = {"apiVersion": "a", "kind": "b", "metadata": {"name": "c"}, "spec": {"metadata": {"name": "d"}}}
    gone = schema.prune({"properties": {"spec": {"properties": {}}}}, value, root=True)
    assert gone == ["spec.metadata"]
    assert value == {"apiVersion": "a", "kind": "b", "metadata": {"name": "c"}, "spec": {}}
