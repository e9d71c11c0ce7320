"""Weight, period and idle of the best-effort root."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.fixed_limits import fixed, fixed_limits
from agent.core.observe.knobs import PERIOD_US, RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, KnobReading, Missing
from model.reason import Reason

V1, V2 = RootKnobs.of(Layout()), RootKnobs.of(Layout(version=2))
UNREADABLE = Missing("/cpu.shares", Absence.UNREADABLE, "garbage")
NO_FILE = Missing("/cpu.idle", Absence.GONE, "no such file")


@pytest.mark.parametrize(
    ("current", "reason"),
    [(2, Reason.WEIGHT_HELD), (1024, Reason.FOREIGN_WRITER_LOOSENED), (UNREADABLE, Reason.KNOB_UNREADABLE)],
)
def test_weight(current: Any, reason: Reason) -> None:
    """Shares stay at the kernel's minimum whoever raised them."""
    found = fixed(V1.fixed[1], current, 1.0)
    assert found.decision.reason is reason and found.value == found.decision.value == (
        0 if current is UNREADABLE else 2
    )


@pytest.mark.parametrize(
    ("current", "reason"), [(PERIOD_US, Reason.PERIOD_HELD), (10_000, Reason.FOREIGN_WRITER_LOOSENED)]
)
def test_period(current: int, reason: Reason) -> None:
    """A tenth of the period would make ten times the CPU of the same quota."""
    found = fixed(V1.fixed[0], current, 1.0)
    assert (found.value, found.decision.reason) == (100_000, reason)


IDLE: dict[str, tuple[KnobReading, bool, dict[str, tuple[int, Reason]]]] = {
    # reading of cpu.idle, wanted, limits; the weight reads 3 while idle and 1024 after it
    "never": (KnobReading(0), False, {"cpu.shares": (2, Reason.FOREIGN_WRITER_LOOSENED)}),
    "no such file": (KnobReading(NO_FILE), False, {"cpu.shares": (2, Reason.FOREIGN_WRITER_LOOSENED)}),
    "wanted": (KnobReading(0), True, {"cpu.idle": (1, Reason.IDLE_HELD), "cpu.shares": (3, Reason.IDLE_HELD)}),
    "held": (KnobReading(1, 1, 0), True, {"cpu.idle": (1, Reason.IDLE_HELD), "cpu.shares": (3, Reason.IDLE_HELD)}),
    "lost": (
        KnobReading(0, 1, 0),
        True,
        {"cpu.idle": (1, Reason.FOREIGN_WRITER_LOOSENED), "cpu.shares": (3, Reason.IDLE_HELD)},
    ),
    "wanted where the kernel has none": (
        KnobReading(NO_FILE),
        True,
        {"cpu.idle": (0, Reason.KNOB_UNREADABLE), "cpu.shares": (2, Reason.FOREIGN_WRITER_LOOSENED)},
    ),
    "not wanted any more": (
        KnobReading(1, 1, 0),
        False,
        {"cpu.shares": (2, Reason.FOREIGN_WRITER_LOOSENED)},
    ),
    "not wanted any more, and set before us": (
        KnobReading(1, 1, 1),
        False,
        {"cpu.shares": (3, Reason.FOREIGN_WRITER_TIGHTER)},
    ),
    "somebody else's": (KnobReading(1), False, {"cpu.shares": (3, Reason.FOREIGN_WRITER_TIGHTER)}),
    "somebody else's after ours ended": (
        KnobReading(1, 0, 0),
        False,
        {"cpu.shares": (3, Reason.FOREIGN_WRITER_TIGHTER)},
    ),
}


@pytest.mark.parametrize(("idle", "wanted", "expected"), IDLE.values(), ids=IDLE.keys())
def test_idle(idle: KnobReading, wanted: bool, expected: dict[str, tuple[int, Reason]]) -> None:
    """No weight is written while it is set: the kernel would refuse it. When ours ends, the weight is held again."""
    period, weight = (held.knob for held in V1.fixed)
    readings = {V1.idle: idle, weight: KnobReading(3), period: KnobReading(PERIOD_US)}
    found = {limit.knob.file: (limit.value, limit.decision.reason) for limit in fixed_limits(V1, readings, wanted, 1.0)}
    assert found == {**expected, "cpu.cfs_period_us": (PERIOD_US, Reason.PERIOD_HELD)}


def test_on_v2() -> None:
    """A cgroup that is idle says weight 0."""
    weight = V2.fixed[0].knob
    (found,) = fixed_limits(V2, {V2.idle: KnobReading(1), weight: KnobReading(0)}, False, 1.0)
    assert (found.value, found.decision.reason) == (0, Reason.FOREIGN_WRITER_TIGHTER)
    (found,) = fixed_limits(V2, {V2.idle: KnobReading(0), weight: KnobReading(79)}, False, 1.0)
    assert (found.value, found.decision.reason) == (1, Reason.FOREIGN_WRITER_LOOSENED)
