"""Which pods have a CPU QoS or a clamp, which files that needs, and when they are read."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.cpu_qos.wishes import (
    CpuQosMemory,
    CpuWish,
    CpuWishes,
    cpu_qos_memory,
    ending,
    knobs_to_read,
    pod_knobs,
    tier_knobs,
    wanted_pod_knobs,
    wishes,
)
from agent.core.observe.knobs import cpu_qos_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, KnobReading, Missing, Places, PodPlace
from model.pod.pod import Pod
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import USUAL_CPU, CpuQos, CpuQosStrategy, KubernetesQoS, PriorityBand, QoSClass, UclampStrategy
from model.resources import BATCH_CPU, MID_CPU, ResourceVector
from tests.pods import with_fields

V1 = Layout()
PATH, JOB = "/kubepods/burstable/podweb", "/kubepods/besteffort/podjob"
PLACES = Places({"uid-web": PodPlace(PATH, {"main": f"{PATH}/main"}), "uid-job": PodPlace(JOB, {"main": f"{JOB}/m"})})
GONE = KnobReading(Missing("/x", Absence.GONE))
NO_CLAMPS = UclampStrategy()
CLAMPS = UclampStrategy(lsr_min_pct=60, ls_min_pct=20, be_max_pct=40)
IDLE = CpuQosStrategy(be=CpuQos(idle=True))


def batch(build: Any, name: str = "job", **more: Any) -> Pod:
    amounts = ResourceVector({BATCH_CPU: 500})
    found: Pod = with_fields(build.batch(name), containers=(Container("main", amounts, amounts),), **more)
    return found


WHO: dict[str, tuple[Any, CpuQosStrategy, UclampStrategy, CpuWish]] = {
    "LS": (lambda build: build.pod("web"), USUAL_CPU, CLAMPS, CpuWish(identity=2, min_pct=20)),
    "LSE as LSR": (
        lambda build: build.pod("web", qos=QoSClass.LSE, kubernetes=KubernetesQoS.GUARANTEED),
        CpuQosStrategy(lsr=CpuQos(1)),
        CLAMPS,
        CpuWish(identity=1, min_pct=60),
    ),
    "BE": (batch, USUAL_CPU, CLAMPS, CpuWish(identity=-1)),
    "SYSTEM": (lambda build: build.pod("web", qos=QoSClass.SYSTEM), USUAL_CPU, CLAMPS, CpuWish()),
    "a class that is off": (lambda build: build.pod("web"), CpuQosStrategy(be=CpuQos(-1)), NO_CLAMPS, CpuWish()),
    "cpu_identity: an LS pod's own": (
        lambda build: with_fields(build.pod("web"), cpu_identity=1),
        USUAL_CPU,
        NO_CLAMPS,
        CpuWish(identity=1),
    ),
    "cpu_identity of another class": (
        lambda build: batch(build, cpu_identity=2),
        USUAL_CPU,
        NO_CLAMPS,
        CpuWish(identity=-1),
    ),
    "cpu_identity of a class that is off": (
        lambda build: with_fields(build.pod("web"), cpu_identity=1),
        CpuQosStrategy(),
        CLAMPS,
        CpuWish(min_pct=20),
    ),
    "Guaranteed without a label, lsr off": (
        lambda build: with_fields(build.pod("web"), qos=QoSClass.LSR, qos_label=QoSClass.NONE),
        CpuQosStrategy(ls=CpuQos(2)),
        NO_CLAMPS,
        CpuWish(identity=2),
    ),
    "idle": (batch, IDLE, NO_CLAMPS, CpuWish(idle=True)),
    "idle: a mid pod of class BE": (
        lambda build: with_fields(
            build.batch("mid"),
            band=PriorityBand.MID,
            containers=(Container("main", ResourceVector({MID_CPU: 500})),),
        ),
        IDLE,
        NO_CLAMPS,
        CpuWish(idle=True),
    ),
    "idle asks for lent CPU": (lambda build: build.batch("job"), IDLE, NO_CLAMPS, CpuWish()),
    "idle is for best effort alone": (
        lambda build: build.pod("web"),
        CpuQosStrategy(ls=CpuQos(idle=True)),
        NO_CLAMPS,
        CpuWish(),
    ),
    "done": (lambda build: build.pod("web", phase=PodPhase.SUCCEEDED), USUAL_CPU, CLAMPS, CpuWish()),
}


@pytest.mark.parametrize(("make", "strategy", "clamps", "expected"), WHO.values(), ids=WHO)
def test_who_has_one(
    build: Any, make: Any, strategy: CpuQosStrategy, clamps: UclampStrategy, expected: CpuWish
) -> None:
    """By class, and of LS pods by their own words."""
    pod = make(build)
    assert wishes(CpuWishes(), strategy, clamps, (pod,)).by_uid.get(pod.uid, CpuWish()) == expected


FILES: dict[str, tuple[CpuQosStrategy, UclampStrategy, set[str]]] = {
    "nothing": (CpuQosStrategy(), NO_CLAMPS, set()),
    "classes of identity 0": (CpuQosStrategy(ls=CpuQos(0), be=CpuQos(0)), NO_CLAMPS, set()),
    "identities": (USUAL_CPU, NO_CLAMPS, {"cpu.bvt_warp_ns"}),
    "idle": (IDLE, NO_CLAMPS, {"cpu.idle"}),
    "clamps": (CpuQosStrategy(), CLAMPS, {"cpu.uclamp.min", "cpu.uclamp.max"}),
    "clamps that clamp nothing": (CpuQosStrategy(), UclampStrategy(ls_min_pct=0, be_max_pct=100), set()),
    "be_max_pct of 0": (CpuQosStrategy(), UclampStrategy(be_max_pct=0), {"cpu.uclamp.max"}),
}


@pytest.mark.parametrize(("strategy", "clamps", "expected"), FILES.values(), ids=FILES)
def test_files(build: Any, strategy: CpuQosStrategy, clamps: UclampStrategy, expected: set[str]) -> None:
    """A neutral value needs none."""
    found = wishes(CpuWishes(), strategy, clamps, (build.pod("web"), batch(build)))
    assert found.files == expected
    assert wishes(found, strategy, clamps, found.pods) is found


def test_nothing_is_read_where_nothing_is_asked(build: Any) -> None:
    """Of what is asked for, kubepods' files once, to learn which there are; then those of tiers and pods."""
    web, job = build.pod("web"), batch(build)
    nothing = wishes(CpuWishes(), CpuQosStrategy(), NO_CLAMPS, (web, job))
    assert [*knobs_to_read(CpuQosMemory(), nothing, V1)] == []
    now = wishes(CpuWishes(), USUAL_CPU, CLAMPS, (web, job))
    first = [*knobs_to_read(CpuQosMemory(), now, V1)]
    assert {(knob.cgroup, knob.controller, knob.file) for knob in first} == {
        ("/kubepods", "cpu", file) for file in ("cpu.bvt_warp_ns", "cpu.uclamp.min", "cpu.uclamp.max")
    }
    seen = build.seen(knobs={knob: GONE if knob.file == "cpu.bvt_warp_ns" else KnobReading(0) for knob in first})
    memory = cpu_qos_memory(CpuQosMemory(), now, V1, seen)
    assert memory.absent == ("cpu.bvt_warp_ns",)
    assert [(knob.cgroup, knob.file) for knob in knobs_to_read(memory, now, V1)] == [
        ("/kubepods", "cpu.uclamp.min"),
        ("/kubepods/burstable", "cpu.uclamp.min"),
        ("/kubepods/besteffort", "cpu.uclamp.max"),
    ]
    assert [(knob.cgroup, knob.file) for knob in pod_knobs(memory, now, V1, PLACES, web)] == [
        (PATH, "cpu.uclamp.min"),
        (f"{PATH}/main", "cpu.uclamp.min"),
    ]
    assert len([*wanted_pod_knobs(now, V1, PLACES, web)]) == 4, "whatever the kernel has"


