"""Every honoured line of the table names a test that shows what the field does, beyond being read."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from kube.dialects.coverage.rows import CoverageRow, Support
from kube.dialects.coverage.table import ROWS

TESTS = Path(__file__).parents[3]
EFFECTS: dict[str, dict[str, str]] = yaml.safe_load((Path(__file__).parent / "effects.yaml").read_text())
DONE = [row for row in ROWS if row.support in (Support.HONOURED, Support.PARTLY)]


class Effect(NamedTuple):
    """A test, and a word that stands in it or in its table of cases."""

    file: str
    test: str
    word: str


def effect(row: CoverageRow) -> Effect:
    test, _, word = EFFECTS[row.surface.value][row.name].partition(" ")
    return Effect(*test.split("::"), word)


class _Module(NamedTuple):
    """Module-level definitions by name: their text, and the names they use."""

    texts: dict[str, str]
    uses: dict[str, set[str]]


@lru_cache
def module(file: str) -> _Module:
    text = (TESTS / file).read_text()
    texts: dict[str, str] = {}
    uses: dict[str, set[str]] = {}
    for node in ast.parse(text).body:
        for name in _defined(node):
            start = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            texts[name] = "\n".join(text.splitlines()[start - 1 : node.end_lineno])
            uses[name] = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return _Module(texts, uses)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return [ast.unparse(node.target)]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]


def whole(file: str, test: str) -> str:
    """The text of a test with all it uses of its module."""
    found, left = set(), {test}
    while left:
        name = left.pop()
        found.add(name)
        left |= (module(file).uses[name] & module(file).texts.keys()) - found
    return "\n".join(module(file).texts[name] for name in sorted(found))


@pytest.mark.parametrize("row", DONE, ids=lambda row: f"{row.surface.name} {row.name}")
def test_what_is_honoured_has_an_effect(row: CoverageRow) -> None:
    """The test exists and speaks of the field."""
    shown = effect(row)
    assert shown.test.startswith("test_") and shown.test in module(shown.file).texts
    assert shown.word and shown.word in whole(shown.file, shown.test)


def test_effects_are_those_of_the_table() -> None:
    """A field that is no longer honoured is not listed."""
    listed = {(surface, name) for surface, fields in EFFECTS.items() for name in fields}
    assert listed == {(row.surface.value, row.name) for row in DONE}
