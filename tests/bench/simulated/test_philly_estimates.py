"""Estimates on a real slice of the Philly trace: closer than any constant answer, and the error as it is defined.

philly_slice.csv.gz: jobs 3,200 to 3,799 of Microsoft's Philly trace (CC BY 4.0; Jeon et al., USENIX ATC 2019), as
published by msr-fiddle/philly-traces and cut by pkusys/ElasticFlow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.simulated import philly
from bench.simulated.job import SimulatedJob
from bench.simulated.philly_estimates import Told, errors, measure
from bench.simulated.world import JobTimes

SLICE = Path(__file__).with_name("philly_slice.csv.gz")


def job(name: str, submit: float) -> SimulatedJob:
    return SimulatedJob(name, submit, 10.0, (("cpu", 1),))


@pytest.mark.parametrize(
    ("told", "median", "unknown"),
    [
        ([Told("a", 100.0, 1100.0)], 0.0, 0),
        ([Told("a", 100.0, 1600.0)], 0.5, 0),
        ([Told("a", 1000.0, 1600.0)], 0.5, 0),
        ([Told("a", 100.0, 600.0)], 0.5, 0),
        ([Told("a", 100.0, None), Told("a", 200.0, 1100.0)], 0.0, 1),
    ],
    ids=["right", "too late", "too late, asked near the start", "too early", "not known at first"],
)
def test_the_error_is_a_part_of_the_whole_wait(told: list[Told], median: float, unknown: int) -> None:
    """Of a job that came at 100 and started at 1,100."""
    found = errors(told, {"a": JobTimes(job("a", 100.0), started=1100.0)}, 60.0)
    assert (found.median, found.unknown, found.jobs) == (pytest.approx(median), unknown, 1)


def test_what_does_not_count() -> None:
    """Jobs that never started or hardly waited, and answers after the start."""
    times = {
        "never": JobTimes(job("never", 0.0)),
        "soon": JobTimes(job("soon", 0.0), started=10.0),
        "a": JobTimes(job("a", 0.0), started=100.0),
    }
    found = errors([Told("never", 0.0, 1.0), Told("soon", 0.0, 9.0), Told("a", 101.0, 1.0)], times, 60.0)
    assert (found.jobs, found.answers) == (0, 0)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_slice_of_the_trace() -> None:
    """By past runs alone: the middle error is at most 30 % of the wait, where the usual wait as every answer is more."""
    found = measure("slice", philly.jobs(SLICE), 4, 900.0)
    assert found.waited >= 50 and found.all.answers >= 300
    assert found.all.median <= 0.3 < found.constant.median
    assert found.all.within > found.constant.within + 0.1
