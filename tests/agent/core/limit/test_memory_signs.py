"""When the brake's thread wakes the tick for memory, by looking alone."""

from __future__ import annotations

import pytest

from agent.core.limit.memory_signs import MemoryLook, SignsMemory, look
from agent.core.limit.watch import MemorySigns, WakeCause

LEVEL, REFAULTS = WakeCause.MEMORY_LEVEL, WakeCause.MEMORY_REFAULTS
Look = tuple[int | None, int | None, int | None]
"""What is left, read back and taken."""


def causes(signs: MemorySigns, *looks: Look, every: float = 0.1) -> list[tuple[WakeCause, ...]]:
    memory, found = SignsMemory(), []
    for number, one in enumerate(looks):
        memory, told = look(memory, signs, MemoryLook(number * every, *one))
        found.append(told)
    return found


LEVELS: dict[str, tuple[list[int | None], list[bool]]] = {
    "above": ([100, 50, 50], [False, False, False]),
    "once it falls below": ([100, 49, 48, 47], [False, True, False, False]),
    "at the first look": ([40, 40], [True, False]),
    "again after it rose": ([49, 60, 49], [True, False, True]),
    "unreadable is not short": ([None, 49, None, 49], [False, True, False, True]),
}


@pytest.mark.parametrize(("left", "expected"), LEVELS.values(), ids=LEVELS.keys())
def test_the_level(left: list[int | None], expected: list[bool]) -> None:
    """Told once, as it passes the mark."""
    found = causes(MemorySigns(50), *((each, None, None) for each in left))
    assert [LEVEL in each for each in found] == expected and all(REFAULTS not in each for each in found)


PACES: dict[str, tuple[list[Look], list[bool]]] = {
    # Half of 1000 in ten seconds are 50 in one.
    "the tick's share at this pace": ([(1000, 0, 0), (1000, 50, 50)], [False, True]),
    "less": ([(1000, 0, 0), (1000, 49, 49)], [False, False]),
    "over several looks, told once": ([(1000, n * 10, n * 10) for n in range(8)], [n == 5 for n in range(8)]),
    "read back within limits of their own": ([(1000, 0, 0), (1000, 900, 0)], [False, False]),
    "taken and not read back": ([(1000, 0, 0), (1000, 0, 900)], [False, False]),
    "not counted": ([(1000, None, None), (1000, None, None)], [False, False]),
    "counted from now on": ([(1000, None, None), (1000, 900, 900), (1000, 960, 960)], [False, False, False]),
    "nothing is left, nothing comes back": ([(0, 5, 5), (0, 5, 5)], [False, False]),
}


@pytest.mark.parametrize(("looks", "expected"), PACES.values(), ids=PACES.keys())
def test_the_pace_of_refaults(looks: list[Look], expected: list[bool]) -> None:
    """Within a second, beside what is left."""
    assert [REFAULTS in each for each in causes(MemorySigns(None, 50), *looks)] == expected


def test_an_old_look_counts_no_more() -> None:
    """A second at most."""
    looks = [(1000, n * 4, n * 4) for n in range(60)]
    assert not any(causes(MemorySigns(None, 50), *looks)), "40 in a second, and 240 in all"
    assert any(causes(MemorySigns(None, 50), *looks, every=0.05))
