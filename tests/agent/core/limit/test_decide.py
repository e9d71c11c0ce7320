"""A tick's limits: quota, period, weight and the brake's plan belong together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.core.limit.allowance import NodeSize
from agent.core.limit.burst_tokens import Tokens
from agent.core.limit.decide import (
    LimitFacts,
    LimitMemory,
    NodeLimits,
    OnlineCpus,
    decide_limits,
    knobs_to_read,
    pod_groups,
)
from agent.core.limit.knob_schedule import KnobSchedule, PodGroups
from agent.core.limit.online_stalls import StallMemory
from agent.core.limit.ownership import QuotaCap
from agent.core.limit.quota_burst import QuotaBurstMemory
from agent.core.limit.wanted_limit import Limit
from agent.core.limit.watch import MemoryMark
from agent.core.observe.files import Watched
from agent.core.observe.knobs import RootKnobs, cpuset_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    KnobReading,
    Missing,
    NodeSample,
    Places,
    PodPlace,
    Stall,
)
from model.decision import Decision, Term, Unit
from model.pod.pod import Pod
from model.pod.spec import Container
from model.qos import QoSClass
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, ResourceVector
from model.strategy import EvictionStrategy, SuppressPolicy, SuppressStrategy
from model.topology import Processor
from tests.pods import with_fields

V2 = Layout("/kubepods", version=2)
POD, BOX = "/kubepods/besteffort/podjob", "/kubepods/besteffort/podjob/main"
PLACES = Places({"uid-job": PodPlace(POD, {"main": BOX})}, (POD, BOX))


def facts(**more: Any) -> LimitFacts:
    """The ceiling of `adaptive` is at 95 %."""
    if more.get("policy", "adaptive") == "adaptive":
        more = {"threshold_pct": 95, **more}
    named = {key: more.pop(key) for key in LimitFacts.__struct_fields__ if key in more}
    strategies = {"suppress": SuppressStrategy(**more), "eviction": EvictionStrategy(enable=False)}
    return LimitFacts(**{**strategies, "pods": (), **named})


def decided(
    build: Any, seen: Any, usage: Any, memory: LimitMemory | None = None, **more: Any
) -> tuple[LimitMemory, NodeLimits]:
    return decide_limits(memory or LimitMemory(), build.layout, seen, usage, facts(**more))


def job(build: Any, cpu: int = 500, memory: int = 1 << 30) -> Pod:
    amounts = ResourceVector({BATCH_CPU: cpu, BATCH_MEMORY: memory})
    pod: Pod = build.batch("job")
    return with_fields(pod, containers=(Container("main", amounts, amounts),))


def test_the_brake_defends_what_was_decided(build: Any) -> None:
    """Base is the ceiling before online use; the deadband is 10 % of the node where weight protects."""
    seen = build.seen(10, knobs=build.readings(weight=1024, period=50_000))
    _, limits = decided(build, seen, build.usage())
    assert {d.name: d.value for d in limits.decisions.values()} == {
        "cpu.cfs_quota_us": 140_000,
        "cpu.cfs_period_us": 100_000,
        "cpu.shares": 2,
    }
    assert limits.brake is not None
    assert (limits.brake.base_us, limits.brake.ceiling_us, limits.brake.deadband_us) == (180_000, 140_000, 20_000)


def test_online_use_counts_beyond_requests(build: Any) -> None:
    """Of 2 CPUs and 5 %, the system uses 100m, web 400m of the 300m that it asks for: 100m count, and the brake cuts
    once online pods use more than they ask for together. What best effort may really use is what web leaves of it."""
    web = build.pod("web", cpu=300)
    used = build.usage({web.uid: build.averages(400)})
    held = build.readings(KnobReading(190_000, 190_000))
    _, limits = decided(build, build.seen(10, knobs=held), used, pods=(web,), threshold_pct=None)
    quota = limits.decisions[build.knobs.quota]
    assert {term.name: term.value for term in quota.terms} == {
        "capacity": 200_000,
        "margin": 10_000,
        "system used": -10_000,
        "online used": -40_000,
        "within requests": 30_000,
    }
    assert limits.brake is not None and limits.brake.base_us == 200_000 + 30_000
    assert limits.best_effort_millis == 1500


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ({"threshold_pct": 99}, {}),
        ({"threshold_pct": None, "pods": None}, {}),
        ({"threshold_pct": None}, {"pods_quota_millis": 1900}),
        ({"policy": SuppressPolicy.CFS_QUOTA}, {}),
    ],
    ids=["a threshold of its own", "pods not known", "a quota of kubepods", "Koordinator's policy"],
)
def test_where_all_online_use_counts(build: Any, more: dict[str, Any], parts: dict[str, Any]) -> None:
    """And best effort may use what its ceiling says."""
    web = build.pod("web", cpu=900)
    used = build.usage({web.uid: build.averages(400)})
    held = build.readings(KnobReading(190_000, 190_000))
    _, limits = decided(build, build.seen(10, knobs=held, **parts), used, **{"pods": (web,), **more})
    names = {term.name for term in limits.decisions[build.knobs.quota].terms}
    assert "within requests" not in names and ("pods" in more or "online used" in names)
    assert limits.best_effort_millis == 1900


def test_one_tick_without_usage_keeps_the_brake(build: Any) -> None:
    """A statistic that is missing for a second does not leave a surge unanswered; switching off does disarm."""
    memory, first = decided(build, build.seen(10), build.usage())
    blind = build.seen(11, knobs=build.readings(KnobReading(90_000, 90_000)))
    memory, held = decided(build, blind, None, memory)
    assert first.brake is not None and held.brake is not None
    assert (held.brake.base_us, held.brake.ceiling_us) == (first.brake.base_us, 90_000)
    assert decided(build, blind, None, memory, enable=False)[1].brake is None
    assert decided(build, build.seen(), None)[1].brake is None


def test_without_a_node_object_the_ceiling_still_holds(build: Any) -> None:
    """The kernel's own CPU count stands in before the API server was read, the last size afterwards."""
    _, limits = decided(build, build.seen(10, node=None), build.usage())
    assert limits.decisions[build.knobs.quota].value == 140_000 and limits.brake is not None
    memory, _ = decided(build, build.seen(10, node=build.node(4000, reserved=500)), build.usage())
    _, limits = decided(build, build.seen(11, node=None), build.usage(), memory)
    assert limits.decisions[build.knobs.quota].value == 400_000 - 20_000 - 50_000 - 40_000


