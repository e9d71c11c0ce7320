"""The decaying histogram: where buckets start, what a half-life does, what a percentile says."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.observe.histogram import CPU_MILLIS, MEMORY_BYTES, Buckets, Histogram, exponential

MIB = 1 << 20
LOW, HIGH = 10.0, 1000.0  # milli-CPU: bucket 0 ends at 25, bucket 22 is [962.6, 1035.8)
LOW_END = CPU_MILLIS[1]
HIGH_END = CPU_MILLIS[23]
DAY = 86_400.0


def filled(*samples: tuple[float, float], half_life: float = 100.0) -> Histogram:
    """A CPU histogram of (value, time) samples."""
    found = Histogram()
    for value, now in samples:
        found = found.add(CPU_MILLIS, half_life, value, now)
    return found


def test_bucket_starts_follow_the_formula() -> None:
    """first x (1.05^n - 1) / 0.05: 25, 25 + 26.25, + 27.5625, ...; up to the largest amount and no further."""
    assert CPU_MILLIS[:5] == pytest.approx((0, 25, 51.25, 78.8125, 107.753125))
    assert MEMORY_BYTES[:4] == pytest.approx((0, 5 * MIB, 10.25 * MIB, 15.7625 * MIB))
    assert (len(CPU_MILLIS), len(MEMORY_BYTES)) == (158, 205)
    assert CPU_MILLIS[-2] < 1_024_000 <= CPU_MILLIS[-1] and MEMORY_BYTES[-2] < 1 << 41 <= MEMORY_BYTES[-1]
    # first 100 up to 300: starts 0, 100, 205, 315.25
    assert exponential(100, 300) == pytest.approx((0, 100, 205, 315.25))


VALUES: dict[str, tuple[Buckets, float, int]] = {
    "nothing used": (CPU_MILLIS, 0, 1),
    "just below the first bound": (CPU_MILLIS, 24, 1),
    "on the bound: the next bucket": (CPU_MILLIS, 25, 2),
    "second bucket": (CPU_MILLIS, 51, 2),
    "third bucket": (CPU_MILLIS, 52, 3),
    "100m lies in [78.8, 107.8)": (CPU_MILLIS, 100, 4),
    "1 core lies in [962.6, 1035.8)": (CPU_MILLIS, 1000, 23),
    "beyond the last start: that start": (CPU_MILLIS, 5_000_000, 157),
    "below zero counts as nothing": (CPU_MILLIS, -1, 1),
    "6 MiB lies in [5, 10.25)": (MEMORY_BYTES, 6 * MIB, 2),
    "4 TiB": (MEMORY_BYTES, 4 << 40, 204),
}


@pytest.mark.parametrize(("buckets", "value", "end"), VALUES.values(), ids=VALUES.keys())
def test_a_percentile_is_the_end_of_its_bucket(buckets: Buckets, value: float, end: int) -> None:
    """With one sample every percentile is the start of the bucket after it."""
    found = Histogram().add(buckets, 100.0, value, 0.0)
    assert {found.percentile(buckets, ratio) for ratio in (0.0, 0.5, 0.95, 1.0)} == {buckets[end]}


PERCENTILES: dict[str, tuple[list[tuple[float, float]], float, float]] = {
    # samples (value, time), ratio, expected
    "19 of 20 are exactly 95 %": ([(LOW, 0)] * 19 + [(HIGH, 0)], 0.95, LOW_END),
    "18 of 20 are less": ([(LOW, 0)] * 18 + [(HIGH, 0)] * 2, 0.95, HIGH_END),
    "the order does not matter": ([(HIGH, 0)] * 2 + [(LOW, 0)] * 18, 0.95, HIGH_END),
    # weights 1 and 2: the old sample is 1/3 of the whole
    "one half-life later, just under a third": ([(LOW, 0), (HIGH, 100)], 0.33, LOW_END),
    "one half-life later, just over a third": ([(LOW, 0), (HIGH, 100)], 0.34, HIGH_END),
    # weights 3 x 1 and 4: the old ones are 3/7 = 0.4286
    "two half-lives later, under 3/7": ([(LOW, 0)] * 3 + [(HIGH, 200)], 0.42, LOW_END),
    "two half-lives later, over 3/7": ([(LOW, 0)] * 3 + [(HIGH, 200)], 0.43, HIGH_END),
    # 2^0.5 = 1.4142: the old one is 1/2.4142 = 0.4142
    "half a half-life later, under": ([(LOW, 0), (HIGH, 50)], 0.41, LOW_END),
    "half a half-life later, over": ([(LOW, 0), (HIGH, 50)], 0.42, HIGH_END),
    # exponent 101 moves the reference to 10100; 2^99.9 x 2^-101 = 0.4665 against 1: 0.3181
    "moving the reference keeps the shape, under": ([(LOW, 9990), (HIGH, 10_100)], 0.31, LOW_END),
    "moving the reference keeps the shape, over": ([(LOW, 9990), (HIGH, 10_100)], 0.32, HIGH_END),
    "at exponent 100 an old sample is still there": ([(LOW, 0), (HIGH, 10_000)], 0.0, LOW_END),
    "what faded below 0.0001 is dropped": ([(LOW, 0), (HIGH, 10_001)], 0.0, HIGH_END),
    "a sample late by some time weighs less": ([(HIGH, 100), (LOW, 0)], 0.34, HIGH_END),
}


@pytest.mark.parametrize(("samples", "ratio", "expected"), PERCENTILES.values(), ids=PERCENTILES.keys())
def test_weights(samples: list[tuple[float, float]], ratio: float, expected: float) -> None:
    """A sample loses half of its weight with each half-life; only shares matter."""
    assert filled(*samples).percentile(CPU_MILLIS, ratio) == expected


def test_an_empty_histogram_knows_nothing() -> None:
    """0, as Koordinator's; nobody trusts it, since a model is made with its first sample."""
    assert Histogram().percentile(CPU_MILLIS, 0.95) == 0.0


