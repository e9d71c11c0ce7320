"""Writes are few, ordered, and foreign writers are told apart."""

from __future__ import annotations

import pytest

from agent.core.observation import Absence, Knob, KnobReading, Missing
from agent.core.plan import KnobStanding, looser, plan, standing
from agent.core.suppress import Standing
from model.decision import Decision, Term, Unit
from model.reason import Reason


def decided(knob: Knob, value: int, reason: Reason = Reason.QUOTA_LOWERED) -> Decision:
    return Decision(knob.subject, knob.file, value, Unit.MICROSECONDS, reason, (Term("x", value),))


def knob(cgroup: str) -> Knob:
    return Knob(cgroup, "cpu", "cpu.cfs_quota_us")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(-1, 5, True), (5, -1, False), (6, 5, True), (5, 6, False), (5, 5, False), (-1, -1, False)],
)
def test_looser(one: int, other: int, expected: bool) -> None:
    """-1 is no limit at all."""
    assert looser(one, other) is expected


def test_order_and_economy() -> None:
    """Narrow from the leaves, then widen from the root; what the kernel holds already is not written."""
    wanted = {"/a": (100, 50), "/a/b": (100, 50), "/c": (10, 50), "/c/d": (10, 50), "/e": (7, 7)}
    decisions = {knob(name): decided(knob(name), value) for name, (value, _) in wanted.items()}
    readings = {knob(name): KnobReading(kernel) for name, (_, kernel) in wanted.items()}
    assert [w.knob.cgroup for w in plan(decisions, readings)] == ["/c/d", "/c", "/a", "/a/b"]


def test_a_knob_we_cannot_read_is_not_written() -> None:
    """Nor is one whose reading is missing."""
    assert plan({knob("/a"): decided(knob("/a"), 5, Reason.KNOB_UNREADABLE)}, {knob("/a"): KnobReading(9)}) == ()
    gone = KnobReading(Missing("/a", Absence.GONE))
    assert plan({knob("/a"): decided(knob("/a"), 5)}, {knob("/a"): gone}) == ()


CASES: dict[str, tuple[KnobReading, KnobStanding, KnobStanding, Standing]] = {
    "first tick adopts the kernel's value": (KnobReading(80), KnobStanding(), KnobStanding(), Standing(80)),
    "ours is still there": (KnobReading(80, 80), KnobStanding(), KnobStanding(), Standing(80, ours=True)),
    "somebody loosened it": (
        KnobReading(-1, 80),
        KnobStanding(70),
        KnobStanding(),
        Standing(80, None, loosened=True, ours=True),
    ),
    "somebody tightened it": (KnobReading(60, 80), KnobStanding(), KnobStanding(60), Standing(60, 60)),
    "a foreign cap stays in force": (
        KnobReading(50, 50),
        KnobStanding(60),
        KnobStanding(60),
        Standing(50, 60, ours=True),
    ),
}


@pytest.mark.parametrize(("reading", "before", "after", "expected"), CASES.values(), ids=CASES.keys())
def test_standing(reading: KnobReading, before: KnobStanding, after: KnobStanding, expected: Standing) -> None:
    """Looser than ours is undone, tighter is respected from then on."""
    assert standing(reading, before) == (after, expected)
