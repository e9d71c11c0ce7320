"""Kueue's scenario: its bound, and a part of it that is through within a tenth of that."""

from __future__ import annotations

import msgspec
import pytest

from bench.simulated.benchmark import hot_cohort, run
from bench.simulated.kueue_scenarios import BASELINE, Scenario, node
from bench.simulated.world import Simulation, Speed

WHOLE = Scenario("baseline", 5, 6, BASELINE)


def test_the_bound_of_the_published_scenario() -> None:
    """15,000 workloads, and 66 seconds of each cohort's quota."""
    assert (WHOLE.workloads, WHOLE.bound_seconds) == (15_000, pytest.approx(66.0))
    kinds = [type(each).__name__ for each in WHOLE.objects()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "Namespace": 1,
        "ResourceFlavor": 1,
        "ClusterQueue": 30,
        "LocalQueue": 30,
    }


def part(divisor: int, queues: int = 2) -> Scenario:
    sets = tuple(msgspec.structs.replace(each, count=each.count // divisor) for each in BASELINE)
    return Scenario("part", 1, queues, sets)


def test_all_are_through_and_quota_is_never_passed() -> None:
    """A small part of it, by a client that makes 20 writes a second: no faster than that lets it."""
    small = part(25)
    found = run(small, Speed(20.0, burst=1))
    assert found.seconds >= small.workloads / 20.0 - 1.0
    assert set(found.mean_wait_seconds) == {"small", "medium", "large"}
    assert run(small, Speed()).seconds < found.seconds


def test_nothing_is_done_twice_where_victims_end_soon() -> None:
    """Within a tenth of the bound with the published preemption, and large ones wait less than a medium one runs."""
    cohort = part(5, queues=6)
    found = run(cohort, Speed())
    assert found.ratio <= 1.1 and found.lost_seconds == 0.0
    assert found.mean_wait_seconds["large"] < 0.5


def test_a_hot_cohort() -> None:
    """Many queues of one cohort, all served."""
    found = run(hot_cohort(12), Speed())
    assert found.queues == 12 and found.ratio <= 1.5


def starts(
    scenario: Scenario, speed: Speed, *, narrowed: bool = True, lines: bool = True
) -> dict[str, tuple[float | None, int]]:
    """When each workload started, and how often it was evicted; with or without knowing that books which stand refuse as
    they did, and that those of a line fare alike.
    """
    simulation = Simulation([node()], scenario.objects(), speed=speed)
    if not narrowed:
        simulation.cycle.backlog.stands = lambda version: False
    if not lines:
        simulation.cycle.quotas.in_line = lambda queue: False  # type: ignore[method-assign]
    simulation.run(scenario.jobs())
    return {name: (times.started, times.evictions) for name, times in simulation.times.items()}


@pytest.mark.parametrize("preempts", [True, False])
def test_workloads_that_are_not_woken_would_have_been_refused(preempts: bool) -> None:
    """What becomes free in another cohort changes nothing for those whose own books stand: the same start, and then."""
    cohorts = msgspec.structs.replace(part(25), cohorts=3, preempts=preempts)
    capped = Speed(40.0, burst=10)
    assert starts(cohorts, capped) == starts(cohorts, capped, narrowed=False)


@pytest.mark.parametrize("scenario", [part(15, 4), msgspec.structs.replace(part(15, 4), preempts=False), hot_cohort(9)])
def test_those_of_a_line_would_have_been_refused(scenario: Scenario) -> None:
    """All of them tried one by one start at the same times, and nobody else goes for them."""
    assert starts(scenario, Speed()) == starts(scenario, Speed(), lines=False, narrowed=False)
