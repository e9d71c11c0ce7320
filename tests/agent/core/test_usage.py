"""Rates are never negative or absurd, and averages cover what they say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.observation import Absence, CgroupSample, Missing, NodeSample, Observation
from agent.core.parse import CpuThrottling
from agent.core.usage import NodeUsage, UsageState, Window, Windows, measure
from model.report import Usage

WINDOWS = Windows(10.0, 300.0)
SECOND = 1_000_000_000


def run(observations: list[Observation]) -> tuple[UsageState, NodeUsage | None]:
    state, usage = UsageState(), None
    for seen in observations:
        state, usage = measure(state, seen, WINDOWS)
    return state, usage


def at(build: Any, t: float, *, node: float = 0, pods: float = 0, be: float = 0, **more: Any) -> Observation:
    """Counters in CPU seconds."""
    return build.seen(
        t,
        node_sample=NodeSample(int(node * SECOND), 100, 2),
        kubepods=CgroupSample(int(pods * SECOND), 60),
        best_effort=CgroupSample(int(be * SECOND), 10),
        **more,
    )


def test_first_pass_only_primes(build: Any) -> None:
    """One reading of a counter says nothing."""
    assert run([at(build, 0, node=5)])[1] is None


def test_rates_and_differences(build: Any) -> None:
    """Over 2 s: node 1.5 CPU, pods 1.0, best effort 0.75 → online 0.25, system 0.5."""
    _, usage = run([at(build, 0), at(build, 2, node=3, pods=2, be=1.5)])
    assert usage is not None
    assert usage.node.last == Usage(1500, 100)
    assert usage.best_effort.last == Usage(750, 10)
    assert usage.online.last == Usage(250, 50)
    assert usage.system.last == Usage(500, 40)
    assert usage.live_seconds == 2


def test_unlisted_pods_count_as_system(build: Any) -> None:
    """Koordinator's system usage is everything outside the listed pods."""
    pods = {"a": CgroupSample(0, 20)}
    later = {"a": CgroupSample(SECOND // 2, 20)}
    _, usage = run([build_with(build, 0, pods), build_with(build, 1, later, node=1.0, kubepods=1.0)])
    assert usage is not None
    assert usage.unlisted_system.last.cpu_millis == 500
    assert usage.system.last.cpu_millis == 0
    assert usage.pods["a"].last == Usage(500, 20)


def build_with(build: Any, t: float, pods: dict[str, Any], *, node: float = 0, kubepods: float = 0) -> Observation:
    return build.seen(
        t,
        node_sample=NodeSample(int(node * SECOND), 100, 2),
        kubepods=CgroupSample(int(kubepods * SECOND), 60),
        best_effort=CgroupSample(0, 0),
        pods=pods,
    )


def test_counter_reset_yields_no_rate(build: Any) -> None:
    """A re-created cgroup keeps the last known rate for one pass and then goes on from the new counter."""
    passes = [at(build, 0, node=10, pods=10), at(build, 1, node=11, pods=10.5), at(build, 2, node=12, pods=0.1)]
    _, usage = run(passes)
    assert usage is not None and usage.online.last.cpu_millis == 500
    _, usage = run([*passes, at(build, 3, node=13, pods=0.4)])
    assert usage is not None and usage.online.last.cpu_millis == 300


def test_a_pass_too_soon_changes_nothing(build: Any) -> None:
    """A tick woken by the brake does not make a rate out of 100 ms of 10 ms clock ticks."""
    state, usage = run([at(build, 0), at(build, 1, node=1, pods=0.5)])
    after, again = measure(state, at(build, 1.1, node=9, pods=9), WINDOWS)
    assert after == state and again is not None and usage is not None
    assert again.online == usage.online


@pytest.mark.parametrize("part", ["node_sample", "kubepods", "best_effort"])
def test_unreadable_root_is_no_usage(build: Any, part: str) -> None:
    """Without node, pods or best effort nothing is claimed; the next good pass goes on."""
    gone = Missing("/x", Absence.UNREADABLE, "garbage")
    state, usage = run([at(build, 0), at(build, 1, node=1, pods=1), build.seen(2, **{part: gone})])
    assert usage is None
    _, usage = measure(state, at(build, 3, node=3, pods=3), WINDOWS)
    assert usage is not None


def test_a_vanished_pod_is_forgotten(build: Any) -> None:
    """A pod that is no longer listed leaves no state behind."""
    pods = {"a": CgroupSample(0, 1)}
    state, _ = run(
        [build_with(build, 0, pods), build_with(build, 1, {"a": CgroupSample(5, 1)}), build_with(build, 2, {})]
    )
    assert "a" not in state.tracks


def test_throttled_ratio(build: Any) -> None:
    """Throttled periods of all periods since the last pass."""

    def pods(periods: int, throttled: int) -> dict[str, Any]:
        return {"a": CgroupSample(0, 1, CpuThrottling(periods, throttled))}

    _, usage = run([build_with(build, 0, pods(10, 1)), build_with(build, 1, pods(20, 6))])
    assert usage is not None and usage.throttled_ratio == {"a": 0.5}


def test_window_average_is_time_weighted() -> None:
    """2 s at 100 and 1 s at 400 average 200; what is older than the span is gone."""
    window = Window(10.0).push(2, Usage(100, 0), 2).push(3, Usage(400, 0), 1)
    assert window.average == Usage(200, 0)
    assert window.push(30, Usage(50, 0), 1).average == Usage(50, 0)


@given(st.lists(st.tuples(st.floats(0.01, 20), st.integers(0, 64_000)), min_size=1, max_size=200))
def test_window_stays_small_and_between_its_values(steps: list[tuple[float, int]]) -> None:
    """Fixed memory whatever comes, and an average never leaves the range of what was seen."""
    window, now = Window(10.0), 0.0
    for seconds, cpu in steps:
        now += seconds
        window = window.push(now, Usage(cpu, cpu), seconds)
        assert len(window.buckets) <= 12
    low, high = min(cpu for _, cpu in steps), max(cpu for _, cpu in steps)
    assert low <= window.average.cpu_millis <= high


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 10**13), st.integers(0, 10**13)), max_size=30))
def test_rates_never_go_negative(build: Any, steps: list[tuple[float, int, int]]) -> None:
    """Clock steps, resets and nonsense counters never give a negative rate."""
    state, now = UsageState(), 0.0
    for step, node, pods in steps:
        now += step
        samples = {"kubepods": CgroupSample(pods, 1), "best_effort": CgroupSample(pods // 2, 1)}
        state, usage = measure(state, build.seen(now, node_sample=NodeSample(node, 1, 2), **samples), WINDOWS)
        if usage:
            for part in (usage.node, usage.system, usage.online, usage.best_effort):
                assert part.last.cpu_millis >= 0 and part.live.cpu_millis >= 0


def test_a_long_gap_does_not_outweigh_what_comes_after(build: Any) -> None:
    """Ten quiet minutes without a reading, then eight busy seconds: the averages are the busy ones, not the gap's."""
    passes = [at(build, 0), at(build, 1, pods=0.1, node=0.1), at(build, 601, pods=0.2, node=0.2)]
    passes += [at(build, 601 + s, pods=0.2 + 1.5 * s, node=0.2 + 1.5 * s) for s in range(1, 9)]
    _, usage = run(passes)
    assert usage is not None
    assert usage.online.live.cpu_millis > 1200 and usage.live_seconds < 10
    _, usage = run(passes[:3])
    assert usage is not None and usage.live_seconds <= 1
