"""Write plan: limits to ordered writes, only where a limit differs from what the kernel holds now."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.limit.ownership import gives_more
from agent.core.limit.steps import steps
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import CPUSET_FILE
from agent.core.observe.observation import Knob, KnobReading, Missing, Value
from model.decision import Decision
from model.reason import Reason


class Write(msgspec.Struct, frozen=True):
    """One planned change of a control file; `previous` is what the kernel holds just before it.

    `original` is what the knob held before any of us, where that is not what it holds now: it was born with a value of
    ours. None: what it holds now. `gives_back`: the last write of this file, which then says again what it said before
    us, byte for byte where `value` is that value; what it was is forgotten.
    """

    knob: Knob
    value: Value
    previous: Value
    decision: Decision
    original: Value | None = None
    gives_back: bool = False

    @property
    def widens(self) -> bool:
        """The write gives best effort more."""
        return gives_more(self.knob, self.value, self.previous)


def plan(limits: Mapping[Knob, Limit], readings: Mapping[Knob, KnobReading]) -> tuple[Write, ...]:
    """The writes that make the kernel hold the limits; what was not read, or cannot be, is left alone."""
    current = {knob: reading.kernel for knob, reading in readings.items() if not isinstance(reading.kernel, Missing)}
    # Of thousands of files a tick reads a tenth.
    read = {knob: limits[knob] for knob in current if knob in limits}
    known = {knob: limit for knob, limit in read.items() if limit.decision.reason is not Reason.KNOB_UNREADABLE}
    wanted = {knob: limit.value for knob, limit in known.items()}
    originals = {knob: _original(limit, readings) for knob, limit in known.items() if limit.inherits}
    moves = steps(wanted, current)
    last = {step.knob: step for step in moves}
    # A cgroup that was born with the very value: written all the same, so that what it was before us is remembered.
    unmoved = ((knob, original) for knob, original in originals.items() if knob not in last)
    born = {knob for knob, original in unmoved if _is_born(readings[knob], knob, original)}
    given = {knob for knob, limit in known.items() if limit.gives_back}
    writes = (
        Write(
            knob=step.knob,
            value=step.value,
            previous=step.previous,
            decision=limits[step.knob].decision,
            original=originals.get(step.knob),
            gives_back=step.knob in given and last[step.knob] is step,
        )
        for step in moves
    )
    kept = (
        Write(knob, known[knob].value, current[knob], known[knob].decision, original=originals[knob])
        for knob in sorted(born - given)
    )
    settled = (
        Write(knob, known[knob].value, current[knob], known[knob].decision, gives_back=True)
        for knob in sorted(given - last.keys())
    )
    return (*writes, *kept, *settled)


def _is_born(reading: KnobReading, knob: Knob, original: Value | None) -> bool:
    """CPU lists have rules of their own: they are taken from the parent's again whenever that changes."""
    return original is not None and reading.original is None and knob.file != CPUSET_FILE


def _original(limit: Limit, readings: Mapping[Knob, KnobReading]) -> Value | None:
    """What its cgroup was born from held before us, where the kernel still holds what that gave it.

    A v1 CPU list is born empty, and somebody else is about to fill it from there.
    """
    born_from = readings.get(limit.inherits) if limit.inherits else None
    own = readings.get(limit.knob)
    if born_from is None or own is None:
        return None
    if own.kernel == "" and born_from.original is None:
        return None if isinstance(born_from.kernel, Missing) else born_from.kernel
    return born_from.original if own.kernel in ("", born_from.last_written) else None
