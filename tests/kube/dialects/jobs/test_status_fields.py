"""Times and counts of statuses."""

from __future__ import annotations

from kube.dialects.jobs.status_fields import counts_of, phase_of, time_text, without_nothing
from model.job.status import JobPhase, TaskCounts


def test_times() -> None:
    assert time_text(0.0) is None and time_text(1_700_000_000.9) == "2023-11-14T22:13:20Z"


def test_counts_that_nobody_knows_are_left_out() -> None:
    assert counts_of({"running": 2, "dancing": 3}) == TaskCounts(running=2)


def test_phases() -> None:
    assert phase_of("Queued") is JobPhase.QUEUED and phase_of("") is phase_of("Dancing") is JobPhase.PENDING


def test_nothing_is_left_out() -> None:
    assert without_nothing({"a": None, "b": {"c": None, "d": 0}, "e": []}) == {"b": {"d": 0}, "e": []}
