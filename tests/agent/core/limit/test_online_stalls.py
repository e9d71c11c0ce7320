"""From one observation to the next: waiting, relief, and whom the brake may listen to."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.online_stalls import MOST_WATCHED, OnlineStalls, StallFacts, StallMemory, online_stalls
from agent.core.limit.stall_relief import CutRange
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupPressure, CgroupSample, Places, PodPlace, Stall
from model.qos import KubernetesQoS
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


def test_services_of_the_node_that_wait_are_relieved(build: Any) -> None:
    """While no online pod waits; between ticks the brake listens to pods alone."""
    quiet = CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall(total_us=7)))
    places = Places({}, ("/kubepods/besteffort/podx",))
    state, stalls = StallMemory(), OnlineStalls()
    for second in range(2):
        seen = build.seen(second, burstable=quiet, places=places, services_waited_us=700_000 * second)
        state, stalls = online_stalls(state, seen, build.usage(), facts())
    assert (stalls.relief.cap_us, stalls.online) == (40_000, (BURSTABLE,))
    assert stalls.relief.note == "the node's services waiting 70% of the time, 10 % is too much"


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


def played(build: Any, pods: list[Any], ratios: Any, seconds: int, throttled: dict[str, float] | None = None) -> Any:
    """Ticks in which each pod waits for its share of the time, and the root for the largest of these."""
    state, stalls, totals, root = StallMemory(), OnlineStalls(), dict.fromkeys((p.uid for p in pods), 0), 0
    places = Places({pod.uid: PodPlace(f"{BURSTABLE}/pod{pod.uid}") for pod in pods}, ("/kubepods/besteffort/podx",))
    cuts, read = list[bool](), dict[str, int]()
    for at in range(seconds):
        now = {pod.uid: ratios(pod.name, at) for pod in pods}
        root += int(1_000_000 * max(now.values()))
        totals = {uid: total + int(1_000_000 * now[uid]) for uid, total in totals.items()}
        # Pods are read in turn, those that are heard each time.
        due = {pod.uid for pod in pods if at % 10 == 0 or f"{BURSTABLE}/pod{pod.uid}" in state.heard}
        read = {uid: total if uid in due or uid not in read else read[uid] for uid, total in totals.items()}
        waits = {uid: CgroupPressure(cpu_some=Stall(total_us=us)) for uid, us in read.items()}
        samples = {uid: CgroupSample(0, 0, pressure=pressure) for uid, pressure in waits.items()}
        seen = build.seen(
            float(at),
            pods=samples,
            places=places,
            burstable=CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall(total_us=root))),
        )
        told = StallFacts(Layout("/kubepods"), SuppressStrategy(online_stall_pct=10), tuple(pods), GRIP)
        state, stalls = online_stalls(state, seen, build.usage(throttled_ratio=throttled or {}), told)
        cuts.append(stalls.relief.cap_us is not None)
    return stalls, cuts


def test_one_pod_that_always_waits_does_not_speak_for_others(build: Any) -> None:
    """Its word is disregarded once cutting did not help it; another pod's, which waits later, is not."""
    pods = [build.pod("greedy"), build.pod("web")]
    _, cuts = played(build, pods, lambda name, at: 1.0 if name == "greedy" else 0.9 * (at >= 60), 120)
    assert not any(cuts[50:60]) and any(cuts[60:85])


def test_no_pod_is_left_out_by_its_name(build: Any) -> None:
    """Nor by the number of those before it; of all the kernel watches those that waited most."""
    pods = [build.pod(f"a{number:03}") for number in range(100)] + [build.pod("web")]
    stalls, cuts = played(
        build, pods, lambda name, at: 0.9 * (name == "web" and at >= 5), 25, throttled={pods[0].uid: 0.2}
    )
    assert any(cuts) and len(stalls.online) == MOST_WATCHED
    assert stalls.online[0] == f"{BURSTABLE}/pod{pods[-1].uid}"


def relieved(build: Any, turn: int, burst: tuple[int, int]) -> float:
    """Part of the time that a Guaranteed pod waits, whose waiting follows what best effort uses; its `turn` of ten is
    when its pressure is read unasked."""
    pod, path, node_us = build.pod("db", kubernetes=KubernetesQoS.GUARANTEED), "/kubepods/poddb", 200_000
    places = Places({pod.uid: PodPlace(path)}, ("/kubepods/besteffort/podx",))
    state, stalls, quota, total, read, braked = StallMemory(), OnlineStalls(), node_us, 0, 0, -10
    for at in range(600):
        cut, waits = None, 0.6 * quota / node_us if at % burst[0] < burst[1] else 0.0
        first = stalls.relief.first_cut_us
        if waits >= 0.1 and path in stalls.online and first is not None and first < quota:
            quota = cut = first
            braked = at
        total += int(1_000_000 * waits)
        read = total if at % 10 == turn or path in state.heard else read
        sample = CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall(total_us=read)))
        quiet = CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall()))
        seen = build.seen(float(at), pods={pod.uid: sample}, places=places, burstable=quiet)
        grip = CutRange(quota, 2_000, node_us)
        told = StallFacts(Layout("/kubepods"), SuppressStrategy(online_stall_pct=10), (pod,), grip, cut)
        state, stalls = online_stalls(state, seen, build.usage(best_effort=build.averages(quota // 100)), told)
        if stalls.relief.cap_us is not None:
            quota = min(quota, stalls.relief.cap_us)
        elif at - braked >= 5:
            quota = min(quota + node_us // 10, node_us)
    return total / 600 / 1_000_000


@pytest.mark.parametrize("burst", [(600, 600), (20, 8), (30, 10)])
@pytest.mark.parametrize("turn", range(0, 10, 3))
def test_who_is_heard_is_looked_at_each_time(build: Any, turn: int, burst: tuple[int, int]) -> None:
    """A cut for a pod is neither noise nor futile because its turn to be read comes later: without any it would wait 60
    % of the time that it works, and read in turn alone 16 to 58 %."""
    assert relieved(build, turn, burst) < 0.15 * burst[1] / burst[0] + 0.02
