"""Who goes: the pods a rule may evict, in which order, and no more of them than needed.

Koordinator's class keys come first; among equals the pod whose loss costs its job least, then the one that frees most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

import msgspec

from agent.core.evict_known import Known
from agent.core.evict_needs import Need, effective_priority
from model.pod import Pod, PodPhase
from model.qos import QoSClass
from model.reason import Reason
from model.report import EvictionCost

_BEST_EFFORT_RULES = (Reason.BE_CPU_EVICT, Reason.BE_MEMORY_EVICT)
_BY_REQUEST = (Reason.CPU_ALLOCATABLE_EVICT, Reason.MEMORY_ALLOCATABLE_EVICT)
_MOST_AT_ONCE = 32


class Victim(msgspec.Struct, frozen=True):
    """A pod that goes for `need`, what its end `frees` of what is missing, and what its loss costs, in words."""

    pod: Pod
    need: Need
    frees: int
    cost: str = ""


class GangAccount:
    """What losing one more pod costs its job, with those that are gone already.

    Without costs every pod counts the same.
    """

    def __init__(self, costs: Mapping[str, EvictionCost], leaving: Iterable[str] = ()) -> None:
        self._costs = costs
        self._spare: dict[str, int] = {}
        for cost in costs.values():
            spare = cost.members_above_minimum
            self._spare[cost.gang] = min(self._spare.get(cost.gang, spare), spare)
        for uid in leaving:
            self.take(uid)

    def take(self, uid: str) -> None:
        """One member fewer; below its minimum the gang is broken, and its other members have nothing left to lose."""
        cost = self._costs.get(uid)
        if cost is not None and cost.gang:
            self._spare[cost.gang] -= 1

    def key(self, uid: str) -> tuple[int, float]:
        """Smaller is cheaper: of a broken gang, of none or one with members to spare, of one it breaks; newest save."""
        cost = self._costs.get(uid)
        if cost is None:
            return 1, float("inf")
        age = float("inf") if cost.checkpoint_age_seconds is None else cost.checkpoint_age_seconds
        if not cost.gang:
            return 1, age
        spare = self._spare[cost.gang]
        return (0 if spare < 0 else 1 if spare else 2), age

    def words(self, uid: str) -> str:
        """The same for people; empty where nothing is known of it."""
        cost = self._costs.get(uid)
        if cost is None:
            return ""
        saved = cost.checkpoint_age_seconds
        checkpoint = "no checkpoint known" if saved is None else f"checkpoint {saved:.0f} s ago"
        if not cost.gang:
            return checkpoint
        spare = self._spare[cost.gang]
        member = "ends with it" if spare == 0 else "has ended already" if spare < 0 else f"can spare {spare}"
        return f"gang {cost.gang} {member}, {checkpoint}"


def choose(needs: Iterable[Need], known: Known, gangs: GangAccount, passed_over: frozenset[str]) -> tuple[Victim, ...]:
    """Victims for each need in turn; what goes for one counts for all. `passed_over` must not be chosen."""
    wanted = tuple(needs)
    chosen: list[Victim] = []
    for need in wanted:
        missing = need.missing - sum(known.held(victim.pod, need.resource) for victim in chosen)
        taken = passed_over | {victim.pod.uid for victim in chosen}
        if missing > 0:
            chosen.extend(_for(need, missing, known, gangs, taken, _MOST_AT_ONCE - len(chosen)))
    return tuple(_needed(chosen, wanted, known))


def may_go(rule: Reason, pod: Pod, known: Known) -> bool:
    """Whether a rule may evict a pod at all: as Koordinator, but never one that is gone or leaving.

    The mirror of a static pod could be evicted a thousand times: the kubelet runs the pod on.
    """
    terms = pod.eviction
    if pod.terminal or pod.deleting or pod.cgroup_uid not in ("", pod.uid):
        return False
    if terms.features is not None and rule.value not in terms.features:
        return False
    if rule in _BEST_EFFORT_RULES:
        return pod.qos_label is QoSClass.BE
    strategy = known.strategy
    most = strategy.allocatable_priority_threshold if rule in _BY_REQUEST else strategy.priority_threshold
    counts = pod.phase in (PodPhase.RUNNING, PodPhase.PENDING) and pod.uid in known.usage.pods
    return terms.enabled and counts and most is not None and effective_priority(pod) <= most


class _Candidate(msgspec.Struct, frozen=True):
    """`class_key` orders before the pod's cost, `weight` (larger first) after it."""

    pod: Pod
    frees: int
    class_key: tuple[int, ...]
    weight: float


def _candidate(need: Need, pod: Pod, known: Known) -> _Candidate:
    frees, terms, priority = known.held(pod, need.resource), pod.eviction, effective_priority(pod)
    if need.rule not in _BEST_EFFORT_RULES:
        sub_priority = priority if terms.sub_priority is None else terms.sub_priority
        return _Candidate(pod, frees, (terms.priority, priority, sub_priority), frees)
    averages = known.usage.pods.get(pod.uid)
    used = known.cpu_millis(averages) if averages else 0
    weight = used / frees if need.rule is Reason.BE_CPU_EVICT and frees else frees
    return _Candidate(pod, frees, (pod.priority,), weight)


def _for(need: Need, missing: int, known: Known, gangs: GangAccount, taken: frozenset[str], most: int) -> list[Victim]:
    """Class by class, the cheapest first: each choice may change what the next one costs its gang."""
    pods = (pod for pod in known.pods if pod.uid not in taken and may_go(need.rule, pod, known))
    useful = [each for pod in pods if (each := _candidate(need, pod, known)).frees > 0]
    chosen: list[Victim] = []
    for _, equals in groupby(sorted(useful, key=lambda each: each.class_key), lambda each: each.class_key):
        left = list(equals)
        while left and missing > 0 and len(chosen) < most:
            best = min(left, key=lambda each: (gangs.key(each.pod.uid), -each.weight, each.pod.uid))
            left.remove(best)
            missing -= best.frees
            chosen.append(Victim(best.pod, need, best.frees, gangs.words(best.pod.uid)))
            gangs.take(best.pod.uid)
    return chosen


def _needed(chosen: list[Victim], needs: tuple[Need, ...], known: Known) -> list[Victim]:
    """Without those that turned out not to be: the costliest, which was chosen last, is spared first."""
    freed = [sum(known.held(each.pod, need.resource) for each in chosen) for need in needs]
    kept = []
    for victim in reversed(chosen):
        own = [known.held(victim.pod, need.resource) for need in needs]
        spare = zip(needs, freed, own, strict=True)
        if all(part == 0 or whole - part >= need.missing for need, whole, part in spare):
            freed = [whole - part for whole, part in zip(freed, own, strict=True)]
        else:
            kept.append(victim)
    return kept[::-1]
