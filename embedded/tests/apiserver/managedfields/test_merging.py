"""Merging configurations into values and taking fields out, by the schema of the place."""

import pytest

from embedded.apiserver.managedfields.fieldsets import difference, fields_of
from embedded.apiserver.managedfields.merging import merged, without
from embedded.apiserver.managedfields.paths import shown
from embedded.apiserver.managedfields.structure import ABSENT, problems, with_named_parents

TEXT = {"type": "string"}
ITEM = {"type": "object", "properties": {"name": TEXT, "value": TEXT, "port": {"type": "integer", "default": 80}}}
KEYED = {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
SCHEMA = {
    "type": "object",
    "properties": {
        "text": TEXT,
        "map": {"type": "object", "additionalProperties": TEXT},
        "whole": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        "struct": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        "keyed": KEYED,
        "ports": {**KEYED, "x-kubernetes-list-map-keys": ["name", "port"]},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": TEXT},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True},
    },
}

MERGED = {
    "a map by its entries": ({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"a": "1", "b": "2"}}),
    "an atomic map as a whole": ({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}),
    "a plain list as a whole": ({"list": ["a"]}, {"list": ["b"]}, {"list": ["b"]}),
    "a set by its values": ({"set": ["a", "b"]}, {"set": ["c", "a"]}, {"set": ["c", "a", "b"]}),
    "items by their key": (
        {"keyed": [{"name": "a", "value": "1"}, {"name": "b"}]},
        {"keyed": [{"name": "a", "value": "2"}]},
        {"keyed": [{"name": "a", "value": "2"}, {"name": "b"}]},
    ),
    "items by a key that has a default": (
        {"ports": [{"name": "a", "port": 80, "value": "1"}]},
        {"ports": [{"name": "a", "value": "2"}]},
        {"ports": [{"name": "a", "port": 80, "value": "2"}]},
    ),
    "free-form maps deeply, their lists as a whole": (
        {"free": {"a": {"x": 1}, "l": [1]}},
        {"free": {"a": {"y": 2}, "l": [2]}},
        {"free": {"a": {"x": 1, "y": 2}, "l": [2]}},
    ),
    "an empty map stays what it is": ({"struct": {}}, {"struct": {}}, {"struct": {}}),
    "another type replaces": ({"either": 1}, {"either": "50%"}, {"either": "50%"}),
}


@pytest.mark.parametrize(("live", "config", "expected"), MERGED.values(), ids=MERGED)
def test_merging(live, config, expected):
    """https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy"""
    assert merged(SCHEMA, live, config) == expected


ORDERS = {  # live, configuration, result: both orders are kept where they do not contradict each other
    "new ones last": ("ab", "abc", "abc"),
    "new ones before what follows them": ("ab", "cab", "cab"),
    "the configuration's order wins": ("abc", "cba", "cba"),
    "live ones keep their place": ("axb", "ab", "axb"),
    "live ones in front": ("xab", "ba", "xba"),
    "nothing in common": ("ab", "cd", "abcd"),
    "from nothing": ("", "ba", "ba"),
}


@pytest.mark.parametrize(("live", "config", "expected"), ORDERS.values(), ids=ORDERS)
def test_the_order_of_merged_lists(live, config, expected):
    """As structured-merge-diff interleaves them."""
    assert "".join(merged(SCHEMA, {"set": list(live)}, {"set": list(config)})["set"]) == expected


def test_items_that_share_a_key_stay_until_somebody_applies_them():
    """Kubernetes allows an environment variable twice; whoever applies it leaves one."""
    twins = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}, {"name": "b"}]
    got = merged(SCHEMA, {"keyed": twins}, {"keyed": [{"name": "b", "value": "1"}]})
    assert got == {"keyed": [*twins[:2], {"name": "b", "value": "1"}]}
    assert without(SCHEMA, got, frozenset({("f:keyed", 'k:{"name":"b"}')})) == {"keyed": twins[:2]}
    assert merged(SCHEMA, got, {"keyed": [{"name": "a", "value": "3"}]})["keyed"][0] == {"name": "a", "value": "3"}


