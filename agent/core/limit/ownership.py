"""Whose value a control file holds: a looser foreign value is undone, a tighter one is respected.

A tighter value is remembered as a cap until the kernel holds something looser than it: whoever set it took it back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import UNLIMITED, Form, More, row_of
from agent.core.observe.knobs import is_below_best_effort
from agent.core.observe.observation import Knob, KnobReading, Missing, Value
from model.decision import Term, TermSum
from model.reason import Reason
from model.topology import format_cpus, parse_cpus

_V = TypeVar("_V", int, str, int | str)


class QuotaCap(msgspec.Struct, frozen=True):
    """What is remembered of the quota between ticks: a tighter value somebody else wrote."""

    foreign_cap: int | None = None


class Ownership(msgspec.Struct, frozen=True):
    """What holds for the quota knob before this decision.

    `current` is the value to start from (what we wrote last where somebody loosened it), `ours` that we wrote it,
    `foreign_cap` a tighter value of somebody else that is never exceeded, `braked` that the brake cut within the
    cooldown, `unsettled` why the settings in force may be looser than those of a document we do not know,
    `elapsed_seconds` the time since the decision before.
    """

    current: int | Missing
    foreign_cap: int | None = None
    loosened: bool = False
    ours: bool = False
    braked: bool = False
    unsettled: Reason | None = None
    elapsed_seconds: float = 0.0


def looser(one: Value, other: Value) -> bool:
    """`one` lets a cgroup have more than `other`: -1 is no limit at all, a CPU list gives more unless it is a part."""
    if one == other:
        return False
    if isinstance(one, str) or isinstance(other, str):
        return not set(parse_cpus(str(one))) <= set(parse_cpus(str(other)))
    return one == UNLIMITED or (other != UNLIMITED and one > other)


def no_looser_than_before(terms: TermSum, reading: KnobReading, whose: str = "") -> None:
    """A limit is no looser than what stood there before ours; `whose` that is."""
    before = reading.original if reading.last_written is not None else reading.kernel
    if isinstance(before, int) and looser(terms.value, before):
        terms.become("limit before us", before, whose)


def gives_more(knob: Knob, one: Value, other: Value) -> bool:
    """The same for the values of one knob, in the direction of its row; an empty CPU list of v2 gives all."""
    row = row_of(knob)
    if row.form is Form.CPUS and row.neutral == "" and "" in (one, other):
        return one == "" != other
    if row.form is Form.SIGNED and isinstance(one, int) and isinstance(other, int):
        higher = (row.more is More.HIGHER) is is_below_best_effort(knob)
        return one > other if higher else one < other
    return looser(one, other) if row.more is More.HIGHER else looser(other, one)


def ownership(reading: KnobReading, remembered: QuotaCap) -> tuple[QuotaCap, Ownership]:
    """Tell our own quota from a foreign writer's."""
    kernel, ours = reading.kernel, reading.last_written
    if isinstance(kernel, Missing):
        return remembered, Ownership(kernel, remembered.foreign_cap, ours=ours is not None)
    if isinstance(kernel, str) or isinstance(ours, str):
        raise TypeError("a quota is a number")
    cap = _cap(looser, kernel, ours, remembered.foreign_cap)
    if ours is not None and looser(kernel, ours):
        return QuotaCap(cap), Ownership(ours, cap, loosened=True, ours=True)
    return QuotaCap(cap), Ownership(kernel, cap, ours=kernel == ours)


def left_to_us(limit: Limit, reading: KnobReading, cap: Value | None) -> tuple[Value | None, Limit]:
    """The limit that other writers leave us, and the cap to remember.

    What nobody of us ever wrote is ours from now on. What it was before us is nobody's wish: something reset it, as a
    daemon-reload of systemd does. A limit that is above its wish because of what is in use already comes down with it
    and never rises again.
    """
    kernel, ours, knob = reading.kernel, reading.last_written, limit.knob
    if isinstance(kernel, Missing) and limit.decision.reason is Reason.CONTROLLER_ABSENT:
        return cap, limit
    if isinstance(kernel, Missing):
        return cap, _explained(limit, Reason.KNOB_UNREADABLE, f"{kernel.path}: {kernel.detail}")
    more = partial(gives_more, knob)
    cap = _cap(more, kernel, ours, cap, reading.original)
    if cap is not None and more(limit.value, cap):
        return cap, _within(limit, cap)
    if ours is not None and more(kernel, ours):
        return cap, _explained(limit, Reason.FOREIGN_WRITER_LOOSENED)
    in_use = limit.decision.reason is Reason.IN_USE_ALREADY
    if in_use and ours is not None and more(limit.value, kernel):
        return cap, _changed(limit, kernel, "comes down only", limit.decision.reason)
    return cap, limit


def _cap(
    more: Callable[[Value, Value], bool], kernel: _V, ours: _V | None, cap: _V | None, original: Value | None = None
) -> _V | None:
    """The foreign writer's word, from what the kernel holds now; `original` is nobody's."""
    if cap is not None and more(kernel, cap):
        cap = None
    foreign = ours is not None and kernel not in (ours, original) and (cap is not None or not more(kernel, ours))
    return kernel if foreign else cap


def _within(limit: Limit, cap: Value) -> Limit:
    """The CPUs both name, where there are any; else the smaller amount."""
    if isinstance(cap, str):
        cap = format_cpus(set(parse_cpus(cap)) & set(parse_cpus(str(limit.value))))
        if not cap:
            return limit
    return _changed(limit, cap, "foreign writer is tighter", Reason.FOREIGN_WRITER_TIGHTER)


def _changed(limit: Limit, value: Value, why: str, reason: Reason) -> Limit:
    number = len(parse_cpus(value)) if isinstance(value, str) else value
    terms = (*limit.decision.terms, Term(why, number - limit.decision.value))
    decision = replace(limit.decision, value=number, terms=terms, reason=reason)
    return replace(limit, value=value, decision=decision)


def _explained(limit: Limit, reason: Reason, detail: str = "") -> Limit:
    return replace(limit, decision=replace(limit.decision, reason=reason, detail=detail or limit.decision.detail))
