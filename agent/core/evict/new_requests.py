"""New eviction requests: pods told first where there is time, evicted, or hurried where memory cannot wait.

A killed pod is evicted too, so that its containers do not start again where they are. Until the API server has answered
a request is believed as long as it may wait for that: more victims would not be evicted any sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from agent.core.evict.eviction_request import (
    RUNNING_BATCH_CPU,
    USED_CPU,
    USED_MEMORY,
    EvictionRequest,
    EvictionRequestKind,
    PendingVictim,
)
from agent.core.evict.needs import effective_priority
from agent.core.evict.pending import EvictionMemory
from agent.core.evict.request_queue import LONGEST_SECONDS
from agent.core.evict.tick_facts import TickFacts, ending_seconds, may_hurry, memory_bytes, unit_of
from agent.core.evict.victims import EvictionVictim
from agent.core.limit.watch import Kill
from agent.core.observe.observation import Observation
from model.decision import Decision, Term
from model.explain import amount
from model.pod.colocation import StandingNotice
from model.pod.pod import Pod
from model.reason import Reason
from model.strategy import EvictionStrategy

_URGENT_GRACE_SECONDS = 1
"""0 would remove the object at once, before the kubelet has ended its processes."""


def ordered_out(
    memory: EvictionMemory, victim: EvictionVictim, known: TickFacts, urgent: str
) -> tuple[EvictionMemory, EvictionRequest]:
    """The first word on a victim: a notice with a deadline where the pod asked for one, else its eviction."""
    pod, need, now = victim.pod, victim.need, known.observation.at_seconds
    why = urgent if need.of_memory else ""
    notice = 0.0 if why else min(pod.colocation.eviction.notice_seconds, known.strategy.longest_notice_seconds)
    grace = _grace(pod, known.strategy, bool(why))
    ends = ending_seconds(pod.spec.grace_seconds if grace is None else grace, memory_bytes(known.observation, pod.uid))
    resources = (USED_MEMORY, USED_CPU, RUNNING_BATCH_CPU, *pod.spec.requests)
    pending = PendingVictim(
        frees={name: frees for name in resources if (frees := known.freed_by(pod, name))},
        since_seconds=now,
        until_seconds=now + notice + LONGEST_SECONDS + ends,
        notified_until_seconds=now + notice if notice else None,
        resource=need.resource,
        reason=need.rule,
        hurried=bool(why),
        notice=_shown(pod, now, now + notice, need.rule) if notice else None,
    )
    request = _request(pod, pending, now, _why_this(victim, why), grace)
    if notice:
        request = msgspec.structs.replace(request, kind=EvictionRequestKind.NOTIFY, deadline_seconds=now + notice)
    return memory.ordered(pod.uid, pending).rested(now, of_memory=need.of_memory), request


def _shown(pod: Pod, since: float, deadline: float, rule: Reason) -> StandingNotice | None:
    """None where another's notice stands on the pod that is sooner: taking ours away must leave that."""
    standing = pod.colocation.eviction.standing
    sooner = standing is not None and standing.reason != rule.value and standing.deadline_seconds <= deadline
    return None if sooner else StandingNotice(since, deadline, rule.value)


def _why_this(victim: EvictionVictim, urgent: str) -> str:
    need = victim.need
    missing = f"{amount(need.missing, unit_of(need.resource))} of {need.resource} missing"
    return "; ".join(
        part for part in (missing, f"priority {effective_priority(victim.pod)}", victim.cost, urgent) if part
    )


def due_by_now(
    memory: EvictionMemory,
    pods: tuple[Pod, ...] | None,
    strategy: EvictionStrategy,
    observation: Observation,
    urgent: str,
    needed: Callable[[PendingVictim], bool] = lambda victim: True,
) -> tuple[EvictionMemory, tuple[EvictionRequest, ...]]:
    """A second word: eviction of who was told, at the deadline or once it is safe; a short grace once memory hurries,
    also for pods of best effort that somebody else deletes.

    Who was told stays where its end is not `needed` by then, or evictions were switched off meanwhile.
    """
    requests = []
    hurries_others = bool(urgent) and strategy.enable and bool(memory.ending)
    for pod in (pods or ()) if memory.record.pending or hurries_others else ():
        victim = memory.record.pending.get(pod.uid) or (_deleted(pod, observation) if hurries_others else None)
        if victim is None:
            continue
        told = victim.notified_until_seconds
        due = told is not None and told <= observation.at_seconds
        if told is not None and (not strategy.enable or (due and not urgent and not needed(victim))):
            memory = memory.forgotten(pod.uid)
            spared = _request(pod, victim, observation.at_seconds, "its end is not needed any more", None)
            requests.append(msgspec.structs.replace(spared, kind=EvictionRequestKind.SPARE))
        elif (urgent and not victim.hurried) or due:
            grace = _grace(pod, strategy, bool(urgent))
            pending = _evicted_now(victim, pod, observation, grace)
            pending = msgspec.structs.replace(pending, hurried=bool(urgent))
            detail = urgent if urgent else "its notice is over"
            requests.append(_request(pod, pending, observation.at_seconds, detail, grace))
            memory = memory.ordered(pod.uid, pending)
    return memory, tuple(requests)


