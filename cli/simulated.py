"""A node from files, and what an agent would decide about it at its first tick."""

from __future__ import annotations

import msgspec

from agent.core.evict.decide import EvictionMemory, Evictions, decide_evictions
from agent.core.lend.reclaimable import LendingFacts, NodeLending, lending
from agent.core.limit.decide import LimitMemory, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.limit.wanted_limit import Limit
from agent.core.observe import assumed
from agent.core.observe.assumed import AssumedNode
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.ports import ClusterFacts
from model.decision import Decision
from model.node import Node
from model.nodemetric import NodeMetric
from model.strategy import ColocationStrategy


class Simulated(msgspec.Struct, frozen=True):
    """A node, what was known of it, the settings that hold for it, and what they make.

    `limits` begin with those of `root`, best effort's, then go by cgroup and file; `written` are those that differ from
    what an untouched node holds, `ceiling` is what holds best effort's CPU.
    """

    node: Node
    facts: LendingFacts
    strategy: ColocationStrategy
    lent: NodeLending
    root: str
    ceiling: Decision
    limits: tuple[Limit, ...]
    written: frozenset[Knob]
    evictions: Evictions


def simulated(known: ClusterFacts, metric: NodeMetric | None, layout: Layout, now: float) -> Simulated:
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
    about_evictions = known.for_evictions(limits.best_effort_millis, lent.final, (), ())
    _, evictions = decide_evictions(EvictionMemory(), seen, usage, about_evictions)
    root = layout.best_effort
    ordered = sorted(limits.limits.values(), key=lambda limit: (limit.knob.cgroup != root, limit.knob))
    return Simulated(
        node=node,
        facts=facts,
        strategy=settings.colocation,
        lent=lent,
        root=root,
        ceiling=limits.ceiling,
        limits=tuple(ordered),
        written=frozenset(write.knob for write in plan(limits.limits, held)),
        evictions=evictions,
    )
