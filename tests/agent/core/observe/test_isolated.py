"""Isolated CPUs: which they are, and what they leave idle."""

from __future__ import annotations

import pytest

from agent.core.observe.isolated import cpu_numbers, idle_ticks

STAT = b"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 1 1 1 70 20 1 1 1 0 0\ncpu2 5 5\nintr 5\n"


@pytest.mark.parametrize(
    ("cpus", "expected"), [((), 0), ((0,), 9), ((12,), 90), ((0, 12), 99), ((1,), 0), ((2,), 0)], ids=str
)
def test_idle_ticks(cpus: tuple[int, ...], expected: int) -> None:
    """Waiting for a disk included; a CPU that is offline has no line."""
    assert idle_ticks(STAT, cpus) == expected


def test_numbers() -> None:
    assert cpu_numbers(b"2-3,7\n") == {2, 3, 7} and cpu_numbers(b"\n") == frozenset()
    with pytest.raises(ValueError, match="is not a CPU list"):
        cpu_numbers(b"\xff\n")
