"""Which pods have a memory QoS, which files it needs, and when they are read."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.memory_qos.wishes import (
    MemoryQosMemory,
    MemoryWishes,
    knobs_to_read,
    memory_qos_memory,
    pod_knobs,
    tier_knobs,
    wanted_files,
    wishes,
)
from agent.core.observe.knobs import MEMORY_QOS_FILES, VENDOR_MEMORY_FILES, memory_qos_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, KnobReading, Missing, Places, PodPlace
from model.pod.status import PodPhase
from model.qos import RECOMMENDED, MemoryQos, MemoryQosPolicy, MemoryQosStrategy, PodMemoryQos, PriorityBand
from tests.pods import with_fields

V2 = Layout(version=2)
PATH = "/kubepods/burstable/podweb"
PLACES = Places({"uid-web": PodPlace(PATH, {"main": f"{PATH}/main"})}, ())
MAINLINE = {file: file not in VENDOR_MEMORY_FILES for file in MEMORY_QOS_FILES}
GONE = KnobReading(Missing("/x", Absence.GONE))

# memory QoS -> files of a container, those of a pod
FILES: dict[str, tuple[MemoryQos, set[str], set[str]]] = {
    "nothing": (MemoryQos(), set(), set()),
    "all neutral": (MemoryQos(0, 0, 0, None, None, None, 0, 0, 0), set(), set()),
    "kept": (MemoryQos(min_pct=1, low_pct=1), {"memory.min", "memory.low"}, {"memory.min", "memory.low"}),
    "slowed down": (MemoryQos(throttling_pct=80), {"memory.high"}, set()),
    "killed together": (MemoryQos(oom_kill_group=1), {"memory.oom.group"}, {"memory.oom.group"}),
    "a watermark of 0 is one": (MemoryQos(wmark_ratio=0), {"memory.wmark_ratio"}, {"memory.wmark_ratio"}),
    "priorities": (
        MemoryQos(priority_enable=1, priority=3),
        {"memory.use_priority_oom", "memory.priority"},
        {"memory.use_priority_oom", "memory.priority"},
    ),
}


@pytest.mark.parametrize(("qos", "container", "pod"), FILES.values(), ids=FILES)
def test_files(qos: MemoryQos, container: set[str], pod: set[str]) -> None:
    """A neutral value needs none."""
    assert set(wanted_files(qos)) == container
    assert set(wanted_files(qos, of_container=False)) == pod


def test_who_has_one(build: Any) -> None:
    """Pods of a class that is on, and those that say so themselves; nothing of best effort or mid is protected."""
    own = PodMemoryQos(fields=MemoryQos(min_pct=10, throttling_pct=80))
    strategy = MemoryQosStrategy(ls=MemoryQos(min_pct=50), be=MemoryQos(min_pct=50, low_pct=60, throttling_pct=70))
    pods = (
        build.pod("web"),
        with_fields(build.pod("own"), memory_qos=own),
        with_fields(build.pod("off"), memory_qos=PodMemoryQos(MemoryQosPolicy.NONE)),
        build.pod("done", phase=PodPhase.SUCCEEDED),
        build.batch("job"),
        with_fields(build.pod("mid"), band=PriorityBand.MID, memory_qos=own),
    )
    found = wishes(MemoryWishes(), strategy, pods)
    assert found.by_uid == {
        "uid-mid": MemoryQos(throttling_pct=80),
        "uid-web": MemoryQos(min_pct=50),
        "uid-own": MemoryQos(min_pct=10, throttling_pct=80),
        "uid-job": MemoryQos(throttling_pct=70),
    }
    assert found.files == {"memory.min", "memory.high"}
    assert wishes(found, strategy, pods) is found
    assert wishes(found, MemoryQosStrategy(), pods).by_uid.keys() == {"uid-own", "uid-mid"}


def test_nothing_is_read_where_nothing_is_asked(build: Any) -> None:
    """Of what is asked for, kubepods' files once, to learn which there are; then those of the tiers."""
    web = (build.pod("web"),)
    nothing = wishes(MemoryWishes(), MemoryQosStrategy(), web)
    assert [*knobs_to_read(MemoryQosMemory(), nothing, V2)] == []
    now = wishes(MemoryWishes(), MemoryQosStrategy(ls=MemoryQos(min_pct=50, wmark_ratio=95, priority=3)), web)
    first = [*knobs_to_read(MemoryQosMemory(), now, V2)]
    assert {(knob.cgroup, knob.file) for knob in first} == {("/kubepods", file) for file in now.files}
    seen = build.seen(knobs={knob: KnobReading(0) if MAINLINE[knob.file] else GONE for knob in first})
    memory = memory_qos_memory(MemoryQosMemory(), now, V2, seen)
    assert memory.absent == ("memory.priority", "memory.wmark_ratio")
    assert [knob.cgroup for knob in knobs_to_read(memory, now, V2)] == ["/kubepods", "/kubepods/burstable"]


def test_a_pod_and_its_container(build: Any) -> None:
    """What the wish needs."""
    strategy = MemoryQosStrategy(ls=MemoryQos(min_pct=50, throttling_pct=80, wmark_ratio=95))
    web = build.pod("web")
    now = wishes(MemoryWishes(), strategy, (web,))
    found = [knob for knob in pod_knobs(now, V2, PLACES, web) if knob.file != "memory.wmark_ratio"]
    assert set(found) == {
        memory_qos_knob(V2, PATH, "memory.min"),
        memory_qos_knob(V2, f"{PATH}/main", "memory.min"),
        memory_qos_knob(V2, f"{PATH}/main", "memory.high"),
    }
    assert [*pod_knobs(now, V2, Places(), web)] == [*pod_knobs(now, V2, PLACES, build.pod("other"))] == []
    assert memory_qos_knob(Layout(), PATH, "memory.min").controller == "memory"


def test_the_tiers(build: Any) -> None:
    """What is kept, of kubepods and burstable; priorities of best effort's root too."""
    web = build.pod("web")
    now = wishes(MemoryWishes(), MemoryQosStrategy(ls=MemoryQos(min_pct=50, priority=3)), (web,))
    found = [*tier_knobs(now, V2)]
    assert {(knob.cgroup, knob.file) for knob in found} == {
        ("/kubepods", "memory.min"),
        ("/kubepods/burstable", "memory.min"),
        ("/kubepods", "memory.priority"),
        ("/kubepods/burstable", "memory.priority"),
        ("/kubepods/besteffort", "memory.priority"),
    }


def test_kubepods_that_is_out_of_sight_has_nothing_absent(build: Any) -> None:
    """A tree that is not mounted yet says nothing of the kernel."""
    now = wishes(MemoryWishes(), RECOMMENDED, (build.pod("web"),))
    knobs = dict.fromkeys(knobs_to_read(MemoryQosMemory(), now, V2), GONE)
    hidden = build.seen(knobs=knobs, kubepods=Missing("/kubepods", Absence.GONE))
    assert memory_qos_memory(MemoryQosMemory(), now, V2, hidden).absent == ()
    assert "memory.wmark_ratio" in memory_qos_memory(MemoryQosMemory(), now, V2, build.seen(knobs=knobs)).absent
