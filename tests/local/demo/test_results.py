"""The words of the demonstration follow from its numbers, also where they are not in our favour."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from local.demo.load import LoadRequest, LoadResult
from local.demo.measure import QuotaCut
from local.demo.results import (
    ALONE,
    SUBLET,
    TODAY,
    Checks,
    Latency,
    PhaseResult,
    cut_told,
    latencies,
    offered_lines,
    others_told,
    spared,
    spoiled,
    table,
    verdict,
)


def phase(name: str, surge_p99: float | None = 20.0, cpu_pct: float = 40.0, batch: float | None = None) -> PhaseResult:
    whole = Latency(5.0, 18.0, 1000, 0)
    return PhaseResult(name, cpu_pct, whole, Latency(6.0, surge_p99, 500, 0), "SCHED_FIFO", batch, None)


def test_latency_is_split_at_the_surge_and_counts_the_unanswered() -> None:
    """By the moment a request was due, not when it was answered; one without an answer took the whole bound."""
    requests = [LoadRequest(1.0, 0.010), LoadRequest(7.9, 0.030), LoadRequest(8.0, 0.100), LoadRequest(9.0, None)]
    whole, surge = latencies(LoadResult("normal", requests), 8.0)
    assert whole == Latency(30.0, 5000.0, 4, 1)
    assert surge == Latency(100.0, 5000.0, 2, 1)


def test_the_table_has_a_row_a_phase_and_a_dash_where_nothing_was_measured() -> None:
    """The service alone has no batch work and no cut."""
    header, alone, today = table([phase(ALONE), phase(TODAY, batch=9.1)])
    assert len(header) == len(alone) == len(today)
    assert alone[5:] == ["-", "-", "-"]
    assert today[5] == "9.1"


@pytest.mark.parametrize(
    ("case", "today", "sublet", "batch", "expected"),
    [
        ("better", 200.0, 25.0, 5.0, "8.0 times shorter"),
        ("worse", 25.0, 200.0, 5.0, "NOT better"),
        ("equal", 25.0, 25.0, 5.0, "NOT better"),
        ("no requests", 25.0, None, 5.0, "could not be compared"),
        ("no batch work", 200.0, 25.0, 0.0, "cannot be compared"),
    ],
)
def test_the_verdict_says_what_was_measured(
    case: str, today: float, sublet: float | None, batch: float, expected: str
) -> None:
    """Better only where the numbers say so, and only where batch work ran in both."""
    phases = [phase(ALONE), phase(TODAY, today, batch=9.0), phase(SUBLET, sublet, batch=batch)]
    assert expected in verdict(phases)


@pytest.mark.parametrize(
    ("others", "expected"),
    [((0.0, 15.0), ""), ((3.0, 40.4), '(40 % in "+ batch by Sublet")'), ((20.0, 30.0), '(20 % in "service alone", 30')],
)
def test_other_work_that_spoils_the_numbers_is_named(others: tuple[float, float], expected: str) -> None:
    """Little of it is always there, and no cause to complain."""
    names = (ALONE, SUBLET)
    told = others_told([replace(phase(name), other_work_pct=pct) for name, pct in zip(names, others, strict=True)])
    assert expected in told if expected else told == ""


@pytest.mark.parametrize(
    ("others_pct", "seconds", "expected"),
    [
        (0.0, 16.0, False),
        (15.0, 16.0, False),
        (15.1, 16.0, True),
        (50.0, 4.0, False),
        (50.0, 5.0, True),
        (100.0, 2.0, False),
    ],
)
def test_a_phase_is_spoiled_once_calm_for_its_rest_would_not_help(
    others_pct: float, seconds: float, expected: bool
) -> None:
    """Of 16 s others may have 15 %, which is all CPUs for 2.4 s."""
    assert spoiled(others_pct, seconds, 16.0) is expected


def test_the_verdict_of_an_unfinished_demonstration_compares_nothing() -> None:
    """Phases that are missing are not made up."""
    assert "nothing to compare" in verdict([phase(ALONE)])


def test_the_offer_is_shown_second_by_second() -> None:
    """A dash where the node offered no batch-cpu."""
    measured = PhaseResult(SUBLET, 1.0, Latency(1, 1, 1, 0), Latency(1, 1, 1, 0), "normal", offered=(None, 0, 500))
    (line,) = offered_lines([measured])
    assert line.endswith(" - 0 500")


@pytest.mark.parametrize(
    ("case", "cut", "expected"),
    [
        ("cut", QuotaCut(0.141, 121286, 104044, 40000), "cut 141 ms after the surge, from 121286 to 104044 us"),
        ("from no limit", QuotaCut(0.141, -1, 104044, 40000), "from no limit to"),
        ("none", None, "not cut in the surge"),
    ],
)
def test_the_cut_in_words(case: str, cut: QuotaCut | None, expected: str) -> None:
    """When, from what, to what."""
    measured = PhaseResult(SUBLET, 1.0, Latency(1, 1, 1, 0), Latency(1, 1, 1, 0), "normal", cut=cut)
    assert expected in cut_told([measured])


@pytest.mark.parametrize(
    ("sublet", "today", "expected"),
    [(25.0, 200.0, True), (200.0, 25.0, False), (25.0, 25.0, False), (None, 25.0, False), (25.0, None, False)],
)
def test_a_service_that_is_slowed_as_much_as_beside_burstable_pods_was_not_spared(
    sublet: float | None, today: float | None, expected: bool
) -> None:
    """Both ways must have been measured; the text has all three."""
    found, told = spared([phase(ALONE), phase(TODAY, today), phase(SUBLET, sublet)])
    assert found is expected
    assert told.startswith("p99 in the surge: + batch by Sublet ") and told.endswith("service alone 20.0 ms")
    assert spared([phase(ALONE)])[0] is False


@pytest.mark.parametrize("missing", ["gang_whole", "service_spared", "nothing_left"])
def test_one_failed_check_fails_the_demonstration(missing: str) -> None:
    """All three must be true."""
    seen = {name: name != missing for name in ("gang_whole", "service_spared", "nothing_left")}
    checks = Checks(seen["gang_whole"], "", seen["service_spared"], "", seen["nothing_left"], "")
    assert not checks.passed
