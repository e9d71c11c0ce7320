"""Eviction needs: the amount each rule wants freed, as signed terms.

    used       used - lower % x whole                      once used >= threshold % x whole
    requests   requested - lower % x lent                  once requested > threshold % x lent
    BE CPU     upper % x requested - what may be used      once that is at most lower % and is used up

Source: Koordinator pkg/koordlet/qosmanager/plugins/{cpuevict,memoryevict}; differences in docs/adr/0010.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from agent.core.evict.eviction_request import RUNNING_BATCH_CPU, USED_CPU, USED_MEMORY
from agent.core.evict.tick_facts import TickFacts, unit_of
from agent.core.limit.memory_headroom import MemoryLevel, memory_levels
from agent.core.observe.usage import best_effort_request_millis
from model.decision import Decision, Term, TermSum
from model.explain import amount
from model.pod.pod import Pod
from model.qos import PriorityBand
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from model.strategy import CpuLimitPolicy, EvictionStrategy

_LOWER_BY_PCT = 2
_SMALL_LIMIT_MILLIS = 1000
"""A best effort that may use less than one CPU counts as using it up, as in Koordinator."""
_BAND_PRIORITIES = {PriorityBand.PROD: 9500, PriorityBand.MID: 7500, PriorityBand.BATCH: 5500, PriorityBand.FREE: 3500}


class EvictionNeed(msgspec.Struct, frozen=True):
    """What one rule wants freed of one resource; `hold_reason` is why it wants nothing now, None where it does.

    `left` is how much there is before the resource runs out, None of one that cannot.
    """

    rule: Reason
    resource: str
    name: str
    terms: tuple[Term, ...] = ()
    hold_reason: Reason | None = None
    detail: str = ""
    left: int | None = None

    @property
    def missing(self) -> int:
        return sum(term.value for term in self.terms)

    @property
    def of_memory(self) -> bool:
        """Memory and CPU rest apart after an eviction."""
        return self.rule in MEMORY_RULES

    def helped_by(self, freed: int, missing: int, least_pct: int) -> bool:
        """Whether `freed` is worth somebody's end where so much is missing (docs/adr/0029)."""
        measure = missing if self.left is None else min(missing, self.left)
        return freed > 0 and freed * 100 >= measure * least_pct

    def less(self, terminating: int) -> EvictionNeed:
        """The same need, with what already terminates."""
        terms = TermSum()
        for term in self.terms:
            terms.add(term.name, term.value, term.note)
        terms.add("terminating", -terminating).at_least("covered", 0, "no less than nothing is missing")
        held = None if terms.value else Reason.EVICTION_PENDING
        return msgspec.structs.replace(self, terms=terms.terms, hold_reason=held)

    def decision(self, node: str, at_seconds: float) -> Decision:
        """The record for everybody who asks."""
        reason = self.hold_reason or self.rule
        policy, unit = self.rule.value, unit_of(self.resource)
        return Decision(
            f"node/{node}", self.name, self.missing, unit, reason, self.terms, policy, at_seconds, self.detail
        )


def rules_on(strategy: EvictionStrategy) -> tuple[Reason, ...]:
    """The rules that settings and documents switch on: memory first, then in Koordinator's order."""
    return tuple(rule for rule, (is_on, _) in _RULES.items() if strategy.enable and is_on(strategy))


def measured(rule: Reason, known: TickFacts) -> tuple[EvictionNeed, ...]:
    """What a rule that is on wants; of rules by request one need a resource."""
    return _RULES[rule][1](known, rule)


def unknown(rule: Reason, why: Reason, detail: str = "") -> EvictionNeed:
    """A rule that cannot tell does nothing."""
    resource, name = _NAMES[rule]
    return EvictionNeed(rule, resource, name, (), why, detail)


def effective_priority(pod: Pod) -> int:
    """spec.priority, else its band's usual one (Koordinator GetPodPriorityValueWithDefault)."""
    return pod.spec.priority or _BAND_PRIORITIES.get(pod.colocation.band, 0)


def _used_memory(known: TickFacts, rule: Reason) -> tuple[EvictionNeed, ...]:
    strategy = known.strategy
    levels = memory_levels(known.observation, known.node)
    if not levels or strategy.memory_threshold_pct is None:
        return (unknown(rule, Reason.NODE_METRICS_MISSING, "memory in use or its capacity was not read"),)
    return (_over(rule, levels, strategy.memory_threshold_pct, strategy.memory_lower_pct),)


