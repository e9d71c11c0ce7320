"""Evictions of one tick: the needs, the pods that terminate already, and the next victims.

Koordinator's rules and request of victims, and then what a victim's loss costs its job; as few victims as needed. A pod
that goes is credited until it should be gone, so that its slow end costs nobody else (docs/adr/0010).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from agent.core.evict.eviction_request import USED_MEMORY, EvictionOutcome, EvictionRequest, PendingVictim
from agent.core.evict.last_resort import last_resort, urgency
from agent.core.evict.needs import EvictionNeed, measured, rules_on, unknown
from agent.core.evict.new_requests import after_kills, due_by_now, ordered_out
from agent.core.evict.pending import EvictionMemory, at_present, by_clock, heard
from agent.core.evict.thrashing import remembered, thrashing
from agent.core.evict.tick_facts import TickFacts, unit_of
from agent.core.evict.victims import EvictionVictim, GangAccount, VictimChoice, choose
from agent.core.limit.shrink import Shrinking
from agent.core.limit.watch import Kill, LastResort
from agent.core.observe.observation import Observation
from agent.core.observe.usage import NodeUsage
from model.decision import Decision
from model.explain import amount
from model.node import Node
from model.pod.pod import Pod
from model.reason import Reason
from model.report import EvictionCost
from model.strategy import EvictionStrategy

__all__ = ["EvictionFacts", "EvictionMemory", "Evictions", "decide_evictions"]


class EvictionFacts(msgspec.Struct, frozen=True):
    """What evicting depends on beside the observation; `pods` is None until they were listed.

    `lent` says what is truly lent (Lending.final); where it is silent of a resource the Node's allocatable counts.
    `shrinking` is what is reclaimed of best effort's memory meanwhile.
    """

    node: Node | None
    pods: tuple[Pod, ...] | None
    strategy: EvictionStrategy
    best_effort_millis: int | None = None
    costs: Mapping[str, EvictionCost] = {}
    outcomes: tuple[EvictionOutcome, ...] = ()
    kills: tuple[Kill, ...] = ()
    lent: tuple[Decision, ...] = ()
    shrinking: Shrinking = Shrinking()


class Evictions(msgspec.Struct, frozen=True):
    """`needs` explain each rule that is on, `requests` are to be carried out in order, `last_resort` is for the brake.

    `refaulted` is what online pods read back of what was taken from them, None where that is not known; `shrinking`
    is what is reclaimed before anybody is evicted.
    """

    needs: tuple[Decision, ...] = ()
    requests: tuple[EvictionRequest, ...] = ()
    last_resort: LastResort | None = None
    refaulted: Decision | None = None
    shrinking: tuple[Decision, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What is missing, and what tells whether it can wait."""
        refaulted = () if self.refaulted is None else (self.refaulted,)
        return (*self.needs, *refaulted, *self.shrinking)


def decide_evictions(
    memory: EvictionMemory,
    observation: Observation,
    usage: NodeUsage | None,
    facts: EvictionFacts,
    *,
    sends: bool = True,
) -> tuple[EvictionMemory, Evictions]:
    """One tick's needs and requests, and what to remember; where nobody `sends` requests, nothing of them.

    Without complete facts nobody new is evicted; whoever was told goes at the deadline all the same, and the brake
    keeps the victims it has.
    """
    memory = by_clock(memory, observation.at_seconds, observation.monotonic_seconds)
    memory = at_present(heard(memory, facts.outcomes), facts.pods, observation.at_seconds)
    before = memory.record
    memory = msgspec.structs.replace(memory, activities=remembered(memory.activities, observation))
    refaulted = thrashing(memory.activities, observation, facts.node, facts.strategy) if facts.node else None
    urgent = urgency(observation, facts.node, facts.strategy, refaulted) if facts.node else ""
    memory, killed = after_kills(memory, facts.kills, facts.pods, observation)
    known = _known(observation, usage, facts)
    needed = partial(_still_needed, known)
    memory, due = due_by_now(memory, facts.pods, facts.strategy, observation, urgent, needed)
    requests = [*killed, *due]
    if isinstance(known, Reason):
        needs = tuple(unknown(rule, known) for rule in rules_on(facts.strategy))
    else:
        needs, chosen = _chosen(memory, known, urgent)
        for victim in chosen:
            memory, request = ordered_out(memory, victim, known, urgent)
            requests.append(request)
    if not sends:
        memory = msgspec.structs.replace(memory, record=before)
    if facts.pods is not None:
        memory = msgspec.structs.replace(memory, departed=memory.departed.followed(observation, facts.pods))
    memory = msgspec.structs.replace(memory, last_resort=_last_resort(memory, observation, facts))
    name = facts.node.name if facts.node else ""
    decisions = tuple(need.decision(name, observation.at_seconds) for need in needs)
    return memory, Evictions(decisions, tuple(requests), memory.last_resort, refaulted, facts.shrinking.decisions)


