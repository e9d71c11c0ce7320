"""CPU time that /proc/stat has of no CPU is used all the same, and noise is no use."""

from __future__ import annotations

import itertools

import pytest

from agent.core.observe.unaccounted import AccountedTime, Unaccounted, accounted_ticks, followed, uptime_ns

SECOND = 1_000_000_000
STAT = b"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 100 100\ncpu7 1 1 1 1 1 1 1\nintr 5\n"


def after(passes: list[tuple[float, dict[int, float]]]) -> Unaccounted:
    """Each pass: seconds since boot, and those that each CPU tells of."""
    found = Unaccounted()
    for uptime, told in passes:
        by_cpu = {cpu: round(seconds * SECOND) for cpu, seconds in told.items()}
        found = followed(found, AccountedTime(round(uptime * SECOND), by_cpu))
    return found


def test_what_the_files_say() -> None:
    """All states of a CPU up to steal; guests' time is in user already."""
    assert accounted_ticks(STAT) == {0: 36, 7: 7}
    assert uptime_ns(b"69342.07 1000.00\n") == 69_342_070_000_000


@pytest.mark.parametrize("text", [b"", b"5\n", b"5.1 2.00\n", b"-5.10 2.00\n", b"5.10 2.00", b"x.10 2.00\n"])
def test_an_uptime_that_is_none(text: bytes) -> None:
    """Named, not guessed."""
    with pytest.raises(ValueError, match="is not /proc/uptime"):
        uptime_ns(text)


def test_work_between_the_ticks() -> None:
    """Two CPUs, one of which tells of 0.4 of each second: what is missing counts, less a second that noise may be."""
    passes = [(100.0 + second, {0: 50.0 + second, 1: 50.0 + 0.4 * second}) for second in range(61)]
    assert after(passes).total_ns == round(0.6 * 60 * SECOND) - SECOND


def test_noise_is_no_use() -> None:
    """Readings that are late by a tenth of a second now and then, for an hour."""
    late = itertools.cycle((0.0, 0.1, 0.0, -0.1, 0.05))
    passes = [(100.0 + second + next(late), {0: 1.0 * second, 1: 1.0 * second}) for second in range(3600)]
    assert after(passes).total_ns == 0


def test_ticks_that_counted_too_much_hide_nothing_later() -> None:
    """An hour in which the ticks met more work than there was is worth a second, not an hour of hidden work."""
    told = [(100.0 + second, {0: 2.0 * second}) for second in range(3600)]
    hidden = [(3700.0 + second, {0: 7200.0 + 0.5 * second}) for second in range(101)]
    assert after(told + hidden).total_ns >= 48 * SECOND


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param({0: 9.0}, {0: 10.0, 1: 500.0}, id="a CPU that came"),
        pytest.param({0: 9.0, 1: 500.0}, {0: 10.0}, id="a CPU that went"),
        pytest.param({0: 9.0, 1: 500.0}, {0: 10.0, 1: 3.0}, id="one that began again"),
        pytest.param({}, {}, id="none at all"),
    ],
)
def test_cpus_come_and_go(before: dict[int, float], now: dict[int, float]) -> None:
    """Only who was there all the time can be missed."""
    assert after([(100.0, before), (101.0, now)]).total_ns == 0
