"""All limits of one tick together: decisions by knob, what the brake may do until the next, what to remember."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.brake import BrakePlan
from agent.core.knobs import PERIOD_US, Knobs
from agent.core.observation import Knob, NodeSample, Observation
from agent.core.plan import KnobStanding, standing
from agent.core.suppress import Ceiling, NodeSize, fixed, quota_ceiling
from agent.core.usage import NodeUsage, best_effort_limit_millis
from model.decision import Decision
from model.reason import Reason
from model.resources import CPU
from model.strategy import SuppressStrategy

_RAISE_REST_SECONDS = 5.0
"""After a cut by the brake nothing is raised for this long."""
_BRAKE_DEADBAND_US_PER_MILLI = 5
"""The brake acts from 5 % of the node on (100 us of quota are one milli-CPU); smaller changes wait for the tick."""


class Memory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: the quota's standing, the node's size, the brake's plan, its time."""

    quota: KnobStanding = KnobStanding()
    size: NodeSize | None = None
    brake: BrakePlan | None = None
    monotonic_seconds: float = 0.0


class Limits(msgspec.Struct, frozen=True):
    """What was decided; `brake` is None where there is nothing to defend.

    `best_effort_millis` is the CPU the kernel let best effort use before that, None where it cannot be told.
    """

    decisions: Mapping[Knob, Decision]
    brake: BrakePlan | None
    best_effort_millis: int | None = None


def decide_limits(
    memory: Memory,
    knobs: Knobs,
    seen: Observation,
    usage: NodeUsage | None,
    strategy: SuppressStrategy,
    *,
    unsettled: bool = False,
) -> tuple[Memory, Limits]:
    """Quota ceiling, period and weight of the best-effort root, and the brake's plan until the next tick.

    `seen.knobs` holds a reading for every one of `knobs`. Neither a missing Node object nor a tick without usage
    disarms the brake: it goes on with the last size and plan it knew.
    """
    remembered, stand = standing(seen.knobs[knobs.quota], memory.quota)
    elapsed = seen.monotonic_seconds - memory.monotonic_seconds
    stand = msgspec.structs.replace(stand, braked=_braked(seen), unsettled=unsettled, elapsed_seconds=elapsed)
    size = _size(seen, memory.size)
    ceiling = quota_ceiling(knobs.quota, size, usage, strategy, stand, seen.at_seconds)
    decisions = {knobs.quota: ceiling.decision}
    for kept in knobs.fixed:
        decisions[kept.knob] = fixed(kept, seen.knobs[kept.knob].kernel, seen.at_seconds)
    brake = _brake_plan(knobs.quota, ceiling, size, memory.brake) if strategy.enable else None
    quota = seen.knobs[knobs.quota].kernel
    held = best_effort_limit_millis(seen.best_effort_cpus, quota if isinstance(quota, int) else None, PERIOD_US)
    return Memory(remembered, size, brake, seen.monotonic_seconds), Limits(decisions, brake, held)


def _brake_plan(knob: Knob, ceiling: Ceiling, size: NodeSize | None, last: BrakePlan | None) -> BrakePlan | None:
    in_force = ceiling.decision.value
    if not ceiling.base_terms or size is None:
        unreadable = ceiling.decision.reason is Reason.KNOB_UNREADABLE
        return last if last is None or unreadable else last.lowered_to(in_force)
    return BrakePlan(
        knob=knob,
        base_terms=ceiling.base_terms,
        base_us=ceiling.base_us,
        floor_us=ceiling.floor_us,
        ceiling_us=in_force,
        deadband_us=size.capacity_millis * _BRAKE_DEADBAND_US_PER_MILLI,
        policy=ceiling.decision.policy,
    )


def _size(seen: Observation, last: NodeSize | None) -> NodeSize | None:
    """The node object's words, else what it said last, else the CPUs this kernel shows."""
    if seen.node is not None and seen.node.capacity[CPU] > 0:
        return NodeSize.of(seen.node)
    if last is None and isinstance(seen.node_sample, NodeSample):
        return NodeSize(seen.node_sample.cpus * 1000)
    return last


def _braked(seen: Observation) -> bool:
    cut = seen.last_cut_monotonic
    return cut is not None and seen.monotonic_seconds - cut < _RAISE_REST_SECONDS
