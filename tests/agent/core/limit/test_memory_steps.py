"""Memory limits near what a cgroup holds, in MiB."""

from __future__ import annotations

import pytest

from agent.core.limit.memory_steps import limit_above, step_towards
from agent.core.observe.knobs import UNLIMITED

MI = 1 << 20
ABOVE = {
    "a sixteenth above it, in steps of 4 MiB": (70, 64, None, 76),
    "in whole steps already": (64, 8, None, 68),
    "never looser than what is in force": (70, 64, 72, 72),
    "what is in force is looser": (70, 64, 80, 76),
    "what is in force is tighter than the limit": (70, 64, 32, 76),
    "what is in force is the limit": (70, 64, 64, 64),
}


@pytest.mark.parametrize(("held", "limit", "in_force", "expected"), ABOVE.values(), ids=ABOVE.keys())
def test_a_limit_above_what_is_held(held: int, limit: int, in_force: int | None, expected: int) -> None:
    """What is in force is None where no limit is."""
    now = UNLIMITED if in_force is None else in_force * MI
    assert limit_above(held * MI, limit * MI, now) == expected * MI


@pytest.mark.parametrize(
    ("limit", "charged", "expected"), [(64, 200, 184), (64, 81, 65), (64, 80, None), (64, 9, None)]
)
def test_a_step(limit: int, charged: int, expected: int | None) -> None:
    """16 MiB below what is charged, until the limit itself is as near."""
    assert step_towards(limit * MI, charged * MI) == (None if expected is None else expected * MI)
