"""What memory QoS writes: Koordinator's equations, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.core.limit.decide import LimitFacts, LimitMemory, NodeLimits, claims_due, decide_limits, knobs_to_read
from agent.core.limit.memory_qos.values import memory_qos_limits, tier_limits
from agent.core.limit.memory_qos.wishes import MemoryWishes, wishes
from agent.core.limit.plan import plan
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import Strategy, owner_of
from agent.core.observe.knobs import MEMORY_QOS_FILES, UNLIMITED, VENDOR_MEMORY_FILES, memory_qos_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import (
    Absence,
    CgroupSample,
    Knob,
    KnobReading,
    Missing,
    Places,
    PodPlace,
    Value,
)
from model.pod.pod import Pod
from model.pod.spec import Container
from model.qos import (
    RECOMMENDED,
    KubernetesQoS,
    MemoryQos,
    MemoryQosPolicy,
    MemoryQosStrategy,
    PodMemoryQos,
    PriorityBand,
    QoSClass,
)
from model.reason import Reason
from model.resources import BATCH_MEMORY, MEMORY, MID_MEMORY, ResourceVector
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.pods import make_pod

V2 = Layout(version=2)
MI, GI = 1 << 20, 1 << 30
MIN, LOW, HIGH, GROUP = "memory.min", "memory.low", "memory.high", "memory.oom.group"
NEUTRAL: dict[str, Value] = {HIGH: UNLIMITED}


def memory(amount: int, name: str = MEMORY) -> ResourceVector:
    return ResourceVector({name: amount} if amount else {})


def online(
    request: int = 1024 * MI,
    limit: int = 2048 * MI,
    qos: QoSClass = QoSClass.LS,
    kubernetes: KubernetesQoS = KubernetesQoS.BURSTABLE,
    name: str = "web",
    **more: Any,
) -> Pod:
    fields = {"requests": memory(request), "containers": (Container("main", memory(request), memory(limit)),), **more}
    return make_pod("ns", name, name, qos=qos, qos_label=qos, kubernetes_qos=kubernetes, **fields)


def batch(request: int = 1024 * MI, limit: int = 1024 * MI) -> Pod:
    main = Container("main", memory(request, BATCH_MEMORY), memory(limit, BATCH_MEMORY))
    qos = {"qos": QoSClass.BE, "qos_label": QoSClass.BE, "band": PriorityBand.BATCH}
    known = {"kubernetes_qos": KubernetesQoS.BEST_EFFORT, "requests": memory(request, BATCH_MEMORY)}
    return make_pod("ns", "job", "job", containers=(main,), **qos, **known)


def place(pod: Pod, layout: Layout = V2) -> PodPlace:
    path = layout.pod(pod.status.kubernetes_qos, pod.uid)
    return PodPlace(path, {"main": f"{path}/main"})


def read(build: Any, pod: Pod, readings: dict[tuple[str, str], KnobReading]) -> Any:
    """All files of a pod and its container were read, neutral but for `readings`, by what follows the pod's path."""
    where = place(pod)
    knobs = {
        memory_qos_knob(V2, where.path + below, file): readings.get((below, file), KnobReading(NEUTRAL.get(file, 0)))
        for below in ("", "/main")
        for file in MEMORY_QOS_FILES
    }
    return build.seen(knobs=knobs, places=Places({pod.uid: where}), node=build.node(memory=8 * GI))


def decided(build: Any, pod: Pod, strategy: MemoryQosStrategy, **readings: Any) -> dict[tuple[str, str], Limit]:
    seen = read(build, pod, readings.get("readings", {}))
    found = memory_qos_limits(V2, seen, wishes(MemoryWishes(), strategy, (pod,)))
    assert all(limit.value == limit.decision.value for limit in found.values())
    return {(knob.cgroup.removeprefix(place(pod).path), knob.file): limit for knob, limit in found.items()}


def ls(**fields: int) -> MemoryQosStrategy:
    return MemoryQosStrategy(ls=MemoryQos(**fields))


