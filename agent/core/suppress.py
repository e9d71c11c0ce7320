"""How far best-effort CPU may go: the quota ceiling of the best-effort root, and its weight.

    ceiling = capacity x threshold - online used - max(system used, reserved), at least the floor

Source: Koordinator pkg/koordlet/qosmanager/plugins/cpusuppress (allowance, 1 % deadband, growth step of a tenth of the
node). The weight does the protecting, the ceiling keeps a reserve (docs/adr/0003). Lowering follows the newest second,
raising the larger of newest second and live window, and a new agent raises nothing before its live window is full.
"""

from __future__ import annotations

import msgspec

from agent.core.knobs import PERIOD_US, UNLIMITED, FixedKnob
from agent.core.observation import Knob, Missing
from agent.core.usage import NodeUsage
from model.decision import Decision, Term, TermSum, Unit
from model.node import Node
from model.reason import Reason
from model.report import Usage
from model.resources import CPU
from model.strategy import SuppressStrategy

POLICY = "adaptive"
_US_PER_MILLI = PERIOD_US // 1000
_FLOOR_US = 2000
"""Koordinator's beMinQuota: 0.02 CPU; the kernel's own minimum is 1,000."""
FLOOR_NOTE = "best effort keeps this much, whatever the load"
_DEADBAND_RATIO = 0.01
_STEP_RATIO = 0.1
_STEP_SECONDS = 1.0
"""Koordinator decides once a second: a decision that comes early takes its share of a step, a late one no more."""


class Ceiling(msgspec.Struct, frozen=True):
    """The quota decision, and what the brake needs: `base_us` is the ceiling before online use is subtracted."""

    decision: Decision
    base_terms: tuple[Term, ...] = ()
    floor_us: int = _FLOOR_US

    @property
    def base_us(self) -> int:
        return sum(term.value for term in self.base_terms)


class Standing(msgspec.Struct, frozen=True):
    """What holds for the quota knob before this decision.

    `current` is the value to start from (what we wrote last where somebody loosened it), `ours` that we wrote it,
    `foreign_cap` a tighter value of somebody else that is never exceeded, `braked` that the brake cut within the
    cooldown, `unsettled` that the settings in force may be looser than those of a document we could not read,
    `elapsed_seconds` the time since the decision before.
    """

    current: int | Missing
    foreign_cap: int | None = None
    loosened: bool = False
    ours: bool = False
    braked: bool = False
    unsettled: bool = False
    elapsed_seconds: float = 0.0


class NodeSize(msgspec.Struct, frozen=True):
    """CPU of the node and how much of it is reserved, in milli-CPU."""

    capacity_millis: int
    reserved_millis: int = 0

    @classmethod
    def of(cls, node: Node) -> NodeSize:
        return cls(node.capacity[CPU], max(node.capacity[CPU] - node.allocatable[CPU], 0))