def test_the_reference_is_the_nearest_multiple_of_the_half_life() -> None:
    """1 700 000 000 / 43 200 = 39 351.85, so the 39 352nd, 6 400 s ahead; Go's time rounds to the same instants."""
    found = filled((LOW, 1_700_000_000.0), half_life=43_200.0)
    assert found.reference_seconds == 39_352 * 43_200
    assert array("d", found.weights)[0] == pytest.approx(2 ** (-6400 / 43_200))


def test_ten_years_never_overflow() -> None:
    """Weights stay finite, memory is bounded, and the last days decide."""
    found = filled(*((HIGH if day < 3640 else LOW, day * DAY) for day in range(3650)), half_life=43_200.0)
    weights = array("d", found.weights)
    assert all(math.isfinite(weight) for weight in weights) and len(weights) <= len(CPU_MILLIS)
    # ten days of LOW: HIGH's share is 2^-20
    assert found.percentile(CPU_MILLIS, 0.95) == LOW_END


@given(st.lists(st.integers(-10, 10_000_000), min_size=1, max_size=30))
def test_memory_is_bounded_and_what_we_make_is_sound(values: list[int]) -> None:
    """No order of samples makes more than all buckets."""
    found = filled(*((value, 60.0 * at) for at, value in enumerate(values)))
    assert found.sound(CPU_MILLIS) and len(found.weights) <= 8 * len(CPU_MILLIS)


@given(
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 20)), min_size=1, max_size=30),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_percentiles_rise_with_their_ratio(samples: list[tuple[int, int]], one: float, other: float) -> None:
    """The 98th is never below the 95th."""
    found = filled(*((value, 100.0 * step) for value, step in samples))
    assert found.percentile(CPU_MILLIS, min(one, other)) <= found.percentile(CPU_MILLIS, max(one, other))


@given(
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 20)), min_size=1, max_size=30),
    st.integers(0, 200_000),
    st.sampled_from((0.5, 0.9, 0.95, 0.98, 1.0)),
)
def test_more_use_never_lowers_a_percentile(samples: list[tuple[int, int]], more: int, ratio: float) -> None:
    """One sample raised, all else equal. Times are whole half-lives, so all weights and sums are exact."""
    timed = [(value, 100.0 * step) for value, step in samples]
    raised = [(timed[0][0] + more, timed[0][1]), *timed[1:]]
    assert filled(*timed).percentile(CPU_MILLIS, ratio) <= filled(*raised).percentile(CPU_MILLIS, ratio)


UNSOUND: dict[str, Histogram] = {
    "empty": Histogram(),
    "cut inside a number": Histogram(0.0, 0, b"1234567"),
    "no weight at all": Histogram(0.0, 0, array("d", [0.0]).tobytes()),
    "negative": Histogram(0.0, 0, array("d", [1.0, -1.0]).tobytes()),
    "not a number": Histogram(0.0, 0, array("d", [1.0, math.nan]).tobytes()),
    "infinite": Histogram(0.0, 0, array("d", [math.inf]).tobytes()),
    "before the first bucket": Histogram(0.0, -1, array("d", [1.0]).tobytes()),
    "beyond the last bucket": Histogram(0.0, 157, array("d", [1.0, 1.0]).tobytes()),
}


@pytest.mark.parametrize("found", UNSOUND.values(), ids=UNSOUND.keys())
def test_what_is_no_histogram_is_told_apart(found: Histogram) -> None:
    """Read back from a damaged file, it must not become a peak."""
    assert not found.sound(CPU_MILLIS)
    assert Histogram(0.0, 157, array("d", [1.0]).tobytes()).sound(CPU_MILLIS)
