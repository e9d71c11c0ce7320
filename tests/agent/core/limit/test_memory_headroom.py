"""How far best effort's memory may grow, and who is told when it did."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.memory_headroom import (
    MemoryHeadroom,
    MemoryLevel,
    high_limit,
    last_resort_bytes,
    memory_headroom,
    memory_levels,
    memory_marks,
    memory_signs,
    node_memory_bytes,
)
from agent.core.limit.watch import MemoryMark, MemorySigns
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, CgroupSample, KnobReading, Missing, NodeSample, Observation
from model.node import Node
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.reason import Reason
from model.resources import MEMORY, ResourceVector
from model.strategy import EvictionStrategy
from tests.pods import make_pod, with_fields

GIB = 1 << 30
V2 = Layout("/kubepods", version=2)
HIGH = RootKnobs.of(V2).memory_high
STRATEGY = EvictionStrategy()
GONE = Missing("/m", Absence.GONE, "no file")
GARBLED = Missing("/m", Absence.UNREADABLE, "garbage")

HUGE = Node(
    "n", ResourceVector({MEMORY: 8 * GIB, "hugepages-2Mi": GIB, "hugepages-1Gi": GIB, "other": GIB}), ResourceVector()
)
BATCH = make_pod("d", "a", "a", qos_label=QoSClass.BE, kubernetes_qos=KubernetesQoS.BEST_EFFORT, phase=PodPhase.RUNNING)

# 8 GiB at 70 % are 5.6 GiB; the node uses 2 GiB → 3.6 GiB. kubepods: 6 GiB at 70 % are 4.2 GiB, 1 GiB used → 3.2 GiB
NODE_ROOM = 8 * GIB * 70 // 100 - 2 * GIB
PODS_ROOM = 6 * GIB * 70 // 100 - GIB
ROOM: dict[str, tuple[dict[str, Any], EvictionStrategy, int | None]] = {
    "of the node": ({}, STRATEGY, NODE_ROOM),
    "of kubepods, where that is less": ({"kubepods_memory_limit_bytes": 6 * GIB}, STRATEGY, PODS_ROOM),
    "of kubepods alone": ({"kubepods_memory_limit_bytes": 6 * GIB, "node": None}, STRATEGY, PODS_ROOM),
    "a large limit of kubepods": ({"kubepods_memory_limit_bytes": 8 * GIB}, STRATEGY, NODE_ROOM),
    "another threshold": ({}, EvictionStrategy(memory_threshold_pct=50), 2 * GIB),
    "beyond the threshold": ({"node_sample": NodeSample(0, 7 * GIB, 2)}, STRATEGY, NODE_ROOM - 5 * GIB),
    "with memory that was taken from the machine": (
        {"node_sample": NodeSample(0, 2 * GIB, 2, total_bytes=5 * GIB)},
        STRATEGY,
        NODE_ROOM - 3 * GIB,
    ),
    "without huge pages": ({"node": HUGE}, STRATEGY, 6 * GIB * 70 // 100),
    "not known": ({"node": None}, STRATEGY, None),
    "node not measured": ({"node_sample": GONE}, STRATEGY, None),
    "memory is no reason to evict": ({}, EvictionStrategy(memory_threshold_pct=None), None),
    "eviction is off": ({}, EvictionStrategy(enable=False), None),
}


def looking(build: Any, **parts: Any) -> Any:
    fields = {
        "node_sample": NodeSample(0, 2 * GIB, 2),
        "kubepods": CgroupSample(0, GIB, charge_bytes=3 * GIB),
        "best_effort": CgroupSample(0, GIB // 2, GIB // 4),
    }
    return build.seen(**{**fields, **parts})


@pytest.mark.parametrize(("parts", "strategy", "expected"), ROOM.values(), ids=ROOM.keys())
def test_room(build: Any, parts: dict[str, Any], strategy: EvictionStrategy, expected: int | None) -> None:
    """The smaller of the two that are known."""
    found = memory_headroom(looking(build, **parts), strategy)
    assert (found.bytes if found else None) == expected


def test_huge_pages_are_neither_used_nor_there(build: Any) -> None:
    """2 of 8 GiB were set aside; MemTotal - MemAvailable holds them, and may be read before the Node is up to date."""
    used = [NodeSample(0, used, 2) for used in (5 * GIB, GIB)]
    found = [memory_levels(looking(build, node_sample=sample), HUGE)[0] for sample in used]
    words = "the node, MemTotal - MemAvailable - huge pages"
    assert found == [MemoryLevel(3 * GIB, 6 * GIB, words), MemoryLevel(0, 6 * GIB, words)]
    assert node_memory_bytes(HUGE) == 6 * GIB
    assert (
        memory_levels(looking(build), Node("n", ResourceVector({MEMORY: GIB, "hugepages-2Mi": GIB}), HUGE.capacity))
        == ()
    )


def test_the_floor_is_a_sixteenth_of_what_runs_out_first(build: Any) -> None:
    """Of the node, or of the limit of kubepods."""
    found = [
        memory_headroom(looking(build, **parts), STRATEGY) for parts in ({}, {"kubepods_memory_limit_bytes": 6 * GIB})
    ]
    assert [room.floor_bytes for room in found if room] == [GIB // 2, 6 * GIB // 16]


def test_marks(build: Any) -> None:
    """At the charge plus the room; of best effort without its charge what it holds and its cache."""
    assert memory_marks(V2, looking(build), STRATEGY) == (
        MemoryMark("/kubepods/besteffort", 3 * GIB // 4 + NODE_ROOM),
        MemoryMark("/kubepods", 3 * GIB + NODE_ROOM),
    )
    assert len(memory_marks(V2, looking(build, best_effort=GONE), STRATEGY)) == 1
    assert memory_marks(V2, looking(build), EvictionStrategy(enable=False)) == ()


@pytest.mark.parametrize(
    ("strategy", "used", "left"),
    [
        (STRATEGY, 6 * GIB, 2 * GIB - 8 * GIB * 3 // 100),
        (EvictionStrategy(memory_threshold_pct=None), 2 * GIB, 6 * GIB - 8 * GIB * 3 // 100),
        (STRATEGY, 8 * GIB - 1, None),
        (EvictionStrategy(last_resort_pct=None), 6 * GIB, None),
    ],
)
def test_beyond_the_threshold_the_last_resort_is_next(
    build: Any, strategy: EvictionStrategy, used: int, left: int | None
) -> None:
    """A tick is due once so little is left that somebody may be killed; nothing is left to mark after that."""
    found = memory_marks(V2, looking(build, node_sample=NodeSample(0, used, 2)), strategy)
    assert [mark.bytes for mark in found] == ([] if left is None else [3 * GIB // 4 + left, 3 * GIB + left])


@pytest.mark.parametrize(
    ("whole", "pct", "expected"),
    [
        (100 * GIB, 3, 3 * GIB),
        (GIB, 3, 100 << 20),
        (GIB // 2, 3, GIB // 20),
        (GIB, 50, GIB // 2),
        (1024 * GIB, 3, 4 * GIB),
    ],
)
def test_how_little_is_too_little(whole: int, pct: int, expected: int) -> None:
    """The share, 100 MiB where that is more, and of a small limit no more than a tenth for that; 4 GiB at most."""
    assert last_resort_bytes(whole, pct) == expected


HELD = 3 * GIB // 4
HIGHS: dict[str, tuple[KnobReading, MemoryHeadroom | None, EvictionStrategy, tuple[int, Reason] | None]] = {
    "charge and room": (KnobReading(-1), MemoryHeadroom(GIB, ""), STRATEGY, (HELD + GIB, Reason.MEMORY_ROOM)),
    "whole pages": (KnobReading(-1), MemoryHeadroom(GIB + 4095, ""), STRATEGY, (HELD + GIB, Reason.MEMORY_ROOM)),
    "beyond the threshold nothing more": (
        KnobReading(-1),
        MemoryHeadroom(-GIB, ""),
        STRATEGY,
        (HELD, Reason.MEMORY_ROOM),
    ),
    "never below the floor": (
        KnobReading(GIB, GIB),
        MemoryHeadroom(-GIB, "", 7 << 27),
        STRATEGY,
        (7 << 27, Reason.MEMORY_ROOM),
    ),
    "raised to the floor": (
        KnobReading(1 << 20),
        MemoryHeadroom(-GIB, "", 7 << 27),
        STRATEGY,
        (7 << 27, Reason.MEMORY_ROOM),
    ),
    "the floor adds nothing to more": (
        KnobReading(-1),
        MemoryHeadroom(-GIB, "", GIB // 2),
        STRATEGY,
        (HELD, Reason.MEMORY_ROOM),
    ),
    "a small change is not worth a write": (
        KnobReading(HELD + GIB + GIB // 64, HELD + GIB + GIB // 64),
        MemoryHeadroom(GIB, ""),
        STRATEGY,
        (HELD + GIB + GIB // 64, Reason.BELOW_DEADBAND),
    ),
    "a larger one is": (
        KnobReading(HELD + GIB + GIB // 32),
        MemoryHeadroom(GIB, ""),
        STRATEGY,
        (HELD + GIB, Reason.MEMORY_ROOM),
    ),
    "not known": (KnobReading(5 * GIB), None, STRATEGY, (5 * GIB, Reason.NODE_METRICS_MISSING)),
    "no such file": (KnobReading(GONE), MemoryHeadroom(GIB, ""), STRATEGY, None),
    "unreadable": (KnobReading(GARBLED), MemoryHeadroom(GIB, ""), STRATEGY, (0, Reason.KNOB_UNREADABLE)),
    "switched off": (KnobReading(GIB, GIB, -1), None, EvictionStrategy(enable=False), None),
    "no threshold": (KnobReading(GIB, GIB, -1), None, EvictionStrategy(memory_threshold_pct=None), None),
    "never ours": (KnobReading(GIB), None, EvictionStrategy(enable=False), None),
}


@pytest.mark.parametrize(("reading", "room", "strategy", "expected"), HIGHS.values(), ids=HIGHS.keys())
def test_memory_high(
    build: Any,
    reading: KnobReading,
    room: MemoryHeadroom | None,
    strategy: EvictionStrategy,
    expected: tuple[int, Reason] | None,
) -> None:
    """What the best-effort root may be charged with before the kernel slows it down."""
    assert HIGH is not None
    limit = high_limit(HIGH, reading, looking(build, listed=(BATCH,)), room, strategy)
    assert (limit and (limit.value, limit.decision.reason)) == expected
    assert limit is None or limit.value == limit.decision.value


LISTED: dict[str, tuple[tuple[Pod, ...] | None, int | None]] = {
    "a batch pod": ((BATCH,), HELD + GIB),
    "the pods are not known": (None, HELD + GIB),
    "nobody": ((), None),
    "a mid pod": ((with_fields(BATCH, qos_label=QoSClass.NONE, band=PriorityBand.MID),), HELD + GIB),
    "a daemon without the label": ((with_fields(BATCH, qos_label=QoSClass.NONE),), None),
    "a batch pod that ended": ((with_fields(BATCH, phase=PodPhase.SUCCEEDED),), None),
    "a batch pod that lives elsewhere": ((with_fields(BATCH, kubernetes_qos=KubernetesQoS.BURSTABLE),), None),
}


@pytest.mark.parametrize(("listed", "expected"), LISTED.values(), ids=LISTED.keys())
def test_memory_high_is_for_batch_pods(build: Any, listed: tuple[Pod, ...] | None, expected: int | None) -> None:
    """Daemons of the node alone are not held."""
    assert HIGH is not None
    limit = high_limit(
        HIGH, KnobReading(GIB, GIB, -1), looking(build, listed=listed), MemoryHeadroom(GIB, ""), STRATEGY
    )
    assert (limit and limit.value) == expected


SIGNS: dict[str, tuple[int, EvictionStrategy, MemorySigns]] = {
    "at the threshold": (5 * GIB, STRATEGY, MemorySigns(3 * GIB, 50)),
    "past it: at the last resort": (8 * GIB, STRATEGY, MemorySigns(10 * GIB * 3 // 100, 50)),
    "past both": (10 * GIB, STRATEGY, MemorySigns(None, 50)),
    "no threshold": (5 * GIB, EvictionStrategy(memory_threshold_pct=None), MemorySigns(10 * GIB * 3 // 100, 50)),
    "neither": (5 * GIB, EvictionStrategy(memory_threshold_pct=None, last_resort_pct=None), MemorySigns(None, 50)),
    "refaults are not asked for": (5 * GIB, EvictionStrategy(thrash_refault_pct=None), MemorySigns(3 * GIB, None)),
    "no evictions": (5 * GIB, EvictionStrategy(enable=False), MemorySigns()),
}


@pytest.mark.parametrize(("used", "strategy", "expected"), SIGNS.values(), ids=SIGNS.keys())
def test_what_the_brake_looks_at(used: int, strategy: EvictionStrategy, expected: MemorySigns) -> None:
    """MemAvailable of 10 GiB at which the next tick is due, whatever the kernel's alarms tell."""
    node = Node("n", ResourceVector({MEMORY: 10 * GIB}), ResourceVector())
    look = Observation(0.0, 0.0, NodeSample(0, used, 2), CgroupSample(0, 0), CgroupSample(0, 0), node=node)
    assert memory_signs(look, strategy) == expected
