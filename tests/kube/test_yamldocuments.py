"""YAML is read as Kubernetes reads it, and whatever is wrong with it is one error in one line."""

from __future__ import annotations

from typing import Any

import pytest

from kube.yamldocuments import InvalidYaml, yaml_document, yaml_documents


def laughs(levels: int) -> str:
    """Some hundred bytes that stand for 10 to the power of `levels` values."""
    again = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels))
    return "\n".join(("a0: &a0 [x, x]", *again))


LONG = "x" * 2_000
READ: dict[str, tuple[str, list[Any]]] = {
    "nothing": ("", []),
    "two, and one that is empty": ("a: 1\n---\nb: [2]\n---\n", [{"a": 1}, {"b": [2]}, None]),
    "a time": ("at: 2026-01-01T00:00:00Z", [{"at": "2026-01-01T00:00:00Z"}]),
    "a day that there is not": ("at: 2026-13-45", [{"at": "2026-13-45"}]),
    "JSON": ('{"a": [1, 2.5, null, true]}', [{"a": [1, 2.5, None, True]}]),
    "an alias": ("a: &a [one, two]\nb: *a", [{"a": ["one", "two"], "b": ["one", "two"]}]),
    "a merge": ("a: &a {x: 1}\nb: {<<: *a, y: 2}", [{"a": {"x": 1}, "b": {"x": 1, "y": 2}}]),
    "long texts and a star": (f"a: [{f'{LONG}, ' * 600}'*']", [{"a": [*([LONG] * 600), "*"]}]),
}


@pytest.mark.parametrize(("text", "documents"), READ.values(), ids=READ)
def test_what_is_read(text: str, documents: list[Any]) -> None:
    """As text and as bytes."""
    assert yaml_documents(text) == yaml_documents(text.encode()) == documents


INVALID: dict[str, tuple[str, str]] = {
    "no YAML": ("a: [", "did not find expected node content"),
    "deep lists": ("[" * 100_000, "nest"),
    "deep maps": ("{a: " * 100_000, "nest"),
    "deep blocks": ("- " * 100_000, "nest"),
    "deep by aliases": (
        "\n".join(("a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 5_000)))),
        "its aliases stand for",
    ),
    "a list in itself": ("a: &a [*a]", "an alias stands for a value that it is part of"),
    "a map in itself": ("a: &a {b: *a}", "an alias stands for a value that it is part of"),
    "a billion laughs": (laughs(9), "its aliases stand for more than 1048576 values"),
    "a long text again and again": (
        f"a: &a {'x' * 5_000}\nb: [{'*a, ' * 1_000}]",
        "its aliases stand for more than 1048576 values and characters",
    ),
    "a time that is none": ("a: !!timestamp x", "groupdict"),
    "a truth that is none": ("a: !!bool x", "'x'"),
    "a number that is none": ("a: !!int x", "invalid literal"),
    "a number of nothing": ("a: !!int ''", "index out of range"),
    "digits without end": (f"a: {'1' * 5_000}", "integer string conversion"),
    "Python": ("a: !!python/object/apply:os.getpid []", "could not determine a constructor"),
    "a list as a key": ("? [a]\n: b", "unhashable key"),
    "a control character": ("a: \x00", "control characters are not allowed"),
}
"""What a program must refuse in one line, wherever a document may come from, and what is said of it."""


@pytest.mark.parametrize(("text", "told"), INVALID.values(), ids=INVALID)
def test_what_is_refused(text: str, told: str) -> None:
    """As text and as bytes, in one line."""
    for given in (text, text.encode()):
        with pytest.raises(InvalidYaml) as refused:
            yaml_documents(given)
        assert told in str(refused.value) and "\n" not in str(refused.value)


def test_one_document() -> None:
    """None where there is nothing; two are not one."""
    assert (yaml_document(""), yaml_document("a: 1")) == (None, {"a": 1})
    with pytest.raises(InvalidYaml, match="holds 2 documents, not one"):
        yaml_document("a: 1\n---\nb: 2")
