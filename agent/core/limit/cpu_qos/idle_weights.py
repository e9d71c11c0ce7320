"""Weights of batch pods that are idle: the kernel takes none while `cpu.idle` is set, and forgets the one it had.

So it is left as it reads (3 shares on v1; 0 or 1 on v2), and is written again in the tick in which idle ends, after
that. Source: kernel/sched/fair.c (sched_group_set_shares, sched_group_set_idle).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import IDLE_FILE, cpu_qos_knob, shares_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, KnobReading, Missing, Observation
from model.decision import Decision, Term
from model.reason import Reason


class IdleWeights(msgspec.Struct, frozen=True):
    """Limits of batch pods, and readings by which what the kernel shows of a weight is nobody's wish."""

    limits: Mapping[Knob, Limit]
    readings: Mapping[Knob, KnobReading]


def beside_idle(
    layout: Layout, observation: Observation, batch: Mapping[Knob, Limit], idle: Iterable[Limit], *, may_end: bool
) -> IdleWeights:
    """`idle` are the limits of CPU QoS; only weights of cgroups whose `cpu.idle` was read are touched.

    `may_end`: what nothing wants is given back in this tick.
    """
    read = [
        (knob.cgroup, reading)
        for knob, reading in observation.knobs.items()
        if knob.file == IDLE_FILE and knob.cgroup != layout.best_effort
    ]
    if not read:
        return IdleWeights(batch, observation.knobs)
    wanted = {limit.knob.cgroup for limit in idle if limit.knob.file == IDLE_FILE and limit.value == 1}
    limits, readings = dict(batch), dict(observation.knobs)
    for cgroup, reading in read:
        weight = shares_knob(layout, cgroup)
        held = observation.knobs.get(weight)
        if weight not in limits or held is None or isinstance(held.kernel, Missing):
            continue
        if reading.kernel == 1:
            readings[weight] = replace(held, last_written=held.kernel)
        ends = may_end and reading.kernel == reading.last_written == 1
        if cgroup in wanted or (reading.kernel == 1 and not ends):
            limits[weight] = _left(limits[weight], held, observation.at_seconds)
    return IdleWeights(limits, readings)


def weights_of(layout: Layout, cgroups: Iterable[str]) -> tuple[Knob, ...]:
    """The files that must be read with `cpu.idle` where it ends."""
    return tuple(
        knob for cgroup in cgroups for knob in (cpu_qos_knob(layout, cgroup, IDLE_FILE), shares_knob(layout, cgroup))
    )


def _left(limit: Limit, held: KnobReading, now: float) -> Limit:
    value = held.kernel if isinstance(held.kernel, int) else 0
    term = Term("idle", value, "weaker than any weight")
    decision = limit.decision
    told = Decision(
        decision.subject, decision.name, value, decision.unit, Reason.IDLE_HELD, (term,), "", now, decision.detail
    )
    return replace(limit, value=value, decision=told)
