"""A plan being carried out: victims are told first where any of them asks for it, and end together.

Proposed → Notified → CheckpointWait → Terminating → Released, each skipped where there is nothing to wait for; Aborted
where the preemptor goes away or finds room elsewhere before that: who does not terminate yet stays. A step repeats
what has not happened yet, so it may be asked for again after a failure, a conflict or a restart: then the notices that
stand on the pods say how long they still have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from model.placement import EvictionPlan, PlanState, Victim
from model.pod.colocation import StandingNotice
from scheduler.core.preemption.policy import PreemptionPolicySettings

MOST_HAVE_ENDED = 0.9
"""The part of past runs that have ended by when a victim is expected to."""


class Progress(msgspec.Struct, frozen=True):
    """A plan, and since when (Unix seconds) each of its victims (by uid) knows; empty where nobody is told."""

    plan: EvictionPlan
    since: Mapping[str, float] = {}

    @property
    def over(self) -> bool:
        return self.plan.state in (PlanState.RELEASED, PlanState.ABORTED)

    @property
    def due_seconds(self) -> float | None:
        """Unix time at which it goes on in any case, None where it waits for nobody who was told."""
        waits = self.plan.state in (PlanState.NOTIFIED, PlanState.CHECKPOINT_WAIT)
        return self.plan.deadline_seconds if waits else None


class VictimStates(msgspec.Struct, frozen=True):
    """What is true of a plan's victims, by uid; `saved` is when each began the newest checkpoint that is complete, in
    Unix seconds. `notified` were told in the name of this plan, `standing` are the notices on the pods.

    `wanted`: the preemptor still waits and does not fit without this plan.
    """

    alive: frozenset[str]
    deleting: frozenset[str] = frozenset()
    notified: frozenset[str] = frozenset()
    saved: Mapping[str, float] = {}
    standing: Mapping[str, StandingNotice] = {}
    wanted: bool = True


class Notify(msgspec.Struct, frozen=True):
    """Tell a victim that it goes at `deadline_seconds`, and that it is told since `since_seconds` (Unix time)."""

    victim: Victim
    deadline_seconds: float
    since_seconds: float


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
        progress = _begin(progress, left, facts, policy, now)
    return _proceed(progress, facts, staying, now)


def notice_seconds(victims: Iterable[Victim], policy: PreemptionPolicySettings) -> float:
    """The longest notice that any of them asks for and is allowed."""
    return min(max((victim.notice_seconds for victim in victims), default=0.0), policy.longest_notice_seconds)


def left_until(ends: Iterable[float], grace_seconds: float, now: float) -> float:
    """How long a victim with these expected ends is left to end by itself (Unix seconds); 0 where none of them is
    within its grace period. A deadline that passed longer ago than that nobody has kept.
    """
    soon = any(now - grace_seconds <= end <= now + grace_seconds for end in ends)
    return now + grace_seconds if soon else 0.0


def waits(progress: Progress, facts: VictimStates, now: float) -> bool:
    """Whether victims that were told are still given time: a job that asks for notice has not saved since."""
    if progress.due_seconds is None or now >= progress.plan.deadline_seconds:
        return False
    asking = {victim.subject for victim in progress.plan.victims if victim.notice_seconds > 0}
    return any(
        facts.saved.get(victim.uid, 0.0) < progress.since.get(victim.uid, now)
        for victim in progress.plan.victims
        if victim.subject in asking and victim.uid in facts.alive and victim.uid not in facts.deleting
    )


def _abort(progress: Progress, facts: VictimStates, staying: tuple[Victim, ...]) -> Step:
    """Those that were not evicted yet stay."""
    spared = tuple(Unnotify(victim) for victim in staying if victim.uid in facts.notified)
    return Step(_in(progress, PlanState.ABORTED), spared)


def _begin(
    progress: Progress, victims: tuple[Victim, ...], facts: VictimStates, policy: PreemptionPolicySettings, now: float
) -> Progress:
    """One deadline for all: the longest notice that is asked for and allowed, from now on; where all know already, what
    is left of that.
    """
    longest = notice_seconds(victims, policy)
    state = PlanState.NOTIFIED if longest > 0 else PlanState.TERMINATING
    told = {victim.uid: facts.standing[victim.uid] for victim in victims if victim.uid in facts.standing}
    deadline = now + longest
    if len(told) == len(victims):
        deadline = min(deadline, max(each.deadline_seconds for each in told.values()))
    since = {uid: min(each.since_seconds, now) for uid, each in told.items()}
    plan = msgspec.structs.replace(progress.plan, state=state, deadline_seconds=deadline)
    return Progress(plan, {victim.uid: since.get(victim.uid, now) for victim in victims} if longest > 0 else {})


def _proceed(progress: Progress, facts: VictimStates, staying: tuple[Victim, ...], now: float) -> Step:
    if waits(progress, facts, now):
        deadline = progress.plan.deadline_seconds
        told = tuple(
            Notify(victim, deadline, progress.since.get(victim.uid, now))
            for victim in staying
            if victim.uid not in facts.notified
        )
        return Step(_in(progress, PlanState.NOTIFIED if told else PlanState.CHECKPOINT_WAIT), told)
    due = tuple(Evict(victim) for victim in staying if victim.left_until_seconds <= now)
    return Step(_in(progress, PlanState.TERMINATING), due)


def _in(progress: Progress, state: PlanState) -> Progress:
    return msgspec.structs.replace(progress, plan=msgspec.structs.replace(progress.plan, state=state))
