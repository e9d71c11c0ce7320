"""Fixed limits of the best-effort root, each with one right value: weight, the quota's period, and idle.

While `cpu.idle` is set, the kernel takes no weight (EINVAL; v1 reads 3 shares, v2 weight 0 or 1). When it ends, v1
starts again at 1024 shares: the weight is held again in the same tick, after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import PERIOD_FILE, FixedKnob, RootKnobs
from agent.core.observe.observation import Knob, KnobReading, Missing
from model.decision import Decision, Term, Unit
from model.reason import Reason


def fixed_limits(
    knobs: RootKnobs, readings: Mapping[Knob, KnobReading], idle_wanted: bool, now: float
) -> tuple[Limit, ...]:
    """Idle where it is wanted, then period and weight. Idle that was ours is released in this tick."""
    reading = readings.get(knobs.idle, KnobReading(0))
    ours_ends = not idle_wanted and reading.kernel == reading.last_written == 1 and reading.original == 0
    limits = [_idle(knobs.idle, reading, now)] if idle_wanted else []
    stands = not isinstance(reading.kernel, Missing) and (idle_wanted or reading.kernel != 0) and not ours_ends
    for held in knobs.fixed:
        current = readings[held.knob].kernel
        if stands and held.knob.file != PERIOD_FILE and isinstance(current, int):
            reason = Reason.IDLE_HELD if idle_wanted else Reason.FOREIGN_WRITER_TIGHTER
            limits.append(_limit(held.knob, current, reason, Term("idle", current, "weaker than any weight"), now))
        else:
            limits.append(fixed(held, current, now))
    return tuple(limits)


def fixed(held: FixedKnob, current: object, now: float) -> Limit:
    """The held value, whoever wrote another."""
    knob = held.knob
    if isinstance(current, Missing):
        return _unreadable(knob, current, now)
    if knob.file == PERIOD_FILE:
        reason, term = Reason.PERIOD_HELD, Term("kernel's default", held.value, "the ceiling counts per period")
    else:
        note = "online pods outweigh best effort as far as the kernel allows"
        reason, term = Reason.WEIGHT_HELD, Term("kernel's minimum", held.value, note)
    if current != held.value:
        reason = Reason.FOREIGN_WRITER_LOOSENED
    return _limit(knob, held.value, reason, term, now)


def _idle(knob: Knob, reading: KnobReading, now: float) -> Limit:
    if isinstance(reading.kernel, Missing):
        return _unreadable(knob, reading.kernel, now)
    lost = reading.last_written == 1 and reading.kernel != 1
    reason = Reason.FOREIGN_WRITER_LOOSENED if lost else Reason.IDLE_HELD
    return _limit(knob, 1, reason, Term("by setting", 1, "runs only where nobody else wants to"), now)


def _unreadable(knob: Knob, missing: Missing, now: float) -> Limit:
    detail = f"{missing.path}: {missing.detail}"
    return Limit(
        knob, 0, Decision(knob.subject, knob.file, 0, _unit(knob), Reason.KNOB_UNREADABLE, (), "", now, detail)
    )


def _limit(knob: Knob, value: int, reason: Reason, term: Term, now: float) -> Limit:
    return Limit(knob, value, Decision(knob.subject, knob.file, value, _unit(knob), reason, (term,), "", now))


def _unit(knob: Knob) -> Unit:
    if knob.file == PERIOD_FILE:
        return Unit.MICROSECONDS
    return Unit.SHARES if knob.file == "cpu.shares" else Unit.WEIGHT