@pytest.mark.parametrize(("cpus", "reserved"), [(None, 0), (0, 0), (1, 1000), (2, 0), (3, 0)])
def test_cpus_that_no_pod_may_run_on_are_reserved(build: Any, cpus: int | None, reserved: int) -> None:
    """Of the two that are online, with a Node object and without; an empty list is none that was ever filled."""
    for node in (build.node(2000), None):
        seen = build.seen(10, node=node, pods_cpus=cpus)
        memory, _ = decided(build, seen, build.usage())
        assert memory.size is not None and memory.size.reserved_millis == reserved


@pytest.mark.parametrize(("quota", "reserved"), [(None, 0), (2500, 1500), (4000, 0), (9000, 0)])
def test_what_a_quota_of_kubepods_leaves_out_is_reserved(build: Any, quota: int | None, reserved: int) -> None:
    """Of a node of 4 CPUs, more than its kernel shows; no pod may have it. Without a Node object the kernel's count."""
    memory, _ = decided(build, build.seen(10, node=build.node(4000), pods_quota_millis=quota), build.usage())
    assert memory.size is not None and memory.size.reserved_millis == reserved
    memory, _ = decided(build, build.seen(10, node=None, pods_quota_millis=1200), build.usage())
    assert memory.size is not None and memory.size.reserved_millis == 800


@pytest.mark.parametrize("policy", [SuppressPolicy.ADAPTIVE, SuppressPolicy.CFS_QUOTA])
def test_idle_cpu_of_a_pod_s_own_is_left_alone(build: Any, policy: SuppressPolicy) -> None:
    """900m of the 1000m of an LSE pod, beside 100m that it uses and others' 300m; nothing of one that does not run."""
    own, refused = (build.pod(name, cpu=1000, qos=QoSClass.LSE) for name in ("own", "refused"))
    used = build.usage({own.uid: build.averages(100, 0)})
    quotas = []
    for pods in ((refused,), (own, refused)):
        seen = build.seen(10, node=build.node(4000))
        _, limits = decided(build, seen, used, pods=pods, suppress=SuppressStrategy(policy=policy))
        quotas.append(limits.decisions[build.knobs.quota])
    terms = {term.name: term.value for term in quotas[1].terms}
    assert terms["exclusive CPU"] == -90_000 and "exclusive CPU" not in {term.name for term in quotas[0].terms}


def test_an_amplified_node(build: Any) -> None:
    """Its reservation is that of the kubelet, before amplification."""
    raised = msgspec.structs.replace(build.node(4000), allocatable=ResourceVector({CPU: 6000}))
    _, limits = decided(build, build.seen(10, node=raised), build.usage(), raw_allocatable_millis=3500)
    terms = {term.name: term.value for term in limits.decisions[build.knobs.quota].terms}
    assert terms["reserved"] == -50_000


def test_no_raise_within_five_seconds_of_a_cut(build: Any) -> None:
    """The tick that the brake woke does not undo the brake."""
    readings = build.readings(KnobReading(60_000, 60_000))
    for at, reason in ((14.9, Reason.BRAKE), (15.1, Reason.QUOTA_RAISED)):
        seen = build.seen(at, knobs=readings, brake_cuts=1, last_cut_monotonic=10.0)
        _, limits = decided(build, seen, build.usage())
        assert limits.decisions[build.knobs.quota].reason is reason


def test_the_ceiling_rises_by_a_tenth_of_the_node_a_second(build: Any) -> None:
    """However often something wakes the tick: 2 CPUs are 200,000 us, so at most 20,000 a second."""
    quota, memory, found = 20_000, LimitMemory(monotonic_seconds=9.0), []
    for at in (10.0, 10.125, 10.25, 10.5, 10.75, 11.0, 12.0):
        seen = build.seen(at, knobs=build.readings(KnobReading(quota, quota)))
        memory, limits = decided(build, seen, build.usage(), memory)
        quota = limits.decisions[build.knobs.quota].value
        found.append(quota)
    assert found == [40_000, 42_500, 45_000, 50_000, 55_000, 60_000, 80_000]


def test_unsettled_settings_raise_nothing(build: Any) -> None:
    """The NodeSLO that could not be read may ask for less than the default."""
    seen = build.seen(10, knobs=build.readings(KnobReading(60_000, 60_000)))
    _, limits = decided(build, seen, build.usage(), unsettled=Reason.CONFIGURATION_INVALID)
    found = limits.decisions[build.knobs.quota]
    assert (found.value, found.reason) == (60_000, Reason.CONFIGURATION_INVALID)


