"""From decisions to ordered writes.

Only what differs from the kernel is written: narrowing first, from the leaves, then widening, from the root. That is
the order cgroup v1 accepts for nested quotas, and nobody has too much in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.knobs import UNLIMITED
from agent.core.observation import Knob, KnobReading, Missing
from agent.core.suppress import Standing
from model.decision import Decision
from model.reason import Reason


class Write(msgspec.Struct, frozen=True):
    """One planned change of a control file; `previous` is what the kernel held when it was planned."""

    knob: Knob
    value: int
    previous: int
    decision: Decision

    @property
    def widens(self) -> bool:
        """The write gives best effort more."""
        return looser(self.value, self.previous)


class KnobStanding(msgspec.Struct, frozen=True):
    """What is remembered of the quota between ticks: a tighter value somebody else wrote."""

    foreign_cap: int | None = None


def looser(one: int, other: int) -> bool:
    """`one` lets a cgroup have more than `other`; -1 is no limit at all."""
    if one == other:
        return False
    return one == UNLIMITED or (other != UNLIMITED and one > other)


def standing(reading: KnobReading, remembered: KnobStanding) -> tuple[KnobStanding, Standing]:
    """Tell our own values from a foreign writer's: a looser one is undone, a tighter one respected from now on."""
    kernel, ours = reading.kernel, reading.ours
    if isinstance(kernel, Missing) or ours is None or kernel == ours:
        return remembered, Standing(kernel, remembered.foreign_cap, ours=ours is not None)
    if looser(kernel, ours):
        return KnobStanding(), Standing(ours, None, loosened=True, ours=True)
    return KnobStanding(kernel), Standing(kernel, kernel)


def plan(decided: Mapping[Knob, Decision], readings: Mapping[Knob, KnobReading]) -> tuple[Write, ...]:
    """The ordered writes that make the kernel hold what was decided."""
    writes = list(_changes(decided, readings))
    widening = sorted((w for w in writes if w.widens), key=lambda w: (w.knob.cgroup.count("/"), w.knob))
    narrowing = sorted((w for w in writes if not w.widens), key=lambda w: (-w.knob.cgroup.count("/"), w.knob))
    return (*narrowing, *widening)


def _changes(decided: Mapping[Knob, Decision], readings: Mapping[Knob, KnobReading]) -> Iterable[Write]:
    for knob, decision in decided.items():
        kernel = readings[knob].kernel
        if isinstance(kernel, int) and decision.reason is not Reason.KNOB_UNREADABLE and kernel != decision.value:
            yield Write(knob, decision.value, kernel, decision)
