"""What CPU QoS and clamps write."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.cpu_qos.values import clamps_of_pods, identity_and_idle, tier_clamps, tier_identities
from agent.core.limit.cpu_qos.wishes import CpuWishes, tier_knobs, wanted_pod_knobs, wishes
from agent.core.observe.knob_table import Strategy
from agent.core.observe.knobs import cpu_qos_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Places, PodPlace
from model.pod.spec import Container
from model.qos import USUAL_CPU, CpuQos, CpuQosStrategy, UclampStrategy
from model.reason import Reason
from tests.agent.core.limit.cpu_qos.cpu_kernel import CpuKernel
from tests.agent.core.limit.cpu_qos.test_wishes import CLAMPS, NO_CLAMPS, batch
from tests.pods import with_fields

V2 = Layout(version=2)
WEB, JOB = "/kubepods/burstable/poduid-web", "/kubepods/besteffort/poduid-job"
IDENTITY, MIN, MAX = "cpu.bvt_warp_ns", "cpu.uclamp.min", "cpu.uclamp.max"
BOTH = CpuQosStrategy(ls=CpuQos(2), be=CpuQos(-1))


def pods(build: Any) -> Any:
    return with_fields(build.pod("web"), containers=(Container("main"),)), batch(build)


@pytest.mark.parametrize("layout", [Layout(), V2], ids=["cgroup v1", "cgroup v2"])
def test_on_and_off(build: Any, layout: Layout) -> None:
    """Written once and looked at in turn; nothing is read where nothing is wanted; off, all is as it was before."""
    kernel, both = CpuKernel(build, layout), pods(build)
    kernel.run(12, both)
    assert kernel.looked_at() == 0
    limits = kernel.run(25, both, cpu_qos=BOTH, uclamp=CLAMPS)
    assert kernel.changed(Strategy.CPU_QOS) == {
        ("/kubepods/burstable", IDENTITY): 2,
        ("/kubepods/besteffort", IDENTITY): -1,
        (WEB, IDENTITY): 2,
        (f"{WEB}/main", IDENTITY): 2,
        (JOB, IDENTITY): -1,
        (f"{JOB}/main", IDENTITY): -1,
    }
    assert kernel.changed(Strategy.UCLAMP) == {
        ("/kubepods", MIN): 20,
        ("/kubepods/burstable", MIN): 20,
        ("/kubepods/besteffort", MAX): 40,
        (WEB, MIN): 20,
        (f"{WEB}/main", MIN): 20,
    }
    assert limits.absent_files == ()
    counts = [(kernel.run(1, both, cpu_qos=BOTH, uclamp=CLAMPS), kernel.looked_at())[1] for _ in range(10)]
    # Those of the tiers alone, and each pod's once in ten ticks; a batch pod with a quota each tick on cgroup v1.
    assert sum(counts) == 10 * 5 + 4 + (2 if layout.version == 2 else 20)
    kernel.run(12, both)
    assert kernel.changed(Strategy.CPU_QOS, Strategy.UCLAMP) == {} and kernel.looked_at() == 0
    assert kernel.held[Knob(f"{JOB}/main", "cpu" if layout.version == 1 else "", IDENTITY)] == 0


def test_what_a_kernel_lacks(build: Any) -> None:
    """Is named, and not looked for again."""
    kernel, both = CpuKernel(build, V2, (IDENTITY, MIN, MAX, "cpu.idle")), pods(build)
    strategy = CpuQosStrategy(ls=CpuQos(2), be=CpuQos(-1, idle=True))
    limits = kernel.run(12, both, cpu_qos=strategy, uclamp=CLAMPS)
    assert limits.absent_files == (IDENTITY, "cpu.idle", MAX, MIN)
    assert kernel.looked_at() == 0 and kernel.changed(Strategy.CPU_QOS, Strategy.UCLAMP) == {}


def test_a_container_that_was_born_with_its_pods_identity(build: Any) -> None:
    """The kernel hands it down: what the pod had before us is the container's original, too."""
    kernel, both = CpuKernel(build, V2), pods(build)
    kernel.run(12, both, cpu_qos=BOTH)
    kernel.held[Knob(f"{WEB}/late", "", IDENTITY)] = 2
    late = (with_fields(both[0], containers=(Container("main"), Container("late"))), both[1])
    kernel.run(12, late, cpu_qos=BOTH)
    assert (f"{WEB}/late", IDENTITY) in kernel.changed(Strategy.CPU_QOS)
    kernel.run(12, late)
    assert kernel.held[Knob(f"{WEB}/late", "", IDENTITY)] == 0


