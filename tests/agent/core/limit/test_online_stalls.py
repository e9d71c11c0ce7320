"""From one observation to the next: waiting, relief, and whom the brake may listen to."""

from __future__ import annotations

from typing import Any

from agent.core.limit.online_stalls import OnlineStalls, StallFacts, StallMemory, online_stalls
from agent.core.limit.stall_relief import CutRange
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupPressure, CgroupSample, Places, Stall
from model.strategy import SuppressStrategy

BURSTABLE = "/kubepods/burstable"
GRIP = CutRange(80_000, 2_000, 200_000)


def facts(strategy: SuppressStrategy | None = None, cut_range: CutRange | None = GRIP) -> StallFacts:
    return StallFacts(Layout("/kubepods"), strategy or SuppressStrategy(online_stall_pct=10), (), cut_range)


def waiting(build: Any, at: float, total_us: int, batch: bool = True) -> Any:
    sample = CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall(total_us=total_us)))
    return build.seen(at, burstable=sample, places=Places({}, ("/kubepods/besteffort/podx",) if batch else ()))


def test_waiting_pods_are_relieved(build: Any) -> None:
    """Half of the second spent waiting is five times too much."""
    state, calm = online_stalls(StallMemory(), waiting(build, 0, 0), build.usage(), facts())
    state, stalls = online_stalls(state, waiting(build, 1, 500_000), build.usage(), facts())
    assert (calm.relief.cap_us, stalls.relief.cap_us, stalls.online) == (None, 40_000, (BURSTABLE,))


def test_a_tick_without_usage_forgets_nothing(build: Any) -> None:
    """And decides nothing."""
    state, _ = online_stalls(StallMemory(), waiting(build, 0, 0), build.usage(), facts())
    state, _ = online_stalls(state, waiting(build, 1, 500_000), build.usage(), facts())
    assert online_stalls(state, waiting(build, 2, 500_000), None, facts()) == (state, OnlineStalls(online=(BURSTABLE,)))
    assert online_stalls(state, waiting(build, 2, 500_000), build.usage(), facts(cut_range=None))[0] == state


def test_nothing_to_cut(build: Any) -> None:
    """Suppression off, or no best effort: nobody is listened to."""
    idle = build.usage(best_effort=build.averages(0))
    assert online_stalls(StallMemory(), waiting(build, 0, 0, batch=False), idle, facts()) == (
        StallMemory(),
        OnlineStalls(),
    )
    assert (
        online_stalls(StallMemory(), waiting(build, 0, 0), idle, facts(SuppressStrategy(enable=False)))[1]
        == OnlineStalls()
    )
    # A host application below best effort has no pod, but uses CPU.
    assert online_stalls(StallMemory(), waiting(build, 0, 0, batch=False), build.usage(), facts())[1].online == (
        BURSTABLE,
    )


def test_who_waits_anyway_is_not_watched(build: Any) -> None:
    """A disregarded cgroup would wake the brake again and again."""
    state, total, stalls = StallMemory(), 0, OnlineStalls()
    for second in range(13):
        total += 500_000
        state, stalls = online_stalls(
            state, waiting(build, second, total), build.usage(), facts(cut_range=CutRange(10, 2_000, 200_000))
        )
    assert stalls.online == () and stalls.relief.cap_us is None
    assert "burstable pods waiting 50% of the time" in stalls.relief.disregarded
    assert online_stalls(state, waiting(build, 13, total), None, facts())[1].online == ()
    assert online_stalls(state, waiting(build, 999, total), None, facts())[1].online == (BURSTABLE,)
