"""Rows found by the names that a document has, however many these are."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from kube.dialects.coverage import asking
from kube.dialects.coverage.asking import RowsByKey
from kube.dialects.coverage.asking_pods import in_pod
from kube.dialects.coverage.rows import CoverageRow
from kube.dialects.coverage.table import ROWS
from kube.objects import Metadata, PodSpec


def one_by_one(key: str, value: str) -> CoverageRow | None:
    return next((row for row in ROWS if fnmatchcase(key, row.field) and (not row.values or value in row.values)), None)


def test_the_first_row_about_a_name_is_found() -> None:
    """As by going through all: of those that name it, and those of which a prefix does."""
    rows = RowsByKey(ROWS)
    names = {name for row in ROWS for name in (row.field, row.field.replace("*", "anything"), f"{row.field}x")}
    values = {"", "true", *(value for row in ROWS for value in row.values)}
    for name in sorted(names):
        for value in values:
            assert rows.first(name, value) is one_by_one(name, value), (name, value)


def test_names_that_no_row_is_about_are_compared_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod may have a hundred thousand labels: compared with each row they took admission 0.7 s."""
    compared: list[str] = []

    def noted(name: str, pattern: str) -> bool:
        compared.append(name)
        return fnmatchcase(name, pattern)

    monkeypatch.setattr(asking, "fnmatchcase", noted)
    others = {f"k{index}": "" for index in range(100)}
    assert in_pod(Metadata(labels=others, annotations=others), PodSpec()) == ()
    assert compared == []
