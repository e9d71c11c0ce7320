"""How often jobs of one namespace are looked at."""

from __future__ import annotations

from jobs.controllers.look_limit import LookLimit


def test_looks_at_many_pods_are_followed_by_a_rest() -> None:
    """A namespace's own; it is over by itself, and a few thousand pods need none."""
    limit, now = LookLimit(), 100.0
    for _ in range(6):
        assert limit.rest("many", now) == 0.0
        limit.looked("many", 1_000, now)
    limit.looked("many", 10_000, now)
    rest = limit.rest("many", now)
    assert rest > 1.0 and limit.rest("own", now) == 0.0
    assert limit.rest("many", now + rest) < 1e-6
    limit.looked("own", 0, now + 3600.0)
    assert limit.rest("many", now + 3600.0) == 0.0


def test_looks_take_a_tenth_of_the_time() -> None:
    """However often they are asked for: a look at a thousand pods takes 14 ms."""
    limit, looks = LookLimit(), 0
    for tick in range(10_000):
        if limit.rest("many", tick / 100) <= 0.0:
            limit.looked("many", 1_000, tick / 100)
            looks += 1
    assert 500 < looks < 750


def test_long_specs_are_followed_by_a_rest() -> None:
    """Reading half a megabyte takes up to 20 ms, twice where a Workload has it, too; what people write takes nothing."""
    limit = LookLimit()
    for _ in range(1_000):
        limit.looked("usual", 3, 0.0, spec_bytes=16 << 10)
    assert limit.rest("usual", 0.0) == 0.0
    for _ in range(4):
        limit.looked("long", 0, 0.0, spec_bytes=500 << 10)
    assert 0.4 < limit.rest("long", 0.0) < 1.0