FIELDS = {
    "a leaf": ({"text": "a"}, {".text"}),
    "a map's entries": ({"map": {"a": "1"}}, {".map.a"}),
    "an empty map": ({"map": {}}, {".map"}),
    "an atomic map": ({"whole": {"a": "1"}}, {".whole"}),
    "an item and what is in it": (
        {"keyed": [{"name": "a", "value": "1"}]},
        {'.keyed[name="a"]', '.keyed[name="a"].name', '.keyed[name="a"].value'},
    ),
    "a set": ({"set": ["a"]}, {'.set[="a"]'}),
    "free-form maps": ({"free": {"a": {"b": 1}}}, {".free.a", ".free.a.b"}),
}


@pytest.mark.parametrize(("value", "expected"), FIELDS.values(), ids=FIELDS)
def test_fields_of_a_configuration(value, expected):
    """A struct's field is owned through what is in it; entries and items are owned themselves too."""
    assert set(map(shown, fields_of(SCHEMA, value))) == expected


def test_the_difference_of_two_values():
    """Parents count as added or removed with their contents, as changed never."""
    old = {"text": "a", "map": {"a": "1", "b": "1"}, "set": ["x"], "keyed": [{"name": "a", "value": "1"}]}
    new = {"text": "b", "map": {"a": "1"}, "set": ["y"], "struct": {"a": "1"}, "keyed": [{"name": "a", "value": "2"}]}
    found = difference(SCHEMA, old, new)
    assert set(map(shown, found.added)) == {'.set[="y"]', ".struct", ".struct.a"}
    assert set(map(shown, found.removed)) == {".map.b", '.set[="x"]'}
    assert set(map(shown, found.changed)) == {".text", '.keyed[name="a"].value'}


def test_taking_fields_out():
    """What is left empty goes too; what was not named stays."""
    value = {"text": "a", "map": {"a": "1"}, "set": ["x", "y"], "keyed": [{"name": "a", "value": "1"}, {"name": "b"}]}
    gone = fields_of(SCHEMA, {"map": {"a": "1"}, "set": ["x"], "keyed": [{"name": "b"}]})
    gone |= {("f:keyed", 'k:{"name":"a"}', "f:value")}
    assert without(SCHEMA, value, gone) == {"text": "a", "set": ["y"], "keyed": [{"name": "a"}]}
    assert without(SCHEMA, {"text": "a"}, frozenset({("f:text",)})) is ABSENT


def test_named_parents_are_fields_of_structs_only():
    """Entries of free-form maps are not named by a schema."""
    paths = frozenset({("f:struct", "f:a"), ("f:free", "f:x", "f:y"), ("f:keyed", 'k:{"name":"a"}', "f:name")})
    assert with_named_parents(SCHEMA, paths) - paths == {("f:struct",), ("f:free",), ("f:keyed",)}


PROBLEMS = {
    "unknown": ({"nope": 1}, ".nope: field not declared in schema"),
    "unknown inside": ({"struct": {"c": 1}}, ".struct.c: field not declared in schema"),
    "not a list": ({"keyed": {"name": "a"}}, ".keyed: expected list, got {'name': 'a'}"),
    "not a map": ({"struct": "a"}, ".struct: expected map, got 'a'"),
    "an item that is no map": ({"keyed": ["a"]}, ".keyed[0]: expected map, got 'a'"),
    "an item without its key": ({"keyed": [{"value": "1"}]}, 'omits key field "name"'),
    "the same item twice": ({"keyed": [{"name": "a"}, {"name": "a"}]}, ".keyed: duplicate entries for key"),
    "the same value twice": ({"set": ["a", "a"]}, ".set: duplicate entries for key"),
}


@pytest.mark.parametrize(("config", "told"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_cannot_be_applied_is_told_with_its_place(config, told):
    """One message, naming the field."""
    (found,) = problems(SCHEMA, config)
    assert told in found


def test_free_form_values_have_no_problems():
    """Where the schema says nothing, anything goes."""
    assert not list(problems(SCHEMA, {"free": {"a": [1, {"b": None}]}, "either": "x"}))
