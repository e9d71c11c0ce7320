"""Documents of a file; what kubectl accepts of manifests is in tests/cli/simulate/test_manifests.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.documents import documents, name_of
from model.fault import ConfigurationFault
from tests.kube.test_yamldocuments import INVALID

CONTENTS: dict[str, tuple[str, list[object]]] = {
    "YAML": ("a: 1\n---\nb: 2026-01-01\n", [{"a": 1}, {"b": "2026-01-01"}]),
    "JSON, one after another": ('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}]),
    "YAML that begins with a brace": ("{a: 1}", [{"a": 1}]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("content", "expected"), CONTENTS.values(), ids=CONTENTS)
def test_what_a_file_holds(content: str, expected: list[object], tmp_path: Path) -> None:
    """As it stands there, a time as its text."""
    (tmp_path / "f").write_text(content)
    assert documents(tmp_path / "f") == expected


WRONG = {
    "neither": ("a: [", "is neither YAML nor JSON"),
    "too deep": ('{"a":' * 100_000, "is nested too deeply"),
    "a billion laughs": (INVALID["a billion laughs"][0], "is neither YAML nor JSON: its aliases"),
    "lists too deep": (INVALID["deep lists"][0], "nest"),
}


@pytest.mark.parametrize(("content", "problem"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read(content: str, problem: str, tmp_path: Path) -> None:
    """The file is named."""
    (tmp_path / "f").write_text(content)
    with pytest.raises(ConfigurationFault, match=problem) as refused:
        documents(tmp_path / "f")
    assert str(refused.value).startswith(str(tmp_path / "f"))


def test_names() -> None:
    assert (name_of(Path("-")), name_of(Path("a/b"))) == ("standard input", "a/b")
    with pytest.raises(ConfigurationFault, match="cannot be read"):
        documents(Path("/nowhere/f"))