def _grace(pod: Pod, strategy: EvictionStrategy, hurried: bool) -> int | None:
    """What the request asks for; None where it is the pod's own."""
    if hurried:
        return _URGENT_GRACE_SECONDS
    allowed = strategy.grace_seconds(pod.spec.grace_seconds)
    return None if allowed == pod.spec.grace_seconds else int(allowed)


def _deleted(pod: Pod, observation: Observation) -> PendingVictim | None:
    """Of best effort that somebody else deletes, with a grace that may be longer than its own: as if we had asked."""
    held = memory_bytes(observation, pod.uid)
    if not pod.deleting or pod.terminal or not may_hurry(pod) or not held:
        return None
    now = observation.at_seconds
    return PendingVictim({USED_MEMORY: held}, now, now, resource=USED_MEMORY, reason=Reason.BE_MEMORY_EVICT)


def _evicted_now(victim: PendingVictim, pod: Pod, observation: Observation, grace: int | None) -> PendingVictim:
    seconds = pod.spec.grace_seconds if grace is None else grace
    return msgspec.structs.replace(
        victim,
        since_seconds=observation.at_seconds,
        until_seconds=observation.at_seconds
        + LONGEST_SECONDS
        + ending_seconds(seconds, memory_bytes(observation, pod.uid)),
        notified_until_seconds=None,
        accepted=False,
    )


def after_kills(
    memory: EvictionMemory, kills: Iterable[Kill], pods: tuple[Pod, ...] | None, observation: Observation
) -> tuple[EvictionMemory, tuple[EvictionRequest, ...]]:
    """Pods whose processes the brake's thread killed are evicted in the API too; one that hit nobody was gone."""
    requests = []
    for kill in kills:
        victim, now = kill.victim, observation.at_seconds
        if not kill.processes or (pods is not None and all(pod.uid != victim.uid for pod in pods)):
            continue
        pending = PendingVictim(
            frees={USED_MEMORY: victim.frees_bytes},
            since_seconds=now,
            until_seconds=now + LONGEST_SECONDS + ending_seconds(_URGENT_GRACE_SECONDS, victim.frees_bytes),
            resource=USED_MEMORY,
            reason=Reason.MEMORY_LAST_RESORT,
            hurried=True,
        )
        detail = f"{amount(kill.available_bytes, unit_of(USED_MEMORY))} were left, {kill.processes} processes killed"
        requests.append(_request(victim, pending, now, detail, _URGENT_GRACE_SECONDS))
        memory = memory.ordered(victim.uid, pending).rested(now, of_memory=True)
    return memory, tuple(requests)


class _Named(Protocol):
    """What a request needs of a pod, or of a victim that was prepared."""

    @property
    def uid(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


def _request(pod: _Named, pending: PendingVictim, at_seconds: float, detail: str, grace: int | None) -> EvictionRequest:
    frees = pending.frees.get(pending.resource, 0)
    term = Term("in use" if pending.resource in (USED_CPU, USED_MEMORY) else "requested", frees)
    decision = Decision(
        subject=f"pod/{pod.namespace}/{pod.name}",
        name="evict",
        value=frees,
        unit=unit_of(pending.resource),
        reason=pending.reason,
        terms=(term,),
        at_seconds=at_seconds,
        detail=detail,
    )
    return EvictionRequest(
        EvictionRequestKind.EVICT,
        pod.uid,
        pod.namespace,
        pod.name,
        decision,
        pending.resource,
        grace,
        notice=pending.notice,
    )
