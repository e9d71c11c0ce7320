"""Faults of untyped documents name the field, what stands there and what may."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from kube.dialects.documents.document import GoDuration, annotated, checked, document, parsed, value_of
from model.fault import ConfigurationFault


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"
    UNSET = ""


class Row(msgspec.Struct, frozen=True):
    share: Annotated[int, Meta(ge=0, le=100)] | None = None
    colour: Colour | None = None
    window: GoDuration | None = None
    names: dict[str, Row] | None = None


class Document(msgspec.Struct, frozen=True):
    rows: list[Row] = []
    name: str = ""


def test_a_document() -> None:
    """Unknown fields are skipped, null is absent, durations become seconds."""
    text = '{"rows": [{"share": 7, "colour": null, "window": "1m30s", "newer": {"a": 1}}], "other": []}'
    assert checked(parsed(text, "X"), Document, "X") == Document([Row(7, None, GoDuration(90))])


IN_ANY_CASE: dict[str, tuple[str, Document]] = {
    "as they are": ('{"rows": [{"share": 7}], "name": "x"}', Document([Row(7)], "x")),
    "other letters": ('{"ROWS": [{"Share": 7}], "Name": "X"}', Document([Row(7)], "X")),
    "the last one counts, as in Go": ('{"name": "a", "NAME": "b"}', Document(name="b")),
    "whatever comes last": ('{"NAME": "b", "name": "a"}', Document(name="a")),
    "keys of a map are no names": (
        '{"rows": [{"names": {"SHARE": {"SHARE": 1}}}]}',
        Document([Row(names={"SHARE": Row(1)})]),
    ),
    "unknown ones": ('{"Newer": {"Rows": 1}}', Document()),
}


@pytest.mark.parametrize(("text", "expected"), IN_ANY_CASE.values(), ids=IN_ANY_CASE.keys())
def test_names_in_any_case(text: str, expected: Document) -> None:
    """What a Go program reads is read alike, at any depth."""
    assert document(text, Document, "X") == expected
    assert annotated({"k": text}, "k", Document, "X") == expected


def test_a_fault_below_a_name_in_another_case() -> None:
    """Named as it is known."""
    with pytest.raises(ConfigurationFault, match=r"^X: annotation k\.rows\[0\]\.share: is 150"):
        annotated({"k": '{"Rows": [{"SHARE": 150}]}'}, "k", Document, "X")


@pytest.mark.parametrize("annotations", [{}, {"k": ""}, {"k": " \n"}])
def test_no_annotation(annotations: dict[str, str]) -> None:
    """An empty one says nothing."""
    assert annotated(annotations, "k", Document, "X") is None


def test_the_value_under_a_name_in_any_case() -> None:
    """The last one; None without it."""
    assert value_of({"A": 1, "b": 2, "a": 3}, "a") == 3
    assert value_of({"b": 2}, "a") is None


FAULTS: dict[str, tuple[Any, str]] = {
    "too large": ({"rows": [{}, {"share": 150}]}, "X.rows[1].share: is 150 (expected a whole number <= 100)"),
    "a text for a number": ({"rows": [{"share": "7"}]}, "X.rows[0].share: is '7' (expected a whole number)"),
    "true for a number": ({"rows": [{"share": True}]}, "X.rows[0].share: is True (expected a whole number)"),
    "an unknown word": ({"rows": [{"colour": "green"}]}, "X.rows[0].colour: is 'green' (write one of red, blue)"),
    "no duration": ({"rows": [{"window": "5"}]}, "X.rows[0].window: is '5' (expected a duration such as 5m or 1h30m)"),
    "a number for a duration": ({"rows": [{"window": 5}]}, "X.rows[0].window: is 5 (expected a duration"),
    "below a free key": (
        {"rows": [{"names": {"good": {}, "b.a[d": {"share": -1}}}]},
        "X.rows[0].names['b.a[d'].share: is -1 (expected a whole number >= 0)",
    ),
    "an object for a list": ({"rows": {}}, "X.rows: is an object (expected a list)"),
    "not an object at all": ([], "X: is a list (expected an object)"),
    "null": (None, "X: is null (expected an object)"),
    "a long text": ({"rows": "x" * 1000}, "X.rows: is '" + "x" * 76 + " (expected a list)"),
}


@pytest.mark.parametrize(("raw", "told"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_one_clear_line(raw: Any, told: str) -> None:
    """Field, value, fix."""
    with pytest.raises(ConfigurationFault) as raised:
        checked(raw, Document, "X")
    assert str(raised.value).startswith(told)


UNREADABLE = {
    "nothing": "",
    "cut": '{"a": ',
    "a trailing comma": '{"a": 1,}',
    "two documents": "{} {}",
    "too deep": "[" * 100_000,
    "half a character": '"\ud800"',
    "a number without end": "9" * 5000,
    "a list": "[]",
}


class Lists(msgspec.Struct, frozen=True):
    lists: dict[str, list[str]] = {}
    share: Annotated[int, Meta(le=100)] = 0


def test_the_key_of_a_fault_beside_another() -> None:
    """That another field is wrong, too, makes no other key the wrong one."""
    with pytest.raises(ConfigurationFault, match=r"^X\.lists\['b'\]\[1\]: is 1 \(expected a text\)$"):
        checked({"lists": {"a": ["x"], "b": ["y", 1]}, "share": 1000}, Lists, "X")


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_text(text: str) -> None:
    """Nothing but a ConfigurationFault, whatever the text."""
    with pytest.raises(ConfigurationFault, match=r"^X: "):
        parsed(text, "X")


@pytest.mark.parametrize("levels", [65, 900, 100_000])
def test_a_text_nested_too_deep(levels: int) -> None:
    """One clear fault, whether our bound, the recursion of Python or that of the decoder is reached first."""
    with pytest.raises(ConfigurationFault) as raised:
        parsed('{"a":' * levels + "1" + "}" * levels, "ConfigMap ns/c: data[x]")
    assert str(raised.value) == (
        "ConfigMap ns/c: data[x]: is nested more than 64 levels deep (nest at most 64 objects and lists in one another)"
    )


def test_a_text_of_64_levels_is_read() -> None:
    assert parsed('{"a":' * 64 + "1" + "}" * 64, "x")
