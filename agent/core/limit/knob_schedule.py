"""Knob schedule: the pods whose control files are read in a tick, and whose value the files read have.

A pod whose files hold what they shall is looked at again in one tick of ten: 250 pods cost no more than 25.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from agent.core.limit.ownership import left_to_us
from agent.core.limit.suppress import FLOOR_US
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import UNLIMITED, is_v1_quota, same
from agent.core.observe.observation import Knob, KnobReading, Value

_TURNS = 10
_WITHIN_REACH = 4
"""A ceiling that falls further than to this part in one tick meets the quotas below it a tick later."""


class KnobSchedule(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: tighter values of other writers, and limits of pods that the kernel
    held. What is gone leaves both."""

    caps: tuple[tuple[Knob, Value], ...] = ()
    in_force: tuple[Limit, ...] = ()
    turn: int = 0


class PodGroups(msgspec.Struct, frozen=True):
    """The control files of each pod, a group each, and what they follow from."""

    about: tuple[object, ...] = ()
    groups: tuple[tuple[Knob, ...], ...] = ()


NO_GROUPS = PodGroups()


def due(state: KnobSchedule, groups: Iterable[tuple[Knob, ...]], ceiling_us: int) -> Iterator[Knob]:
    """The files of pods (a group each) to read now: where something is new or shall change or another writer was, where
    a v1 quota may stand in the way of a lower ceiling, and a tenth of the rest."""
    held = {limit.knob: limit.value for limit in state.in_force}
    watched = {knob for knob, _ in state.caps}
    for index, group in enumerate(groups):
        if index % _TURNS == state.turn or any(
            knob not in held or knob in watched or _in_the_way(knob, held[knob], ceiling_us) for knob in group
        ):
            yield from group


def scheduled(
    state: KnobSchedule,
    each_tick: Iterable[Limit],
    of_pods: Iterable[Limit],
    unread: Collection[str],
    readings: Mapping[Knob, KnobReading],
) -> tuple[KnobSchedule, dict[Knob, Limit]]:
    """The limits other writers leave us. Of the cgroups in `unread`, whose pods were not due, the last ones stand."""
    caps, found = dict(state.caps), {}
    for limit in (*each_tick, *of_pods):
        cap, found[limit.knob] = _settled(limit, readings.get(limit.knob), caps.get(limit.knob))
        if cap is not None:
            caps[limit.knob] = cap
        else:
            caps.pop(limit.knob, None)
    stand = {limit.knob: limit for limit in state.in_force if limit.knob.cgroup in unread}
    held = [found[limit.knob] for limit in of_pods if _holds(readings.get(limit.knob), found[limit.knob])]
    kept = tuple((knob, cap) for knob, cap in caps.items() if knob in found)
    return KnobSchedule(kept, (*stand.values(), *held), (state.turn + 1) % _TURNS), {**stand, **found}


def _settled(limit: Limit, reading: KnobReading | None, cap: Value | None) -> tuple[Value | None, Limit]:
    if reading is None or (cap is None and reading.kernel == reading.last_written == limit.value):
        return cap, limit
    return left_to_us(limit, reading, cap)


def _in_the_way(knob: Knob, value: Value, ceiling_us: int) -> bool:
    if not is_v1_quota(knob) or not isinstance(value, int) or value == UNLIMITED or value <= FLOOR_US:
        return False
    return ceiling_us == UNLIMITED or value * _WITHIN_REACH >= ceiling_us


def _holds(reading: KnobReading | None, limit: Limit) -> bool:
    kernel = reading.kernel if reading else None
    return isinstance(kernel, int | str) and same(limit.knob, kernel, limit.value)
