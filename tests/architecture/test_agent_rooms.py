"""The agent's folders: few enough modules to look through, and a test by the name of each decision."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FOLDERS = sorted({path.parent for path in (ROOT / "agent").rglob("*.py")})
DECISIONS = sorted(path for path in (ROOT / "agent/core").rglob("*.py") if path.stem != "__init__")
VALUES_ALONE = {"observation", "order", "wanted_limit"}
"""Modules with nothing but values, which the tests of their users make."""
ELSEWHERE = {"new_orders": "evict/test_decide.py", "pending": "evict/test_decide.py"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_folder_holds_at_most_thirty_modules(folder: Path) -> None:
    """What is more has rooms of its own."""
    assert len(list(folder.glob("*.py"))) <= 31


@pytest.mark.parametrize("module", DECISIONS, ids=lambda module: str(module.relative_to(ROOT)))
def test_decisions_have_tests_of_their_name(module: Path) -> None:
    """At the same place below tests/."""
    if module.stem in VALUES_ALONE:
        return
    mirrored = ROOT / "tests" / module.relative_to(ROOT).with_name(f"test_{module.stem}.py")
    elsewhere = ROOT / "tests/agent/core" / ELSEWHERE.get(module.stem, "none")
    assert mirrored.exists() or elsewhere.exists()
