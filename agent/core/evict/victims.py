"""Victims: the pods a rule may evict, in their order, and no more of them than needed.

Koordinator's class keys come first; among equals the pod whose loss costs its job least, then the one that frees most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

import msgspec

from agent.core.evict.needs import EvictionNeed, effective_priority
from agent.core.evict.tick_facts import TickFacts, exceeds_limit
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import QoSClass
from model.reason import Reason
from model.report import EvictionCost

_BEST_EFFORT_RULES = (Reason.BE_CPU_EVICT, Reason.BE_MEMORY_EVICT)
_BY_REQUEST = (Reason.CPU_ALLOCATABLE_EVICT, Reason.MEMORY_ALLOCATABLE_EVICT)
_MOST_AT_ONCE = 32


class EvictionVictim(msgspec.Struct, frozen=True):
    """A pod that goes for `need`, what its end `frees` of what is missing, and what its loss costs, in words."""

    pod: Pod
    need: EvictionNeed
    frees: int
    cost: str = ""


class VictimChoice(msgspec.Struct, frozen=True):
    """`victims` in order; `futile` are the needs without a victim, and what all possible victims would free of each."""

    victims: tuple[EvictionVictim, ...]
    futile: Mapping[EvictionNeed, int] = {}


class GangAccount:
    """What losing one more pod costs its job, with those that are gone already.

    Without costs every pod counts the same.
    """

    def __init__(self, costs: Mapping[str, EvictionCost], terminating: Iterable[str] = ()) -> None:
        self._costs = costs
        self._above_minimum: dict[str, int] = {}
        for cost in costs.values():
            above_minimum = cost.members_above_minimum
            self._above_minimum[cost.gang] = min(self._above_minimum.get(cost.gang, above_minimum), above_minimum)
        for uid in terminating:
            self.take(uid)

    def take(self, uid: str) -> None:
        """One member fewer; below its minimum the gang is broken, and its other members have nothing left to lose."""
        cost = self._costs.get(uid)
        if cost is not None and cost.gang:
            self._above_minimum[cost.gang] -= 1

    def key(self, uid: str) -> tuple[int, float]:
        """Smaller is cheaper: of a broken gang, of none or one with members to spare, of one it breaks; newest save."""
        cost = self._costs.get(uid)
        if cost is None:
            return 1, float("inf")
        age = float("inf") if cost.checkpoint_age_seconds is None else cost.checkpoint_age_seconds
        if not cost.gang:
            return 1, age
        above_minimum = self._above_minimum[cost.gang]
        return (0 if above_minimum < 0 else 1 if above_minimum else 2), age

    def words(self, uid: str) -> str:
        """The same in words; empty where nothing is known of it."""
        cost = self._costs.get(uid)
        if cost is None:
            return ""
        saved = cost.checkpoint_age_seconds
        checkpoint = "no checkpoint known" if saved is None else f"checkpoint {saved:.0f} s ago"
        if not cost.gang:
            return checkpoint
        above_minimum = self._above_minimum[cost.gang]
        member = (
            "ends with it"
            if above_minimum == 0
            else "has ended already"
            if above_minimum < 0
            else f"can spare {above_minimum}"
        )
        return f"gang {cost.gang} {member}, {checkpoint}"


def choose(
    needs: Iterable[EvictionNeed], known: TickFacts, gangs: GangAccount, passed_over: frozenset[str]
) -> VictimChoice:
    """Victims for each need in turn; what goes for one counts for all. `passed_over` must not be chosen.

    No pod is evicted for a need that all possible victims together would hardly change.
    """
    wanted, least_pct = tuple(needs), known.strategy.least_help_pct
    chosen: list[EvictionVictim] = []
    futile: dict[EvictionNeed, int] = {}
    for need in wanted:
        missing = need.missing - sum(known.freed_by(victim.pod, need.resource) for victim in chosen)
        taken = passed_over | {victim.pod.uid for victim in chosen}
        useful = _useful(need, known, taken) if missing > 0 else []
        together = sum(each.frees for each in useful)
        if need.helped_by(together, missing, least_pct):
            chosen.extend(_for(need, missing, useful, gangs, _MOST_AT_ONCE - len(chosen)))
        elif useful:
            futile[need] = together
    return VictimChoice(tuple(_needed(chosen, wanted, known)), futile)


def may_go(rule: Reason, pod: Pod, known: TickFacts) -> bool:
    """Whether a rule may evict a pod at all: as Koordinator, but never one that is gone or terminating.

    The mirror of a static pod could be evicted a thousand times: the kubelet runs the pod on.
    """
    terms = pod.colocation.eviction
    if pod.terminal or pod.deleting or pod.cgroup_uid not in ("", pod.uid):
        return False
    if terms.features is not None and rule.value not in terms.features:
        return False
    if rule in _BEST_EFFORT_RULES:
        return pod.colocation.qos_label is QoSClass.BE
    strategy = known.strategy
    most = strategy.allocatable_priority_threshold if rule in _BY_REQUEST else strategy.priority_threshold
    counts = pod.status.phase in (PodPhase.RUNNING, PodPhase.PENDING) and pod.uid in known.usage.pods
    return terms.enabled and counts and most is not None and effective_priority(pod) <= most


class _Candidate(msgspec.Struct, frozen=True):
    """`class_key` orders before the pod's cost, `weight` (larger first) after it."""

    pod: Pod
    frees: int
    class_key: tuple[int, ...]
    weight: float


