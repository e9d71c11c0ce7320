"""CPU ceiling: the quota of the best-effort root.

The ceiling is the allowance (core.limit.allowance), at least a floor, at most half of best effort's use while online
pods wait for CPU (stall_relief). Source of deadband and growth step: Koordinator
pkg/koordlet/qosmanager/plugins/cpusuppress. The weight does the protecting, the ceiling keeps a reserve
(docs/adr/0003). Lowering follows the newest second, raising the calmer view, and a new agent raises nothing before its
live window is full.
"""

from __future__ import annotations

import msgspec

from agent.core.limit.allowance import US_PER_MILLI, Demand, NodeSize, allowance, base
from agent.core.limit.ownership import Ownership
from agent.core.limit.stall_relief import CALM, Relief
from agent.core.observe.knobs import UNLIMITED
from agent.core.observe.observation import Knob, Missing
from model.decision import Decision, Term, TermSum, Unit
from model.reason import Reason
from model.strategy import SuppressPolicy, SuppressStrategy

FLOOR_US = 2000
"""Koordinator's beMinQuota: 0.02 CPU; the kernel's own minimum is 1,000."""
FLOOR_NOTE = "best effort keeps this much, whatever the load"
_DEADBAND_RATIO = 0.01
_STEADY_RATIO = 0.05
"""Where weight protects, the ceiling need not follow the noise of single seconds: so much lower is worth a cut."""
_STEP_RATIO = 0.1
_STEP_SECONDS = 1.0
"""Koordinator decides once a second: a decision that comes early takes its share of a step, a late one no more."""


class Situation(msgspec.Struct, frozen=True):
    """What a ceiling follows from; `size` and `demand` are None while unknown, which `unknown` then explains.

    `released` is what the knob holds when no ceiling of ours is in force. `cpuset_in_force`: the kernel holds the CPU
    list that is the ceiling of policy `cpuset`; `cpuset_failed`: it does not hold the one that was decided a tick ago.
    `period_lost`: the quota counts by another period than it is meant for.
    """

    strategy: SuppressStrategy
    ownership: Ownership
    at_seconds: float
    size: NodeSize | None = None
    demand: Demand | None = None
    window_full: bool = True
    relief: Relief = CALM
    released: int = UNLIMITED
    cpuset_in_force: bool = False
    cpuset_failed: bool = False
    period_lost: bool = False
    unknown: Reason = Reason.NODE_METRICS_MISSING

    @property
    def known(self) -> bool:
        """A quota can be decided."""
        return isinstance(self.ownership.current, int) and self.size is not None and self.demand is not None

    @property
    def not_yet(self) -> Reason | None:
        """Why nothing is raised now."""
        if self.ownership.braked:
            return Reason.BRAKE
        if self.ownership.unsettled:
            return self.ownership.unsettled
        if self.period_lost:
            return Reason.FOREIGN_WRITER_LOOSENED
        return self.relief.reason or (None if self.window_full else Reason.WINDOW_FILLING)


class CpuCeiling(msgspec.Struct, frozen=True):
    """The decision, and what the brake needs, in quota: `base_us` is the ceiling before online use is subtracted."""

    decision: Decision
    in_force_us: int
    base_terms: tuple[Term, ...] = ()
    floor_us: int = FLOOR_US

    @property
    def base_us(self) -> int:
        return sum(term.value for term in self.base_terms)