# pod, strategy -> values by cgroup below the pod and file
VALUES: dict[str, tuple[Pod, MemoryQosStrategy, dict[tuple[str, str], int]]] = {
    "min_pct: minLimitPercent of the request": (
        online(1000 * MI),
        ls(min_pct=40),
        {("", MIN): 400 * MI, ("/main", MIN): 400 * MI},
    ),
    "low_pct: no less than what is kept": (
        online(1000 * MI),
        ls(min_pct=40, low_pct=20),
        {("", MIN): 400 * MI, ("/main", MIN): 400 * MI, ("", LOW): 400 * MI, ("/main", LOW): 400 * MI},
    ),
    "low_pct alone": (online(1000 * MI), ls(low_pct=60), {("", LOW): 600 * MI, ("/main", LOW): 600 * MI}),
    "whole pages": (online(4096 * 3), ls(min_pct=50), {("", MIN): 4096, ("/main", MIN): 4096}),
    "throttling_pct: of a container alone, between request and limit": (
        online(1024 * MI, 2048 * MI),
        ls(throttling_pct=80),
        {("/main", HIGH): (1024 * MI + 1024 * MI * 80 // 100) // 4096 * 4096},
    ),
    "throttling_pct without a limit: up to what the node has for pods": (
        online(1024 * MI, 0),
        ls(throttling_pct=50),
        {("/main", HIGH): 1024 * MI + (8 * GI - 1024 * MI) // 2},
    ),
    "throttling_pct without a request": (online(0, 1000 * MI), ls(throttling_pct=80), {("/main", HIGH): 800 * MI}),
    "throttling_pct: no less than what is kept": (
        online(1000 * MI, 1000 * MI),
        ls(min_pct=100, throttling_pct=1),
        {("", MIN): 1000 * MI, ("/main", MIN): 1000 * MI, ("/main", HIGH): 1000 * MI},
    ),
    "oom_kill_group": (online(), ls(oom_kill_group=1), {("", GROUP): 1, ("/main", GROUP): 1}),
    "Guaranteed by lsr, without a label": (
        online(kubernetes=KubernetesQoS.GUARANTEED, qos=QoSClass.LSR),
        MemoryQosStrategy(lsr=MemoryQos(min_pct=100)),
        {("", MIN): 1024 * MI, ("/main", MIN): 1024 * MI},
    ),
    "best effort is slowed down by what is lent, never protected": (
        batch(1000 * MI, 1500 * MI),
        MemoryQosStrategy(be=MemoryQos(min_pct=100, low_pct=100, throttling_pct=40)),
        {("/main", HIGH): 1200 * MI},
    ),
    "watermarks and priorities of one vendor's kernel": (
        online(),
        ls(wmark_ratio=95, wmark_scale_permill=20, wmark_min_adj=-25, priority_enable=1, priority=12),
        {
            (below, f"memory.{file}"): value
            for below in ("", "/main")
            for file, value in {
                "wmark_ratio": 95,
                "wmark_scale_factor": 20,
                "wmark_min_adj": -25,
                "use_priority_oom": 1,
                "priority": 12,
            }.items()
        },
    ),
    "off": (online(), MemoryQosStrategy(), {}),
    "a pod's own word, off": (online(memory_qos=PodMemoryQos(MemoryQosPolicy.NONE)), ls(min_pct=40), {}),
    "a pod's own word, of a class that is off": (
        online(1000 * MI, memory_qos=PodMemoryQos(fields=MemoryQos(min_pct=10))),
        MemoryQosStrategy(),
        {("", MIN): 100 * MI, ("/main", MIN): 100 * MI},
    ),
}


@pytest.mark.parametrize(("pod", "strategy", "expected"), VALUES.values(), ids=VALUES)
def test_values(build: Any, pod: Pod, strategy: MemoryQosStrategy, expected: dict[tuple[str, str], int]) -> None:
    """From the pod's requests and limits, by its class and its own words."""
    found = decided(build, pod, strategy)
    assert {key: limit.value for key, limit in found.items()} == expected
    assert {limit.decision.reason for limit in found.values()} <= {Reason.MEMORY_QOS}


# file, what the kernel holds, strategy -> value and reason, None: nothing is written
READINGS: dict[str, tuple[str, KnobReading, MemoryQosStrategy, tuple[int, Reason] | None]] = {
    "more was kept before us": (MIN, KnobReading(800 * MI), ls(min_pct=50), (800 * MI, Reason.MEMORY_QOS)),
    "all was kept before us": (MIN, KnobReading(UNLIMITED), ls(min_pct=50), (UNLIMITED, Reason.MEMORY_QOS)),
    "less was": (MIN, KnobReading(MI), ls(min_pct=50), (500 * MI, Reason.MEMORY_QOS)),
    "less was, and it is ours by now": (
        MIN,
        KnobReading(500 * MI, 500 * MI, MI),
        ls(min_pct=60),
        (600 * MI, Reason.MEMORY_QOS),
    ),
    "slowed down earlier before us": (
        HIGH,
        KnobReading(900 * MI),
        ls(throttling_pct=90),
        (900 * MI, Reason.MEMORY_QOS),
    ),
    "nothing is wanted: whoever gives back knows the rest": (
        MIN,
        KnobReading(MI, MI, 0),
        MemoryQosStrategy(),
        None,
    ),
    "gone": (MIN, KnobReading(Missing("/x", Absence.GONE)), ls(min_pct=50), None),
}


@pytest.mark.parametrize(("file", "reading", "strategy", "expected"), READINGS.values(), ids=READINGS)
def test_what_is_there(
    build: Any, file: str, reading: KnobReading, strategy: MemoryQosStrategy, expected: tuple[int, Reason] | None
) -> None:
    """Never worse than before us."""
    limit = decided(build, online(1000 * MI, 1000 * MI), strategy, readings={("/main", file): reading}).get(
        ("/main", file)
    )
    assert (None if limit is None else (limit.value, limit.decision.reason)) == expected


def tiers(
    build: Any, pods: tuple[Pod, ...], strategy: MemoryQosStrategy, held: int = GI, **more: Any
) -> dict[tuple[str, str], int]:
    """Every pod has its cgroup and holds so many bytes, but for those of `absent`."""
    cgroups, absent = (V2.root, V2.burstable, V2.best_effort), more.pop("absent", ())
    knobs = {memory_qos_knob(V2, cgroup, file): KnobReading(0) for cgroup in cgroups for file in MEMORY_QOS_FILES}
    knobs |= {memory_qos_knob(V2, cgroup, file): reading for (cgroup, file), reading in more.pop("tiers", {}).items()}
    there = [pod for pod in pods if pod.name not in absent]
    seen = build.seen(
        knobs=knobs,
        places=Places({pod.uid: place(pod) for pod in there}),
        pods={pod.uid: CgroupSample(0, held) for pod in there},
        node=build.node(memory=8 * GI),
        **more,
    )
    found = tier_limits(V2, seen, wishes(MemoryWishes(), strategy, pods))
    return {(limit.knob.cgroup.removeprefix(V2.root), limit.knob.file): limit.value for limit in found}


HALF = MemoryQos(min_pct=50, low_pct=100, oom_kill_group=1)
HALVES = MemoryQosStrategy(lsr=HALF, ls=HALF, be=HALF)


def guaranteed(request: int = 300 * MI) -> Pod:
    return online(request, kubernetes=KubernetesQoS.GUARANTEED, name="db", qos=QoSClass.LSR)


def test_tiers_keep_what_their_pods_keep(build: Any) -> None:
    """Kubepods all of it, burstable that of its pods; best effort nothing, and nobody is killed with a whole tier."""
    pods = (online(100 * MI), online(200 * MI, name="api"), guaranteed(), batch())
    assert tiers(build, pods, HALVES) == {
        ("", MIN): 300 * MI,
        ("", LOW): 600 * MI,
        ("/burstable", MIN): 150 * MI,
        ("/burstable", LOW): 300 * MI,
    }
    assert tiers(build, (), HALVES) == {}


def test_tiers_keep_no_more_than_their_pods_hold(build: Any) -> None:
    """With memory_recursiveprot the kernel gives what no pod claims to all, best effort among them: whole sixteenths of
    what is held, and never more than that, however much is asked for."""
    kept = tiers(build, (online(160 * MI), guaranteed(320 * MI)), HALVES, held=31 * MI + 4095)
    assert kept == {
        ("", MIN): 31 * MI + 31 * MI,
        ("", LOW): 31 * MI + 31 * MI,
        ("/burstable", MIN): 31 * MI,
        ("/burstable", LOW): 31 * MI,
    }
    assert tiers(build, (online(),), HALVES, held=0) == {}


@pytest.mark.parametrize("held", [1, 4095, 4096, 100_000, MI, 3 * MI + 17, GI - 1, 5 * GI])
def test_a_pod_that_asks_for_much_and_holds_little(build: Any, held: int) -> None:
    """Its tier keeps fifteen sixteenths of what it holds at least, and nothing that it does not hold."""
    kept = tiers(build, (online(8 * GI),), HALVES, held=held).get(("", LOW), 0)
    assert kept <= held and kept >= held - max(held // 16, 4095)


def test_what_is_not_granted_is_not_kept(build: Any) -> None:
    """A pod that no kubelet admitted, what a resize only asks for, and amounts that no node has."""
    endless = online((1 << 63) - 1, name="endless")
    own = {("/burstable", MIN): 512 * MI, ("/burstable", LOW): GI, ("", MIN): 512 * MI, ("", LOW): GI}
    pods = (online(), endless)
    assert tiers(build, pods, HALVES, absent=("endless",)) == own
    resized = online((1 << 63) - 1, certain=memory(1024 * MI))
    assert tiers(build, (resized,), HALVES) == own
    assert max(tiers(build, pods, HALVES, held=1 << 62).values()) <= 8 * GI
    found = decided(build, resized, ls(min_pct=100, throttling_pct=50))
    assert {key: limit.value for key, limit in found.items()} == {
        ("", MIN): GI,
        ("/main", MIN): GI,
        ("/main", HIGH): GI + GI // 2,
    }


def test_what_is_lent_is_not_kept(build: Any) -> None:
    """Nothing of a Burstable pod that lives on mid resources is kept, neither lent memory nor its own."""
    amounts = ResourceVector({MEMORY: MI, MID_MEMORY: 4 * GI})
    mid = online(MI, requests=amounts, band=PriorityBand.MID, containers=(Container("main", amounts, amounts),))
    found = decided(build, mid, ls(min_pct=100))
    assert found == {}


def test_what_a_write_of_ours_left_is_not_what_was_before_us(build: Any) -> None:
    """The kernel took more than was meant: the next tick writes what is meant."""
    strategy, left = ls(min_pct=50), KnobReading(UNLIMITED, None, 0)
    found = decided(build, online(1000 * MI), strategy, readings={("", MIN): left})
    assert found["", MIN].value == 500 * MI
    assert tiers(build, (online(),), strategy, tiers={("/kubepods", MIN): left})["", MIN] == 512 * MI


def test_priorities_of_tiers(build: Any) -> None:
    """By the class that Koordinator maps to each."""
    strategy = MemoryQosStrategy(
        lsr=MemoryQos(priority=12), ls=MemoryQos(priority=6, priority_enable=1), be=MemoryQos(priority=1)
    )
    assert tiers(build, (), strategy) == {
        ("", "memory.priority"): 12,
        ("/burstable", "memory.priority"): 6,
        ("/burstable", "memory.use_priority_oom"): 1,
        ("/besteffort", "memory.priority"): 1,
    }


class Kernel:
    """Files that keep what is planned, those that are absent apart, and an agent that ticks on them."""

    def __init__(self, build: Any, layout: Layout, absent: frozenset[str]) -> None:
        self.build, self.layout, self.absent = build, layout, absent
        self.held: dict[Knob, Value] = {}
        self.originals: dict[Knob, Value] = {}
        self.state = LimitMemory()
        self.at = 0.0

    def reading(self, knob: Knob) -> KnobReading:
        if knob.file in self.absent and knob.cgroup != self.layout.best_effort:
            return KnobReading(Missing("/x", Absence.GONE))
        before: dict[str, Value] = {"cpu.weight": 1, "cpu.shares": 2, "cpu.cfs_period_us": 100_000, "cpuset.cpus": ""}
        neutral = before.get(knob.file, 0 if knob.file in MEMORY_QOS_FILES - {HIGH} else -1)
        now = self.held.get(knob, neutral)
        return KnobReading(now, now if knob in self.originals else None, self.originals.get(knob))

    def run(self, facts: LimitFacts, ticks: int) -> tuple[list[int], NodeLimits]:
        """How many files of memory QoS were read in each of so many ticks, and the last limits."""
        where = Places({pod.uid: place(pod, self.layout) for pod in facts.pods or ()})
        counts, limits = [], NodeLimits({}, None)
        for _ in range(ticks):
            self.at += 1.0
            claims = claims_due(self.state, self.layout, where, facts)
            left = [knob for knob in self.originals if claims.leave(knob)] if claims else []
            knobs = (*knobs_to_read(self.state, self.layout, where, facts), *left)
            counts.append(sum(knob.file in MEMORY_QOS_FILES and self.owned(knob) for knob in knobs))
            readings = {knob: self.reading(knob) for knob in knobs}
            held = {uid: CgroupSample(0, GI) for uid in where.pods}
            seen = self.build.seen(self.at, knobs=readings, places=where, listed=facts.pods, pods=held)
            self.state, limits = decide_limits(self.state, self.layout, seen, self.build.usage(), facts)
            for write in plan(limits.limits, readings):
                self.originals.setdefault(write.knob, write.previous)
                self.held[write.knob] = write.value
                if write.gives_back:
                    del self.originals[write.knob]
        return counts, limits

    def owned(self, knob: Knob) -> bool:
        return owner_of(self.layout, knob) is Strategy.MEMORY_QOS or knob.cgroup == self.layout.root

    @property
    def of_memory(self) -> dict[tuple[str, str], Value]:
        """What memory QoS changed."""
        own = [knob for knob in self.originals if owner_of(self.layout, knob) is Strategy.MEMORY_QOS]
        return {(knob.cgroup, knob.file): self.held[knob] for knob in own}


@pytest.mark.parametrize(
    ("layout", "absent", "kept"),
    [(V2, VENDOR_MEMORY_FILES, True), (Layout(), MEMORY_QOS_FILES, False)],
    ids=["cgroup v2", "cgroup v1"],
)
def test_on_and_off(build: Any, layout: Layout, absent: frozenset[str], kept: bool) -> None:
    """Written once and looked at in turn; what the kernel does not have is named; off, all is as it was before."""
    kernel, pods = Kernel(build, layout, frozenset(absent)), (online(1000 * MI, name="uid-web"),)
    fields = MemoryQos(min_pct=50, throttling_pct=80)
    strategy = MemoryQosStrategy(ls=fields.over(RECOMMENDED.ls or MemoryQos()))
    off = LimitFacts(SuppressStrategy(), EvictionStrategy(), pods)
    counts, limits = kernel.run(off, 12)
    assert counts == [0] * 12 and not kernel.of_memory and limits.absent_files == ()
    counts, limits = kernel.run(replace(off, memory_qos=strategy), 25)
    path = place(pods[0], layout).path
    expected = {
        (layout.root, MIN): 500 * MI,
        (layout.burstable, MIN): 500 * MI,
        (path, MIN): 500 * MI,
        (f"{path}/main", MIN): 500 * MI,
        (f"{path}/main", HIGH): (1000 * MI + 1048 * MI * 80 // 100) // 4096 * 4096,
    }
    assert kernel.of_memory == (expected if kept else {})
    assert sorted(counts[-10:]) == ([2] * 9 + [5] if kept else [0] * 10)
    gone = {"memory.wmark_ratio", "memory.wmark_scale_factor", "memory.wmark_min_adj"}
    assert set(limits.absent_files) == (gone if kept else gone | {MIN, HIGH})
    assert limits.limited_pods == 0 and limits.refused == ()
    counts, limits = kernel.run(off, 12)
    assert kernel.of_memory == {} and counts[-1] == 0
    assert {kernel.held[knob] for knob in kernel.held if knob.file == MIN} == ({0} if kept else set())