@pytest.mark.parametrize(("period", "value"), [(100_000, 80_000), (10_000, 60_000), (1_000_000, 60_000)])
def test_a_quota_of_another_period_is_not_raised(build: Any, period: int, value: int) -> None:
    """With a tenth of the period it gives ten times as much, and that the period is put right is not sure yet."""
    seen = build.seen(10, knobs=build.readings(KnobReading(60_000, 60_000), period=period))
    _, limits = decided(build, seen, build.usage())
    found = limits.decisions[build.knobs.quota]
    assert found.value == value and (value > 60_000 or found.reason is Reason.FOREIGN_WRITER_LOOSENED)


OFFLINE: dict[str, tuple[list[int | None], int, OnlineCpus]] = {
    "all are there": ([8, 8], 8000, OnlineCpus(8, 0)),
    "four are gone": ([8, 4], 8000, OnlineCpus(8, 4)),
    "and come back": ([8, 4, 8], 8000, OnlineCpus(8, 0)),
    "the kubelet has counted again": ([8, 4], 4000, OnlineCpus(8, 0)),
    "never there": ([8, 8], 64_000, OnlineCpus(8, 0)),
    "not to be read": ([8, 4, None], 8000, OnlineCpus(8, 4)),
    "more than the Node knows of": ([8, 16], 8000, OnlineCpus(16, 0)),
    "without a Node": ([8, 4], 0, OnlineCpus(8, 4)),
}


PRESENT: dict[str, tuple[int, int, int, int]] = {
    # present, online, milli-CPU of the Node, lost
    "all are there": (8, 8, 8000, 0),
    "four went offline before the agent started": (8, 4, 8000, 4),
    "the kubelet has counted again": (8, 4, 4000, 0),
    "without hyperthreading, as the kubelet counts": (16, 8, 8000, 0),
    "a Node that overstates its machine": (8, 8, 64_000, 0),
    "and has lost some": (8, 6, 64_000, 2),
    "not told": (0, 4, 8000, 0),
}


@pytest.mark.parametrize(("present", "online", "millis", "lost"), PRESENT.values(), ids=PRESENT)
def test_cpus_that_went_offline_before_the_start(build: Any, present: int, online: int, millis: int, lost: int) -> None:
    """What the machine has and does not run was lost, where the Node object still has it."""
    sample = NodeSample(0, 1 << 30, online, present_cpus=present)
    seen = build.seen(10, node=build.node(millis), node_sample=sample, knobs=build.readings())
    memory, limits = decided(build, seen, build.usage())
    assert limits.lost_cpus == lost and memory.size == NodeSize(millis - 1000 * lost)


@pytest.mark.parametrize(("online", "millis", "expected"), OFFLINE.values(), ids=OFFLINE.keys())
def test_cpus_that_go_offline(build: Any, online: list[int | None], millis: int, expected: OnlineCpus) -> None:
    """Only what was there and what the Node object still has is lost, and does not count in the ceiling."""
    memory, node = LimitMemory(), build.node(millis) if millis else None
    for cpus in online:
        sample = Missing("/proc/stat", Absence.UNREADABLE, "EIO") if cpus is None else NodeSample(0, 1 << 30, cpus)
        seen = build.seen(10, node=node, node_sample=sample, knobs=build.readings())
        memory, limits = decided(build, seen, build.usage(), memory)
    assert memory.cpus == expected and limits.lost_cpus == expected.lost
    if node is not None:
        assert memory.size == NodeSize(millis - 1000 * expected.lost)


def test_a_foreign_cap_is_remembered(build: Any) -> None:
    """From the tick that saw it on."""
    seen = build.seen(10, knobs=build.readings(KnobReading(60_000, 90_000)))
    memory, _ = decided(build, seen, build.usage())
    assert memory.quota == QuotaCap(60_000)


def test_unreadable_knobs_are_reported_not_guessed(build: Any) -> None:
    """Each knob on its own: the others still work."""
    gone = KnobReading(Missing("/q", Absence.UNREADABLE, "Input/output error"))
    _, limits = decided(build, build.seen(knobs=build.readings(gone)), build.usage())
    assert limits.decisions[build.knobs.quota].reason is Reason.KNOB_UNREADABLE
    assert limits.decisions[build.weight].reason is Reason.WEIGHT_HELD and limits.brake is None


def test_on_cgroup_v2(build: Any) -> None:
    """One file holds quota and period, and the weight is cpu.weight; the ceiling is the same number."""
    knobs = RootKnobs.of(V2)
    readings = {knobs.quota: KnobReading(-1), knobs.fixed[0].knob: KnobReading(79)}
    memory, limits = decide_limits(LimitMemory(), V2, build.seen(10, knobs=readings), build.usage(), facts())
    found = {d.name: (d.value, d.unit, d.reason) for d in limits.decisions.values()}
    assert found == {
        "cpu.max": (140_000, Unit.MICROSECONDS, Reason.QUOTA_LOWERED),
        "cpu.weight": (1, Unit.WEIGHT, Reason.FOREIGN_WRITER_LOOSENED),
    }
    assert limits.brake is not None and limits.brake.knob == knobs.quota and memory.brake == limits.brake


