"""Output of `sublet simulate node -o json`, as docs/simulate.md describes it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from model.decision import Decision
from view.simulated_node import NodeDecisions, SimulatedEviction, SimulatedLimit


class TermOut(msgspec.Struct, frozen=True):
    """One signed part of a value."""

    name: str
    value: int


class AmountOut(msgspec.Struct, frozen=True):
    """One resource: milli-CPU or bytes, and the terms that sum to it."""

    value: int
    unit: str
    terms: list[TermOut]
    policy: str


class ZoneOut(msgspec.Struct, frozen=True):
    """One NUMA zone; `prepared` is what is written to its NodeResourceTopology row."""

    name: str
    resources: dict[str, AmountOut]
    prepared: dict[str, int]


class LimitOut(msgspec.Struct, frozen=True):
    """One control file; a CPU list is a text, and its terms sum to how many CPUs it names. -1 is no limit."""

    cgroup: str
    knob: str
    value: int | str
    unit: str
    terms: list[TermOut]
    reason: str
    policy: str


class EvictionOut(msgspec.Struct, frozen=True):
    """One pod that must go; `notice_seconds` is how long before that it is told, `grace_seconds` None its own grace."""

    pod: str
    reason: str
    frees: int
    unit: str
    resource: str
    terms: list[TermOut]
    notice_seconds: int
    grace_seconds: int | None


class NodeOut(msgspec.Struct, frozen=True):
    """One Node; `degraded` says why nothing is lent, `prepared` is empty when the node's keys are to be removed."""

    node: str
    degraded: str | None
    resources: dict[str, AmountOut]
    zones: list[ZoneOut]
    prepared: dict[str, int]
    limits: list[LimitOut]
    evictions: list[EvictionOut]


def node_out(item: NodeDecisions) -> NodeOut:
    """The documented JSON."""
    return NodeOut(
        item.node,
        item.degraded.value if item.degraded else None,
        _amounts(item.reclaimable),
        [ZoneOut(zone.name, _amounts(zone.decisions), _integers(zone.prepared)) for zone in item.zones],
        _integers(item.prepared),
        [_limit(limit) for limit in item.limits],
        [_eviction(eviction) for eviction in item.evictions],
    )


def _amounts(decisions: Iterable[Decision]) -> dict[str, AmountOut]:
    return {d.name: AmountOut(d.value, d.unit.value, _terms(d), d.policy) for d in decisions}


def _integers(decisions: Iterable[Decision]) -> dict[str, int]:
    return {decision.name: decision.value for decision in decisions}


def _terms(decision: Decision) -> list[TermOut]:
    return [TermOut(term.name, term.value) for term in decision.terms]


def _limit(limit: SimulatedLimit) -> LimitOut:
    told = limit.decision
    where = (limit.cgroup, limit.file, limit.value)
    return LimitOut(*where, told.unit.value, _terms(told), told.reason.value, told.policy)


def _eviction(eviction: SimulatedEviction) -> EvictionOut:
    decision = eviction.decision
    return EvictionOut(
        pod=eviction.pod,
        reason=decision.reason.value,
        frees=decision.value,
        unit=decision.unit.value,
        resource=eviction.resource,
        terms=_terms(decision),
        notice_seconds=math.ceil(eviction.notice_seconds or 0),
        grace_seconds=eviction.grace_seconds,
    )
