"""Of many control files few are read in a tick, and none is forgotten."""

from __future__ import annotations

import msgspec
import pytest

from agent.core.limit.knob_schedule import KnobSchedule, due, scheduled
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import UNLIMITED, memory_knob, quota_knob, shares_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing
from model.decision import Decision, Term, Unit
from model.reason import Reason

V1 = Layout()
PATHS = tuple(f"/kubepods/besteffort/pod{i:03}" for i in range(250))
PODS = tuple((shares_knob(V1, path), memory_knob(V1, path)) for path in PATHS)
QUOTA = quota_knob(V1, PATHS[0])
KNOB = PODS[1][0]


def limit(knob: Knob, value: int = 100) -> Limit:
    terms = (Term("x", value),)
    return Limit(knob, value, Decision(knob.subject, knob.file, value, Unit.SHARES, Reason.BATCH_RESOURCES, terms))


def state(*knobs: Knob, value: int = 100, turn: int = 0) -> KnobSchedule:
    return KnobSchedule(in_force=tuple(limit(knob, value) for knob in knobs), turn=turn)


ALL = tuple(knob for pod in PODS for knob in pod)


def test_new_ones_are_read() -> None:
    """All of them at once; of a pod that lacks one, every one."""
    assert tuple(due(KnobSchedule(), PODS, 100_000)) == ALL
    assert tuple(due(state(KNOB, turn=5), PODS[1:2], 100_000)) == PODS[1]


def test_each_pod_is_read_within_ten_ticks() -> None:
    """A tenth of the pods at a time, each whole."""
    found = [tuple(due(state(*ALL, turn=turn), PODS, 100_000)) for turn in range(10)]
    assert {len(some) for some in found} == {50}
    assert sorted(knob for some in found for knob in some) == sorted(ALL)


@pytest.mark.parametrize(
    ("value", "ceiling", "read"),
    [
        (50_000, 200_000, True),
        (50_000, 200_001, False),
        (50_000, UNLIMITED, True),
        (UNLIMITED, 2000, False),
        (2001, 2000, True),
        (2000, 2000, False),
    ],
)
def test_quotas_that_may_stand_in_the_way_are_read(value: int, ceiling: int, read: bool) -> None:
    """v1 refuses a lower quota above them: those the ceiling may fall to within a tick, which never is below 2000 us."""
    assert tuple(due(state(QUOTA, value=value, turn=5), ((QUOTA,),), ceiling)) == ((QUOTA,) if read else ())


STEPS: dict[str, tuple[KnobReading, bool]] = {
    "the kernel holds it": (KnobReading(100), True),
    "it holds another": (KnobReading(2), False),
    "gone": (KnobReading(Missing("/x", Absence.GONE)), False),
}


@pytest.mark.parametrize(("reading", "expected"), STEPS.values(), ids=STEPS.keys())
def test_settled(reading: KnobReading, expected: bool) -> None:
    """What the kernel does not hold yet is read in the next tick."""
    after, found = scheduled(state(KNOB, turn=9), (), [limit(KNOB)], (), {KNOB: reading})
    assert ({x.knob for x in after.in_force} == {KNOB}, after.turn) == (expected, 0)
    assert tuple(due(msgspec.structs.replace(after, turn=5), ((KNOB,),), 1)) == (() if expected else (KNOB,))
    assert found[KNOB].value == 100


def test_what_was_not_due_stands() -> None:
    """With its explanation, as long as its cgroup is there."""
    first, second = PODS[0][0], PODS[1][0]
    after, found = scheduled(state(first, second), (), [limit(second, 5)], {PATHS[0]}, {second: KnobReading(5)})
    assert {knob: x.value for knob, x in found.items()} == {first: 100, second: 5}
    assert len(after.in_force) == 2
    assert scheduled(after, (), (), (), {}) == (KnobSchedule(turn=2), {})


def test_a_tighter_foreign_value_is_kept_and_watched() -> None:
    """Read each tick until it is taken back."""
    after, found = scheduled(state(KNOB), (), [limit(KNOB)], (), {KNOB: KnobReading(50, 100, 2)})
    assert (found[KNOB].value, found[KNOB].decision.reason) == (50, Reason.FOREIGN_WRITER_TIGHTER)
    assert after.caps == ((KNOB, 50),)
    assert tuple(due(msgspec.structs.replace(after, turn=5), ((KNOB,),), 1)) == (KNOB,)
    after, found = scheduled(after, (), [limit(KNOB)], (), {KNOB: KnobReading(80, 50, 2)})
    assert (found[KNOB].value, after.caps) == (100, ())


def test_what_is_decided_each_tick_is_not_kept() -> None:
    """Only its foreign cap is."""
    after, found = scheduled(KnobSchedule(), [limit(KNOB)], (), (), {KNOB: KnobReading(50, 100, 2)})
    assert (found[KNOB].value, after.in_force, after.caps) == (50, (), ((KNOB, 50),))
    assert scheduled(after, (), (), (), {}) == (KnobSchedule(turn=2), {})
