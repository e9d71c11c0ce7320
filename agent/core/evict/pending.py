"""Pending evictions: pods that were told or asked to go, or would not, and which answers are believed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.evict.departed import DepartedPods
from agent.core.evict.eviction_request import EvictionOutcome, EvictionRecord, OutcomeKind, PendingVictim
from agent.core.evict.request_queue import LONGEST_SECONDS
from agent.core.evict.thrashing import Activities
from agent.core.evict.tick_facts import TickFacts, ending_seconds, may_hurry, memory_bytes
from agent.core.limit.watch import LastResort
from model.pod.pod import Pod

_BLOCKED_SECONDS = (10.0, 300.0)
_FAILED_SECONDS = (1.0, 30.0)
"""First and longest wait before a pod is asked to go again; it doubles in between."""
_USUAL_GRACE_SECONDS = 30.0
"""Kubernetes' default."""
_DRIFT_SECONDS = 0.5
"""A clock that is merely corrected moves less from one tick to the next."""


class EvictionRefusal(msgspec.Struct, frozen=True):
    """A pod that could not be evicted `times` in a row, and until when (Unix time) it is left alone."""

    until_seconds: float
    times: int


class EvictionMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before; `record` also survives a restart.

    By uid: `refused` are pods that could not go, `ending` those that somebody else deletes, with the time this was
    first seen. `last_resort` is what the brake's thread holds. `begun` is False in the first tick.
    `clock_ahead_seconds` is how far Unix time was ahead of the monotonic clock. `activities` tell of thrashing.
    `departed` are pods that nobody lists any more and that still run.
    """

    record: EvictionRecord = EvictionRecord()
    refused: Mapping[str, EvictionRefusal] = {}
    ending: Mapping[str, float] = {}
    last_resort: LastResort | None = None
    begun: bool = False
    clock_ahead_seconds: float | None = None
    activities: Activities = Activities()
    departed: DepartedPods = DepartedPods()

    def ordered(self, uid: str, victim: PendingVictim) -> EvictionMemory:
        """With one more victim, or another word on the same one."""
        return self._with({**self.record.pending, uid: victim})

    def forgotten(self, uid: str) -> EvictionMemory:
        """Without one that is gone, or stays."""
        return self._with({other: victim for other, victim in self.record.pending.items() if other != uid})

    def rested(self, now: float, *, of_memory: bool) -> EvictionMemory:
        """With an eviction for memory or CPU at this moment."""
        changes = {"memory_at_seconds" if of_memory else "cpu_at_seconds": now}
        return msgspec.structs.replace(self, record=msgspec.structs.replace(self.record, **changes))

    def not_to_choose(self, now: float) -> frozenset[str]:
        """Pods that are terminating, or refused to go a moment ago."""
        terminating = {uid for uid, victim in self.record.pending.items() if victim.until_seconds > now}
        return frozenset(terminating | {uid for uid, refusal in self.refused.items() if refusal.until_seconds > now})

    def terminating(self, known: TickFacts, *, urgent: bool = False) -> tuple[Pod, ...]:
        """Pods whose end is believed in: what they still hold counts as freed."""
        if not self.record.pending and not self.ending:
            return ()
        return tuple(pod for pod in known.pods if self._believed(pod, known, urgent))

    def _believed(self, pod: Pod, known: TickFacts, urgent: bool) -> bool:
        now = known.observation.at_seconds
        victim = self.record.pending.get(pod.uid)
        if victim is not None:
            return victim.until_seconds > now
        since, grace = self.ending.get(pod.uid), known.strategy.grace_seconds(pod.spec.grace_seconds)
        if not may_hurry(pod):
            # Its owner chose the grace, and nobody of us may shorten it.
            grace = 0.0 if urgent else min(grace, _USUAL_GRACE_SECONDS)
        return since is not None and since + ending_seconds(grace, memory_bytes(known.observation, pod.uid)) > now

    def _with(self, pending: Mapping[str, PendingVictim]) -> EvictionMemory:
        return msgspec.structs.replace(self, record=msgspec.structs.replace(self.record, pending=pending))


def at_present(memory: EvictionMemory, pods: tuple[Pod, ...] | None, now: float) -> EvictionMemory:
    """Without pods that are gone; times ahead of the clock, which was set back, count as now.

    What an agent before this one asked for and nobody answered is decided again: it may never have been sent.
    """
    record = memory.record
    kept = {uid: victim for uid, victim in record.pending.items() if memory.begun or _outlives_us(victim)}
    pending = {uid: _not_ahead(victim, now) for uid, victim in kept.items()}
    refused, ending = memory.refused, memory.ending
    if pods is not None:
        there = {pod.uid: pod for pod in pods if not pod.terminal}
        pending = {uid: victim for uid, victim in pending.items() if uid in there}
        refused = {uid: refusal for uid, refusal in refused.items() if uid in there}
        ending = {pod.uid: min(ending.get(pod.uid, now), now) for pod in there.values() if pod.deleting}
    record = EvictionRecord(_past(record.cpu_at_seconds, now), _past(record.memory_at_seconds, now), pending)
    refused = {uid: _bounded(refusal, now) for uid, refusal in refused.items()}
    return msgspec.structs.replace(memory, record=record, refused=refused, ending=ending, begun=True)


def by_clock(memory: EvictionMemory, now: float, monotonic_seconds: float) -> EvictionMemory:
    """Where Unix time was set since the last tick all times move with it: nobody waits longer or shorter for that."""
    ahead, before = now - monotonic_seconds, memory.clock_ahead_seconds
    if before is not None and abs(ahead - before) > _DRIFT_SECONDS:
        memory = _moved(memory, ahead - before)
    return msgspec.structs.replace(memory, clock_ahead_seconds=ahead)


def _moved(memory: EvictionMemory, step: float) -> EvictionMemory:
    record = memory.record
    return msgspec.structs.replace(
        memory,
        record=EvictionRecord(
            _later(record.cpu_at_seconds, step),
            _later(record.memory_at_seconds, step),
            {uid: _moved_victim(victim, step) for uid, victim in record.pending.items()},
        ),
        refused={
            uid: EvictionRefusal(refusal.until_seconds + step, refusal.times) for uid, refusal in memory.refused.items()
        },
        ending={uid: since + step for uid, since in memory.ending.items()},
    )


def _later(at_seconds: float | None, step: float) -> float | None:
    return None if at_seconds is None else at_seconds + step


def _moved_victim(victim: PendingVictim, step: float) -> PendingVictim:
    return msgspec.structs.replace(
        victim,
        since_seconds=victim.since_seconds + step,
        until_seconds=victim.until_seconds + step,
        notified_until_seconds=_later(victim.notified_until_seconds, step),
    )


def _outlives_us(victim: PendingVictim) -> bool:
    return victim.accepted or victim.notified_until_seconds is not None


def _past(at_seconds: float | None, now: float) -> float | None:
    return None if at_seconds is None else min(at_seconds, now)


def _bounded(refusal: EvictionRefusal, now: float) -> EvictionRefusal:
    return EvictionRefusal(min(refusal.until_seconds, now + _BLOCKED_SECONDS[1]), refusal.times)


def _not_ahead(victim: PendingVictim, now: float) -> PendingVictim:
    ahead, told = victim.since_seconds - now, victim.notified_until_seconds
    if ahead <= 0:
        return victim
    return msgspec.structs.replace(
        victim,
        since_seconds=now,
        until_seconds=victim.until_seconds - ahead,
        notified_until_seconds=None if told is None else told - ahead,
    )


def heard(memory: EvictionMemory, outcomes: tuple[EvictionOutcome, ...]) -> EvictionMemory:
    """What became of earlier orders."""
    for outcome in outcomes:
        victim = memory.record.pending.get(outcome.uid)
        if victim is not None:
            memory = _heard(memory, outcome, victim)
    return memory


def _heard(memory: EvictionMemory, outcome: EvictionOutcome, victim: PendingVictim) -> EvictionMemory:
    if outcome.kind is OutcomeKind.CHECKPOINTED and victim.notified_until_seconds is not None:
        # Nothing is left to wait for.
        return memory.ordered(outcome.uid, msgspec.structs.replace(victim, notified_until_seconds=outcome.at_seconds))
    if outcome.kind is OutcomeKind.EVICTED and not victim.accepted:
        return memory.ordered(outcome.uid, _accepted(victim, outcome.at_seconds))
    if outcome.kind is OutcomeKind.GONE:
        return memory.forgotten(outcome.uid)
    if outcome.kind in (OutcomeKind.BLOCKED, OutcomeKind.FAILED):
        return _refused(memory, outcome, victim)
    return memory


def _accepted(victim: PendingVictim, at_seconds: float) -> PendingVictim:
    """From now on only its end is waited for."""
    waited = max(at_seconds - victim.since_seconds, 0.0) - LONGEST_SECONDS
    until = victim.until_seconds + waited
    return msgspec.structs.replace(victim, since_seconds=at_seconds, until_seconds=until, accepted=True)


def _refused(memory: EvictionMemory, outcome: EvictionOutcome, victim: PendingVictim) -> EvictionMemory:
    """It counts as not freed, and the rest after its order ends: the next candidate is taken at once."""
    times = memory.refused[outcome.uid].times + 1 if outcome.uid in memory.refused else 1
    first, longest = _BLOCKED_SECONDS if outcome.kind is OutcomeKind.BLOCKED else _FAILED_SECONDS
    wait = min(outcome.retry_after_seconds or first * 2 ** min(times - 1, 10), longest)
    record = memory.record
    changes = {
        name: None for name in ("cpu_at_seconds", "memory_at_seconds") if getattr(record, name) == victim.since_seconds
    }
    memory = msgspec.structs.replace(memory, record=msgspec.structs.replace(record, **changes))
    refused = {**memory.refused, outcome.uid: EvictionRefusal(outcome.at_seconds + wait, times)}
    return msgspec.structs.replace(memory.forgotten(outcome.uid), refused=refused)
