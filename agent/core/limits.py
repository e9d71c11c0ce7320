"""All limits of one tick together: decisions by knob, what the brake may do until the next, what to remember."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.brake import BrakePlan
from agent.core.layout import KubepodsLayout
from agent.core.observation import Knob, Observation
from agent.core.plan import KnobStanding, standing
from agent.core.suppress import UNLIMITED, quota_ceiling, weight
from agent.core.usage import NodeUsage
from model.decision import Decision
from model.resources import CPU
from model.strategy import SuppressStrategy

_RAISE_REST_SECONDS = 5.0
"""After a cut by the brake nothing is raised for this long."""
_BRAKE_DEADBAND_US_PER_MILLI = 5
"""The brake acts from 5 % of the node on (100 us of quota are one milli-CPU); smaller changes wait for the tick."""


class Knobs(msgspec.Struct, frozen=True):
    """The control files the agent owns."""

    quota: Knob
    weight: Knob

    @classmethod
    def of(cls, layout: KubepodsLayout) -> Knobs:
        return cls(Knob(layout.best_effort, "cpu", "cpu.cfs_quota_us"), Knob(layout.best_effort, "cpu", "cpu.shares"))


class Limits(msgspec.Struct, frozen=True):
    """What was decided; `brake` is None where there is nothing to defend."""

    decisions: Mapping[Knob, Decision]
    brake: BrakePlan | None


def decide_limits(
    remembered: KnobStanding,
    knobs: Knobs,
    seen: Observation,
    usage: NodeUsage | None,
    strategy: SuppressStrategy,
) -> tuple[KnobStanding, Limits]:
    """The quota ceiling and the weight of the best-effort root, and the brake's plan until the next tick.

    `seen.knobs` holds a reading for every one of `knobs`.
    """
    reading = seen.knobs[knobs.quota]
    remembered, stand = standing(reading, remembered, braked=_braked(seen))
    ceiling = quota_ceiling(knobs.quota, seen.node, usage, strategy, stand, seen.at_seconds)
    shares = weight(knobs.weight, seen.knobs[knobs.weight].kernel, seen.at_seconds)
    decisions = {knobs.quota: ceiling.decision, knobs.weight: shares}
    if not ceiling.base_terms or seen.node is None or ceiling.decision.value == UNLIMITED:
        return remembered, Limits(decisions, None)
    plan = BrakePlan(
        knob=knobs.quota,
        base_terms=ceiling.base_terms,
        base_us=ceiling.base_us,
        floor_us=ceiling.floor_us,
        ceiling_us=ceiling.decision.value,
        deadband_us=seen.node.capacity[CPU] * _BRAKE_DEADBAND_US_PER_MILLI,
        policy=strategy.policy,
    )
    return remembered, Limits(decisions, plan)


def _braked(seen: Observation) -> bool:
    cut = seen.last_cut_monotonic
    return cut is not None and seen.monotonic_seconds - cut < _RAISE_REST_SECONDS
