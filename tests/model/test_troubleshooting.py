"""docs/troubleshooting.md names codes that exist, one a row, and a test or guide that speaks of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from model.reason import Reason

ROOT = Path(__file__).parent.parent.parent
ROWS = re.findall(r"^\| ([^|]+) \| `(\w+)` \| [^|]+ \| (\S+) \|$", (ROOT / "docs/troubleshooting.md").read_text(), re.M)


@pytest.mark.parametrize(("cause", "code", "test"), ROWS, ids=[row[1] for row in ROWS])
def test_each_code_exists_and_is_provoked(cause: str, code: str, test: str) -> None:
    text = (ROOT / test).read_text()
    expected = (Reason(code).name, f"\n  {code}: ", f"\n{code}: ", f": {code}}}", f": {code},")
    assert any(words in text for words in expected), cause


def test_one_code_per_cause() -> None:
    codes = [code for _, code, _ in ROWS]
    assert len(codes) == len(set(codes))


FAULTS = (ROOT / "docs/faults.md").read_text()


@pytest.mark.parametrize("row", re.findall(r"^\| (?!fault|---)(.+) \|$", FAULTS, re.M))
def test_each_fault_is_provoked(row: str) -> None:
    """Six columns, of which the last names tests that exist."""
    *told, tests = row.split(" | ")
    assert len(told) == 5 and told[0]
    assert [name for name in tests.split(", ") if not (ROOT / "tests" / name).exists()] == []


def test_each_reason_of_the_fault_table_exists() -> None:
    """In code quotes and capitals, apart from Kubernetes' own words."""
    named = set(re.findall(r"`([A-Z][A-Za-z]+)`", FAULTS)) - {"ColocationReady"}
    assert named <= {reason.value for reason in Reason}