def _used_cpu(known: TickFacts, rule: Reason) -> tuple[EvictionNeed, ...]:
    strategy, capacity = known.strategy, known.node.capacity[CPU]
    if capacity <= 0 or strategy.cpu_threshold_pct is None:
        return (unknown(rule, Reason.NODE_METRICS_MISSING, "the node's CPU capacity is not known"),)
    if not _window_seen(known):
        return (unknown(rule, Reason.WINDOW_FILLING),)
    levels = (
        MemoryLevel(known.cpu_millis(known.usage.node), capacity, "the node on average"),
        MemoryLevel(known.usage.node.last.cpu_millis, capacity, "the node, newest second"),
    )
    # What has ended by now needs no eviction, however much the average still remembers of it.
    wants = [_over(rule, (level,), strategy.cpu_threshold_pct, strategy.cpu_lower_pct) for level in levels]
    return (min(wants, key=lambda need: (need.hold_reason is None, need.missing)),)


def _over(rule: Reason, levels: tuple[MemoryLevel, ...], threshold_pct: int, lower_pct: int | None) -> EvictionNeed:
    """The largest excess over the lower threshold among those at the upper one, else the fullest level."""
    resource, name = _NAMES[rule]
    lower = min(threshold_pct - _LOWER_BY_PCT if lower_pct is None else lower_pct, threshold_pct)
    lower = max(lower, 0)
    over = [level for level in levels if level.used * 100 >= level.whole * threshold_pct]
    terms = TermSum()
    if not over:
        level = max(levels, key=lambda each: each.used / each.whole)
        terms.add("used", level.used, level.of)
        terms.add("threshold", -(level.whole * threshold_pct // 100), _share(threshold_pct, level, resource))
        terms.at_least("within it", 0)
        return EvictionNeed(rule, resource, name, terms.terms, Reason.WITHIN_THRESHOLD)
    level = max(over, key=lambda each: each.used - each.whole * lower // 100)
    terms.add("used", level.used, level.of)
    terms.add("lower threshold", -(level.whole * lower // 100), _share(lower, level, resource))
    left = max(level.whole - level.used, 0) if resource == USED_MEMORY else None
    return EvictionNeed(rule, resource, name, terms.terms, None if terms.value else Reason.WITHIN_THRESHOLD, left=left)


def _share(percent: int, level: MemoryLevel, resource: str) -> str:
    return f"{percent} % of {amount(level.whole, unit_of(resource))}"


def _window_seen(known: TickFacts) -> bool:
    """A third of the window must have been seen, as in Koordinator; the longest is known by its live part."""
    window = known.strategy.cpu_window_seconds
    usage = known.usage
    return window is None or usage.live_seconds * 3 >= min(window, usage.live_span_seconds)


def _satisfaction(known: TickFacts, rule: Reason) -> tuple[EvictionNeed, ...]:
    """Best effort gets so little of what it asked for that fewer pods would do more."""
    strategy, limit = known.strategy, _best_effort_limit(known)
    lower, upper = strategy.cpu_satisfaction_lower_pct or 0, strategy.cpu_satisfaction_upper_pct or 0
    if limit is None:
        return (unknown(rule, Reason.KNOB_UNREADABLE, "what best effort may use is not known"),)
    if not _window_seen(known):
        return (unknown(rule, Reason.WINDOW_FILLING),)
    resource, name = _NAMES[rule]
    requested = best_effort_request_millis(known.pods)
    terms = TermSum()
    if limit * 100 > lower * requested:
        terms.add("at the lower threshold", requested * lower // 100, f"{lower} % of {requested}m requested")
        terms.add("may be used", -limit, strategy.cpu_limit_policy.value).at_least("satisfied", 0)
        return (EvictionNeed(rule, resource, name, terms.terms, Reason.WITHIN_THRESHOLD),)
    terms.add("at the upper threshold", requested * upper // 100, f"{upper} % of {requested}m requested")
    terms.add("may be used", -limit, strategy.cpu_limit_policy.value)
    if not _used_up(known, limit):
        terms.become("it is not used up", 0, f"less than {strategy.cpu_be_usage_threshold_pct} % of it is used")
    return (EvictionNeed(rule, resource, name, terms.terms, None if terms.value else Reason.WITHIN_THRESHOLD),)


def _best_effort_limit(known: TickFacts) -> int | None:
    """None where it is not known, or nothing; an allocatable of 0 counts as 1, as in Koordinator."""
    if known.strategy.cpu_limit_policy is CpuLimitPolicy.REAL_LIMIT:
        return known.best_effort_millis if known.best_effort_millis else None
    lent = _lent(known, BATCH_CPU)
    return max(lent, 1) if isinstance(lent, int) else None


def _used_up(known: TickFacts, limit: int) -> bool:
    """On average and by now."""
    best_effort = known.usage.best_effort
    used = min(known.cpu_millis(best_effort), best_effort.last.cpu_millis)
    return limit < _SMALL_LIMIT_MILLIS or used * 100 >= limit * known.strategy.cpu_be_usage_threshold_pct


def _requested_cpu(known: TickFacts, rule: Reason) -> tuple[EvictionNeed, ...]:
    strategy = known.strategy
    shares = strategy.cpu_allocatable_threshold_pct or 0, strategy.cpu_allocatable_lower_pct or 0
    return tuple(_requested(known, rule, resource, *shares) for resource in (BATCH_CPU, MID_CPU, CPU))


def _requested_memory(known: TickFacts, rule: Reason) -> tuple[EvictionNeed, ...]:
    strategy = known.strategy
    shares = strategy.memory_allocatable_threshold_pct or 0, strategy.memory_allocatable_lower_pct or 0
    return tuple(_requested(known, rule, resource, *shares) for resource in (BATCH_MEMORY, MID_MEMORY, MEMORY))


def _requested(known: TickFacts, rule: Reason, resource: str, threshold_pct: int, lower_pct: int) -> EvictionNeed:
    lent = _lent(known, resource)
    name = f"{resource} to free"
    if isinstance(lent, Reason):
        return EvictionNeed(rule, resource, name, (), lent, f"how much {resource} there is to give is not known")
    most = known.strategy.allocatable_priority_threshold or 0
    pods = [pod for pod in known.pods if effective_priority(pod) <= most]
    terms = TermSum().add("requested", known.freed_together(pods, resource), f"priority {most} and below")
    whole = amount(lent, unit_of(resource))
    if terms.value * 100 <= lent * threshold_pct:
        terms.add("threshold", -(lent * threshold_pct // 100), f"{threshold_pct} % of {whole}").at_least("within it", 0)
        return EvictionNeed(rule, resource, name, terms.terms, Reason.WITHIN_THRESHOLD)
    terms.add("lower threshold", -(lent * min(lower_pct, threshold_pct) // 100), f"{lower_pct} % of {whole}")
    return EvictionNeed(rule, resource, name, terms.terms)


def _lent(known: TickFacts, resource: str) -> int | Reason:
    """What is truly lent, else what the Node says; a zero that was not computed is not known.

    The Node's own amount is kept at what admitted pods request (docs/adr/0004), so that it alone would never do.
    """
    told = known.lent.get(resource)
    if told is not None:
        return told.value if told.reason is Reason.COMPUTED else told.reason
    return known.node.allocatable.amounts.get(resource, Reason.NODE_METRICS_MISSING)


def _by_request_of_memory(s: EvictionStrategy) -> bool:
    shares = (s.memory_allocatable_threshold_pct, s.memory_allocatable_lower_pct)
    return None not in (*shares, s.allocatable_priority_threshold)


def _by_request_of_cpu(s: EvictionStrategy) -> bool:
    shares = (s.cpu_allocatable_threshold_pct, s.cpu_allocatable_lower_pct)
    return None not in (*shares, s.allocatable_priority_threshold)


def _by_satisfaction(s: EvictionStrategy) -> bool:
    return 0 < (s.cpu_satisfaction_lower_pct or 0) <= (s.cpu_satisfaction_upper_pct or 0)


_RULES: dict[
    Reason, tuple[Callable[[EvictionStrategy], bool], Callable[[TickFacts, Reason], tuple[EvictionNeed, ...]]]
] = {
    Reason.BE_MEMORY_EVICT: (lambda s: s.memory_threshold_pct is not None, _used_memory),
    Reason.MEMORY_ALLOCATABLE_EVICT: (_by_request_of_memory, _requested_memory),
    Reason.MEMORY_EVICT: (lambda s: None not in (s.memory_threshold_pct, s.priority_threshold), _used_memory),
    Reason.BE_CPU_EVICT: (_by_satisfaction, _satisfaction),
    Reason.CPU_ALLOCATABLE_EVICT: (_by_request_of_cpu, _requested_cpu),
    Reason.CPU_EVICT: (lambda s: None not in (s.cpu_threshold_pct, s.priority_threshold), _used_cpu),
}
"""When a rule is on, and what it wants; in the order in which they choose victims."""
MEMORY_RULES = frozenset(
    {Reason.BE_MEMORY_EVICT, Reason.MEMORY_ALLOCATABLE_EVICT, Reason.MEMORY_EVICT, Reason.MEMORY_LAST_RESORT}
)
_NAMES = {
    Reason.BE_MEMORY_EVICT: (USED_MEMORY, "memory to free"),
    Reason.MEMORY_EVICT: (USED_MEMORY, "memory to free by priority"),
    Reason.MEMORY_ALLOCATABLE_EVICT: (BATCH_MEMORY, f"{BATCH_MEMORY} to free"),
    Reason.BE_CPU_EVICT: (RUNNING_BATCH_CPU, "best-effort CPU to free"),
    Reason.CPU_ALLOCATABLE_EVICT: (BATCH_CPU, f"{BATCH_CPU} to free"),
    Reason.CPU_EVICT: (USED_CPU, "CPU to free by priority"),
}
"""What a rule frees and how its need is called; a rule by request has a need for each of its resources."""
