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
    assert len(codes) == len(set(codes)) == 51
