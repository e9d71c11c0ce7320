"""What counts, what is left out, and when a target is met."""

from __future__ import annotations

import msgspec
import pytest

from bench.figures import (
    UNANSWERED,
    ClaimVerdict,
    ColocationRun,
    ColocationTarget,
    Interval,
    clean_runs,
    interval,
    is_clean,
    lacking,
    percentile_us,
    ratios,
    rotated,
)


def run(
    row: str = "alone", kind: str = "long", *, foreign_pct: float = 1.0, attempt: int = 0, **more: object
) -> ColocationRun:
    """A clean run of 100 requests."""
    made = ColocationRun(row, kind, attempt, 100, 0, 1000.0, 4000.0, 9000.0, 50.0, 98.0, 1.2, 700.0, foreign_pct)
    return msgspec.structs.replace(made, **more)


@pytest.mark.parametrize(("foreign_pct", "clean"), [(0.0, True), (7.0, True), (7.01, False)])
def test_clean_is_up_to_seven_percent(foreign_pct: float, clean: bool) -> None:
    """The limit itself is clean."""
    assert is_clean(foreign_pct) is clean and run(foreign_pct=foreign_pct).clean is clean


@pytest.mark.parametrize(
    ("latencies", "pct", "expected"),
    [
        ([], 99, None),
        ([5000], 50, 5.0),
        ([1000, 2000, 3000, 4000], 50, 2.0),
        ([n * 1000 for n in range(1, 101)], 99, 99.0),
        ([n * 1000 for n in range(1, 101)], 99.9, 100.0),
        ([1000] * 99 + [UNANSWERED], 99, 1.0),
        ([1000] * 98 + [UNANSWERED] * 2, 99, None),
    ],
    ids=["none", "one", "lower of two middles", "p99 of 100", "p99.9 of 100", "one lost", "two lost"],
)
def test_percentiles_are_of_nearest_rank(latencies: list[int], pct: float, expected: float | None) -> None:
    """A request without an answer is slower than any other, and has no latency."""
    assert percentile_us(latencies, pct) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([2.0], Interval(2.0, 2.0, 2.0)),
        ([3.0, 1.0, 2.0], Interval(1.0, 2.0, 3.0)),
        ([1.0, None, 2.0], Interval(1.0, 2.0, None)),
        ([None, None, 2.0], Interval(2.0, None, None)),
    ],
    ids=["none", "one", "three", "one endless", "endless median"],
)
def test_an_interval_is_lowest_median_highest(values: list[float | None], expected: Interval | None) -> None:
    """Endless ranks above every number."""
    assert interval(values) == expected


@pytest.mark.parametrize(
    ("over", "under", "expected"),
    [
        ([2.0, 6.0], [1.0, 2.0], Interval(2.0, 2.5, 3.0)),
        ([2.0, 6.0, 9.0], [1.0, 2.0], Interval(2.0, 2.5, 3.0)),
        ([None], [1.0], Interval(None, None, None)),
        ([1.0], [None], Interval(0.0, 0.0, 0.0)),
        ([1.0], [0.0], None),
        ([], [1.0], None),
    ],
    ids=["side by side", "more on one side", "endless", "against endless", "against nothing", "not measured"],
)
def test_ratios_go_run_by_run(over: list[float | None], under: list[float | None], expected: Interval | None) -> None:
    """Runs of one round share what else the machine did."""
    assert ratios(over, under) == expected


@pytest.mark.parametrize(
    ("measured", "limit", "at_most", "verdict"),
    [
        (None, 1.05, True, ClaimVerdict.UNKNOWN),
        (Interval(0.9, 1.05, 1.4), 1.05, True, ClaimVerdict.MET),
        (Interval(1.0, 1.06, 1.4), 1.05, True, ClaimVerdict.UNDECIDED),
        (Interval(1.06, 1.1, 1.4), 1.05, True, ClaimVerdict.MISSED),
        (Interval(None, None, None), 1.05, True, ClaimVerdict.MISSED),
        (Interval(90.0, 95.0, 99.0), 95.0, False, ClaimVerdict.MET),
        (Interval(90.0, 94.0, 99.0), 95.0, False, ClaimVerdict.UNDECIDED),
        (Interval(90.0, 93.0, 94.9), 95.0, False, ClaimVerdict.MISSED),
    ],
)
def test_a_verdict_follows_the_median_and_doubts_by_the_interval(
    measured: Interval | None, limit: float, at_most: bool, verdict: ClaimVerdict
) -> None:
    """Missed is said only where no run supports the target."""
    assert ColocationTarget("x", measured, limit, at_most).verdict is verdict


def test_dirty_runs_are_left_out_and_made_again() -> None:
    """A row is due until each of its kinds has enough clean runs."""
    runs = [run(), run(kind="short", foreign_pct=9.0), run("adaptive"), run("adaptive", attempt=1, foreign_pct=50.0)]
    assert [each.attempt for each in clean_runs(runs, "adaptive", "long")] == [0]
    wanted = {"alone": ("long", "short"), "adaptive": ("long",), "cpuset": ("long",)}
    assert lacking(runs, wanted, 1) == ["alone", "cpuset"]
    assert lacking(runs, wanted, 2) == ["alone", "adaptive", "cpuset"]


@pytest.mark.parametrize(
    ("rows", "turn", "expected"),
    [([], 3, []), (["a", "b", "c"], 0, ["a", "b", "c"]), (["a", "b", "c"], 4, ["b", "c", "a"])],
)
def test_each_turn_begins_with_another_row(rows: list[str], turn: int, expected: list[str]) -> None:
    """All rows are there in each turn."""
    assert rotated(rows, turn) == expected