@pytest.mark.parametrize(
    ("cpus", "quota", "expected"),
    [
        (None, 50_000, 500),
        (2, 50_000, 500),
        (1, 150_000, 1000),
        (2, -1, 2000),
        (None, -1, None),
        (2, Missing("/q", Absence.GONE), 2000),
    ],
)
def test_what_the_kernel_lets_best_effort_use(build: Any, cpus: int | None, quota: Any, expected: int | None) -> None:
    """The smaller of its CPUs and its quota, as they were before this tick's writes."""
    seen = build.seen(best_effort_cpus=cpus, knobs=build.readings(KnobReading(quota)))
    assert decided(build, seen, build.usage())[1].best_effort_millis == expected


def test_switched_off(build: Any) -> None:
    """A ceiling of ours is lifted, the brake disarmed, the weight still held."""
    seen = build.seen(10, knobs=build.readings(KnobReading(60_000, 60_000)))
    memory, limits = decided(build, seen, build.usage(), enable=False)
    assert (limits.decisions[build.knobs.quota].value, limits.brake, memory.brake) == (-1, None, None)
    assert limits.decisions[build.weight].value == 2


def test_everything_of_the_root_is_read(build: Any) -> None:
    """Each tick, whatever the settings; below it what is due."""
    assert knobs_to_read(LimitMemory(), build.layout, Places(), facts()) == build.knobs.all
    more = knobs_to_read(LimitMemory(), build.layout, PLACES, facts(pods=(job(build),)))
    assert len(more) == len(build.knobs.all) + 7
    lists = knobs_to_read(LimitMemory(), build.layout, PLACES, facts(policy=SuppressPolicy.CPUSET))
    assert lists[len(build.knobs.all) :] == tuple(cpuset_knob(build.layout, path) for path in (POD, BOX))


def test_groups_of_pods_are_kept(build: Any) -> None:
    """As long as nothing that they follow from is another; what is read is the same with them."""
    told, memory = facts(pods=(job(build),)), LimitMemory()
    about: tuple[Any, ...] = (memory, build.layout, PLACES, told)
    first = pod_groups(PodGroups(), *about)
    assert first.groups and pod_groups(first, *about).groups is first.groups
    assert knobs_to_read(*about, first) == knobs_to_read(*about)
    others: list[tuple[Any, ...]] = [
        (replace(memory, counts_pids=False), build.layout, PLACES, told),
        (memory, build.layout, Places(), told),
        (memory, build.layout, PLACES, facts(pods=())),
        (memory, build.layout, PLACES, replace(told, suppress=replace(told.suppress, pod_pids_pct=None))),
    ]
    for other in others:
        now = pod_groups(first, *other)
        assert now.groups is not first.groups and now == pod_groups(PodGroups(), *other)
        assert knobs_to_read(*other, now) == knobs_to_read(*other)


def read_all(build: Any, memory: LimitMemory, told: LimitFacts, layout: Layout, **held: Any) -> dict[Any, KnobReading]:
    """The kernel before us: no limits, all CPUs, and what `held` says by file name."""
    files = {"cpuset.cpus": "0-7", "cpu.cfs_period_us": 100_000, "cpu.shares": 2, "cpu.weight": 1, "cpu.idle": 0}
    values = {**files, **held}
    return {
        knob: found if isinstance(found := values.get(knob.file, -1), KnobReading) else KnobReading(found)
        for knob in knobs_to_read(memory, layout, PLACES, told)
    }


def test_limits_of_pods(build: Any) -> None:
    """Settled in the tick after they are held; forgotten with their cgroup."""
    told, memory = facts(pods=(job(build),)), LimitMemory()
    seen = build.seen(10, places=PLACES, knobs=read_all(build, memory, told, build.layout))
    memory, limits = decide_limits(memory, build.layout, seen, build.usage(), told)
    quota = quota_knob(build.layout, POD)
    assert (limits.limits[quota].value, limits.decisions[quota].reason) == (50_000, Reason.BATCH_RESOURCES)
    assert {limit.knob for limit in limits.of_all} == {build.knobs.quota, build.weight, build.period, build.knobs.pids}
    assert limits.limited_pods == 1
    assert memory.knob_schedule.in_force == ()
    held = read_all(build, memory, told, build.layout) | {
        k: KnobReading(x.value, x.value) for k, x in limits.limits.items()
    }
    memory, _ = decide_limits(memory, build.layout, replace(seen, knobs=held), build.usage(), told)
    assert len(memory.knob_schedule.in_force) == 6
    memory, _ = decide_limits(memory, build.layout, replace(seen, places=Places()), build.usage(), told)
    assert memory.knob_schedule.in_force == ()


def test_quotas_in_the_way_of_the_brake(build: Any) -> None:
    """On v1 the largest first; v2 lets a child have more than its parent."""
    for layout, expected in ((build.layout, [(POD, 50_000), (BOX, 50_000)]), (V2, [])):
        told = facts(pods=(job(build),))
        seen = build.seen(10, places=PLACES, knobs=read_all(build, LimitMemory(), told, layout))
        _, limits = decide_limits(LimitMemory(), layout, seen, build.usage(), told)
        assert limits.brake is not None
        assert [(knob.cgroup, value) for knob, value in limits.brake.narrow_first] == expected


def test_a_pod_above_the_ceiling_is_in_nobodys_way(build: Any) -> None:
    """It has no quota of its own on v1, since the root's is tighter: nothing of it has to be narrower first."""
    told = facts(pods=(job(build, cpu=2000),))
    seen = build.seen(10, places=PLACES, knobs=read_all(build, LimitMemory(), told, build.layout))
    _, limits = decide_limits(LimitMemory(), build.layout, seen, build.usage(), told)
    assert limits.limits[quota_knob(build.layout, POD)].value == -1
    assert limits.brake is not None and limits.brake.narrow_first == ()


