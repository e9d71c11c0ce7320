"""Packing onto the fewest nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.placement.pack import pack


@pytest.mark.parametrize(
    ("room", "want", "rows"),
    [
        ([2, 3, 1], 3, [1, 1, 1]),
        ([2, 3, 1], 4, [1, 1, 1, 2]),
        ([2, 3, 1], 6, [0, 0, 1, 1, 1, 2]),
        ([2, 3, 1], 9, [0, 0, 1, 1, 1, 2]),
        ([5, 2, 2], 2, [1, 1]),
        ([3, 3, 3], 4, [0, 0, 0, 1]),
        ([3, 2, 3, 2], 8, [0, 0, 0, 1, 1, 2, 2, 2]),
        ([1 << 60, 1 << 60], 1, [0]),
        ([0, 0], 1, []),
        ([], 3, []),
        ([4], 0, []),
    ],
)
def test_packing(room: list[int], want: int, rows: list[int]) -> None:
    """Fewest nodes, the last one filled best, ties to the first."""
    assert pack(np.array(room, np.int64), want).tolist() == rows


def plainly(room: list[int], want: int) -> list[int]:
    """The same rule, said one node at a time: the roomiest until one node can take the rest, then the tightest."""
    left, rows = list(room), []
    while want and any(left):
        enough = [row for row, number in enumerate(left) if number >= want]
        row = min(enough, key=lambda r: (left[r], r)) if enough else max(range(len(left)), key=lambda r: (left[r], -r))
        taken = min(want, left[row])
        rows += [row] * taken
        want, left[row] = want - taken, 0
    return sorted(rows)


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 40))
def test_as_the_rule_says(room: list[int], want: int) -> None:
    """The vectorised answer is the plain one."""
    assert pack(np.array(room, np.int64), want).tolist() == plainly(room, want)
