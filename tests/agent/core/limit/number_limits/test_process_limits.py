"""What best effort and each batch pod may have of the processes and threads there may be."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.decide import LimitFacts, LimitMemory, decide_limits, knobs_to_read
from agent.core.limit.number_limits.process_limits import is_absent, pods_pids, pods_pids_to_read, root_pids
from agent.core.limit.plan import plan
from agent.core.observe.knobs import pids_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, KnobReading, Missing, PidCounts, Places, PodPlace
from model.decision import Unit
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import PriorityBand, QoSClass
from model.reason import Reason
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.pods import with_fields

V1, V2 = Layout(), Layout(version=2)
ROOT = pids_knob(V1, V1.best_effort)
POD = "/kubepods/besteffort/podjob"
NODE = PidCounts(node=300, node_most=32_768, kubepods=100, best_effort=50)
GONE, BROKEN = Missing("/x/pids.max", Absence.GONE), Missing("/x/pids.max", Absence.UNREADABLE, "EIO")
ON, OFF = SuppressStrategy(), SuppressStrategy(enable=False)


def decided(build: Any, reading: KnobReading, pids: PidCounts | None = NODE, told: SuppressStrategy = ON) -> Any:
    return root_pids(ROOT, reading, build.seen(pids=pids), told)


# reading, counts, strategy -> value, reason
CASES: dict[str, tuple[KnobReading, PidCounts | None, SuppressStrategy, tuple[int, Reason]]] = {
    "half of what there may be": (KnobReading(-1), NODE, ON, (16_384, Reason.PIDS_SHARE)),
    "three numbers of each, and a tenth is free": (
        KnobReading(-1),
        PidCounts(300, 32_768, 100, None, 50, 32_768),
        ON,
        ((32_768 - 250 - 3276) // 3, Reason.PIDS_SHARE),
    ),
    "many numbers": (
        KnobReading(-1),
        PidCounts(300, 32_768, 100, None, 50, 4_194_304),
        ON,
        (16_384, Reason.PIDS_SHARE),
    ),
    "others have nearly all numbers": (
        KnobReading(-1),
        PidCounts(29_000, 32_768, best_effort=0, numbers=32_768),
        ON,
        (1024, Reason.PIDS_SHARE),
    ),
    "by setting": (KnobReading(-1), NODE, SuppressStrategy(pids_pct=10), (3276, Reason.PIDS_SHARE)),
    "a share below the floor": (KnobReading(-1), NODE, SuppressStrategy(pids_pct=2), (655, Reason.PIDS_SHARE)),
    "all pods have a limit together": (
        KnobReading(-1),
        PidCounts(300, 32_768, 100, 1000, 50),
        ON,
        (500, Reason.PIDS_SHARE),
    ),
    "others need more than half: what they leave, less a tenth": (
        KnobReading(-1),
        PidCounts(20_050, 32_768, best_effort=50),
        ON,
        (32_768 - 20_000 - 3276, Reason.PIDS_SHARE),
    ),
    "other pods need more than half of theirs": (
        KnobReading(-1),
        PidCounts(1000, 32_768, 750, 1000, 50),
        ON,
        (200, Reason.PIDS_SHARE),
    ),
    "nothing is left": (KnobReading(-1), PidCounts(32_000, 32_768, best_effort=0), ON, (1024, Reason.PIDS_SHARE)),
    "best effort cannot be counted: all are others'": (
        KnobReading(-1),
        PidCounts(20_000, 32_768),
        ON,
        (32_768 - 20_000 - 3276, Reason.PIDS_SHARE),
    ),
    "a small change": (KnobReading(16_000, 16_000, -1), NODE, ON, (16_000, Reason.BELOW_DEADBAND)),
    "a larger one": (KnobReading(15_000, 15_000, -1), NODE, ON, (16_384, Reason.PIDS_SHARE)),
    "tighter before us": (KnobReading(500), NODE, ON, (500, Reason.PIDS_SHARE)),
    "tighter before us, and ours by now": (KnobReading(400, 400, 500), NODE, ON, (500, Reason.PIDS_SHARE)),
    "counts are not known": (KnobReading(9, 9, -1), None, ON, (9, Reason.NODE_METRICS_MISSING)),
    "no controller": (KnobReading(GONE), NODE, ON, (-1, Reason.CONTROLLER_ABSENT)),
    "no controller, and switched off": (KnobReading(GONE), NODE, OFF, (-1, Reason.CONTROLLER_ABSENT)),
    "unreadable": (KnobReading(BROKEN), NODE, ON, (-1, Reason.KNOB_UNREADABLE)),
}


@pytest.mark.parametrize(("reading", "pids", "told", "expected"), CASES.values(), ids=CASES.keys())
def test_best_effort_together(
    build: Any, reading: KnobReading, pids: PidCounts | None, told: SuppressStrategy, expected: tuple[int, Reason]
) -> None:
    """A share of what there may be, no more than others leave, never looser than it was before us."""
    limit = decided(build, reading, pids, told)
    assert (limit.value, limit.decision.reason, limit.decision.unit) == (*expected, Unit.PIDS)
    assert limit.value == limit.decision.value and limit.knob == ROOT


@pytest.mark.parametrize("told", [OFF, SuppressStrategy(pids_pct=None)], ids=["off", "no share"])
def test_nothing_is_wanted(build: Any, told: SuppressStrategy) -> None:
    """Of the root, nor of pods."""
    assert decided(build, KnobReading(9, 9, -1), told=told) is None
    assert of_pods(build, KnobReading(9, 9, -1), told) is None


def batch(build: Any, name: str = "job", **more: Any) -> Pod:
    pod: Pod = with_fields(build.batch(name), uid=name, **more)
    return pod


def of_pods(build: Any, reading: KnobReading, told: SuppressStrategy = ON, **pod: Any) -> Any:
    places = Places({"job": PodPlace(pod.pop("path", POD))}, (POD,))
    seen = build.seen(pids=pod.pop("pids", NODE), places=places, knobs={pids_knob(V1, POD): reading})
    return pods_pids(V1, seen, (batch(build, **pod),), told).get(pids_knob(V1, POD))


# reading, strategy -> value, reason
PODS: dict[str, tuple[KnobReading, SuppressStrategy, tuple[int, Reason]]] = {
    "a quarter of half": (KnobReading(-1), ON, (4096, Reason.PIDS_SHARE)),
    "by setting": (KnobReading(-1), SuppressStrategy(pids_pct=10, pod_pids_pct=10), (327, Reason.PIDS_SHARE)),
    "one at least": (KnobReading(-1), SuppressStrategy(pids_pct=1, pod_pids_pct=1), (3, Reason.PIDS_SHARE)),
    "the kubelet's is tighter": (KnobReading(1000), ON, (1000, Reason.PIDS_SHARE)),
    "the kubelet's was tighter": (KnobReading(-1, 900, 1000), ON, (1000, Reason.PIDS_SHARE)),
    "the kubelet's is looser": (KnobReading(9000), ON, (4096, Reason.PIDS_SHARE)),
}


def test_four_batch_pods_that_keep_three_numbers_each_leave_others_some(build: Any) -> None:
    """Whatever others have at the moment."""
    for others in (100, 20_000):
        few = PidCounts(others, 32_768, best_effort=0, numbers=32_768)
        limit = of_pods(build, KnobReading(-1), pids=few).value
        assert limit == (32_768 - 3276) // 3 // 4 and limit * 4 * 3 <= 32_768 - 3276


@pytest.mark.parametrize(("reading", "told", "expected"), PODS.values(), ids=PODS.keys())
def test_a_batch_pod(build: Any, reading: KnobReading, told: SuppressStrategy, expected: tuple[int, Reason]) -> None:
    """Its share of best effort's, never looser than podPidsLimit."""
    limit = of_pods(build, reading, told)
    assert (limit.value, limit.decision.reason, limit.decision.detail) == (*expected, "pod default/job")