MACHINE = tuple(Processor(cpu, cpu, 0, 0) for cpu in range(8))


def cpus(build: Any, at: float, memory: LimitMemory, readings: Any, **more: Any) -> tuple[LimitMemory, NodeLimits]:
    """65 % of 8 CPUs less 1600m: 3600m, 4 CPUs."""
    usage = build.usage(pods={"uid-web": build.averages(1500)}, online=build.averages(1500))
    node = NodeSample(0, 1 << 30, 8)
    seen = build.seen(at, places=PLACES, node=build.node(8000), node_sample=node, knobs=readings)
    return decide_limits(memory, build.layout, seen, usage, facts(processors=MACHINE, **more))


def test_policy_cpuset_and_back(build: Any) -> None:
    """Lists are set, then the quota is released; with another policy it is the other way round."""
    root = build.knobs.cpuset
    on, off = facts(policy=SuppressPolicy.CPUSET), facts()
    quota = KnobReading(60_000, 60_000, -1)
    readings = read_all(build, LimitMemory(), on, build.layout, **{"cpu.cfs_quota_us": quota})
    memory, limits = cpus(build, 10, LimitMemory(), readings, policy=SuppressPolicy.CPUSET)
    assert {limit.value for knob, limit in limits.limits.items() if knob.file == root.file} == {"0-3"}
    assert limits.limits[build.knobs.quota].value == 60_000
    assert limits.decisions[build.knobs.quota].reason is Reason.CPUS_HELD
    assert limits.brake is not None and limits.brake.ceiling_us == 60_000
    ours = KnobReading("0-3", "0-3", "0-7")
    readings = read_all(build, memory, on, build.layout, **{"cpu.cfs_quota_us": quota, "cpuset.cpus": ours})
    memory, limits = cpus(build, 11, memory, readings, policy=SuppressPolicy.CPUSET)
    assert limits.limits[build.knobs.quota].value == -1
    assert limits.decisions[build.knobs.quota].reason is Reason.KNOB_RELEASED
    assert limits.ceiling is limits.decisions[root] and limits.ceiling.value == 4
    assert limits.brake is not None and limits.brake.knob == build.knobs.quota
    assert (limits.brake.ceiling_us, limits.brake.base_us - 150_000) == (400_000, 400_000)
    readings = read_all(build, memory, off, build.layout, **{"cpuset.cpus": ours})
    memory, limits = cpus(build, 12, memory, readings)
    assert limits.ceiling is limits.decisions[build.knobs.quota] and limits.ceiling.value == 600_000
    assert root not in limits.limits
    held = {"cpuset.cpus": ours, "cpu.cfs_quota_us": KnobReading(600_000, 600_000, -1)}
    memory, limits = cpus(build, 13, memory, read_all(build, memory, off, build.layout, **held))
    lists = {limit.value: limit.decision.reason for knob, limit in limits.limits.items() if knob.file == root.file}
    assert lists == {"0-7": Reason.KNOB_RELEASED}
    assert limits.ceiling is limits.decisions[build.knobs.quota] and limits.ceiling.value == 600_000
    done = KnobReading("0-7", "0-7", "0-7")
    memory, limits = cpus(
        build, 14, memory, read_all(build, memory, off, build.layout, **{**held, "cpuset.cpus": done})
    )
    assert root not in limits.limits
    assert knobs_to_read(memory, build.layout, PLACES, off) == build.knobs.all


REFUSED: dict[str, Any] = {
    "a write that is refused": "0-7",
    "another program that widens it again": KnobReading("0-7", "0-3", "0-7"),
    "an older list of ours that cannot be narrowed": KnobReading("0-6", "0-6", "0-7"),
    "a list that cannot be read": Missing("/cpuset", Absence.UNREADABLE, "EIO"),
}


@pytest.mark.parametrize("list_", REFUSED.values(), ids=REFUSED)
def test_a_list_that_is_not_in_force_has_a_quota_in_its_stead(build: Any, list_: Any) -> None:
    """From the tick after it was decided, as policy cfsQuota has it, and the brake cuts by it; lifted with the list."""
    on, quota = facts(policy=SuppressPolicy.CPUSET), build.knobs.quota
    readings = read_all(build, LimitMemory(), on, build.layout, **{"cpuset.cpus": list_})
    memory, limits = cpus(build, 10, LimitMemory(), readings, policy=SuppressPolicy.CPUSET)
    assert limits.limits[quota].value == -1
    memory, limits = cpus(build, 11, memory, readings, policy=SuppressPolicy.CPUSET)
    # 65 % of 800,000 less 160,000
    assert limits.limits[quota].value == 360_000
    assert limits.ceiling is limits.decisions[quota] and limits.ceiling.reason is Reason.QUOTA_LOWERED
    assert "in the CPU list's stead" in limits.ceiling.detail
    assert limits.brake is not None and limits.brake.ceiling_us == 360_000 and limits.brake.knob == quota
    kept = {"cpuset.cpus": KnobReading("0-3", "0-3", "0-7"), "cpu.cfs_quota_us": KnobReading(360_000, 360_000, -1)}
    memory, limits = cpus(
        build, 12, memory, read_all(build, memory, on, build.layout, **kept), policy=SuppressPolicy.CPUSET
    )
    assert limits.limits[quota].value == -1 and limits.decisions[quota].reason is Reason.KNOB_RELEASED


