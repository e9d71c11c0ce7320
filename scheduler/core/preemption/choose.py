"""Choice of victims where only amounts decide: several ways to choose, each without the victims it does not need.

Victims are looked for among those up to a level of priority, the lowest first, and of the plans of the first level that
helps the cheapest is taken (see `costs`); only to break fewer disruption budgets may others of higher priority go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from scheduler.core.preemption.capacity import (
    Capacity,
    RoomBalance,
    RoomRequest,
    assignment,
    room,
    taken,
    useful_rows,
)
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.gang_cover import cover_with_gangs
from scheduler.core.preemption.reprieve import (
    FEW_GROUPS,
    Fits,
    at_most,
    items_of,
    least_cost,
    reprieve,
    reprieve_in_bulk,
)
from scheduler.core.preemption.rows import clear_rows
from scheduler.core.preemption.victim_groups import one_by_one, put_back_first, spread_to_gangs
from scheduler.core.preemption.victims import OUTSIDE, Victims
from scheduler.core.snapshot.snapshot import Amounts

_TRIES = 1_000
_ASKED = 2_048
"""Asks of members that are packed again, all in all, to see which victims are not needed."""


def levels(capacity: Capacity, victims: Victims) -> list[int]:
    """Weights up to which victims would be enough, ascending; empty where not even all of them are."""
    found = victims.opened.weights
    low, high = 0, len(found)
    while low < high:
        middle = (low + high) // 2
        if _enough(capacity, victims, found[middle]):
            high = middle
        else:
            low = middle + 1
    return list(found[low:])


def cheapest(capacity: Capacity, costs: VictimCosts) -> frozenset[int] | None:
    """The victims after whose going everything fits, None where no choice does that."""
    return lowest(levels(capacity, costs.victims), lambda level: _up_to(level, capacity, costs), costs)


def lowest(
    levels: Sequence[int], up_to: Callable[[int], frozenset[int] | None], costs: VictimCosts
) -> frozenset[int] | None:
    """The plan of the lowest level that has one; of a higher one where that breaks fewer disruption budgets.

    `up_to` plans with victims up to a level. A level of pods outside the bands is no help to budgets.
    """
    found = ((number, plan) for number, level in enumerate(levels) if (plan := up_to(level)) is not None)
    number, plan = next(found, (0, None))
    if plan is None or not costs.violating(plan):
        return plan
    higher = [level for level in levels[number + 1 :] if level < OUTSIDE or levels[number] >= OUTSIDE]
    best = up_to(higher[-1]) if higher else None
    if best is None or len(costs.violating(best)) >= len(costs.violating(plan)):
        return plan
    fewest = len(costs.violating(best))
    low, high = 0, len(higher) - 1
    while low < high:
        middle = (low + high) // 2
        plan = up_to(higher[middle])
        if plan is not None and len(costs.violating(plan)) <= fewest:
            best, high = min(plan, best, key=costs.cost), middle
        else:
            low = middle + 1
    return best


def _up_to(level: int, capacity: Capacity, costs: VictimCosts) -> frozenset[int] | None:
    pool = np.flatnonzero(costs.victims.weights <= level)
    fits = fits_of(capacity, costs.victims)
    found = [_reprieve(capacity, chosen, fits, costs) for chosen in _choices(capacity, pool, costs)]
    best = costs.cheapest(found)
    items = items_of(pool.tolist(), costs) if len(pool) <= 4 * FEW_GROUPS else []
    return least_cost(items, fits, costs, best, _TRIES) if items and len(items) <= FEW_GROUPS else best


def fits_of(capacity: Capacity, victims: Victims) -> Fits:
    """Asks by looking at the rows that have room and those of the victims alone."""
    useful = useful_rows(capacity)

    def fits(chosen: frozenset[int]) -> bool:
        indexes = np.array(sorted(chosen), np.int64)
        rows = _united(useful, victims.rows[indexes], len(capacity.free))
        left = capacity.free[rows]
        np.add.at(left, np.searchsorted(rows, victims.rows[indexes]), victims.amounts[indexes])
        return capacity.fits(left, rows)

    return fits


def _reprieve(capacity: Capacity, chosen: set[int], fits: Fits, costs: VictimCosts) -> frozenset[int]:
    """The chosen victims that are needed."""
    if len(capacity.asks) > 1:
        return _reprieve_many(capacity, chosen, fits, costs)
    victims, indexes = costs.victims, np.array(sorted(chosen), np.int64)
    rows = _united(useful_rows(capacity), victims.rows[indexes], len(capacity.free))
    left = capacity.free[rows]
    np.add.at(left, np.searchsorted(rows, victims.rows[indexes]), victims.amounts[indexes])
    balance, going = RoomBalance(capacity.asks[0], left, rows), set(chosen)
    groups = put_back_first(chosen, costs)
    order = [index for group in groups for index in group]
    freed = zip(victims.rows[order].tolist(), victims.amounts[order].tolist(), strict=True)
    for group in groups:
        if balance.put_back(list(islice(freed, len(group)))):
            going.difference_update(group)
    return frozenset(going)


def _reprieve_many(capacity: Capacity, chosen: set[int], fits: Fits, costs: VictimCosts) -> frozenset[int]:
    """The same for several asks; of many victims those that are beside the members are put back without asking."""
    tries = _ASKED // len(capacity.asks)
    if len(chosen) <= tries:
        return reprieve(chosen, fits, costs)
    return reprieve_in_bulk(_beside(capacity, chosen, costs), at_most(tries, fits), costs)


def _beside(capacity: Capacity, chosen: set[int], costs: VictimCosts) -> set[int]:
    """Without those who have room beside the members, once these are packed where all of them are gone."""
    victims, indexes = costs.victims, np.array(sorted(chosen), np.int64)
    left = capacity.free + victims.freed(indexes, len(capacity.free))
    before, every = left.copy(), np.arange(len(left))
    if not all(assignment(ask, left, every) for ask in capacity.asks):
        return chosen
    used, going = (left != before).any(axis=1), set(chosen)
    for group in put_back_first(chosen, costs):
        members = np.array(group, np.int64)
        rows, without = victims.rows[members], victims.amounts[members]
        np.subtract.at(left, rows, without)
        if (left[rows][used[rows]] < 0).any():
            np.add.at(left, rows, without)
        else:
            going.difference_update(group)
    return going


def _united(some: Amounts, others: Amounts, size: int) -> Amounts:
    """The rows (of `size`) in either, ascending."""
    inside = np.zeros(size, bool)
    inside[some] = inside[others] = True
    return np.flatnonzero(inside)


def _enough(capacity: Capacity, victims: Victims, level: int) -> bool:
    free = capacity.free + victims.freed(np.flatnonzero(victims.weights <= level), len(capacity.free))
    return capacity.fits(free, np.arange(len(free)))


def _choices(capacity: Capacity, pool: Amounts, costs: VictimCosts) -> Iterator[set[int]]:
    singles = one_by_one(pool, costs)
    chosen = _singles(capacity, singles, costs)
    if chosen is not None:
        yield chosen
    if len(singles) == len(pool):
        return
    spared = _spared_first(capacity, pool, singles, costs)
    if spared is not None:
        yield spared
    covered = cover_with_gangs(capacity, pool, singles, costs)
    if covered is not None and covered != chosen:
        yield covered
    if chosen is None and covered is None:
        yield from widening(capacity, pool, costs)


def _spared_first(capacity: Capacity, pool: Amounts, singles: Amounts, costs: VictimCosts) -> set[int] | None:
    """All that gangs can spare, and gangs of other jobs for what is missing then; None where that is not enough."""
    victims = costs.victims
    spare = singles[victims.spare[singles]]
    if not len(spare):
        return None
    later = Capacity(capacity.asks, capacity.free + victims.freed(spare, len(capacity.free)))
    others = ~np.isin(victims.gangs, victims.gangs[spare])
    covered = cover_with_gangs(later, pool[others[pool]], singles[others[singles]], costs)
    return None if covered is None else {*covered, *spare.tolist()}


def _singles(capacity: Capacity, singles: Amounts, costs: VictimCosts) -> set[int] | None:
    """Class after class, each finding what those before it left."""
    free, chosen = capacity.free.copy(), set[int]()
    for ask in capacity.asks:
        found = clear_rows(ask, free, singles, costs, chosen)
        if found is None:
            return None
        free += costs.victims.freed(np.array(found, np.int64), len(free))
        chosen.update(found)
        free -= _assignments(ask, free)
    return chosen


def _assignments(ask: RoomRequest, free: Amounts) -> Amounts:
    got = taken(ask, room(ask, free, np.arange(len(free))))
    return np.asarray(got[:, None] * ask.request[None, :])


def widening(capacity: Capacity, pool: Amounts, costs: VictimCosts) -> Iterator[set[int]]:
    """Everybody who must go to clear the cheapest rows, twice as many rows each time; ends where all rows are clear."""
    ranked, number = rows_by_price(capacity, pool, costs), 1
    fits = fits_of(capacity, costs.victims)
    while number < 2 * len(ranked):
        cleared = np.zeros(len(capacity.free), bool)
        cleared[ranked[:number]] = True
        touched = pool[cleared[costs.victims.rows[pool]]]
        chosen = spread_to_gangs(touched.tolist(), pool, costs)
        if fits(frozenset(chosen)):
            yield chosen
            return
        number *= 2


def rows_by_price(capacity: Capacity, pool: Amounts, costs: VictimCosts, *, any_row: bool = False) -> Amounts:
    """Rows that gain room, the lightest burden a pod gained first; a gang counts whole on each of its rows.

    `any_row`: those with room already too, since something other than amounts may be in the way there.
    """
    victims, every = costs.victims, np.arange(len(capacity.free))
    freed = capacity.free + victims.freed(pool, len(every))
    room_at_all = np.sum([room(ask, freed, every) for ask in capacity.asks], axis=0)
    gains = room_at_all - np.sum([room(ask, capacity.free, every) for ask in capacity.asks], axis=0)
    inside = np.zeros(len(victims), bool)
    inside[pool] = True
    together = victims.by_gang[(inside & ~victims.alone)[victims.by_gang]]
    gangs, rows = victims.gangs[together], victims.rows[together]
    first = np.flatnonzero(np.diff(gangs, prepend=-1) | np.diff(rows, prepend=-1))
    alone = pool[victims.alone[pool]]
    prices = np.bincount(victims.rows[alone], weights=costs.burdens[alone], minlength=len(every)) + np.bincount(
        rows[first], weights=costs.gang_burdens[gangs[first]], minlength=len(every)
    )
    useful = np.flatnonzero((gains > 0) | (any_row & (room_at_all > 0) & (prices > 0)))
    return useful[np.lexsort((useful, prices[useful] / np.maximum(gains[useful], 1)))]
