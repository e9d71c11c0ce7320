"""Last plan: the brake's plan of the last tick, left in the heartbeat for whoever limits next.

A guard beside a silent agent, and an agent that has just started, cut by it while nothing newer is known. It only ever
lowers, so an old plan gives nothing away; one that is not understood, or is about another cgroup, is no plan.
"""

from __future__ import annotations

import msgspec

from agent.core.limit.brake import BrakePlan
from agent.core.observe.knobs import SMALLEST_QUOTA_US, UNLIMITED, quota_knob
from agent.core.observe.layout import Layout
from model.decision import Term

LARGEST_BYTES = 1 << 20
"""On cgroup v1 each pod and container with a quota is some 200 bytes: 500 pods of four containers are half of it."""
_VERSION = 1
_LARGEST_US = 1 << 44
"""The kernel's own bound of a quota (kernel/sched/core.c: max_cfs_runtime)."""
_SHORTEST_SILENCE_SECONDS, _LONGEST_SILENCE_SECONDS = 1.0, 30.0
_MISSED_TICKS = 3


class LastPlan(msgspec.Struct, frozen=True):
    """A plan, and how long an agent may say nothing before somebody else keeps it."""

    plan: BrakePlan
    silence_seconds: float


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As it is in the file; `narrow_first` are cgroups below best effort with their quota."""

    cgroup: str
    terms: tuple[Term, ...]
    floor_us: int
    ceiling_us: int
    deadband_us: int
    silence_seconds: float
    policy: str = ""
    suffering_us: int | None = None
    narrow_first: tuple[tuple[str, int], ...] = ()
    version: int = _VERSION


def written(plan: BrakePlan | None, tick_seconds: float) -> bytes:
    """The file's content; nothing where there is nothing to defend."""
    if plan is None:
        return b""
    silence = min(max(tick_seconds * _MISSED_TICKS, _SHORTEST_SILENCE_SECONDS), _LONGEST_SILENCE_SECONDS)
    narrow = tuple((knob.cgroup, quota) for knob, quota in plan.narrow_first)
    return msgspec.json.encode(
        _Written(
            plan.knob.cgroup,
            plan.base_terms,
            plan.floor_us,
            plan.ceiling_us,
            plan.deadband_us,
            silence,
            plan.policy,
            plan.suffering_us,
            narrow,
        )
    )


def understood(content: bytes, layout: Layout) -> LastPlan | None:
    """What an agent wrote for this node's best-effort root; None for anything else."""
    if not content or len(content) > LARGEST_BYTES:
        return None
    try:
        found = msgspec.json.decode(content, type=_Written)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    knob = quota_knob(layout, layout.best_effort)
    below = f"{layout.best_effort}/"
    amounts = (found.ceiling_us, *(quota for _, quota in found.narrow_first))
    sound = (
        found.version == _VERSION
        and found.cgroup == knob.cgroup
        and SMALLEST_QUOTA_US <= found.floor_us <= _LARGEST_US
        and 0 <= found.deadband_us <= _LARGEST_US
        and all(us == UNLIMITED or 0 < us <= _LARGEST_US for us in amounts)
        and (found.suffering_us is None or 0 < found.suffering_us <= _LARGEST_US)
        and abs(base_us := sum(term.value for term in found.terms)) <= _LARGEST_US
        and _SHORTEST_SILENCE_SECONDS <= found.silence_seconds <= _LONGEST_SILENCE_SECONDS
        and all(cgroup.startswith(below) and ".." not in cgroup.split("/") for cgroup, _ in found.narrow_first)
    )
    if not sound:
        return None
    plan = BrakePlan(
        knob=knob,
        base_terms=found.terms,
        base_us=base_us,
        floor_us=found.floor_us,
        ceiling_us=found.ceiling_us,
        deadband_us=found.deadband_us,
        policy=found.policy,
        suffering_us=found.suffering_us,
        narrow_first=tuple((quota_knob(layout, cgroup), quota) for cgroup, quota in found.narrow_first),
    )
    return LastPlan(plan, found.silence_seconds)
