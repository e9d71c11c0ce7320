"""Which schemas are structural.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

import pytest

from embedded.apiserver.apiextensions.structural import schema_errors

TEXT = {"type": "string"}
PRESERVE, EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
INT_OR_STRING, LIST_TYPE, KEYS = "x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
BOTH = [{"type": "integer"}, {"type": "string"}]
ITEM = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
MAP = {"type": "array", LIST_TYPE: "map", KEYS: ["name"], "items": ITEM}


def root(**properties):
    return {"type": "object", "properties": properties}


GOOD = {
    "plain": root(a=TEXT, b={"type": "array", "items": TEXT}),
    "free": {"type": "object", PRESERVE: True},
    "int or string": root(a={INT_OR_STRING: True, "anyOf": BOTH, "pattern": "x"}),
    "int or string below allOf": root(a={INT_OR_STRING: True, "allOf": [{"anyOf": BOTH}, {"minimum": 1}]}),
    "map of maps": root(a={"type": "object", "additionalProperties": root(b=TEXT)}),
    "list map": root(a=MAP),
    "names narrowed": root(metadata={"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}}),
    "junctors over known fields": root(a=TEXT)
    | {"anyOf": [{"required": ["a"]}, {"properties": {"a": {"enum": ["x"]}}}]},
    "default": root(a={"type": "object", "default": {"b": "x"}, "properties": {"b": TEXT}}),
    "a default of everything": root(a=TEXT) | {"default": {"apiVersion": "e.com/v1", "kind": "X", "a": "b"}},
    "embedded": root(a={"type": "object", EMBEDDED: True, PRESERVE: True}),
    "a type beside int or string": root(a=TEXT | {INT_OR_STRING: True}, b=TEXT | {"anyOf": BOTH}),
    "metadata without more": root(metadata={"type": "object", "example": "x", INT_OR_STRING: False}),
    "a text about bytes": root(a=TEXT | {"pattern": r"\\C"}),
    "patterns of RE2": root(a=TEXT | {"pattern": r"^[[:alpha:]]+\pL(?<x>a)\z"}),
    "junctors below the root over other fields": root(
        a=root(b=TEXT) | {"anyOf": [{"properties": {"c": {"pattern": "a"}}}]}
    ),
}


@pytest.mark.parametrize("schema", GOOD.values(), ids=GOOD)
def test_a_structural_schema_has_no_errors(schema):
    """Nor warnings."""
    assert schema_errors("s", schema) == []


BAD = {
    "no type at the root": ({"properties": {"a": TEXT}}, "s.type", "must not be empty at the root"),
    "a text at the root": (TEXT, "s.type", "must be object at the root"),
    "no type": (root(a={}), "s.properties[a].type", "must not be empty for specified object fields"),
    "no type of items": (
        root(a={"type": "array", "items": {"maxLength": 1}}),
        "s.properties[a].items.type",
        "must not be empty for specified array items",
    ),
    "unknown type": (root(a={"type": "map"}), "s.properties[a].type", "supported values"),
    "null type": (root(a={"type": "null"}), "s.properties[a].type", "type cannot be set to null"),
    "no items": (root(a={"type": "array"}), "s.properties[a].items", "must be specified"),
    "pattern": (root(a=TEXT | {"pattern": "("}), "s.properties[a].pattern", "must be a valid regular expression"),
    "metadata of nothing": (
        root(metadata={"type": "object", "minProperties": 0}),
        "s.properties[metadata]",
        "must not specify anything other than name and generateName",
    ),
    "a default of everything": (
        root(a=TEXT) | {"default": {"apiVersion": "e.com/v1"}},
        "s.default.kind",
        "Required value",
    ),
    "a pattern of bytes": (
        root(a=TEXT | {"pattern": r"\\\C"}),
        "s.properties[a].pattern",
        "must be a valid regular expression, but isn't: error parsing regexp: invalid escape sequence: `\\C`",
    ),
    "a rule's pattern": (
        root(a=TEXT | {"maxLength": 9, "x-kubernetes-validations": [{"rule": "self.matches('(?!a)')"}]}),
        "s.properties[a].x-kubernetes-validations[0].rule",
        "compilation failed: invalid matches argument: error parsing regexp",
    ),
    "a rule that finds nothing": (
        root(a=TEXT | {"maxLength": 9, "x-kubernetes-validations": [{"rule": "[1].all(x, self.findAll('(') == [])"}]}),
        "s.properties[a].x-kubernetes-validations[0].rule",
        "compilation failed: invalid findAll argument: error parsing regexp",
    ),
    "a pattern with look-ahead": (
        root(a=TEXT | {"pattern": "^(?=.*a)"}),
        "s.properties[a].pattern",
        "error parsing regexp: invalid perl operator: (?=",
    ),
    "a pattern with a back reference": (
        root(a=TEXT | {"pattern": r"(a)\1"}),
        "s.properties[a].pattern",
        "invalid escape sequence",
    ),
    "nullable at the root": (root(a=TEXT) | {"nullable": True}, "s.nullable", "nullable cannot be true at the root"),
    "default of a kind": (
        root(kind=TEXT | {"default": "W"}),
        "s.properties[kind].default",
        "must not be set in top-level kind",
    ),
    "default inside metadata": (
        root(metadata=root(name=TEXT | {"default": "x"})),
        "s.properties[metadata].properties[name].default",
        "must not be set in top-level metadata",
    ),
    "default of metadata": (
        root(metadata={"type": "object", "default": {}}),
        "s.properties[metadata].default",
        "must not be set in top-level metadata",
    ),
    "default that breaks a rule": (
        root(a={"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 3"}]}),
        "s.properties[a].default",
        "failed rule: self > 3",
    ),
    "key of a list map that may be null": (
        root(a=MAP | {"items": ITEM | {"properties": {"name": TEXT | {"nullable": True}}}}),
        "s.properties[a].items.properties[name].nullable",
        "so it cannot be nullable",
    ),
    "another schema": (root(a=TEXT) | {"$schema": "x"}, "s.$schema", "is not supported"),
    "unique items": (
        root(a={"type": "array", "items": TEXT, "uniqueItems": True}),
        "s.properties[a].uniqueItems",
        "the runtime complexity becomes quadratic",
    ),
    "reference": (root(a=TEXT | {"$ref": "#/b"}), "s.properties[a].$ref", "$ref is not supported"),
    "both kinds of properties": (
        root(a={"type": "object", "properties": {"b": TEXT}, "additionalProperties": TEXT}),
        "s.properties[a].additionalProperties",
        "mutual exclusive",
    ),
    "open root": (
        {"type": "object", "additionalProperties": TEXT},
        "s.additionalProperties",
        "must not be used at the root",
    ),
    "metadata": (root(metadata=root(labels=root())), "s.properties[metadata]", "other than name and generateName"),
    "kind is no text": (root(kind={"type": "integer"}), "s.properties[kind].type", "must be string"),
    "type below anyOf": (
        root(a=TEXT) | {"anyOf": [{"type": "object"}]},
        "s.anyOf[0].type",
        "must be empty to be structural",
    ),
    "default below not": (
        root(a=TEXT | {"not": {"default": "x"}}),
        "s.properties[a].not.default",
        "must be undefined to be structural",
    ),
    "unknown field below oneOf": (
        root(a=TEXT) | {"oneOf": [{"properties": {"b": {"minimum": 1}}}]},
        "s.properties[b]",
        "because it is defined in s.oneOf[0].properties[b]",
    ),
    "default of another type": (root(a=TEXT | {"default": 1}), "s.properties[a].default", "must be of type string"),
    "default with an unknown field": (
        root(a=root(b=TEXT) | {"default": {"c": 1}}),
        "s.properties[a].default",
        "must not have unknown fields",
    ),
    "list type": (root(a=MAP | {LIST_TYPE: "bag", KEYS: []}), f"s.properties[a].{LIST_TYPE}", "supported values"),
    "list type of a text": (root(a=TEXT | {LIST_TYPE: "atomic"}), "s.properties[a].type", "must be array if"),
    "no map keys": (root(a=MAP | {KEYS: []}), f"s.properties[a].{KEYS}", "must not be empty if"),
    "unknown map key": (root(a=MAP | {KEYS: ["x"]}), f"s.properties[a].{KEYS}", "names of item properties"),
    "optional map key": (
        root(a=MAP | {"items": root(name=TEXT)}),
        "s.properties[a].items.properties[name].default",
        "must have a default or be a required property",
    ),
    "keys without a map": (
        root(a=MAP | {LIST_TYPE: "set", "items": TEXT}),
        f"s.properties[a].{LIST_TYPE}",
        "must be map",
    ),
    "set of granular maps": (
        root(a={"type": "array", LIST_TYPE: "set", "items": root(b=TEXT)}),
        "s.properties[a].items.x-kubernetes-map-type",
        "must be atomic as item of a list",
    ),
    "preserving nothing": (
        root(a=root() | {PRESERVE: False}),
        f"s.properties[a].{PRESERVE}",
        "must be true or undefined",
    ),
    "embedded text": (root(a=TEXT | {EMBEDDED: True, PRESERVE: True}), "s.properties[a].type", "must be object if"),
    "embedded nothing": (
        root(a={"type": "object", EMBEDDED: True}),
        "s.properties[a].properties",
        "must not be empty if",
    ),
}


@pytest.mark.parametrize(("schema", "path", "text"), BAD.values(), ids=BAD)
def test_each_breach_is_told_with_its_place(schema, path, text):
    """One error, in the words of a real server."""
    [error] = schema_errors("s", schema)
    assert error.field == path and text in error.message