CLAMPED: dict[str, tuple[KnobReading, int | None]] = {
    "nothing stood there": (KnobReading(0), 20),
    "more stood there": (KnobReading(50), 50),
    "more stood there, ours by now": (KnobReading(50, 50, 50), 50),
    "less stood there": (KnobReading(5), 20),
    "less stood there, ours by now": (KnobReading(20, 20, 5), 20),
    "gone": (KnobReading(Missing("/x", Absence.GONE)), None),
}


@pytest.mark.parametrize(("reading", "expected"), CLAMPED.values(), ids=CLAMPED)
def test_a_clamp_is_never_worse_than_before(build: Any, reading: KnobReading, expected: int | None) -> None:
    """The terms say what stood there."""
    web = pods(build)[0]
    now = wishes(CpuWishes(), CpuQosStrategy(), CLAMPS, (web,))
    places = Places({web.uid: PodPlace(WEB, {"main": f"{WEB}/main"})})
    knob = cpu_qos_knob(V2, f"{WEB}/main", MIN)
    found = [*clamps_of_pods(V2, build.seen(knobs={knob: reading}, places=places), now)]
    assert [limit.value for limit in found] == ([] if expected is None else [expected])
    assert {limit.decision.reason for limit in found} <= {Reason.UCLAMP}
    assert all(limit.decision.detail == "pod default/web, container main" for limit in found)


def test_a_tighter_clamp_above_best_effort_stays(build: Any) -> None:
    now = wishes(CpuWishes(), CpuQosStrategy(), UclampStrategy(be_max_pct=40), ())
    knob = cpu_qos_knob(V2, V2.best_effort, MAX)
    for reading, expected in ((KnobReading(100), 40), (KnobReading(30), 30), (KnobReading(30, 30, 25), 25)):
        (limit,) = tier_clamps(V2, build.seen(knobs={knob: reading}), now)
        assert limit.value == limit.decision.value == expected


def test_identities(build: Any, terms: Any) -> None:
    """Of each file that was read; kubepods keeps what it has."""
    both = pods(build)
    now = wishes(CpuWishes(), USUAL_CPU, NO_CLAMPS, both)
    places = Places(
        {"uid-web": PodPlace(WEB, {"main": f"{WEB}/main"}), "uid-job": PodPlace(JOB, {"main": f"{JOB}/main"})}
    )
    knobs = [knob for pod in both for knob in wanted_pod_knobs(now, V2, places, pod)]
    seen = build.seen(knobs=dict.fromkeys((*knobs, *tier_knobs(now, V2)), KnobReading(0)), places=places)
    of_pods = {limit.knob.cgroup: limit for limit in identity_and_idle(V2, seen, now)}
    assert {cgroup: limit.value for cgroup, limit in of_pods.items()} == {
        WEB: 2,
        f"{WEB}/main": 2,
        JOB: -1,
        f"{JOB}/main": -1,
    }
    assert terms(of_pods[JOB].decision) == {"groupIdentity": -1}
    assert of_pods[JOB].decision.reason is Reason.CPU_QOS
    assert {limit.knob.cgroup: limit.value for limit in tier_identities(V2, seen, now)} == {
        "/kubepods/burstable": 2,
        "/kubepods/besteffort": -1,
    }
