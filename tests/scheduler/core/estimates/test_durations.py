"""Past runs: the narrowest kind with enough of them, the rest of what ran so long already, and bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.estimates.durations import ENOUGH_RUNS, Durations, PastRuns, with_running

NARROW, WIDE = ("train",), ("queue",)


def test_the_narrowest_kind_that_has_enough() -> None:
    """With too few runs of it the wider one answers, then it does."""
    found = Durations()
    for number in range(ENOUGH_RUNS - 1):
        found.learn((NARROW, WIDE), float(number))
    found.learn((WIDE,), 100.0)
    assert (told := found.of((NARROW, WIDE))) is not None and told.kind == WIDE
    found.learn((NARROW,), 50.0)
    assert (told := found.of((NARROW, WIDE))) is not None and told.kind == NARROW
    assert told.seconds == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 50.0)
    assert found.of((("other",),)) is None


@pytest.mark.parametrize(
    ("age", "quantile", "end"),
    [
        (0.0, 0.5, 25.0),
        (0.0, 0.0, 10.0),
        (0.0, 1.0, 40.0),
        (15.0, 0.5, 30.0),
        (30.0, 0.5, 40.0),
        (40.0, 0.5, 81.0),
    ],
)
def test_the_end_of_what_ran_so_long(age: float, quantile: float, end: float) -> None:
    """Of those that ran longer alone; as long again where none did."""
    assert PastRuns(NARROW, (10.0, 20.0, 30.0, 40.0)).end_after(age, quantile) == pytest.approx(end)


UNFINISHED: dict[str, tuple[tuple[float, ...], float, float, float, float | None]] = {
    "shorter ones say nothing of longer ones": ((5.0, 9.0), 12.0, 0.5, 30.0, 30.0),
    "two of the five that are longer are longer than all that ended": ((100.0, 100.0), 15.0, 0.5, 40.0, 40.0),
    "what is past the longest that ended runs as long again": ((100.0, 100.0), 15.0, 0.9, 81.0, None),
    "so does what outlasted all": ((100.0,), 50.0, 0.0, 101.0, None),
    "one of forty ended first": ((50.0,) * 36, 0.0, 0.0125, 10.0, 10.0),
}


@pytest.mark.parametrize(("outlasted", "age", "quantile", "end", "known"), UNFINISHED.values(), ids=UNFINISHED)
def test_what_did_not_end_counts_as_long_as_it_ran(
    outlasted: tuple[float, ...], age: float, quantile: float, end: float, known: float | None
) -> None:
    """By Kaplan and Meier's product limit; whose end is past all that ended is not known to end."""
    runs = PastRuns(NARROW, (10.0, 20.0, 30.0, 40.0), outlasted)
    assert runs.end_after(age, quantile) == pytest.approx(end)
    assert runs.known_end(age, quantile) == (None if known is None else pytest.approx(known))


@given(
    st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=30),
    st.lists(st.floats(0.0, 2000.0), max_size=30),
    st.floats(0.0, 3000.0),
)
def test_ends_come_after_the_age_and_later_with_the_quantile(
    ended: list[float], outlasted: list[float], age: float
) -> None:
    runs = PastRuns(NARROW, tuple(sorted(ended)), tuple(sorted(outlasted)))
    ends = [runs.end_after(age, part / 10) for part in range(11)]
    assert ends == sorted(ends) and ends[0] > age
    without = PastRuns(NARROW, runs.seconds)
    assert all(end >= without.end_after(age, part / 10) - 1e-6 for part, end in enumerate(ends))


def test_what_was_cut_short_is_kept_apart() -> None:
    """It counts to no kind's enough."""
    found = Durations()
    for number in range(ENOUGH_RUNS):
        found.learn((NARROW,), 5.0 + number, cut=True)
    assert found.of((NARROW,)) is None
    for number in range(ENOUGH_RUNS):
        found.learn((NARROW,), float(number))
    told = found.of((NARROW,))
    assert told is not None and (told.seconds[-1], told.outlasted[0]) == (7.0, 5.0)
    assert with_running(told, (1.0, 9.5)).outlasted == (1.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.5, 10.0, 11.0, 12.0)


def test_memory_is_bounded() -> None:
    """The newest runs of a kind, and the kinds that were heard of last."""
    found = Durations(most_kinds=10, most_runs=8)
    for number in range(1000):
        found.learn(((f"kind{number}",), WIDE), float(number))
    assert len(found) == 10
    assert (told := found.of((WIDE,))) is not None and told.seconds == tuple(float(n) for n in range(992, 1000))
