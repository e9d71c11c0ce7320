"""Whose waiting for CPU is a sign, and how much of it there was."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.core.limit.stall_signals import (
    MOST_SOURCES,
    StallSource,
    StallTrack,
    stall_signals,
    stall_sources,
    stall_tracks,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, CgroupPressure, CgroupSample, Missing, Places, PodPlace, Stall
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, QoSClass
from model.strategy import SuppressStrategy

LAYOUT = Layout("/kubepods")
STRATEGY = SuppressStrategy(online_stall_pct=10)
BURSTABLE = "/kubepods/burstable"


def waiting(total_us: int) -> CgroupSample:
    return CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall(total_us=total_us)))


def placed(build: Any, *pods: Pod, **parts: Any) -> Any:
    places = Places({pod.uid: PodPlace(f"/p/{pod.name}") for pod in pods}, ())
    samples = {pod.uid: waiting(7) for pod in pods}
    return build.seen(**{"places": places, "pods": samples, "burstable": waiting(5), **parts})


def pods_of(build: Any) -> dict[str, Pod]:
    guaranteed = KubernetesQoS.GUARANTEED
    return {
        "web": build.pod("web"),
        "db": build.pod("db", qos=QoSClass.LSR, kubernetes=guaranteed),
        "job": build.batch("job"),
        "odd": build.pod("odd", qos=QoSClass.BE, kubernetes=KubernetesQoS.BURSTABLE),
        "done": build.pod("done", kubernetes=guaranteed, phase=PodPhase.SUCCEEDED),
    }


WHO: dict[str, tuple[str, dict[str, float], list[str]]] = {
    # pods, throttled ratio by name, cgroups that are asked
    "no pods: the burstable root": ("", {}, [BURSTABLE]),
    "burstable pods speak together": ("web", {}, [BURSTABLE]),
    "Guaranteed ones each for themselves": ("web db", {}, [BURSTABLE, "/p/db"]),
    "best effort's waiting is no sign": ("job", {}, [BURSTABLE]),
    "a throttled pod silences the root": ("web", {"web": 0.05}, []),
    "a little throttling does not": ("web", {"web": 0.04}, [BURSTABLE]),
    "nor of a pod elsewhere": ("web db", {"db": 0.9}, [BURSTABLE]),
    "a batch pod below the burstable root does": ("web odd", {}, ["/p/web"]),
    "what has ended is not asked": ("done", {}, [BURSTABLE]),
}


@pytest.mark.parametrize(("names", "throttled", "expected"), WHO.values(), ids=WHO.keys())
def test_witnesses(build: Any, names: str, throttled: dict[str, float], expected: list[str]) -> None:
    """The root where all below it may speak, else its pods; a limit's own throttling is not best effort's doing."""
    pods = [pods_of(build)[name] for name in names.split()]
    usage = build.usage(throttled_ratio={f"uid-{name}": ratio for name, ratio in throttled.items()})
    found = stall_sources(LAYOUT, placed(build, *pods), usage, pods, STRATEGY)
    assert [source.cgroup for source in found] == expected


def test_the_node_s_services_speak_for_themselves(build: Any) -> None:
    """Whatever the pods do: best effort alone in kubepods has all of its weight against them."""
    throttled = build.usage(throttled_ratio={"uid-web": 0.9})
    pods = [pods_of(build)["web"]]
    for seen in (placed(build, *pods, services_waited_us=9), placed(build, services_waited_us=9)):
        services, *_ = stall_sources(LAYOUT, seen, throttled, pods, STRATEGY)
        assert services == StallSource("/system.slice", "the node's services", 9, is_root=True, each_pass=True)
    assert stall_sources(LAYOUT, seen, None, None, SuppressStrategy(online_stall_pct=None)) == ()


def test_without_a_pod_list_the_root_speaks(build: Any) -> None:
    """Not knowing which pods there are lends less; a threshold of none asks nobody."""
    assert [w.cgroup for w in stall_sources(LAYOUT, placed(build), None, None, STRATEGY)] == [BURSTABLE]
    assert stall_sources(LAYOUT, placed(build), None, None, SuppressStrategy(online_stall_pct=None)) == ()


def test_pods_that_are_heard_were_read_in_this_pass(build: Any) -> None:
    """Of all others nobody knows when."""
    pods = [build.pod(name, kubernetes=KubernetesQoS.GUARANTEED) for name in ("a", "b")]
    found = stall_sources(LAYOUT, placed(build, *pods), build.usage(), pods, STRATEGY, heard=("/p/b",))
    assert {source.cgroup: source.each_pass for source in found} == {BURSTABLE: True, "/p/a": False, "/p/b": True}


def test_at_most_so_many(build: Any) -> None:
    """The burstable root and Guaranteed pods first."""
    pods = [build.pod(f"g{i:04}", kubernetes=KubernetesQoS.GUARANTEED) for i in range(MOST_SOURCES + 9)]
    found = stall_sources(LAYOUT, placed(build, *pods), build.usage(), pods, STRATEGY)
    assert len(found) == MOST_SOURCES and found[0].is_root and found[-1].cgroup == f"/p/g{MOST_SOURCES - 2:04}"


def follow(readings: list[tuple[float, int]], *, each_pass: bool) -> list[float]:
    tracks: dict[str, StallTrack] = {}
    found = []
    for at, total_us in readings:
        tracks = stall_tracks(tracks, [StallSource("/c", "c", total_us, each_pass=each_pass)], at)
        found.append(tracks["/c"].ratio)
    return found


SECOND = 1_000_000
ROOT: dict[str, tuple[list[tuple[float, int]], list[float]]] = {
    "the first look tells nothing": ([(0, 9 * SECOND)], [0.0]),
    "over one interval, then over two": ([(0, 0), (1, SECOND // 2), (2, SECOND // 2)], [0.0, 0.5, 0.25]),
    "a look too soon changes nothing": ([(0, 0), (1, SECOND // 2), (1.2, SECOND)], [0.0, 0.5, 0.5]),
    "a counter that went back begins again": ([(0, 0), (1, SECOND // 2), (2, 10), (3, 10)], [0.0, 0.5, 0.0, 0.0]),
    "another clock begins again": ([(50, 0), (1, SECOND)], [0.0, 0.0]),
    "never more than all the time": ([(0, 0), (1, 3 * SECOND)], [0.0, 1.0]),
}
POD: dict[str, tuple[list[tuple[float, int]], list[float]]] = {
    "what moved did so in a slow turn": ([(0, 0), (1, 0), (2, SECOND)], [0.0, 0.0, 0.1]),
    "or since it was looked at": ([(0, 0), (14, 7 * SECOND)], [0.0, 0.5]),
    "which need not be the first look": ([(0, 0), (10, SECOND), (24, 8 * SECOND)], [0.0, 0.1, 0.5]),
    "it holds until the next turn": ([(0, 0), (10, SECOND), (24, SECOND)], [0.0, 0.1, 0.1]),
    "and no longer": ([(0, 0), (10, SECOND), (26, SECOND)], [0.0, 0.1, 0.0]),
}


@pytest.mark.parametrize(("readings", "ratios"), ROOT.values(), ids=ROOT.keys())
def test_waiting_of_a_root(readings: list[tuple[float, int]], ratios: list[float]) -> None:
    """Read each pass."""
    assert follow(readings, each_pass=True) == ratios


@pytest.mark.parametrize(("readings", "ratios"), POD.values(), ids=POD.keys())
def test_waiting_of_a_pod(readings: list[tuple[float, int]], ratios: list[float]) -> None:
    """Read in turn, once in about ten passes."""
    assert follow(readings, each_pass=False) == ratios


def test_a_kernel_without_pressure() -> None:
    """No source that tells of waiting, no sign."""
    assert stall_tracks({}, [StallSource("/c", "c", None)], 1.0) == {}


def test_witnesses_read_what_is_there(build: Any) -> None:
    """A vanished pod and one without pressure tell nothing."""
    db, gone = pods_of(build)["db"], build.pod("gone", kubernetes=KubernetesQoS.GUARANTEED)
    seen = placed(build, db, gone, burstable=Missing("/b", Absence.GONE))
    seen = replace(seen, pods={db.uid: CgroupSample(0, 0), gone.uid: Missing("/g", Absence.GONE)})
    assert [w.total_us for w in stall_sources(LAYOUT, seen, build.usage(), (db, gone), STRATEGY)] == [None, None, None]


def test_signs(build: Any) -> None:
    """Their level counts thresholds; throttling is a sign of online pods alone."""
    web, job = build.pod("web"), build.batch("job")
    found = [StallSource("/c", "pod a/b", 1), StallSource("/quiet", "pod a/c", 1), StallSource("/d", "pod a/d", None)]
    tracks = {"/c": StallTrack(1, 1, 0, 0, 0.25), "/quiet": StallTrack(1, 1, 0, 0)}
    usage = build.usage(throttled_ratio={web.uid: 0.75, job.uid: 1.0, "uid-unlisted": 1.0})
    told = stall_signals(tracks, found, usage, (web, job), STRATEGY)
    assert [(sign.key, sign.level) for sign in told] == [("/c", 2.5), ("throttled uid-web", 1.5)]
    assert told[0].text == "pod a/b waiting 25% of the time, 10 % is too much"
    assert (
        stall_signals(tracks, found, usage, (web,), SuppressStrategy(online_stall_pct=10, online_throttled_pct=None))
        == told[:1]
    )
    assert stall_signals(tracks, found, usage, (web,), SuppressStrategy(online_stall_pct=None)) == told[1:]
