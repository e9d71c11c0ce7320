"""How many members of a running gang may go one by one."""

from __future__ import annotations

import pytest

from scheduler.core.preemption.facts import GangFacts


@pytest.mark.parametrize(
    ("minimum", "bound", "whole", "surplus"),
    [(3, 5, False, 2), (3, 3, False, 0), (3, 1, False, 0), (3, 5, True, 0), (0, 2, False, 2)],
)
def test_surplus(minimum: int, bound: int, whole: bool, surplus: int) -> None:
    """Those above its minimum; none of a gang that goes whole or not at all."""
    assert GangFacts(minimum, bound, whole).surplus == surplus