def quota_ceiling(
    knob: Knob,
    size: NodeSize | None,
    usage: NodeUsage | None,
    strategy: SuppressStrategy,
    standing: Standing,
    now: float,
) -> Ceiling:
    """The quota for the best-effort root in us per period. Missing facts hold the current value.

    Switched off, a ceiling of ours is lifted and anybody else's left alone.
    """
    current = standing.current
    if isinstance(current, Missing):
        return _hold(knob, UNLIMITED, Reason.KNOB_UNREADABLE, now, f"{current.path}: {current.detail}")
    if not strategy.enable:
        value = UNLIMITED if standing.ours and standing.foreign_cap is None else current
        return _hold(knob, value, Reason.SUPPRESSION_DISABLED, now, "")
    if usage is None or size is None:
        return _hold(knob, current, Reason.NODE_METRICS_MISSING, now, "the current value stays")
    full_us = size.capacity_millis * _US_PER_MILLI
    floor_us = max(_FLOOR_US, full_us * (strategy.min_pct or 0) // 100)
    base = _base(size, usage.system.last, strategy, full_us)
    wanted = _allowance(base, usage.online.last, "newest second").at_least("floor", floor_us, FLOOR_NOTE)
    cap = standing.foreign_cap
    if cap is not None and current >= cap and wanted.value > cap:
        terms, reason = wanted.at_most("foreign writer is tighter", cap), Reason.FOREIGN_WRITER_TIGHTER
    elif current == UNLIMITED or wanted.value < current:
        terms, reason = _lower(wanted, current, full_us, floor_us)
    else:
        calm_base = _base(size, _larger(usage.system.last, usage.system.live), strategy, full_us)
        calm = _allowance(calm_base, _larger(usage.online.last, usage.online.live), "larger of newest second and 10 s")
        step_us = round(full_us * _STEP_RATIO * min(standing.elapsed_seconds / _STEP_SECONDS, 1.0))
        not_yet = _why_not_yet(usage, standing)
        terms, reason = _raise(calm.at_least("floor", floor_us, FLOOR_NOTE), current, full_us, step_us, not_yet)
    if cap is not None:
        terms.at_most("foreign writer is tighter", cap)
    reason = Reason.FOREIGN_WRITER_LOOSENED if standing.loosened else reason
    asked = "" if strategy.policy == POLICY else f"{strategy.policy} was asked for, this version has {POLICY}"
    decision = Decision(
        knob.subject, knob.file, terms.value, Unit.MICROSECONDS, reason, terms.terms, POLICY, usage.at_seconds, asked
    )
    return Ceiling(decision, base.terms, floor_us)


def _lower(wanted: TermSum, current: int, full_us: int, floor_us: int) -> tuple[TermSum, Reason]:
    """Cut at once; only a change too small to matter is not worth a write."""
    small = current != UNLIMITED and current - wanted.value < int(full_us * _DEADBAND_RATIO)
    if small and wanted.value != floor_us:
        return wanted.become("held: change below 1 % of the node", current), Reason.BELOW_DEADBAND
    return wanted, Reason.QUOTA_LOWERED


def _raise(calm: TermSum, current: int, full_us: int, step_us: int, not_yet: Reason | None) -> tuple[TermSum, Reason]:
    """Rise by steps, and only as far as the calmer view of the load allows."""
    if min(calm.value - current, step_us) < int(full_us * _DEADBAND_RATIO):
        return calm.become("held: change below 1 % of the node", current), Reason.BELOW_DEADBAND
    if not_yet is not None:
        return calm.become("held: too early to raise", current), not_yet
    limited = calm.at_most("growth limited to a step", current + step_us, "a tenth of the node a second")
    return limited, Reason.QUOTA_RAISED


def _why_not_yet(usage: NodeUsage, standing: Standing) -> Reason | None:
    if standing.braked:
        return Reason.BRAKE
    if standing.unsettled:
        return Reason.CONFIGURATION_INVALID
    return None if usage.live_window_full else Reason.WINDOW_FILLING


def _base(size: NodeSize, system: Usage, strategy: SuppressStrategy, full_us: int) -> TermSum:
    terms = TermSum().add("capacity", full_us, f"{size.capacity_millis}m")
    margin = full_us - full_us * strategy.threshold_pct // 100
    terms.add("margin", -margin, f"{100 - strategy.threshold_pct} % of capacity stays free")
    if system.cpu_millis >= size.reserved_millis:
        return terms.add("system used", -system.cpu_millis * _US_PER_MILLI, "node minus pods")
    return terms.add(
        "reserved", -size.reserved_millis * _US_PER_MILLI, "capacity minus allocatable; larger than system use"
    )


def _allowance(base: TermSum, online: Usage, note: str) -> TermSum:
    terms = TermSum()
    for term in base.terms:
        terms.add(term.name, term.value, term.note)
    return terms.add("online used", -online.cpu_millis * _US_PER_MILLI, note)


def _hold(knob: Knob, value: int, reason: Reason, now: float, detail: str) -> Ceiling:
    terms = (Term("held" if value != UNLIMITED else "unlimited", value),)
    return Ceiling(Decision(knob.subject, knob.file, value, Unit.MICROSECONDS, reason, terms, POLICY, now, detail))


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(max(one.cpu_millis, other.cpu_millis), max(one.memory_bytes, other.memory_bytes))


def fixed(held: FixedKnob, current: int | Missing, now: float) -> Decision:
    """A knob with one right value, verified each tick: the weight's minimum, and the period the quota counts on."""
    knob = held.knob
    if isinstance(current, Missing):
        detail = f"{current.path}: {current.detail}"
        return Decision(knob.subject, knob.file, 0, Unit.SHARES, Reason.KNOB_UNREADABLE, (), "", now, detail)
    if knob.file == "cpu.cfs_period_us":
        unit, reason = Unit.MICROSECONDS, Reason.PERIOD_HELD
        term = Term("kernel's default", held.value, "the ceiling counts per period")
    else:
        unit = Unit.WEIGHT if knob.file == "cpu.weight" else Unit.SHARES
        reason = Reason.WEIGHT_HELD
        term = Term("kernel's minimum", held.value, "online pods outweigh best effort as far as the kernel allows")
        if current < held.value:
            # 0 is a v2 cgroup with cpu.idle set; the kernel refuses any weight for it.
            idle = Term("idle", current, "weaker than any weight")
            return Decision(knob.subject, knob.file, current, unit, Reason.FOREIGN_WRITER_TIGHTER, (idle,), "", now)
    if current != held.value:
        reason = Reason.FOREIGN_WRITER_LOOSENED
    return Decision(knob.subject, knob.file, held.value, unit, reason, (term,), "", now)