def test_a_list_that_is_narrowed_tick_by_tick_needs_no_quota(build: Any) -> None:
    """What was decided a tick ago is in force; that it is to be narrower now is no loss."""
    on = facts(policy=SuppressPolicy.CPUSET)
    memory, _ = cpus(
        build, 10, LimitMemory(), read_all(build, LimitMemory(), on, build.layout), policy=SuppressPolicy.CPUSET
    )
    wider = {"cpuset.cpus": KnobReading("0-3", "0-3", "0-7")}
    readings = read_all(build, memory, on, build.layout, **wider)
    _, limits = cpus(build, 11, memory, readings, policy=SuppressPolicy.CPUSET, system_cpus=(0, 1, 2, 3, 4, 5))
    assert limits.limits[build.knobs.cpuset].value != "0-3"
    assert limits.limits[build.knobs.quota].value == -1


HALF_KNOWN: dict[str, tuple[dict[str, Any], Any, Reason]] = {
    "no processors": ({"processors": ()}, True, Reason.CPUS_HELD),
    "no pods": ({"pods": None}, True, Reason.PODS_UNKNOWN),
    "no usage": ({}, False, Reason.NODE_METRICS_MISSING),
    "no list of CPUs to read": ({"cpus": Missing("/cpuset", Absence.UNREADABLE, "EIO")}, True, Reason.CPUS_HELD),
}


@pytest.mark.parametrize(("more", "used", "reason"), HALF_KNOWN.values(), ids=HALF_KNOWN.keys())
def test_without_a_list_the_quota_stands(build: Any, more: dict[str, Any], used: bool, reason: Reason) -> None:
    """Policy cpuset lifts no ceiling in whose place it has none."""
    more = dict(more)
    held = {"cpu.cfs_quota_us": KnobReading(60_000, 60_000, -1), "cpuset.cpus": more.pop("cpus", "0-7")}
    told = facts(**{"policy": SuppressPolicy.CPUSET, "processors": MACHINE, **more})
    seen = build.seen(10, node=build.node(8000), knobs=read_all(build, LimitMemory(), told, build.layout, **held))
    _, limits = decide_limits(LimitMemory(), build.layout, seen, build.usage() if used else None, told)
    found = limits.decisions[build.knobs.quota]
    assert (found.value, found.reason) == (60_000, reason)


NO_QUOTA: dict[str, tuple[KnobReading, bool, bool]] = {
    "nothing is measured": (KnobReading(60_000, 60_000, -1), False, True),
    "not written, or refused": (KnobReading(-1), True, True),
    "another program undoes it": (KnobReading(-1, 60_000, -1), True, True),
    "looser than it shall be": (KnobReading(790_000, 790_000, -1), True, True),
    "it cannot be read": (KnobReading(Missing("/cpu", Absence.UNREADABLE, "EIO"), 60_000, -1), True, True),
    "in force": (KnobReading(60_000, 60_000, -1), True, False),
    "somebody holds less": (KnobReading(5_000, None, 5_000), True, False),
}


@pytest.mark.parametrize(("quota", "used", "stand"), NO_QUOTA.values(), ids=NO_QUOTA.keys())
def test_without_a_quota_the_lists_stand(build: Any, quota: KnobReading, used: bool, stand: bool) -> None:
    """The other way round: they are given back in a tick that knows the quota for their place and finds it in force."""
    told, held = facts(), {"cpuset.cpus": KnobReading("0-3", "0-3", "0-7"), "cpu.cfs_quota_us": quota}
    seen = build.seen(10, knobs=read_all(build, LimitMemory(), told, build.layout, **held))
    _, limits = decide_limits(LimitMemory(), build.layout, seen, build.usage() if used else None, told)
    found = [limit.value for knob, limit in limits.limits.items() if knob == build.knobs.cpuset]
    assert found == ([] if stand else ["0-7"])


def test_without_suppression_the_lists_go(build: Any) -> None:
    """No quota is wanted in their place."""
    told, ours = facts(enable=False), KnobReading("0-3", "0-3", "0-7")
    seen = build.seen(10, knobs=read_all(build, LimitMemory(), told, build.layout, **{"cpuset.cpus": ours}))
    _, limits = decide_limits(LimitMemory(), build.layout, seen, None, told)
    assert limits.limits[build.knobs.cpuset].value == "0-7"


def test_reading_every_list_does_not_make_every_pod_due(build: Any) -> None:
    """Only one pod in ten is looked at again while nothing changes, also under policy cpuset of v1."""
    pods = [replace(job(build), name=f"job{i}", uid=f"uid-{i}") for i in range(20)]
    paths = {pod.uid: PodPlace(f"{POD}{i}", {"main": f"{POD}{i}/main"}) for i, pod in enumerate(pods)}
    below = tuple(path for place in paths.values() for path in (place.path, *place.containers.values()))
    places, memory = Places(paths, below), LimitMemory()
    told = facts(policy=SuppressPolicy.CPUSET, processors=MACHINE, pods=tuple(pods))
    kernel: dict[Any, KnobReading] = {}
    for second in range(12):
        read = knobs_to_read(memory, build.layout, places, told)
        fresh = {"cpuset.cpus": "0-7", "cpu.cfs_period_us": 100_000, "cpu.shares": 2, "cpu.idle": 0}
        knobs = {knob: kernel.get(knob, KnobReading(fresh.get(knob.file, -1))) for knob in read}
        seen = build.seen(10 + second, places=places, node=build.node(8000), knobs=knobs)
        memory, limits = decide_limits(memory, build.layout, seen, build.usage(), told)
        kernel |= {knob: KnobReading(limit.value, limit.value) for knob, limit in limits.limits.items()}
    read = knobs_to_read(memory, build.layout, places, told)
    assert len({knob.cgroup for knob in read if knob.file == "cpu.shares"} & {paths[p.uid].path for p in pods}) == 2
    assert limits.limited_pods == 20


