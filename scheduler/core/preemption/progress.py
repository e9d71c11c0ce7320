"""A plan being carried out: victims that ask for notice get it and may save a checkpoint, others are evicted at once.

Proposed → Notified → CheckpointWait → Terminating → Released, each skipped where there is nothing to wait for; Aborted
where the preemptor goes away or finds room elsewhere before that: who does not terminate yet stays. A step repeats
what has not happened yet, so it may be asked for again after a failure, a conflict or a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from model.placement import EvictionPlan, PlanState, Victim
from scheduler.core.preemption.policy import PreemptionPolicySettings


class Progress(msgspec.Struct, frozen=True):
    """A plan and since when (Unix seconds) its victims know; 0: not told yet."""

    plan: EvictionPlan
    notified_seconds: float = 0.0

    @property
    def over(self) -> bool:
        return self.plan.state in (PlanState.RELEASED, PlanState.ABORTED)

    @property
    def due_seconds(self) -> float | None:
        """Unix time at which it goes on in any case, None where it waits for nobody who was told."""
        waits = self.plan.state in (PlanState.NOTIFIED, PlanState.CHECKPOINT_WAIT)
        return self.plan.deadline_seconds if waits else None


class VictimStates(msgspec.Struct, frozen=True):
    """What is true of a plan's victims, by uid; `saved` is when each last saved a checkpoint, in Unix seconds.

    `wanted`: the preemptor still waits and does not fit without this plan.
    """

    alive: frozenset[str]
    deleting: frozenset[str] = frozenset()
    notified: frozenset[str] = frozenset()
    saved: Mapping[str, float] = {}
    wanted: bool = True


class Notify(msgspec.Struct, frozen=True):
    """Tell a victim that it goes at `deadline_seconds` (Unix time)."""

    victim: Victim
    deadline_seconds: float


class Unnotify(msgspec.Struct, frozen=True):
    """Tell a victim that it stays."""

    victim: Victim


class Evict(msgspec.Struct, frozen=True):
    """Condition DisruptionTarget, then DELETE with the uid as precondition."""

    victim: Victim


Action: TypeAlias = Notify | Unnotify | Evict


class Step(msgspec.Struct, frozen=True):
    """How far it is, and what to do for it."""

    progress: Progress
    actions: tuple[Action, ...] = ()


def advance(progress: Progress, facts: VictimStates, policy: PreemptionPolicySettings, now: float) -> Step:
    """One step; to be asked for again whenever something changed or the plan's deadline has come."""
    if progress.over:
        return Step(progress)
    left = tuple(victim for victim in progress.plan.victims if victim.uid in facts.alive)
    if not left:
        return Step(_in(progress, PlanState.RELEASED))
    staying = tuple(victim for victim in left if victim.uid not in facts.deleting)
    if not facts.wanted:
        return _abort(progress, facts, staying)
    if progress.plan.state is PlanState.PROPOSED:
        progress = _begin(progress, left, policy, now)
    return _proceed(progress, facts, staying, now)


def notice_seconds(victims: Iterable[Victim], policy: PreemptionPolicySettings) -> float:
    """The longest notice that any of them asks for and is allowed."""
    return min(max((victim.notice_seconds for victim in victims), default=0.0), policy.longest_notice_seconds)


def _abort(progress: Progress, facts: VictimStates, staying: tuple[Victim, ...]) -> Step:
    """Those that were not evicted yet stay."""
    spared = tuple(Unnotify(victim) for victim in staying if victim.uid in facts.notified)
    return Step(_in(progress, PlanState.ABORTED), spared)


def _begin(progress: Progress, victims: tuple[Victim, ...], policy: PreemptionPolicySettings, now: float) -> Progress:
    """One deadline for all, the longest notice that is asked for and allowed."""
    longest = notice_seconds(victims, policy)
    state = PlanState.NOTIFIED if longest > 0 else PlanState.TERMINATING
    plan = msgspec.structs.replace(progress.plan, state=state, deadline_seconds=now + longest)
    return Progress(plan, now if longest > 0 else 0.0)


def _proceed(progress: Progress, facts: VictimStates, staying: tuple[Victim, ...], now: float) -> Step:
    with_notice = tuple(victim for victim in staying if victim.notice_seconds > 0)
    if progress.plan.state is not PlanState.TERMINATING and _waits(progress, facts, with_notice, now):
        not_notified = tuple(
            Notify(v, progress.plan.deadline_seconds) for v in with_notice if v.uid not in facts.notified
        )
        state = PlanState.NOTIFIED if not_notified else PlanState.CHECKPOINT_WAIT
        at_once = tuple(Evict(victim) for victim in staying if victim.notice_seconds <= 0)
        return Step(_in(progress, state), not_notified + at_once)
    evictions = tuple(Evict(victim) for victim in staying)
    return Step(_in(progress, PlanState.TERMINATING), evictions)


def _waits(progress: Progress, facts: VictimStates, with_notice: tuple[Victim, ...], now: float) -> bool:
    """Whether a victim that asks for notice has not saved since it was notified, and has time left."""
    if now >= progress.plan.deadline_seconds:
        return False
    return any(facts.saved.get(victim.uid, 0.0) <= progress.notified_seconds for victim in with_notice)


def _in(progress: Progress, state: PlanState) -> Progress:
    return msgspec.structs.replace(progress, plan=msgspec.structs.replace(progress.plan, state=state))
