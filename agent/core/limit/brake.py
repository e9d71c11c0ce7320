"""The brake: between two ticks, must best effort be cut now?

It sees two counters, the kernel's word that online pods wait for CPU, and one prepared plan; its answer is only ever a
lower value. Best effort runs at the kernel's minimum weight, so the cut protects the reserve and the caches, not the
run queue alone.
"""

from __future__ import annotations

import msgspec

from agent.core.limit.suppress import FLOOR_NOTE
from agent.core.observe.knobs import PERIOD_US
from agent.core.observe.observation import Knob
from model.decision import Decision, Term, TermSum, Unit
from model.reason import Reason

_LOOK_BACK = 2
"""Intervals a rate spans: one alone is too noisy for short requests."""


class BrakePlan(msgspec.Struct, frozen=True):
    """Prepared by the tick: the ceiling is `base_us` minus online use, at least `floor_us`.

    A cut smaller than `deadband_us` waits for the tick. `ceiling_us` is what the tick left in force; `suffering_us`
    is what is written when online pods are seen to wait for CPU (None: nothing, and nobody is woken). `narrow_first`
    are quotas below the ceiling, largest first, that cgroup v1 wants out of the way (set to unlimited) before a parent
    may go below them.
    """

    knob: Knob
    base_terms: tuple[Term, ...]
    base_us: int
    floor_us: int
    ceiling_us: int
    deadband_us: int
    policy: str = ""
    suffering_us: int | None = None
    narrow_first: tuple[tuple[Knob, int], ...] = ()

    def lowered_to(self, value: int) -> BrakePlan:
        """The same plan after a cut."""
        return msgspec.structs.replace(self, ceiling_us=value)


class BrakeSample(msgspec.Struct, frozen=True, gc=False):
    """CPU time of all pods and of best effort (ns) at one moment of the monotonic clock."""

    monotonic_seconds: float
    kubepods_ns: int
    best_effort_ns: int


class Cut(msgspec.Struct, frozen=True):
    """A cut that was made: the value before, the value now, the online use then (us a period).

    `suffering`: online pods waiting for CPU called for it, not the amount they use.
    """

    plan: BrakePlan
    at_seconds: float
    monotonic_seconds: float
    previous_us: int
    value_us: int
    online_us: int
    suffering: bool = False


def online_us(samples: tuple[BrakeSample, ...]) -> int | None:
    """Online CPU time per quota period over the newest intervals; None where it cannot be told."""
    if len(samples) < 2:
        return None
    old, new = samples[max(len(samples) - 1 - _LOOK_BACK, 0)], samples[-1]
    seconds = new.monotonic_seconds - old.monotonic_seconds
    grown = (new.kubepods_ns - old.kubepods_ns) - (new.best_effort_ns - old.best_effort_ns)
    if seconds <= 0 or new.kubepods_ns < old.kubepods_ns or new.best_effort_ns < old.best_effort_ns:
        return None
    return max(round(grown / 1000 * (PERIOD_US / 1_000_000) / seconds), 0)


def wanted_cut(plan: BrakePlan, samples: tuple[BrakeSample, ...], in_force_us: int) -> tuple[int, int] | None:
    """(new ceiling, online use) in us a period where a cut is due now, else None."""
    online = online_us(samples)
    if online is None:
        return None
    value = max(plan.base_us - online, plan.floor_us)
    unlimited = in_force_us < 0
    return (value, online) if unlimited or in_force_us - value >= plan.deadband_us else None


def suffering_cut(plan: BrakePlan, in_force_us: int) -> int | None:
    """The new ceiling in us a period where online pods wait for CPU and a lower one is prepared, else None."""
    if plan.suffering_us is None:
        return None
    value = max(plan.suffering_us, plan.floor_us)
    return value if in_force_us < 0 or value < in_force_us else None


def decision(cut: Cut) -> Decision:
    """The record of a cut, in the terms of the tick's own ceiling."""
    terms = TermSum()
    for term in cut.plan.base_terms:
        terms.add(term.name, term.value, term.note)
    terms.add("online used", -cut.online_us, "last 200 ms, seen by the brake")
    terms.at_least("floor", cut.plan.floor_us, FLOOR_NOTE)
    terms.become("online pods wait for CPU" if cut.suffering else "somebody wrote a lower value first", cut.value_us)
    return Decision(
        cut.plan.knob.subject,
        cut.plan.knob.file,
        terms.value,
        Unit.MICROSECONDS,
        Reason.ONLINE_SUFFERING if cut.suffering else Reason.BRAKE,
        terms.terms,
        cut.plan.policy,
        cut.at_seconds,
        f"cut from {cut.previous_us} us",
    )