def test_excluded_cpus(build: Any) -> None:
    """Reserved, and the system's own."""
    readings = read_all(build, LimitMemory(), facts(policy=SuppressPolicy.CPUSET), build.layout)
    more = {"policy": SuppressPolicy.CPUSET, "reserved_cpus": (0,), "system_cpus": (2, 3)}
    _, limits = cpus(build, 10, LimitMemory(), readings, **more)
    assert limits.limits[build.knobs.cpuset].value == "1,4-6"
    del more["policy"]
    _, limits = cpus(build, 10, LimitMemory(), readings, policy=SuppressPolicy.CPUSET, pods=None)
    assert limits.ceiling.reason is Reason.PODS_UNKNOWN and limits.limits[build.knobs.cpuset].value == "0-7"


def waiting(total_us: int) -> CgroupSample:
    return CgroupSample(0, 0, pressure=CgroupPressure(cpu_some=Stall(total_us=total_us)))


def test_online_pods_that_wait(build: Any) -> None:
    """Best effort is cut to half of the 200m it uses, and the brake knows the cut before and after."""
    quota, memory = 140_000, LimitMemory()
    found = []
    for second, total in ((10, 0), (11, 0), (12, 900_000), (13, 1_800_000)):
        readings = build.readings(KnobReading(quota, quota, -1))
        seen = build.seen(second, burstable=waiting(total), places=PLACES, knobs=readings)
        memory, limits = decided(build, seen, build.usage(), memory, online_stall_pct=10)
        quota = int(limits.limits[build.knobs.quota].value)
        assert limits.brake is not None
        found.append((quota, limits.brake.suffering_us, limits.ceiling.reason))
    assert found == [
        (140_000, 10_000, Reason.BELOW_DEADBAND),
        (140_000, 10_000, Reason.BELOW_DEADBAND),
        (10_000, 10_000, Reason.ONLINE_SUFFERING),
        (5_000, 5_000, Reason.ONLINE_SUFFERING),
    ]
    assert limits.online == ("/kubepods/burstable",)


def test_a_cut_by_the_brake_for_pods_that_wait_stands(build: Any) -> None:
    """It is known by its value; another cut is only given its rest."""
    memory, first = decided(build, build.seen(10, places=PLACES), build.usage())
    assert first.brake is not None and first.brake.suffering_us == 10_000
    for value, cap in ((10_000, 10_000), (9_000, None)):
        readings = build.readings(KnobReading(value, value, -1))
        seen = build.seen(11, places=PLACES, knobs=readings, last_cut_monotonic=10.5, brake_cuts=1)
        after, _ = decided(build, seen, build.usage(), memory)
        assert after.stalls.relief.cap_us == cap


def test_nobody_to_listen_to(build: Any) -> None:
    """Without a threshold for waiting the brake has nothing prepared for it."""
    _, limits = decided(build, build.seen(10, places=PLACES), build.usage(), online_stall_pct=None)
    assert limits.brake is not None and (limits.brake.suffering_us, limits.online) == (None, ())


def test_memory_room(build: Any) -> None:
    """On v2 the root's memory.high, where a batch pod runs; marks on both."""
    told = facts(eviction=EvictionStrategy(memory_threshold_pct=50))
    for layout in (build.layout, V2):
        knobs = read_all(build, LimitMemory(), told, layout)
        seen = build.seen(10, knobs=knobs, places=PLACES, listed=(build.batch("job"),))
        _, limits = decide_limits(LimitMemory(), layout, seen, build.usage(), told)
        high = {knob.file: limit.value for knob, limit in limits.limits.items() if limit.decision.unit is Unit.BYTES}
        assert high == ({"memory.high": 3 << 30} if layout is V2 else {})
        assert limits.memory_marks[0] == MemoryMark("/kubepods/besteffort", 3 << 30)


def test_idle(build: Any) -> None:
    """Only while suppression is on."""
    readings = read_all(build, LimitMemory(), facts(), build.layout)
    for enable, expected in ((True, 1), (False, None)):
        _, limits = decided(build, build.seen(10, knobs=readings), build.usage(), enable=enable, cpu_idle=True)
        limit = limits.limits.get(build.knobs.idle)
        assert (limit.value if limit else None) == expected


def test_what_is_remembered_goes_through_a_journal(build: Any) -> None:
    """A replay starts from it."""
    told = facts(pods=(job(build),), policy=SuppressPolicy.CPUSET, processors=MACHINE)
    seen = build.seen(10, burstable=waiting(0), places=PLACES, knobs=read_all(build, LimitMemory(), told, build.layout))
    memory, _ = decide_limits(LimitMemory(), build.layout, seen, build.usage(), told)
    later = replace(seen, monotonic_seconds=11.0, burstable=waiting(500_000))
    memory, limits = decide_limits(memory, build.layout, later, build.usage(), told)
    assert msgspec.json.decode(msgspec.json.encode(memory), type=LimitMemory) == memory
    assert all(limit.knob == knob for knob, limit in limits.limits.items())


