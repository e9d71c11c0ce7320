"""What may be lent: batch-cpu and batch-memory by Koordinator's usage policy.

    batch = capacity - margin - max(system used, reserved) - high-priority used, never below 0

Source: Koordinator pkg/slo-controller/noderesource/plugins/batchresource; high-priority accounting as there. The inputs
are the larger of live and aggregate average, so that a surge counts within seconds (docs/adr/0002).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.usage import Averages, NodeUsage
from model.decision import Decision, TermSum, Unit
from model.node import Node
from model.pod import Pod
from model.qos import PriorityBand, QoSClass
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY
from model.strategy import ColocationStrategy

_LENDABLE_BANDS = (PriorityBand.BATCH, PriorityBand.FREE)


class _Resource(msgspec.Struct, frozen=True):
    """One of the two lent resources and where its inputs stand."""

    lent: str
    native: str
    unit: Unit
    reclaim_threshold_pct: int

    def of(self, usage: Usage) -> int:
        return usage.cpu_millis if self.native == CPU else usage.memory_bytes


def reclaimable(
    node: Node | None,
    listed: Iterable[Pod] | None,
    usage: NodeUsage | None,
    strategy: ColocationStrategy,
    now: float,
    listed_age_seconds: float = 0.0,
) -> tuple[Decision, ...]:
    """Two decisions, batch-cpu in milli-CPU and batch-memory in bytes; 0 with a reason where facts are missing.

    `listed_age_seconds` is how long the API server was silent about the pods: past `degrade_seconds` the list is too
    old to tell whose requests must be kept free.
    """
    resources = (
        _Resource(BATCH_CPU, CPU, Unit.MILLI_CPU, strategy.cpu_reclaim_threshold_pct),
        _Resource(BATCH_MEMORY, MEMORY, Unit.BYTES, strategy.memory_reclaim_threshold_pct),
    )
    reason = _withheld(node, listed, usage, strategy, listed_age_seconds)
    if reason is not None or node is None or listed is None or usage is None:
        subject = f"node/{node.name}" if node else "node"
        why = reason or Reason.NODE_METRICS_MISSING
        return tuple(Decision(subject, r.lent, 0, r.unit, why, (), at_seconds=now) for r in resources)
    pods = [pod for pod in listed if not pod.terminal and pod.band not in _LENDABLE_BANDS]
    return tuple(_by_usage(resource, node, pods, usage) for resource in resources)


def _withheld(
    node: Node | None,
    listed: Iterable[Pod] | None,
    usage: NodeUsage | None,
    strategy: ColocationStrategy,
    listed_age_seconds: float,
) -> Reason | None:
    """Why nothing may be lent at all."""
    if not strategy.enable:
        return Reason.LENDING_DISABLED
    if listed is None or node is None:
        return Reason.PODS_UNKNOWN
    if usage is None:
        return Reason.NODE_METRICS_MISSING
    return Reason.PODS_STALE if listed_age_seconds > strategy.degrade_seconds else None


def _by_usage(resource: _Resource, node: Node, pods: list[Pod], usage: NodeUsage) -> Decision:
    capacity = node.capacity[resource.native]
    reserved = max(capacity - node.allocatable[resource.native], 0)
    # Koordinator's order of operations: the ratio is rounded to a float first, then the product cut to an integer.
    margin = int(capacity * ((100 - resource.reclaim_threshold_pct) / 100))
    system = resource.of(usage.unlisted_system.cautious)
    measured, assumed = _high_priority(resource, pods, usage.pods)
    terms = TermSum()
    terms.add("capacity", capacity, "node status")
    terms.add("safety margin", -margin, f"{100 - resource.reclaim_threshold_pct} % of capacity")
    if system >= reserved:
        terms.add("system used", -system, "node minus listed pods, larger of 10 s and window average")
    else:
        terms.add("reserved", -reserved, "capacity minus allocatable; larger than system use")
    terms.add("high-priority used", -measured, f"{len(pods)} pods, larger of 10 s and window average")
    if assumed:
        terms.add("high-priority not measured", -assumed, "requests count where usage is unknown or exclusive")
    terms.at_least("floor", 0, "nothing is lent below zero")
    subject = f"node/{node.name}"
    return Decision(
        subject, resource.lent, terms.value, resource.unit, Reason.COMPUTED, terms.terms, "usage", usage.at_seconds
    )


def _high_priority(resource: _Resource, pods: list[Pod], measured: Mapping[str, Averages]) -> tuple[int, int]:
    """(sum of measured usage, sum of requests that stand in): an LSE pod's CPU is exclusive and never reclaimed."""
    used = requested = 0
    for pod in pods:
        averages = measured.get(pod.uid)
        if averages is None or (pod.qos is QoSClass.LSE and resource.native == CPU):
            requested += pod.requests[resource.native]
        else:
            used += resource.of(averages.cautious)
    return used, requested