def floor_us(size: NodeSize, strategy: SuppressStrategy) -> int:
    """What best effort keeps whatever the load, in us per period."""
    return max(FLOOR_US, size.capacity_millis * US_PER_MILLI * (strategy.min_pct or 0) // 100)


def quota_ceiling(knob: Knob, situation: Situation) -> CpuCeiling:
    """The quota for the best-effort root in us per period. Missing facts hold the current value.

    Switched off, or where the policy limits CPUs instead, a ceiling of ours is lifted and anybody else's left alone.
    """
    current = situation.ownership.current
    if isinstance(current, Missing):
        reason, detail = Reason.KNOB_UNREADABLE, f"{current.path}: {current.detail}"
        return _ceiling(knob, situation, _held(UNLIMITED), reason, detail)
    if not situation.strategy.enable:
        return _ceiling(knob, situation, _held(_lifted(situation, current)), Reason.SUPPRESSION_DISABLED)
    if situation.strategy.policy is SuppressPolicy.CPUSET:
        return _emergency(knob, situation, current)
    size, demand = situation.size, situation.demand
    if size is None or demand is None:
        return _ceiling(knob, situation, _held(current), situation.unknown, "the current value stays")
    return _quota(knob, situation, size, demand, current)


def _quota(knob: Knob, situation: Situation, size: NodeSize, demand: Demand, current: int) -> CpuCeiling:
    terms, reason = _formula(situation, size, demand, current)
    if situation.ownership.loosened:
        reason = Reason.FOREIGN_WRITER_LOOSENED
    defended = base(size, demand.now, situation.strategy.ceiling_pct)
    if demand.apart_millis:
        defended.add("online by cgroups", demand.apart_millis * US_PER_MILLI, "counted here, but not as online pods")
    if demand.requested_millis:
        defended.add("online requests", demand.requested_millis * US_PER_MILLI, "only use beyond these counts")
    stead = "in the CPU list's stead, which is not in force" if situation.cpuset_failed else ""
    found = _ceiling(knob, situation, terms, reason, situation.relief.disregarded or stead)
    return msgspec.structs.replace(found, base_terms=defended.terms, floor_us=floor_us(size, situation.strategy))


def _formula(situation: Situation, size: NodeSize, demand: Demand, current: int) -> tuple[TermSum, Reason]:
    """Lower at once, raise by steps; never above what somebody tighter wrote."""
    pct, floor = situation.strategy.ceiling_pct, floor_us(size, situation.strategy)
    wanted = allowance(size, demand.now, pct).at_least("floor", floor, FLOOR_NOTE)
    relieved = _relieved(wanted, situation.relief)
    cap, full_us = situation.ownership.foreign_cap, size.capacity_millis * US_PER_MILLI
    if cap is not None and current >= cap and wanted.value > cap:
        terms, reason = wanted.at_most("foreign writer is tighter", cap), Reason.FOREIGN_WRITER_TIGHTER
    elif current == UNLIMITED or wanted.value < current:
        steady = situation.strategy.policy is SuppressPolicy.ADAPTIVE and not relieved
        terms, reason = _lower(wanted, current, full_us, floor, _STEADY_RATIO if steady else _DEADBAND_RATIO)
    else:
        calm = allowance(size, demand.calm, pct).at_least("floor", floor, FLOOR_NOTE)
        terms, reason = _raise(calm, current, full_us, situation)
    if relieved and reason is Reason.QUOTA_LOWERED:
        reason = Reason.ONLINE_SUFFERING
    if situation.relief.disregarded and reason is Reason.QUOTA_RAISED:
        reason = Reason.CUT_DOES_NOT_HELP
    return (terms if cap is None else terms.at_most("foreign writer is tighter", cap)), reason


def _relieved(wanted: TermSum, relief: Relief) -> bool:
    """Whether the cap of `relief` made a difference."""
    before = wanted.value
    if relief.cap_us is not None:
        wanted.at_most("online pods wait for CPU", relief.cap_us, relief.note)
    return wanted.value < before


def _lower(wanted: TermSum, current: int, full_us: int, floor: int, deadband: float) -> tuple[TermSum, Reason]:
    """Cut at once; only a change too small to matter is not worth a write."""
    small = current != UNLIMITED and current - wanted.value < int(full_us * deadband)
    if small and wanted.value != floor:
        return wanted.become(
            f"held: change below {round(deadband * 100)} % of the node", current
        ), Reason.BELOW_DEADBAND
    return wanted, Reason.QUOTA_LOWERED


def _raise(calm: TermSum, current: int, full_us: int, situation: Situation) -> tuple[TermSum, Reason]:
    """Rise by steps, and only as far as the calmer view of the load allows."""
    step_us = round(full_us * _STEP_RATIO * min(situation.ownership.elapsed_seconds / _STEP_SECONDS, 1.0))
    if min(calm.value - current, step_us) < int(full_us * _DEADBAND_RATIO):
        return calm.become("held: change below 1 % of the node", current), Reason.BELOW_DEADBAND
    if situation.not_yet is not None:
        return calm.become("held: too early to raise", current), situation.not_yet
    limited = calm.at_most("growth limited to a step", current + step_us, "a tenth of the node a second")
    return limited, Reason.QUOTA_RAISED


def _lifted(situation: Situation, current: int) -> int:
    """The value without a ceiling of ours."""
    ownership = situation.ownership
    return situation.released if ownership.ours and ownership.foreign_cap is None else current


def _emergency(knob: Knob, situation: Situation, current: int) -> CpuCeiling:
    """Where CPUs are the ceiling, a quota stands after a cut by the brake, while online pods wait for CPU, and until
    the list is in force: what is not known this second lifts nothing. A list that the kernel did not take has the quota
    of the other policies in its stead."""
    relief, size, demand = situation.relief, situation.size, situation.demand
    if situation.cpuset_failed and size is not None and demand is not None:
        return _quota(knob, situation, size, demand, current)
    if relief.cap_us is not None and relief.reason is not None:
        cap = relief.cap_us if current == UNLIMITED else min(relief.cap_us, current)
        held = TermSum().add("online pods wait for CPU", cap, relief.note)
        return _ceiling(knob, situation, held, relief.reason)
    if situation.ownership.braked:
        return _ceiling(knob, situation, _held(current), Reason.BRAKE)
    if not situation.cpuset_in_force:
        reason = Reason.CPUS_HELD if situation.known else situation.unknown
        return _ceiling(knob, situation, _held(current), reason, "the quota stays until the CPU list is in force")
    return _ceiling(knob, situation, _held(_lifted(situation, current)), Reason.KNOB_RELEASED, relief.disregarded)


def _held(value: int) -> TermSum:
    return TermSum().add("held" if value != UNLIMITED else "unlimited", value)


def _ceiling(knob: Knob, situation: Situation, terms: TermSum, reason: Reason, detail: str = "") -> CpuCeiling:
    policy, now = situation.strategy.policy, situation.at_seconds
    decision = Decision(
        knob.subject, knob.file, terms.value, Unit.MICROSECONDS, reason, terms.terms, policy, now, detail
    )
    return CpuCeiling(decision, terms.value)
