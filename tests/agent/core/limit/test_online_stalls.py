"""From one observation to the next: waiting, relief, and whom the brake may listen to."""

from __future__ import annotations

from typing import Any

from agent.core.limit.online_stalls import Ears, Heard, Listening, listen
from agent.core.limit.stall_relief import Grip
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupPressure, CgroupSample, Places, Stall
from model.strategy import SuppressStrategy

BURSTABLE = "/kubepods/burstable"
GRIP = Grip(80_000, 2_000, 200_000)


def ears(strategy: SuppressStrategy | None = None, grip: Grip | None = GRIP) -> Ears:
    return Ears(Layout("/kubepods"), strategy or SuppressStrategy(online_stall_pct=10), (), grip)


def waiting(build: Any, at: float, total_us: int, batch: bool = True) -> Any:
    sample = CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall(total_us=total_us)))
    return build.seen(at, burstable=sample, places=Places({}, ("/kubepods/besteffort/podx",) if batch else ()))


def test_waiting_pods_are_relieved(build: Any) -> None:
    """Half of the second spent waiting is five times too much."""
    state, calm = listen(Listening(), waiting(build, 0, 0), build.usage(), ears())
    state, heard = listen(state, waiting(build, 1, 500_000), build.usage(), ears())
    assert (calm.relief.cap_us, heard.relief.cap_us, heard.online) == (None, 40_000, (BURSTABLE,))


def test_a_tick_without_usage_forgets_nothing(build: Any) -> None:
    """And decides nothing."""
    state, _ = listen(Listening(), waiting(build, 0, 0), build.usage(), ears())
    state, _ = listen(state, waiting(build, 1, 500_000), build.usage(), ears())
    assert listen(state, waiting(build, 2, 500_000), None, ears()) == (state, Heard(online=(BURSTABLE,)))
    assert listen(state, waiting(build, 2, 500_000), build.usage(), ears(grip=None))[0] == state


def test_nothing_to_cut(build: Any) -> None:
    """Suppression off, or no best effort: nobody is listened to."""
    idle = build.usage(best_effort=build.averages(0))
    assert listen(Listening(), waiting(build, 0, 0, batch=False), idle, ears()) == (Listening(), Heard())
    assert listen(Listening(), waiting(build, 0, 0), idle, ears(SuppressStrategy(enable=False)))[1] == Heard()
    # A host application below best effort has no pod, but uses CPU.
    assert listen(Listening(), waiting(build, 0, 0, batch=False), build.usage(), ears())[1].online == (BURSTABLE,)


def test_who_waits_anyway_is_not_watched(build: Any) -> None:
    """A disregarded cgroup would wake the brake again and again."""
    state, total, heard = Listening(), 0, Heard()
    for second in range(13):
        total += 500_000
        state, heard = listen(state, waiting(build, second, total), build.usage(), ears(grip=Grip(10, 2_000, 200_000)))
    assert heard.online == () and heard.relief.cap_us is None
    assert "burstable pods waiting 50% of the time" in heard.relief.disregarded
    assert listen(state, waiting(build, 13, total), None, ears())[1].online == ()
    assert listen(state, waiting(build, 999, total), None, ears())[1].online == (BURSTABLE,)
