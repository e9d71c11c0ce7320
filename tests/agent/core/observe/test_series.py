"""Statistics of node and system are Koordinator's to the integer, and a series never grows beyond its size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.observe.series import Series, aggregates, rank, spacing_ms
from model.report import Usage


def filled(values: list[tuple[int, int]], step_ms: int = 1000, start_ms: int = 0) -> Series:
    series = Series()
    for index, (cpu, memory) in enumerate(values):
        series = series.push(start_ms + index * step_ms, Usage(cpu, memory))
    return series


@pytest.mark.parametrize(
    ("count", "p50", "p90", "p95", "p99"),
    [
        # index = max(trunc(count x p) - 1, 0)
        (1, 0, 0, 0, 0),
        (2, 0, 0, 0, 0),  # 2 x 0.99 = 1.98 → 1 - 1
        (10, 4, 8, 8, 8),  # 9.5 and 9.9 → 9 - 1
        (300, 149, 269, 284, 296),
        (1800, 899, 1619, 1709, 1781),
    ],
)
def test_rank(count: int, p50: int, p90: int, p95: int, p99: int) -> None:
    """The percentile's place among sorted values, by Koordinator's rule."""
    assert [rank(count, p) for p in (0.5, 0.9, 0.95, 0.99)] == [p50, p90, p95, p99]


def test_rank_multiplies_in_single_precision() -> None:
    """In single precision 0.57 x 100 is 57, in double 56.99…: the former counts, as in Go."""
    assert int(0.57 * 100) == 56
    assert rank(100, 0.57) == 56


def test_statistics_by_hand() -> None:
    """Ten samples 100, 200 … 1000 in any order: mean 550, p50 the 5th, p90, p95 and p99 the 9th. CPU and memory apart."""
    cpu = [700, 100, 1000, 300, 200, 600, 400, 900, 500, 800]
    series = filled([(value, 10_000 - value) for value in cpu])
    (found,) = aggregates(series, (10.0,), 9000)
    assert found.duration_seconds == 10.0
    assert found.statistics == {
        "avg": Usage(550, 9450),
        "p50": Usage(500, 9400),
        "p90": Usage(900, 9800),
        "p95": Usage(900, 9800),
        "p99": Usage(900, 9800),
    }


def test_mean_is_cut_to_an_integer() -> None:
    """Koordinator cuts: (1 + 2 + 2) / 3 is 1."""
    (found,) = aggregates(filled([(1, 1), (2, 2), (2, 2)]), (2.0,), 2000)
    assert found.statistics["avg"] == Usage(1, 1)


def test_only_the_window_counts() -> None:
    """300 s at 100 and then 300 s at 300: five minutes see 300, ten minutes the mean of both."""
    series = filled([(100, 0)] * 300 + [(300, 0)] * 300)
    five, ten = aggregates(series, (299.0, 600.0), 599_000)
    assert five.statistics["avg"].cpu_millis == five.statistics["p50"].cpu_millis == 300
    assert ten.statistics["avg"].cpu_millis == 200
    assert (ten.statistics["p50"].cpu_millis, ten.statistics["p90"].cpu_millis) == (100, 300)


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (0, ()),
        (1, ()),
        (150, ()),  # spans 149 s, half of 300 is 150
        (151, (300.0,)),
        (301, (300.0, 600.0)),
        (900, (300.0, 600.0)),
        (901, (300.0, 600.0, 1800.0)),
    ],
)
def test_a_window_half_seen_is_not_told(samples: int, told: tuple[float, ...]) -> None:
    """Samples must span at least half of the window."""
    series = filled([(5, 5)] * samples)
    found = aggregates(series, (300.0, 600.0, 1800.0), samples * 1000)
    assert tuple(aggregate.duration_seconds for aggregate in found) == told


def test_an_old_series_tells_nothing() -> None:
    """What lies outside the window is not told, however much there is of it."""
    assert aggregates(filled([(5, 5)] * 400), (300.0,), 2_000_000) == ()


def test_a_series_is_bounded() -> None:
    """1,800 samples of 20 bytes; the oldest go first."""
    series = filled([(n, n) for n in range(2000)])
    assert len(series.samples) == 36_000
    (found,) = aggregates(series, (1800.0,), 1_999_000)
    assert found.statistics["p50"].cpu_millis == 200 + 899


@pytest.mark.parametrize(("seconds", "ms"), [(0, 1000), (300, 1000), (1800, 1000), (3600, 2000)])
def test_spacing(seconds: float, ms: int) -> None:
    """A window longer than half an hour takes a sample less often."""
    assert spacing_ms(seconds) == ms


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**13)), min_size=2, max_size=60))
def test_statistics_lie_between_the_samples_and_rise(values: list[tuple[int, int]]) -> None:
    """Percentiles are samples, and a higher one is never smaller."""
    (found,) = aggregates(filled(values), (float(len(values)),), len(values) * 1000)
    cpu = [usage.cpu_millis for usage in found.statistics.values()]
    assert min(c for c, _ in values) <= min(cpu) and max(cpu) <= max(c for c, _ in values)
    percentiles = [found.statistics[name] for name in ("p50", "p90", "p95", "p99")]
    assert percentiles == sorted(percentiles, key=lambda usage: usage.cpu_millis)
    assert {usage.memory_bytes for usage in percentiles} <= {memory for _, memory in values}
