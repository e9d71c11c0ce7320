"""The prediction's turn: when it learns, from what, and when it says something."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.core.observe.histogram import CPU_MILLIS, MEMORY_BYTES
from agent.core.observe.observation import CgroupSample, NodeSample
from agent.core.observe.prediction import NODE_KEY, SYSTEM_KEY, PredictionFacts, PredictionPolicy, PredictionState
from agent.core.observe.prediction_turn import learn_and_predict
from agent.core.observe.usage import UsageState, Windows, measure
from model.resources import CPU, MEMORY, ResourceVector

POLICY = PredictionPolicy(training_interval_seconds=60.0, cold_start_seconds=0.0)


def measured(build: Any, seconds: int = 3) -> UsageState:
    """After some seconds in which pod web used 400 milli-CPU and the node 600."""
    state = UsageState()
    for at in range(seconds):
        pods = {"uid-web": CgroupSample(at * 400_000_000, 1 << 20)}
        kubepods = CgroupSample(at * 400_000_000, 1 << 20)
        seen = build.seen(at, node_sample=NodeSample(at * 600_000_000, 2 << 20, 2), kubepods=kubepods, pods=pods)
        state, _ = measure(state, seen, Windows())
    return state


def about(build: Any, at: float) -> PredictionFacts:
    pod = build.pod(cpu=1000, memory=4 << 20)
    return PredictionFacts("n", ResourceVector({CPU: 2000, MEMORY: 8 << 30}), (pod,), at)


def test_without_node_or_pods_nothing_is_learned(build: Any) -> None:
    """And what was learned before stays."""
    state = PredictionState({}, 5.0)
    assert learn_and_predict(state, measured(build), None, POLICY) == (state, None)


def test_learning_follows_the_interval(build: Any) -> None:
    """At once at the start, then once an interval; each time from the last minute's peaks."""
    used, state = measured(build), PredictionState()
    trained = []
    for at in (1000.0, 1059.9, 1060.0, 1119.0, 1120.0):
        state, _ = learn_and_predict(state, used, about(build, at), POLICY)
        trained.append(state.trained_seconds)
    assert trained == [1000.0, 1000.0, 1060.0, 1060.0, 1120.0]
    assert {"uid-web", NODE_KEY} < set(state.models)


def test_pods_that_burst_in_turn_hide_no_system(build: Any) -> None:
    """Four batch pods use a CPU for eight seconds of each minute, one after the other: each one's peak is a CPU, and
    together with it the system and a host application would be left with nothing."""
    state, busy = UsageState(), [0.0] * 4
    for at in range(61):
        pods = {f"uid-{number}": CgroupSample(int(used * 1e9), 1 << 20) for number, used in enumerate(busy)}
        kubepods = CgroupSample(sum(each.cpu_ns for each in pods.values()), 4 << 20)
        seen = build.seen(
            at,
            node_sample=NodeSample(kubepods.cpu_ns + at * 700_000_000, 9 << 20, 4),
            kubepods=kubepods,
            best_effort=kubepods,
            pods=pods,
            host_applications={"daemon": CgroupSample(at * 400_000_000, 1 << 20)},
        )
        state, _ = measure(state, seen, Windows())
        if at % 15 < 8:
            busy[at // 15 % 4] += 1
    facts = about(build, 1000.0)
    batch = tuple(build.batch(str(number)) for number in range(4))
    trained, _ = learn_and_predict(PredictionState(), state, msgspec.structs.replace(facts, pods=batch), POLICY)
    system, pod = trained.models[SYSTEM_KEY], trained.models["uid-0"]
    assert pod.cpu.percentile(CPU_MILLIS, 1.0) >= 1000
    assert 700 <= system.cpu.percentile(CPU_MILLIS, 1.0) < 800
    assert 5 << 20 <= system.memory.percentile(MEMORY_BYTES, 1.0) < 11 << 20


def test_a_clock_set_back_trains_again(build: Any) -> None:
    """Rather than to wait until the old time comes round."""
    state, _ = learn_and_predict(PredictionState(), measured(build), about(build, 5000.0), POLICY)
    assert learn_and_predict(state, measured(build), about(build, 1000.0), POLICY)[0].trained_seconds == 1000.0


def test_it_looks_ahead_at_each_tick(build: Any) -> None:
    """Between two trainings too, and with what the facts say at that moment."""
    used = measured(build)
    state, _ = learn_and_predict(PredictionState(), used, about(build, 1000.0), POLICY)
    trained, told = learn_and_predict(state, used, about(build, 1001.0), POLICY)
    assert trained is state and told is not None
    assert told.decisions[0].at_seconds == 1001.0
    # The only production pod asks for 1000m; its peak of 400m, and bands with the system's 200m, lie below.
    assert 0 < told.prod_reclaimable.cpu_millis < 600


@pytest.mark.parametrize("used", [UsageState(), None])
def test_unmeasured_nothing_is_foreseen(build: Any, used: UsageState | None) -> None:
    """Neither before the first rate nor from one reading alone."""
    state, told = learn_and_predict(PredictionState(), used or measured(build, 1), about(build, 1000.0), POLICY)
    assert told is None and state.models == {} and state.trained_seconds == 1000.0