def test_a_mid_pod_has_the_same_share(build: Any) -> None:
    """Whatever QoS class it says."""
    assert of_pods(build, KnobReading(-1), qos_label=QoSClass.NONE, band=PriorityBand.MID).value == 4096


def test_what_others_need_moves_no_pod(build: Any) -> None:
    """250 files would change with every process that somebody starts."""
    assert of_pods(build, KnobReading(-1), pids=PidCounts(25_000, 32_768, best_effort=0)).value == 4096


UNTOUCHED: dict[str, dict[str, Any]] = {
    "labelled BE, but it lives elsewhere": {"path": "/kubepods/burstable/podjob"},
    "below another root": {"path": "/kubepods/besteffort2/podjob"},
    "BestEffort without the label": {"qos_label": QoSClass.NONE},
    "it has ended": {"phase": PodPhase.SUCCEEDED},
}


@pytest.mark.parametrize("pod", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_whose_limits_are_not_ours(build: Any, pod: dict[str, Any]) -> None:
    """Online pods and those of the node have what the kubelet gives them."""
    assert of_pods(build, KnobReading(-1), **pod) is None
    places = Places({"job": PodPlace(pod.get("path", POD))}, (POD,))
    named = batch(build, **{key: value for key, value in pod.items() if key != "path"})
    assert pods_pids_to_read(V1, places, (named,)) == ()


@pytest.mark.parametrize(("layout", "controller"), [(V1, "pids"), (V2, "")])
def test_the_file(build: Any, layout: Layout, controller: str) -> None:
    """The same on both versions but for the mount."""
    (knob,) = pods_pids_to_read(layout, Places({"job": PodPlace(POD)}), (batch(build),))
    assert (knob.cgroup, knob.controller, knob.file) == (POD, controller, "pids.max")


def test_a_node_without_the_controller(build: Any) -> None:
    """Said once a tick of the root, nothing is written, and pods' files are not looked for in vain."""
    places, pods = Places({"job": PodPlace(POD)}, (POD,)), (batch(build),)
    facts = LimitFacts(SuppressStrategy(), EvictionStrategy(), pods)
    read = knobs_to_read(LimitMemory(), V1, places, facts)
    assert pids_knob(V1, POD) in read
    knobs = build.readings() | {ROOT: KnobReading(GONE), pids_knob(V1, POD): KnobReading(GONE)}
    seen = build.seen(10, knobs=knobs, places=places, pids=NODE)
    memory, limits = decide_limits(LimitMemory(), V1, seen, build.usage(), facts)
    assert is_absent(limits.limits[ROOT]) and ROOT in {limit.knob for limit in limits.of_all}
    assert ROOT not in {write.knob for write in plan(limits.limits, seen.knobs)}
    assert pids_knob(V1, POD) not in knobs_to_read(memory, V1, places, facts)


def test_a_pod_is_settled_and_looked_at_in_its_turn(build: Any) -> None:
    """As its other limits: each tick until the kernel holds it, then one tick of ten."""
    places, pods = Places({"job": PodPlace(POD)}, (POD,)), (batch(build),)
    facts, mine = LimitFacts(SuppressStrategy(), EvictionStrategy(), pods), pids_knob(V1, POD)
    memory, held, ticks = LimitMemory(), KnobReading(-1), []
    for at in range(25):
        read = knobs_to_read(memory, V1, places, facts)
        ticks.append(mine in read)
        knobs = build.readings() | {ROOT: KnobReading(16_384, 16_384, -1)} | ({mine: held} if mine in read else {})
        memory, limits = decide_limits(
            memory, V1, build.seen(at, knobs=knobs, places=places, pids=NODE), build.usage(), facts
        )
        assert limits.limits[mine].value == 4096 and limits.limited_pods == 0
        held = KnobReading(4096, 4096, -1)
    assert ticks == [True, True, *[False] * 8, True, *[False] * 9, True, *[False] * 4]