def _still_needed(known: TickFacts | Reason, victim: PendingVictim) -> bool:
    """Whether the rule that chose a pod is not within its threshold, or cannot tell."""
    if isinstance(known, Reason):
        return True
    needs = measured(victim.reason, known) if victim.reason in rules_on(known.strategy) else ()
    return any(need.hold_reason is not Reason.WITHIN_THRESHOLD for need in needs)


def _known(observation: Observation, usage: NodeUsage | None, facts: EvictionFacts) -> TickFacts | Reason:
    """The facts, or why they are not enough to evict by."""
    if facts.pods is None:
        return Reason.PODS_UNKNOWN
    if facts.node is None or usage is None:
        return Reason.NODE_METRICS_MISSING
    if usage.held:
        return Reason.NODE_METRICS_STALE
    lent = {decision.name: decision for decision in facts.lent}
    limit = facts.best_effort_millis
    waits = facts.shrinking.holds_evictions
    return TickFacts(facts.node, facts.pods, observation, usage, facts.strategy, limit, lent, facts.costs, waits)


def _chosen(
    memory: EvictionMemory, known: TickFacts, urgent: str
) -> tuple[tuple[EvictionNeed, ...], tuple[EvictionVictim, ...]]:
    """What is missing after all that leaves already, and which pods are evicted for it."""
    terminating = memory.terminating(known, urgent=bool(urgent))
    measures = [need for rule in rules_on(known.strategy) for need in measured(rule, known)]
    needs = [_outstanding(need, terminating, memory, known, urgent) for need in measures]
    open_needs = [need for need in needs if need.hold_reason is None]
    if not open_needs:
        return tuple(needs), ()
    gangs = GangAccount(known.costs, (pod.uid for pod in terminating))
    choice = choose(open_needs, known, gangs, memory.not_to_choose(known.observation.at_seconds))
    return tuple(_answered(need, choice, known) for need in needs), choice.victims


def _outstanding(
    need: EvictionNeed, terminating: tuple[Pod, ...], memory: EvictionMemory, known: TickFacts, urgent: str
) -> EvictionNeed:
    if need.hold_reason is not None:
        return need
    need = need.less(known.freed_together(terminating, need.resource))
    record, strategy = memory.record, known.strategy
    at, rest = record.cpu_at_seconds, strategy.cpu_cooldown_seconds
    if need.of_memory:
        at, rest = record.memory_at_seconds, strategy.memory_cooldown_seconds
    left = 0.0 if at is None or (urgent and need.of_memory) else at + rest - known.observation.at_seconds
    if need.hold_reason is None and left > 0:
        return msgspec.structs.replace(need, hold_reason=Reason.COOLDOWN, detail=f"{left:.0f} s are left")
    if need.hold_reason is None and known.shrinks and need.resource == USED_MEMORY and not urgent:
        return msgspec.structs.replace(need, hold_reason=Reason.SHRINKING)
    return need


def _answered(need: EvictionNeed, choice: VictimChoice, known: TickFacts) -> EvictionNeed:
    """Whether enough goes, or anything."""
    if need.hold_reason is not None:
        return need
    freed = known.freed_together((victim.pod for victim in choice.victims), need.resource)
    short = need.missing - freed
    if not freed and need in choice.futile:
        together = amount(choice.futile[need], unit_of(need.resource))
        detail = f"all possible victims free {together} of it together"
        return msgspec.structs.replace(need, hold_reason=Reason.EVICTION_NOT_HELPFUL, detail=detail)
    if not freed:
        return msgspec.structs.replace(need, hold_reason=Reason.NO_VICTIM)
    detail = f"{amount(short, unit_of(need.resource))} of it cannot be freed" if short > 0 else ""
    return msgspec.structs.replace(need, detail=detail)


def _last_resort(memory: EvictionMemory, observation: Observation, facts: EvictionFacts) -> LastResort | None:
    if facts.node is None or facts.pods is None:
        return memory.last_resort if facts.strategy.enable else None
    terminating = frozenset(memory.record.pending)
    return last_resort(observation, facts.node, memory.departed, facts.strategy, facts.costs, terminating)
