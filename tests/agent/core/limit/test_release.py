"""What is given back once nothing wants it, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.decide import LimitFacts, LimitMemory, claims_due, decide_limits, knobs_to_read
from agent.core.limit.knob_schedule import KnobSchedule
from agent.core.limit.plan import plan
from agent.core.limit.release import KnobClaims, is_released, released, to_original
from agent.core.observe.knobs import cpuset_knob, memory_knob, pids_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, PidCounts, Places, PodPlace
from model.pod.status import PodPhase
from model.reason import Reason
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.pods import with_fields

V1, V2 = Layout(), Layout(version=2)
POD = "/kubepods/besteffort/podjob"
PIDS, ROOT_PIDS = pids_knob(V1, POD), pids_knob(V1, V1.best_effort)
GONE = Missing("/x", Absence.GONE)
OURS = KnobReading(4096, 4096, -1)

# reading -> the value the file shall have
READINGS: dict[str, tuple[KnobReading, int | None]] = {
    "ours": (OURS, -1),
    "ours, and it was limited before": (KnobReading(9, 9, 70), 70),
    "it is what it was": (KnobReading(70, 9, 70), 70),
    "it is what it was, and nobody wrote it since we began": (KnobReading(70, None, 70), 70),
    "another program wrote it since: its value stays": (KnobReading(5, 9, -1), 5),
    "never ours": (KnobReading(9), None),
    "gone": (KnobReading(GONE, 9, -1), None),
}


@pytest.mark.parametrize(("reading", "expected"), READINGS.values(), ids=READINGS)
def test_what_a_file_gets(reading: KnobReading, expected: int | None) -> None:
    limit = released(PIDS, reading, 1.0)
    assert (limit and limit.value) == expected
    assert limit is None or (limit.gives_back and limit.decision.reason is Reason.KNOB_RELEASED)
    assert limit is None or limit.value == limit.decision.value


def test_a_list_counts_by_its_cpus() -> None:
    """As every decision on one does."""
    root = cpuset_knob(V1, V1.best_effort)
    assert [to_original(root, cpus, 1.0).decision.value for cpus in ("0-7", "", "3")] == [8, 0, 1]


def test_an_identity_of_minus_one_is_no_limit() -> None:
    """As one of 2."""
    knob = Knob(POD, "cpu", "cpu.bvt_warp_ns")
    assert [to_original(knob, value, 1.0).decision.terms[0].name for value in (-1, 2)] == ["released"] * 2


STAYS: dict[str, tuple[Knob, bool]] = {
    "the quota of best effort": (quota_knob(V1, V1.best_effort), False),
    "its CPUs": (cpuset_knob(V1, V1.best_effort), False),
    "a batch pod's memory": (memory_knob(V1, POD), False),
    "a batch pod's processes": (PIDS, True),
    "what an older agent wrote": (pids_knob(V1, "/kubepods/burstable/podx"), True),
}


@pytest.mark.parametrize(("knob", "expected"), STAYS.values(), ids=STAYS)
def test_ceilings_stay(knob: Knob, expected: bool) -> None:
    """Best effort's ceilings stay whatever is wanted."""
    assert is_released(V1, knob) is expected
    assert KnobClaims(V1, frozenset(), frozenset({knob.cgroup})).leave(knob) is expected


def test_only_what_is_known() -> None:
    """Neither what is claimed, nor anything of a cgroup that nobody spoke for."""
    assert not KnobClaims(V1, frozenset({PIDS}), frozenset({POD})).leave(PIDS)
    assert not KnobClaims(V1, frozenset(), frozenset({"/kubepods"})).leave(PIDS)


def told(build: Any, suppress: SuppressStrategy | None = None, **more: Any) -> LimitFacts:
    pod = with_fields(build.batch("job"), uid="job", phase=more.pop("phase", PodPhase.RUNNING))
    fields = {"suppress": suppress or SuppressStrategy(pod_pids_pct=None), "pods": (pod,), **more}
    return LimitFacts(eviction=EvictionStrategy(), **fields)


