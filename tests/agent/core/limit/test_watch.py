"""When memory is so short that somebody must die, how long that takes, and when a mark is worth moving."""

from __future__ import annotations

import pytest

from agent.core.limit.watch import (
    LastResort,
    Mechanism,
    dying_seconds,
    mark_moved,
    mark_urgent,
    short_of_memory,
)

MIB = 1 << 20
NODE_ALONE = LastResort(100, None, None, ())
BOTH = LastResort(100, 50, 1000, ())

SHORT: dict[str, tuple[LastResort, int | None, int | None, int, int | None]] = {
    # what is prepared; MemAvailable; kubepods' charge; its page cache; what is left
    "enough": (NODE_ALONE, 100, None, 0, None),
    "the node is short": (NODE_ALONE, 99, None, 0, 99),
    "kubepods has no limit": (NODE_ALONE, 100, 10**9, 0, None),
    "kubepods is short": (BOTH, 500, 951, 0, 49),
    "kubepods has just enough": (BOTH, 500, 950, 0, None),
    "cache can be dropped first": (BOTH, 500, 999, 49, None),
    "some cache, not enough": (BOTH, 500, 999, 48, 49),
    "above its limit": (BOTH, 500, 1200, 0, 0),
    "more cache than charge": (BOTH, 500, 960, 2000, None),
    "both are short": (BOTH, 20, 999, 0, 20),
    "the node cannot be told": (BOTH, None, 999, 0, 1),
    "nothing can be told": (BOTH, None, None, 0, None),
}


@pytest.mark.parametrize(("prepared", "available", "charge", "cache", "left"), SHORT.values(), ids=SHORT.keys())
def test_short_of_memory(
    prepared: LastResort, available: int | None, charge: int | None, cache: int, left: int | None
) -> None:
    """Below either mark; what is not known is not short."""
    assert short_of_memory(prepared, available, charge, cache) == left


@pytest.mark.parametrize(("frees", "seconds"), [(-1, 0.05), (0, 0.05), (10**9, 0.16), (3 * 10**9, 0.38), (10**12, 5)])
def test_dying_takes_its_time(frees: int, seconds: float) -> None:
    """A tenth of a second per gigabyte, and a moment in any case; nobody is waited for for ever."""
    assert dying_seconds(frees) == pytest.approx(seconds)


MOVES: dict[str, tuple[int, int, bool]] = {
    "not at all": (64 * MIB, 64 * MIB, False),
    "by 16 MiB": (64 * MIB, 80 * MIB, False),
    "by more": (64 * MIB, 81 * MIB, True),
    "down": (64 * MIB, 47 * MIB, True),
    "little of much": (64 << 30, 65 << 30, False),
    "much of much": (64 << 30, 66 << 30, True),
}


@pytest.mark.parametrize(("registered", "wanted", "expected"), MOVES.values(), ids=MOVES.keys())
def test_mark_moved(registered: int, wanted: int, expected: bool) -> None:
    """By more than 16 MiB, or 1/64 where that is more."""
    assert mark_moved(registered, wanted) is expected


URGENT: dict[str, tuple[int, int, bool]] = {
    "by 64 MiB": (512 * MIB, 448 * MIB, False),
    "by more": (512 * MIB, 447 * MIB, True),
    "up": (512 * MIB, 4096 * MIB, False),
    "a sixteenth of much": (64 << 30, 60 << 30, False),
    "more of much": (64 << 30, 59 << 30, True),
}


@pytest.mark.parametrize(("registered", "wanted", "expected"), URGENT.values(), ids=URGENT.keys())
def test_mark_urgent(registered: int, wanted: int, expected: bool) -> None:
    """Lower by more than 64 MiB, or 1/16 where that is more."""
    assert mark_urgent(registered, wanted) is expected


def test_mechanisms_in_words() -> None:
    """With how many cgroups, where it is about cgroups."""
    told = [Mechanism("x").words, Mechanism("x", 1).words, Mechanism("x", 3).words]
    assert told == ["x", "x on 1 cgroup", "x on 3 cgroups"]
