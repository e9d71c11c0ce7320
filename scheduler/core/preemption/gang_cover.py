"""Whole gangs as victims: the gang whose going gains most members for each pod lost goes first."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from scheduler.core.preemption.capacity import Capacity, RoomRequest, room, taken
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.rows import clear_rows
from scheduler.core.snapshot.snapshot import Amounts

_LOOKED_AT = 4
"""Gangs compared again after each choice, for each member that is missing at first."""


class _Parts(msgspec.Struct, frozen=True, eq=False):
    """What each gang frees on each of its rows; `gang` indexes `burdens` and the gangs' `numbers`."""

    gang: Amounts
    rows: Amounts
    freed: Amounts
    burdens: npt.NDArray[np.float64]
    numbers: Amounts


def cover_with_gangs(capacity: Capacity, pool: Amounts, singles: Amounts, costs: VictimCosts) -> set[int] | None:
    """Gangs as long as one of them helps, then single pods for what is missing; None where that is not enough.

    None also where no gang helps a lone ask: then this is what single pods alone are good for.
    """
    parts = _parts(pool, costs)
    free, chosen = capacity.free.copy(), set[int]()
    for ask in capacity.asks:
        parts = _cover(ask, free, parts, chosen, costs)
        if len(capacity.asks) == 1 and not chosen:
            return None
        found = clear_rows(ask, free, singles, costs, chosen)
        if found is None:
            return None
        free += costs.victims.freed(np.array(found, np.int64), len(free))
        chosen.update(found)
        free -= taken(ask, room(ask, free, np.arange(len(free))))[:, None] * ask.request[None, :]
    return chosen


def _cover(ask: RoomRequest, free: Amounts, parts: _Parts, chosen: set[int], costs: VictimCosts) -> _Parts:
    """Adds gangs to `chosen` and their room to `free`; returns the gangs that are left."""
    missing = ask.want - int(room(ask, free, np.arange(len(free))).sum())
    looked_at = _only(parts, _ranked(ask, free, parts, costs, missing)[: _LOOKED_AT * missing + 32])
    taken_out: list[int] = []
    while missing > 0 and len(looked_at.burdens):
        gains = np.minimum(_gains(ask, free, looked_at), missing)
        best = int(np.argmax(gains / looked_at.burdens))
        if gains[best] <= 0:
            break
        members = np.array(costs.victims.members(int(looked_at.numbers[best])), np.int64)
        free += costs.victims.freed(members, len(free))
        chosen.update(members.tolist())
        taken_out.append(int(looked_at.numbers[best]))
        missing -= int(gains[best])
        looked_at = _only(looked_at, np.delete(np.arange(len(looked_at.burdens)), best))
    return _only(parts, np.flatnonzero(~np.isin(parts.numbers, taken_out)))


def _ranked(ask: RoomRequest, free: Amounts, parts: _Parts, costs: VictimCosts, missing: int) -> Amounts:
    """Gangs that gain members, most for their weight first; of equals the first by row, of these the first by name."""
    gains = np.minimum(_gains(ask, free, parts), missing) / np.maximum(parts.burdens, 1)
    first = np.full(len(parts.burdens), len(free))
    np.minimum.at(first, parts.gang, parts.rows)
    helping = np.flatnonzero(gains > 0)
    order = helping[np.lexsort((first[helping], -gains[helping]))]
    some = order[: _LOOKED_AT * missing + 64].tolist()
    names = [costs.subject(costs.victims.members(int(parts.numbers[gang]))[0]) for gang in some]
    ranked = sorted(range(len(some)), key=lambda i: (-gains[some[i]], first[some[i]], names[i]))
    return np.array([some[i] for i in ranked], np.int64)


def _parts(pool: Amounts, costs: VictimCosts) -> _Parts:
    victims = costs.victims
    inside = np.zeros(len(victims), bool)
    inside[pool] = True
    sizes = np.diff(victims.ends, prepend=0)
    complete = np.bincount(victims.gangs[victims.by_gang[inside[victims.by_gang]]], minlength=len(sizes)) == sizes
    numbers = np.flatnonzero(complete & victims.whole & (sizes > 0))
    position = np.full(len(sizes), -1, np.int64)
    position[numbers] = np.arange(len(numbers))
    flat = victims.by_gang[position[victims.gangs[victims.by_gang]] >= 0]
    gang, rows = position[victims.gangs[flat]], victims.rows[flat]
    starts = np.flatnonzero(np.diff(gang, prepend=-1) | np.diff(rows, prepend=-1))
    freed = np.zeros((len(starts), victims.amounts.shape[1]), np.int64)
    for column in range(freed.shape[1] if len(starts) else 0):
        freed[:, column] = np.add.reduceat(victims.amounts[flat, column], starts)
    return _Parts(gang[starts], rows[starts], freed, costs.gang_burdens[numbers], numbers)


def _gains(ask: RoomRequest, free: Amounts, parts: _Parts) -> Amounts:
    """How many more members fit once each gang is gone, one gang at a time."""
    before = room(ask, free[parts.rows], parts.rows)
    gain = room(ask, free[parts.rows] + parts.freed, parts.rows) - before
    return np.bincount(parts.gang, weights=gain, minlength=len(parts.burdens)).astype(np.int64)


def _only(parts: _Parts, kept: Amounts) -> _Parts:
    """Those gangs alone, in this order."""
    position = np.full(len(parts.burdens), -1, np.int64)
    position[kept] = np.arange(len(kept))
    inside = position[parts.gang] >= 0
    gang = position[parts.gang[inside]]
    return _Parts(gang, parts.rows[inside], parts.freed[inside], parts.burdens[kept], parts.numbers[kept])
