"""Percentages are those of whole numbers, whichever way they are computed."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from scheduler.core.snapshot.percent import percent

LARGEST = 1 << 55
BORDER = (1 << 53) // 100


@given(st.integers(0, LARGEST), st.integers(1, LARGEST))
@example(BORDER - 2, BORDER - 1)
@example(BORDER, BORDER)
@example((BORDER - 1) * 99 // 100, BORDER - 1)
@example(0, 1)
def test_percent(part: int, whole: int) -> None:
    part = min(part, whole)
    assert percent(np.array([part]), np.array([whole])).tolist() == [part * 100 // whole]


@given(st.integers(1, 100), st.integers(1, BORDER - 1))
def test_just_below_a_whole_percentage(number: int, whole: int) -> None:
    """Where a quotient is as near to the next whole number as it can be."""
    part = -(-number * whole // 100)
    for near in (part - 1, part):
        if 0 <= near <= whole:
            assert percent(np.array([near]), np.array([whole])).tolist() == [near * 100 // whole]


def test_none() -> None:
    assert percent(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)).shape == (2, 0)
