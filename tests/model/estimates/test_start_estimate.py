"""Words of an estimate: the start with its basis, and nothing where it is not known."""

from __future__ import annotations

import pytest

from model.estimates.start_estimate import (
    EstimateBasis,
    ExpectedEnd,
    StartEstimate,
    estimate_words,
    time_text,
    with_estimate,
    without_estimate,
)

NOON = 1_795_003_200.0  # 2026-11-18 12:00 UTC
BY_DEADLINE = ExpectedEnd("gang/ml/big", NOON + 600, EstimateBasis.DEADLINE)
BY_PAST = ExpectedEnd("pod/ml/a", NOON + 600, EstimateBasis.HISTORY, 37, "queue ml")


def estimate(*ends: ExpectedEnd, after: float = 600.0, basis: EstimateBasis | None = None) -> StartEstimate:
    """Made at noon."""
    told = basis or (ends[-1].basis if ends else EstimateBasis.ROOM)
    return StartEstimate(NOON + after, NOON, NOON + after, told, ends, made_seconds=NOON)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (estimate(BY_DEADLINE), "12:10 UTC, after gang/ml/big ends (by its deadline)"),
        (estimate(BY_PAST), "12:10 UTC, after pod/ml/a ends (by 37 past runs of queue ml)"),
        (
            estimate(BY_DEADLINE, BY_PAST),
            "12:10 UTC, after 2 jobs end, pod/ml/a among them (by 37 past runs of queue ml)",
        ),
        (estimate(BY_PAST, BY_DEADLINE), "12:10 UTC, after gang/ml/big ends (by its deadline)"),
        (estimate(), "12:10 UTC, as there is room"),
        (estimate(BY_DEADLINE, after=7_390.0), "14:05 UTC, after gang/ml/big ends (by its deadline)"),
    ],
)
def test_words(found: StartEstimate, words: str) -> None:
    """To a minute, far away to five; the end that it follows, and what tells that."""
    assert estimate_words(found) == f"; expected to start about 2026-11-18 {words}"


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert estimate_words(StartEstimate(why="nothing tells")) == ""


@pytest.mark.parametrize("words", ["", None, estimate_words(estimate(BY_DEADLINE))])
def test_a_message_with_and_without_them(words: str | None) -> None:
    """The one is found in the other again."""
    told = with_estimate("queue ml lacks quota", words)
    assert told.startswith("queue ml lacks quota") and bool(words) == (told != "queue ml lacks quota")
    assert without_estimate(told) == "queue ml lacks quota"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01 00:00 UTC"),
        (951_782_400.0, "2000-02-29 00:00 UTC"),
        (NOON, "2026-11-18 12:00 UTC"),
        (4_107_542_399.0, "2100-02-28 23:59 UTC"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    """Leap years, and the one that is none."""
    assert time_text(seconds) == text
