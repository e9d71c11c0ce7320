"""The tests in inside/, as the guest saw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FILES = sorted(path.stem for path in (Path(__file__).parent / "inside").glob("test_*.py"))
# The first of them waits for the boot and the whole run.
pytestmark = [pytest.mark.slow, pytest.mark.kernel, pytest.mark.timeout(300)]


@pytest.mark.parametrize("file", FILES)
def test_all_of_it_passes_on_real_cgroup_v2(inside: Any, file: str) -> None:
    """None fails, and none is skipped: the guest has all they need."""
    verdicts = inside.verdicts.get(file, {})
    seen = f"{inside.outcome.printed}\n{inside.outcome.console}"
    assert verdicts, seen
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "passed"} == {}, seen


def test_the_guest_ran_to_its_end(inside: Any) -> None:
    """Nothing outside single tests went wrong either."""
    assert inside.outcome.exit_code == 0, f"{inside.outcome.printed}\n{inside.outcome.console}"
