"""Whom to evict where only amounts decide: several ways to choose, each then freed of whom it does not need.

Victims are looked for among those up to a level of priority, the lowest first, and of the plans of the first level that
helps the cheapest is taken (see `stakes`); only to break fewer disruption budgets may others of higher priority go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from scheduler.core.picture.snapshot import Amounts
from scheduler.core.preemption.capacity import Ask, Balance, Field, room, taken, useful_rows
from scheduler.core.preemption.costs import Stakes
from scheduler.core.preemption.gang_cover import cover_with_gangs
from scheduler.core.preemption.reprieve import FEW_GROUPS, Fits, items_of, least_cost, spare
from scheduler.core.preemption.rows import clear_rows
from scheduler.core.preemption.victim_groups import one_by_one, put_back_first, spread_to_gangs
from scheduler.core.preemption.victims import OUTSIDE, Herd

_TRIES = 1_000


def levels(field: Field, herd: Herd) -> list[int]:
    """Weights up to which victims would be enough, ascending; empty where not even all of them are."""
    found = herd.opened.weights
    low, high = 0, len(found)
    while low < high:
        middle = (low + high) // 2
        if _enough(field, herd, found[middle]):
            high = middle
        else:
            low = middle + 1
    return list(found[low:])


def cheapest(field: Field, stakes: Stakes) -> frozenset[int] | None:
    """The victims after whose going everything fits, None where no choice does that."""
    return lowest(levels(field, stakes.herd), lambda level: _up_to(level, field, stakes), stakes)


def lowest(
    levels: Sequence[int], up_to: Callable[[int], frozenset[int] | None], stakes: Stakes
) -> frozenset[int] | None:
    """The plan of the lowest level that has one; of a higher one where that breaks fewer disruption budgets.

    `up_to` plans with victims up to a level. A level of pods outside the bands is no help to budgets.
    """
    found = ((number, plan) for number, level in enumerate(levels) if (plan := up_to(level)) is not None)
    number, plan = next(found, (0, None))
    if plan is None or not stakes.violating(plan):
        return plan
    higher = [level for level in levels[number + 1 :] if level < OUTSIDE or levels[number] >= OUTSIDE]
    best = up_to(higher[-1]) if higher else None
    if best is None or len(stakes.violating(best)) >= len(stakes.violating(plan)):
        return plan
    fewest = len(stakes.violating(best))
    low, high = 0, len(higher) - 1
    while low < high:
        middle = (low + high) // 2
        plan = up_to(higher[middle])
        if plan is not None and len(stakes.violating(plan)) <= fewest:
            best, high = min(plan, best, key=stakes.cost), middle
        else:
            low = middle + 1
    return best


def _up_to(level: int, field: Field, stakes: Stakes) -> frozenset[int] | None:
    pool = np.flatnonzero(stakes.herd.weights <= level)
    fits = fits_of(field, stakes.herd)
    found = [_spare(field, chosen, fits, stakes) for chosen in _choices(field, pool, stakes)]
    best = stakes.cheapest(found)
    items = items_of(pool.tolist(), stakes) if len(pool) <= 4 * FEW_GROUPS else []
    return least_cost(items, fits, stakes, best, _TRIES) if items and len(items) <= FEW_GROUPS else best


def fits_of(field: Field, herd: Herd) -> Fits:
    """Asks by looking at the rows that have room and those of the victims alone."""
    useful = useful_rows(field)

    def fits(chosen: frozenset[int]) -> bool:
        indexes = np.array(sorted(chosen), np.int64)
        rows = _united(useful, herd.rows[indexes], len(field.free))
        left = field.free[rows]
        np.add.at(left, np.searchsorted(rows, herd.rows[indexes]), herd.amounts[indexes])
        return field.fits(left, rows)

    return fits


def _spare(field: Field, chosen: set[int], fits: Fits, stakes: Stakes) -> frozenset[int]:
    """Who must go of the chosen."""
    if len(field.asks) > 1:
        return spare(chosen, fits, stakes)
    herd, indexes = stakes.herd, np.array(sorted(chosen), np.int64)
    rows = _united(useful_rows(field), herd.rows[indexes], len(field.free))
    left = field.free[rows]
    np.add.at(left, np.searchsorted(rows, herd.rows[indexes]), herd.amounts[indexes])
    balance, going = Balance(field.asks[0], left, rows), set(chosen)
    groups = put_back_first(chosen, stakes)
    order = [index for group in groups for index in group]
    victims = zip(herd.rows[order].tolist(), herd.amounts[order].tolist(), strict=True)
    for group in groups:
        if balance.put_back(list(islice(victims, len(group)))):
            going.difference_update(group)
    return frozenset(going)


def _united(some: Amounts, others: Amounts, size: int) -> Amounts:
    """The rows (of `size`) in either, ascending."""
    inside = np.zeros(size, bool)
    inside[some] = inside[others] = True
    return np.flatnonzero(inside)


def _enough(field: Field, herd: Herd, level: int) -> bool:
    free = field.free + herd.freed(np.flatnonzero(herd.weights <= level), len(field.free))
    return field.fits(free, np.arange(len(free)))


def _choices(field: Field, pool: Amounts, stakes: Stakes) -> Iterator[set[int]]:
    singles = one_by_one(pool, stakes)
    chosen = _singles(field, singles, stakes)
    if chosen is not None:
        yield chosen
    if len(singles) == len(pool):
        return
    covered = cover_with_gangs(field, pool, singles, stakes)
    if covered is not None and covered != chosen:
        yield covered
    if chosen is None and covered is None:
        yield from widening(field, pool, stakes)


def _singles(field: Field, singles: Amounts, stakes: Stakes) -> set[int] | None:
    """Class after class, each finding what those before it left."""
    free, chosen = field.free.copy(), set[int]()
    for ask in field.asks:
        found = clear_rows(ask, free, singles, stakes, chosen)
        if found is None:
            return None
        free += stakes.herd.freed(np.array(found, np.int64), len(free))
        chosen.update(found)
        free -= _seats(ask, free)
    return chosen


def _seats(ask: Ask, free: Amounts) -> Amounts:
    got = taken(ask, room(ask, free, np.arange(len(free))))
    return np.asarray(got[:, None] * ask.request[None, :])


def widening(field: Field, pool: Amounts, stakes: Stakes) -> Iterator[set[int]]:
    """Everybody who must go to clear the cheapest rows, twice as many rows each time; ends where all rows are clear."""
    ranked, number = rows_by_price(field, pool, stakes), 1
    fits = fits_of(field, stakes.herd)
    while number < 2 * len(ranked):
        cleared = np.zeros(len(field.free), bool)
        cleared[ranked[:number]] = True
        touched = pool[cleared[stakes.herd.rows[pool]]]
        chosen = spread_to_gangs(touched.tolist(), pool, stakes)
        if fits(frozenset(chosen)):
            yield chosen
            return
        number *= 2


def rows_by_price(field: Field, pool: Amounts, stakes: Stakes, *, any_row: bool = False) -> Amounts:
    """Rows that gain room, the lightest burden a pod gained first; a gang counts whole on each of its rows.

    `any_row`: those with room already too, since something other than amounts may be in the way there.
    """
    herd, every = stakes.herd, np.arange(len(field.free))
    freed = field.free + herd.freed(pool, len(every))
    room_at_all = np.sum([room(ask, freed, every) for ask in field.asks], axis=0)
    gains = room_at_all - np.sum([room(ask, field.free, every) for ask in field.asks], axis=0)
    inside = np.zeros(len(herd), bool)
    inside[pool] = True
    together = herd.by_gang[(inside & ~herd.alone)[herd.by_gang]]
    gangs, rows = herd.gangs[together], herd.rows[together]
    first = np.flatnonzero(np.diff(gangs, prepend=-1) | np.diff(rows, prepend=-1))
    alone = pool[herd.alone[pool]]
    prices = np.bincount(herd.rows[alone], weights=stakes.burdens[alone], minlength=len(every)) + np.bincount(
        rows[first], weights=stakes.gang_burdens[gangs[first]], minlength=len(every)
    )
    useful = np.flatnonzero((gains > 0) | (any_row & (room_at_all > 0) & (prices > 0)))
    return useful[np.lexsort((useful, prices[useful] / np.maximum(gains[useful], 1)))]
