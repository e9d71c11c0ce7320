"""A node from files, and what an agent would decide about it at its first tick."""

from __future__ import annotations

from collections.abc import Iterator

from agent.core.evict.decide import EvictionMemory, decide_evictions
from agent.core.evict.eviction_request import EvictionRequest
from agent.core.lend.offer import offered
from agent.core.lend.reclaimable import LendingFacts, NodeLending, lending
from agent.core.limit.decide import LimitMemory, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.limit.shrink import Shrinking
from agent.core.observe import assumed
from agent.core.observe.assumed import AssumedNode
from agent.core.observe.knobs import PERIOD_US
from agent.core.observe.layout import Layout
from agent.ports import ClusterFacts
from model.decision import Decision
from model.nodemetric import NodeMetric
from view.simulated_node import NodeDecisions, SimulatedEviction, SimulatedLimit, SimulatedZone


def simulated(known: ClusterFacts, metric: NodeMetric | None, layout: Layout, now: float) -> NodeDecisions:
    """As the agent's tick decides, on a node that is assumed instead of observed."""
    node, settings, pods = known.node, known.settings, known.pods or ()
    assert node is not None
    facts = known.for_lending(metric, now)
    lent = lending(facts, settings.colocation, settings.normalization)
    about_limits, untouched = known.for_limits(), AssumedNode(layout, node, pods, known.processors)
    held = untouched.readings(knobs_to_read(LimitMemory(), layout, untouched.places, about_limits))
    usage = assumed.usage(metric, pods, settings.host_applications, settings.colocation, now)
    seen = untouched.observation(held, usage, now)
    _, limits = decide_limits(LimitMemory(), layout, seen, usage, about_limits)
    about_evictions = known.for_evictions(limits.best_effort_millis, lent.final, (), (), Shrinking())
    _, evictions = decide_evictions(EvictionMemory(), seen, usage, about_evictions)
    root = layout.best_effort
    ordered = sorted(limits.limits.values(), key=lambda limit: (limit.knob.cgroup != root, limit.knob))
    written = {write.knob for write in plan(limits.limits, held)}
    return NodeDecisions(
        node=node.name,
        at_seconds=facts.now,
        measured_seconds=facts.metric.updated_seconds if facts.metric else None,
        degrade_seconds=settings.colocation.degrade_seconds,
        reclaimable=lent.reclaimable,
        degraded=lent.degraded,
        zones=tuple(SimulatedZone(zone.name, zone.decisions, zone.prepared) for zone in lent.zones),
        prepared=lent.prepared,
        kept=tuple(_kept(lent, facts)),
        root=root,
        ceiling=limits.ceiling,
        period_us=PERIOD_US,
        limits=tuple(
            SimulatedLimit(limit.knob.cgroup, limit.knob.file, limit.value, limit.decision, limit.knob in written)
            for limit in ordered
        ),
        needs=evictions.needs,
        evictions=tuple(_eviction(request, facts.now) for request in evictions.requests),
    )


def _kept(lent: NodeLending, facts: LendingFacts) -> Iterator[Decision]:
    """What the agent leaves on the Node for running pods, beyond what may be lent."""
    final = {decision.name: decision.value for decision in lent.final}
    kept = offered(lent, facts.pods or (), (), {}, may_grow=True)
    return (decision for decision in kept if decision.value != final[decision.name])


def _eviction(request: EvictionRequest, now: float) -> SimulatedEviction:
    deadline = request.deadline_seconds
    notice = None if deadline is None else deadline - now
    return SimulatedEviction(
        f"{request.namespace}/{request.name}", request.decision, request.resource, notice, request.grace_seconds
    )