def _candidate(need: EvictionNeed, pod: Pod, known: TickFacts) -> _Candidate:
    frees, terms, priority = known.freed_by(pod, need.resource), pod.colocation.eviction, effective_priority(pod)
    if need.rule not in _BEST_EFFORT_RULES:
        sub_priority = priority if terms.sub_priority is None else terms.sub_priority
        return _Candidate(pod, frees, (terms.priority, priority, sub_priority), frees)
    averages = known.usage.pods.get(pod.uid)
    used = known.cpu_millis(averages) if averages else 0
    weight = used / frees if need.rule is Reason.BE_CPU_EVICT and frees else frees
    if need.rule is Reason.BE_MEMORY_EVICT:
        return _Candidate(pod, frees, (not exceeds_limit(pod, frees), pod.spec.priority), weight)
    return _Candidate(pod, frees, (pod.spec.priority,), weight)


def _useful(need: EvictionNeed, known: TickFacts, taken: frozenset[str]) -> list[_Candidate]:
    """Pods that may be evicted for the need and free anything of it."""
    pods = (pod for pod in known.pods if pod.uid not in taken and may_go(need.rule, pod, known))
    return [each for pod in pods if (each := _candidate(need, pod, known)).frees > 0]


def _for(
    need: EvictionNeed, missing: int, useful: list[_Candidate], gangs: GangAccount, most: int
) -> list[EvictionVictim]:
    """Class by class, the cheapest first: each choice may change what the next one costs its gang."""
    chosen: list[EvictionVictim] = []
    for _, equals in groupby(sorted(useful, key=lambda each: each.class_key), lambda each: each.class_key):
        left = list(equals)
        while left and missing > 0 and len(chosen) < most:
            best = min(left, key=lambda each: (gangs.key(each.pod.uid), -each.weight, each.pod.uid))
            left.remove(best)
            missing -= best.frees
            chosen.append(EvictionVictim(best.pod, need, best.frees, gangs.words(best.pod.uid)))
            gangs.take(best.pod.uid)
    return chosen


def _needed(chosen: list[EvictionVictim], needs: tuple[EvictionNeed, ...], known: TickFacts) -> list[EvictionVictim]:
    """Without those that turned out not to be: the costliest, which was chosen last, is spared first."""
    # Who found no place this time goes in a later tick, and then those spared for being too little would go too.
    least_pct = known.strategy.least_help_pct if len(chosen) < _MOST_AT_ONCE else 0
    everything = [sum(known.freed_by(each.pod, need.resource) for each in chosen) for need in needs]
    freed, kept = everything, []
    for victim in reversed(chosen):
        own = [known.freed_by(victim.pod, need.resource) for need in needs]
        without = [whole - part for whole, part in zip(freed, own, strict=True)]
        accounts = zip(needs, everything, without, own, strict=True)
        if all(part == 0 or _enough(need, rest, whole - rest, least_pct) for need, whole, rest, part in accounts):
            freed = without
        else:
            kept.append(victim)
    return kept[::-1]


def _enough(need: EvictionNeed, rest: int, reprieved: int, least_pct: int) -> bool:
    """Those kept free all that is missing; or most of what can be freed, and the others would hardly add to it."""
    if rest >= need.missing:
        return True
    helps = need.helped_by(rest, need.missing, least_pct)
    return helps and not need.helped_by(reprieved, need.missing - rest, least_pct)
