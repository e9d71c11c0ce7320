"""A decision with the time at which it was made."""

from __future__ import annotations

import pytest

from cli.explain.decision_text import dated
from model.decision import Decision, Unit
from model.reason import Reason


@pytest.mark.parametrize(
    ("at", "now", "last"),
    [
        (1_800_000_000.0, 1_800_000_007.4, "  decided at 2027-01-15T08:00:00Z, 7 s ago"),
        (1_800_000_000.0, 1_799_999_999.0, "  decided at 2027-01-15T08:00:00Z, 0 s ago"),
        (0.0, 5.0, "  Unschedulable: no node fits"),
    ],
)
def test_the_time_of_a_decision(at: float, now: float, last: str) -> None:
    """Clocks of two machines may differ; a decision without a time has none."""
    decision = Decision("pod/a/b", "feasible nodes", 0, Unit.NODES, Reason.UNSCHEDULABLE, (), at_seconds=at)
    assert dated(decision, now).splitlines()[-1] == last
