"""A limit that is not set is false."""

from __future__ import annotations

import pytest

from model.loadlimits import UsageLimits


@pytest.mark.parametrize(
    ("limits", "is_set"),
    [
        (UsageLimits(), False),
        (UsageLimits(cpu_pct=1), True),
        (UsageLimits(memory_pct=1), True),
        (UsageLimits(60, 70), True),
    ],
)
def test_whether_it_is_set(limits: UsageLimits, is_set: bool) -> None:
    """Of CPU or of memory."""
    assert bool(limits) is is_set
