"""YAML bodies: read by the rules of sigs.k8s.io/yaml, and bounded whatever they hold."""

import binascii

import pytest
import yaml

from embedded.apiserver.apimachinery.repeated_fields import repeated_fields
from embedded.apiserver.serialization.yaml_body import decode_yaml

READ = {
    "nothing": ("", None),
    "texts": ('{a: x, b: "5", c: \'yes\', d: ""}', {"a": "x", "b": "5", "c": "yes", "d": ""}),
    "words": ("[yes, Off, y, true, null, ~, nULL]", [True, False, True, True, None, None, "nULL"]),
    "numbers": ("[5, -5, +5, 1_000, 0x1f, 017, 0o17, 0b11]", [5, -5, 5, 1000, 31, 15, 15, 3]),
    "fractions": ("[1.5, .5, 1e-1, 08.5]", [1.5, 0.5, 0.1, 8.5]),
    "whole fractions": ("[3.0, 1e3, 08]", [3, 1000, 8]),
    "no numbers": ("[-, ., 1.2.3, 0x, 5m, 1e, +, 12a, ١]", ["-", ".", "1.2.3", "0x", "5m", "1e", "+", "12a", "١"]),
    "no time stamps": ("[2020-01-01, 2020-01-01T10:00:00Z]", ["2020-01-01", "2020-01-01T10:00:00Z"]),
    "no base 60": ("[12:30:45, 1:30.5, 190:20]", ["12:30:45", "1:30.5", "190:20"]),
    "keys are texts": ("{5: a, yes: b, 1.5: c, =: d}", {"5": "a", "true": "b", "1.5": "c", "=": "d"}),
    "tags": ("[!!str 5, !!int 7, !!binary aGk=, !own x]", ["5", 7, "hi", "x"]),
    "an equals sign": ("a: =", {"a": "="}),
    "aliases": ("{a: &x {b: [1]}, c: *x}", {"a": {"b": [1]}, "c": {"b": [1]}}),
    "a merge": ("{a: &x {b: 1, c: 1}, d: {<<: *x, c: 2}}", {"a": {"b": 1, "c": 1}, "d": {"b": 1, "c": 2}}),
    "two merges of one": (
        "{a: &x {b: 1}, c: &y {<<: *x, b: 2}, d: {<<: [*x, *y]}}",
        {"a": {"b": 1}, "c": {"b": 2}, "d": {"b": 1}},
    ),
}


@pytest.mark.parametrize(("text", "value"), READ.values(), ids=READ)
def test_yaml_is_read_as_kubernetes_reads_it(text, value):
    """Types included, since 1 and true are equal in Python."""
    found = decode_yaml(text.encode())
    assert found == value and repr(found) == repr(value)
    assert list(repeated_fields(found)) == []


def test_aliases_share_nothing():
    """What is done to one place is not done to another."""
    value = decode_yaml(b"{a: &x {b: 1}, c: *x}")
    value["a"]["b"] = 2
    assert value["c"] == {"b": 1}


def laughs(levels):
    """Each level holds the one before ten times."""
    lines = ["l0: &l0 " + "x" * 10]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


# Python's bound or libyaml's: which comes first is theirs.
DEEP = ((RecursionError, yaml.YAMLError), "recursion|nesting")
REFUSED = {
    "deep lists": ("[" * 100_000, *DEEP),
    "deep maps": ("{a: " * 100_000, *DEEP),
    "deep blocks": ("- " * 100_000, *DEEP),
    "a list in itself": ("a: &a [*a]", yaml.YAMLError, "contains itself"),
    "a map merged into itself": ("a: &a {<<: *a}", yaml.YAMLError, "contains itself"),
    "a billion laughs": (laughs(9), yaml.YAMLError, "excessive aliasing"),
    "a large text many times": (f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 100}]", yaml.YAMLError, "excessive aliasing"),
    "a list as key": ("? [a]\n: b", yaml.YAMLError, "invalid map key"),
    "a null as key": ("~: b", yaml.YAMLError, "invalid map key"),
    "two documents": ("a: 1\n---\nb: 2\n", yaml.YAMLError, "single document"),
    "bad base64": ("a: !!binary a", binascii.Error, "base64"),
    "no YAML": ("a: [", yaml.YAMLError, "expected"),
}


@pytest.mark.parametrize(("text", "error", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(text, error, why):
    """With an error of Python's, whatever the nesting: the process goes on."""
    with pytest.raises(error, match=why):
        decode_yaml(text.encode())


def test_yaml_names_the_lines():
    """YAML knows lines, as upstream's reader does."""
    value = decode_yaml(b"a: 1\nb:\n  c: 1\n  c: 2\na: 2\n5: x\n'5': z\n")
    assert value == {"a": 2, "b": {"c": 2}, "5": "z"}
    assert sorted(repeated_fields(value)) == [
        'line 4: key "c" already set in map',
        'line 5: key "a" already set in map',
        'line 7: key "5" already set in map',
    ]
    assert type(decode_yaml(b"a: 1\nb: 1\n")) is dict