PLACES = Places({"job": PodPlace(POD)}, (POD,))
# facts -> whether the pod's file is left
FACTS: dict[str, tuple[dict[str, Any], bool]] = {
    "switched off": ({}, True),
    "suppression is switched off": ({"suppress": SuppressStrategy(enable=False)}, True),
    "wanted": ({"suppress": SuppressStrategy()}, False),
    "the pods are not known": ({"pods": None}, False),
    "the pod is not listed": ({"pods": ()}, False),
    "the pod has ended": ({"phase": PodPhase.FAILED}, False),
    "settings may be stricter than they seem": ({"unsettled": Reason.CONFIGURATION_INVALID}, False),
}


@pytest.mark.parametrize(("facts", "left"), FACTS.values(), ids=FACTS)
def test_whose_files_are_left(build: Any, facts: dict[str, Any], left: bool) -> None:
    """What is not known loosens nothing; the decision agrees with what was read for it."""
    about = told(build, **facts)
    claims = claims_due(LimitMemory(), V1, PLACES, about)
    assert (claims is not None and claims.leave(PIDS)) is left
    knobs = build.readings() | {PIDS: OURS}
    seen = build.seen(10, knobs=knobs, places=PLACES, pids=PidCounts(300, 32_768))
    memory, limits = decide_limits(LimitMemory(), V1, seen, build.usage(), about)
    assert (PIDS in limits.limits and limits.limits[PIDS].gives_back) is left
    assert memory.releasing is left
    assert [write.value for write in plan(limits.limits, knobs) if write.gives_back] == [-1] * left


def test_claims_are_made_in_one_tick_of_ten(build: Any) -> None:
    """Unless the tick before gave something back: there may be more."""
    about = told(build)
    for memory, expected in (
        (LimitMemory(knob_schedule=KnobSchedule(turn=0)), True),
        (LimitMemory(knob_schedule=KnobSchedule(turn=3)), False),
        (LimitMemory(knob_schedule=KnobSchedule(turn=3), releasing=True), True),
    ):
        assert (claims_due(memory, V1, PLACES, about) is not None) is expected
        assert PIDS not in knobs_to_read(memory, V1, PLACES, about), "nothing of it is read by itself"


# layout, facts, reading of the root's file -> the value it gets
ROOTS: dict[str, tuple[Layout, str, dict[str, Any], int | None]] = {
    "processes": (V1, "pids.max", {"suppress": SuppressStrategy(pids_pct=None)}, -1),
    "memory.high without batch pods": (V2, "memory.high", {}, -1),
    "idle": (V1, "cpu.idle", {}, 0),
    "weight stays": (V1, "cpu.shares", {"suppress": SuppressStrategy(enable=False)}, None),
    "while settings are in doubt": (V1, "cpu.idle", {"unsettled": Reason.CONFIGURATION_INVALID}, None),
}


@pytest.mark.parametrize(("layout", "file", "facts", "expected"), ROOTS.values(), ids=ROOTS)
def test_the_best_effort_root(
    build: Any, layout: Layout, file: str, facts: dict[str, Any], expected: int | None
) -> None:
    """Its files are read each tick, and given back at once."""
    about = told(build, **facts)
    before = {"cpuset.cpus": "0-7", "cpu.cfs_period_us": 100_000, "cpu.shares": 2, "cpu.weight": 1, "cpu.idle": 0}
    knobs = {
        knob: KnobReading(before.get(knob.file, -1)) for knob in knobs_to_read(LimitMemory(), layout, Places(), about)
    }
    (mine,) = (knob for knob in knobs if knob.file == file)
    knobs[mine] = KnobReading(1, 1, 0 if file == "cpu.idle" else -1)
    seen = build.seen(10, knobs=knobs, pids=PidCounts(300, 32_768))
    memory, limits = decide_limits(LimitMemory(), layout, seen, build.usage(), about)
    assert [write.value for write in plan(limits.limits, knobs) if write.gives_back] == (
        [] if expected is None else [expected]
    )
    assert not memory.releasing, "nothing is looked for elsewhere"
