"""Simulated time: jobs start once they are bound, end when they have run, and what is evicted comes again."""

from __future__ import annotations

from typing import Any

import pytest

from bench.simulated.job import SimulatedJob
from bench.simulated.world import Simulation, Speed, waits
from kube import objects
from scheduler.core.queueing.reservation import ReservePolicy
from scheduler.settings import SchedulerSettings


def node(name: str = "n1", cpu: int = 4) -> objects.Node:
    amounts: dict[str, Any] = {"cpu": cpu, "memory": "64Gi", "pods": 110}
    metadata = objects.Metadata(name=name, uid=name, labels={"kubernetes.io/hostname": name})
    return objects.Node(metadata, objects.NodeSpec(), objects.NodeStatus(amounts, amounts))


def job(name: str, at: float = 0.0, runs: float = 10.0, cpu: int = 4, **more: Any) -> SimulatedJob:
    return SimulatedJob(name, at, runs, (("cpu", cpu),), **more)


def test_one_after_the_other() -> None:
    """The second has to wait for the first."""
    world = Simulation([node()], ())
    assert world.run([job("a"), job("b", at=1.0)]) == pytest.approx(20.0)
    assert [each.started for each in world.times.values()] == [0.0, pytest.approx(10.0)]
    assert list(waits(world.times.values())) == [0.0, pytest.approx(9.0)]


def test_a_gang_starts_whole() -> None:
    world = Simulation([node("n1"), node("n2")], ())
    world.run([job("a", runs=5.0), job("g", at=1.0, pods=2)])
    assert world.times["default/g"].started == pytest.approx(5.0)


def test_what_is_evicted_comes_again() -> None:
    """All it did is lost."""
    world = Simulation([node()], ())
    end = world.run([job("low", runs=10.0), job("high", at=4.0, runs=3.0, priority=1000)])
    low = world.times["default/low"]
    assert (low.evictions, world.lost_seconds) == (1, pytest.approx(16.0))
    assert low.ended == end and end >= 17.0


def test_what_is_evicted_tells_nothing_of_how_long_work_runs() -> None:
    """Its pods say that they were disrupted, as they do where a scheduler evicts."""
    world = Simulation([node()], ())
    world.run([job("low", runs=10.0), job("high", at=4.0, runs=3.0, priority=1000)])
    runs = world.cache.runs.durations
    for number in range(8):
        runs.learn((("all",),), 100.0 + number)
    known = runs.of((("all",),))
    assert known is not None and known.seconds[:2] == (pytest.approx(3.0), pytest.approx(10.0))


def test_a_client_with_a_cap() -> None:
    """So many bindings at once, then so many a second."""
    world = Simulation([node(cpu=100)], (), speed=Speed(2.0, burst=3))
    world.run([job(f"j{n}", cpu=1, runs=0.1) for n in range(7)])
    starts = sorted(each.started or 0.0 for each in world.times.values())
    assert starts[:3] == [0.0] * 3
    assert starts[3:] == [pytest.approx(at, abs=0.01) for at in (0.5, 1.0, 1.5, 2.0)]


def test_it_ends_at_the_second_that_is_named() -> None:
    world = Simulation([node()], ())
    world.run([job("a", runs=100.0), job("b", at=1.0)], until=50.0)
    assert world.times["default/a"].ended is None and world.times["default/b"].started is None


def longest_waits(settings: SchedulerSettings) -> dict[str, float]:
    """Of an hour of batch work: gangs of four whole nodes of eight, under a stream of small pods that leaves no node
    empty. By kind, of all that came 15 minutes before its end, started or not.
    """
    batch: dict[str, Any] = {"priority": 5500, "labels": (("koordinator.sh/qosClass", "BE"),)}
    nodes = [node(f"n{number}", 8) for number in range(8)]
    small = [
        job(
            f"s{number}",
            at=number * 3.6,
            runs=90.0 + number % 60,
            cpu=1 + number % 2,
            namespace=f"team-{number % 3}",
            **batch,
        )
        for number in range(1_000)
    ]
    gangs = [
        job(f"g{number}", at=300.0 + number * 400.0, runs=120.0, cpu=8, pods=4, namespace="large", **batch)
        for number in range(8)
    ]
    world = Simulation(nodes, (), settings)
    world.run([*small, *gangs], until=3_600.0)
    found: dict[str, float] = {}
    for each in world.times.values():
        if each.job.submit_seconds < 2_700.0:
            end = 3_600.0 if each.started is None else each.started
            kind = each.job.name[0]
            found[kind] = max(found.get(kind, 0.0), end - each.job.submit_seconds)
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nobody_starves_in_an_hour_of_churn() -> None:
    """Neither the gangs nor the small pods wait longer than a few run times, which room kept for the head sees to."""
    longest = longest_waits(SchedulerSettings())
    assert longest["g"] < 400.0 and longest["s"] < 400.0
    without = SchedulerSettings(reservation=ReservePolicy(most_reservations=0))
    assert longest_waits(without)["g"] > 900.0


def test_of_a_pod_the_newest_word_alone_is_written() -> None:
    """And none of one that is about to be bound: at one write a second the second job is bound on time."""
    world = Simulation([node(cpu=8)], (), speed=Speed(1.0, burst=1))
    words: list[str] = []
    world._tell("uid", lambda now: words.append("first"), 0.0)
    world._tell("uid", lambda now: words.append("second"), 0.0)
    world.run([job("a", runs=4.0)])
    assert words == ["second"]