OWN = "/kubepods/podown/main"
WITH_OWN = Places(
    {**PLACES.pods, "uid-own": PodPlace("/kubepods/podown", {"main": OWN})}, best_effort=PLACES.best_effort
)


def with_own(build: Any, at: float, memory: LimitMemory, listing: Any, **more: Any) -> tuple[LimitMemory, NodeLimits]:
    """A quota is best effort's ceiling; `listing` is the CPU list of the root, whose original has all eight CPUs."""
    told = facts(processors=MACHINE, **more)
    read = knobs_to_read(memory, build.layout, WITH_OWN, told)
    lists = {knob: KnobReading("0-7") for knob in read if knob.file == "cpuset.cpus"}
    readings = read_all(build, memory, told, build.layout) | {knob: lists.get(knob, KnobReading(-1)) for knob in read}
    readings |= {build.knobs.cpuset: listing, build.knobs.quota: KnobReading(600_000, 600_000, -1)}
    node = NodeSample(0, 1 << 30, 8)
    seen = build.seen(at, places=WITH_OWN, node=build.node(8000), node_sample=node, knobs=readings)
    usage = build.usage(pods={"uid-web": build.averages(1500)}, online=build.averages(1500))
    return decide_limits(memory, build.layout, seen, usage, told)


def listed(build: Any, limits: NodeLimits) -> dict[str, Any]:
    found = {knob.cgroup: limit.value for knob, limit in limits.limits.items() if knob.file == "cpuset.cpus"}
    return {path: value for path, value in found.items() if path in (build.layout.best_effort, POD, OWN)}


def test_an_lse_pod_has_its_cpus(build: Any) -> None:
    """Its container is put on them and best effort kept off, also where a quota is the ceiling; while pods are unknown,
    or the pod's status is lost, nothing changes; once it is gone, best effort has all again."""
    own = with_fields(build.pod("own"), qos_label=QoSClass.LSE, cpuset="2-3")
    lost = with_fields(own, cpuset="")
    untouched, ours = KnobReading("0-7"), KnobReading("0-1,4-7", "0-1,4-7", "0-7")
    expected = {build.layout.best_effort: "0-1,4-7", POD: "0-1,4-7", OWN: "2-3"}
    memory, limits = with_own(build, 10, LimitMemory(), untouched, pods=(own, job(build)))
    assert listed(build, limits) == expected
    assert limits.decisions[build.knobs.cpuset].reason is Reason.CPUS_KEPT_OFF
    assert limits.ceiling is limits.decisions[build.knobs.quota]
    memory, limits = with_own(build, 11, memory, ours, pods=(lost, job(build)))
    assert listed(build, limits) == expected
    memory, limits = with_own(build, 12, memory, ours, pods=None)
    assert build.knobs.cpuset not in limits.limits
    memory, limits = with_own(build, 13, memory, ours, pods=(job(build),))
    assert listed(build, limits)[build.layout.best_effort] == "0-7"
    assert limits.decisions[build.knobs.cpuset].reason is Reason.KNOB_RELEASED


def test_an_lsr_pod_shares_its_cpus_with_best_effort(build: Any) -> None:
    """As Koordinator has it; its container keeps to them all the same."""
    own = with_fields(build.pod("own"), qos_label=QoSClass.LSR, cpuset="2-3")
    _, limits = with_own(build, 10, LimitMemory(), KnobReading("0-7"), pods=(own,))
    assert listed(build, limits) == {OWN: "2-3"}
    assert limits.not_given == ()


def test_cpus_that_are_not_there(build: Any) -> None:
    """Said of the container, and best effort keeps off what there is of them."""
    own = with_fields(build.pod("own"), qos_label=QoSClass.LSE, cpuset="7-8")
    _, limits = with_own(build, 10, LimitMemory(), KnobReading("0-7"), pods=(own,))
    assert [limit.knob.cgroup for limit in limits.not_given] == [OWN]
    assert listed(build, limits) == {build.layout.best_effort: "0-6", POD: "0-6", OWN: "0-7"}


@pytest.mark.parametrize(("quota", "read"), [(20_000, False), (60_000, True)])
def test_quotas_of_pods_are_read_where_the_ceiling_may_fall_to_them(build: Any, quota: int, read: bool) -> None:
    """Also while there is none: from all CPUs (200,000 us here) it falls to a fourth of that at once, or later."""
    knob = quota_knob(build.layout, BOX)
    decision = Decision(knob.subject, knob.file, quota, Unit.MICROSECONDS, Reason.BATCH_RESOURCES, (Term("x", quota),))
    schedule = KnobSchedule(in_force=(Limit(knob, quota, decision),), turn=5)
    memory = LimitMemory(size=NodeSize(2000), knob_schedule=schedule)
    groups = PodGroups(groups=((knob,),))
    assert (knob in knobs_to_read(memory, build.layout, PLACES, facts(), groups)) is read
    assert knob in knobs_to_read(replace(memory, size=None), build.layout, PLACES, facts(), groups)


def test_who_is_watched() -> None:
    """Whom the brake listens to, and containers whose quota may be raised."""
    raised = QuotaBurstMemory({BOX: Tokens(1.0, 2, 3, 4, 5.0)})
    assert LimitMemory(stalls=StallMemory(heard=(POD,)), quota_bursts=raised).watched == Watched((POD,), raised.tokens)
