"""Use over time."""

from __future__ import annotations

from fractions import Fraction

import pytest
from queue_builders import CPU, GPU

from scheduler.core.queues.shares import Share
from scheduler.core.queues.usage_history import UsageHistory

HOUR = 3600.0


def night() -> UsageHistory:
    """A used all of 100 CPUs from 0 to 8 o'clock, B nothing; half-life 4 h."""
    history = UsageHistory(4 * HOUR)
    history.observe({}, 0.0)
    history.observe({"a": {CPU: 100}}, 0.0)
    history.observe({"a": {CPU: 100}}, 4 * HOUR)
    history.observe({"a": {CPU: 0}, "b": {CPU: 0}}, 8 * HOUR)
    return history


def test_a_use_counts_half_after_a_half_life() -> None:
    """And what is used meanwhile comes in as it goes out."""
    history = night()
    assert history.average("a")[CPU] == pytest.approx(75.0)
    history.observe({"b": {CPU: 100}}, 8 * HOUR)
    history.observe({}, 12 * HOUR)
    assert history.average("a")[CPU] == pytest.approx(37.5)
    assert history.average("b")[CPU] == pytest.approx(50.0)


def test_who_ran_all_night_yields_in_the_morning() -> None:
    """Both use the same at this moment; the one that used nothing before has the smaller share."""
    history, totals = night(), {CPU: 100}
    history.observe({"a": {CPU: 10}, "b": {CPU: 10}}, 8 * HOUR + 1)
    ran, slept = (history.share(name, {CPU: 10}, totals).value for name in "ab")
    assert slept < Fraction(1, 100) < Fraction(7, 10) < ran


def test_what_is_placed_within_a_turn_counts_in_full() -> None:
    """So that a turn does not give one queue everything; what ends meanwhile counts no more."""
    history = UsageHistory(HOUR)
    history.observe({"a": {CPU: 10}}, 0.0)
    assert history.counted("a", {CPU: 14}) == {CPU: 14}
    assert history.counted("a", {CPU: 4, GPU: 1}) == {CPU: 4, GPU: 1}
    assert history.counted("new", {CPU: 3}) == {CPU: 3}


def test_steady_use_is_its_own_average() -> None:
    """From the first observation on: a restart begins with what it finds."""
    history = UsageHistory(HOUR)
    for hour in range(5):
        history.observe({"a": {CPU: 7, GPU: 2}}, hour * HOUR)
    assert history.average("a") == {CPU: 7.0, GPU: 2.0}
    assert history.share("a", {CPU: 7, GPU: 2}, {CPU: 100, GPU: 8}, weight=2) == Share(Fraction(1, 8), "nvidia.com/gpu")


def test_a_clock_that_goes_back_covers_nothing() -> None:
    """Until it passes the last time again."""
    history = UsageHistory(HOUR)
    history.observe({"a": {CPU: 8}}, 10 * HOUR)
    history.observe({}, 9 * HOUR)
    assert history.average("a") == {CPU: 8.0}
    history.observe({}, 11 * HOUR)
    assert history.average("a")[CPU] == pytest.approx(4.0)


def test_long_gone_is_forgotten() -> None:
    """A queue whose average is as good as nothing takes no memory."""
    history = UsageHistory(1.0)
    history.observe({"a": {CPU: 8}}, 0.0)
    history.observe({}, 0.0)
    history.observe({}, 60.0)
    assert history.average("a") == {}


def test_a_half_life_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="half_life_seconds must be above 0"):
        UsageHistory(0.0)