def test_kubepods_that_is_out_of_sight_has_nothing_absent(build: Any) -> None:
    """A tree that is not mounted yet says nothing of the kernel."""
    now = wishes(CpuWishes(), USUAL_CPU, NO_CLAMPS, (build.pod("web"),))
    knobs = dict.fromkeys(knobs_to_read(CpuQosMemory(), now, V1), GONE)
    hidden = build.seen(knobs=knobs, kubepods=Missing("/kubepods", Absence.GONE))
    assert cpu_qos_memory(CpuQosMemory(), now, V1, hidden).absent == ()
    assert cpu_qos_memory(CpuQosMemory(), now, V1, build.seen(knobs=knobs)).absent == ("cpu.bvt_warp_ns",)


def test_tiers(build: Any) -> None:
    """Identities of the classes' cgroups, never of kubepods; the lower clamp of whatever is above pods."""
    now = wishes(CpuWishes(), USUAL_CPU, CLAMPS, (build.pod("web"), batch(build)))
    assert {(knob.cgroup, knob.file) for knob in tier_knobs(now, V1)} == {
        ("/kubepods/burstable", "cpu.bvt_warp_ns"),
        ("/kubepods/besteffort", "cpu.bvt_warp_ns"),
        ("/kubepods", "cpu.uclamp.min"),
        ("/kubepods/burstable", "cpu.uclamp.min"),
        ("/kubepods/besteffort", "cpu.uclamp.max"),
    }


def test_idle_ends(build: Any) -> None:
    """A pod that may be idle by us is remembered until its file says that it is not."""
    job = batch(build)
    on = wishes(CpuWishes(), IDLE, NO_CLAMPS, (job,))
    off = wishes(on, CpuQosStrategy(), NO_CLAMPS, (job,))
    root, knob = cpu_qos_knob(V1, V1.best_effort, "cpu.idle"), cpu_qos_knob(V1, JOB, "cpu.idle")
    memory = cpu_qos_memory(CpuQosMemory(), on, V1, build.seen(knobs={root: KnobReading(0)}, places=PLACES))
    assert memory.idle == {"uid-job"} and [*ending(memory, on, (job,))] == []
    assert [*pod_knobs(memory, on, V1, PLACES, job)] == [knob]
    assert [*ending(memory, off, (job,))] == [job]
    for reading, stays in ((KnobReading(1, 1, 0), True), (None, True), (KnobReading(0), False)):
        knobs = {} if reading is None else {knob: reading}
        after = cpu_qos_memory(memory, off, V1, build.seen(knobs=knobs, places=PLACES))
        assert bool(after.idle) is stays
    assert cpu_qos_memory(memory, off, V1, build.seen()).idle == frozenset(), "the pod is gone"
    assert [*pod_knobs(memory, on, V1, Places({"uid-job": PodPlace(PATH)}), job)] == [], "not below best effort"
