"""Pods that may be evicted one by one: which rows to clear how far, for one class of preemptors.

Each row makes an offer (so many victims for so many members, at which price), and offers are combined by dynamic
programming; a row that loses pods costs something by itself, so that few of them do.
Exact where all rows are looked at and the pods of a row are few; on large clusters only the most promising rows are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from functools import lru_cache
from itertools import accumulate, chain, combinations
from math import comb

import msgspec
import numpy as np

from scheduler.core.preemption.capacity import RoomRequest, room
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.price import Prices, prices
from scheduler.core.preemption.victims import Victims, sorted_by
from scheduler.core.snapshot.snapshot import Amounts, Mask

_FEWEST_ROWS = 32
_COMBINATIONS = 5_000
"""Sets of a row's pods that are compared one with another; beyond that the largest pods go first."""


class RowOption(msgspec.Struct, frozen=True, eq=False):
    """On `row`, with `base` members for nothing, so many more are had by evicting `order` up to `lengths`.

    `each` is the price of each pod in that order; `prices` are of all up to each length, the row's own included.
    `dear`: a smaller number of pods may cost more than a larger one.
    """

    row: int
    base: int
    order: Amounts
    each: Amounts
    dear: bool
    lengths: tuple[int, ...] = ()
    prices: tuple[int, ...] = ()


def clear_rows(
    ask: RoomRequest, free: Amounts, pool: Amounts, costs: VictimCosts, going: Collection[int] = ()
) -> list[int] | None:
    """Indexes of the pool whose going makes the ask fit, None where all of them are not enough.

    `going` are to go already, and what they free is in `free`; their nodes cost nothing more.
    """
    victims, every = costs.victims, np.arange(len(free))
    gone = np.array(sorted(going), np.int64)
    if len(gone):
        pool = pool[~np.isin(pool, gone)]
    base = room(ask, free, every)
    reach = room(ask, free + victims.freed(pool, len(free)), every)
    missing = ask.want - int(base.sum())
    if missing <= 0:
        return []
    if int(reach.sum()) < ask.want:
        return None
    rows = _promising(ask, free, pool, costs, (base, reach, missing))
    offers, priced = _offers(
        ask, free, pool[np.isin(victims.rows[pool], rows)], costs, frozenset(victims.rows[gone].tolist())
    )
    bought = _buy(offers, missing, np.full(missing + 1, priced.never, priced.each.dtype))
    return [index for offer, extra in bought for index in _of_row(ask, free, offer, extra, victims)]


def _promising(
    ask: RoomRequest, free: Amounts, pool: Amounts, costs: VictimCosts, reaches: tuple[Amounts, Amounts, int]
) -> Amounts:
    """Rows that gain, the fewest victims a member first, until they hold what is missing several times over."""
    base, reach, missing = reaches
    victims = costs.victims
    rows = np.flatnonzero(reach > base)
    if len(rows) <= _FEWEST_ROWS:
        return rows
    order = sorted_by(victims.rows, pool)
    own = victims.rows[order]
    starts = np.searchsorted(own, rows)
    first, last = base[rows] + 1, np.minimum(reach[rows], base[rows] + missing)
    each = np.ones(len(rows)), np.ones(len(rows))
    for column in np.flatnonzero(ask.request):
        largest = _largest(victims.amounts[order, column], own, rows, starts)
        for number, least in zip((first, last), each, strict=True):
            deficit = number * ask.request[column] - free[rows, column]
            np.maximum(least, np.ceil(deficit / np.maximum(largest, 1)), out=least)
    per_member = np.minimum(each[0], each[1] / (last - base[rows]))
    counts = np.maximum(np.bincount(own, minlength=len(free))[rows], 1)
    means = np.bincount(own, weights=victims.weights[order], minlength=len(free))[rows] / counts
    gains = np.minimum(last - base[rows], missing)
    shares = [_tenths(mask[order], own, rows, counts) for mask in costs.protected]
    ranked = rows[np.lexsort((rows, -gains, means, per_member, *shares))]
    enough = int(np.searchsorted(np.cumsum(np.minimum(reach - base, missing)[ranked]), 3 * missing)) + 1
    return np.sort(ranked[: max(enough, _FEWEST_ROWS)])


def _largest(amounts: Amounts, own: Amounts, rows: Amounts, starts: Amounts) -> Amounts:
    """The largest amount on each of the rows, 0 on one without any; `own` is ascending."""
    if not len(amounts):
        return np.zeros(len(rows), np.int64)
    inside = np.minimum(starts, len(own) - 1)
    kept = own[inside] == rows
    found = np.zeros(len(rows), np.int64)
    edges = np.flatnonzero(np.diff(own, prepend=-1))
    peaks = np.maximum.reduceat(amounts, edges)
    found[kept] = peaks[np.searchsorted(own[edges], rows[kept])]
    return found


def _tenths(mask: Mask, own: Amounts, rows: Amounts, counts: Amounts) -> Amounts:
    """The share of it on each of the rows, in whole tenths."""
    return np.asarray(np.bincount(own, weights=mask, minlength=int(rows[-1]) + 1)[rows] * 10 // counts)


def _offers(
    ask: RoomRequest, free: Amounts, pool: Amounts, costs: VictimCosts, touched: frozenset[int]
) -> tuple[list[RowOption], Prices]:
    """One of each row, and by which prices."""
    victims, ranks = costs.victims, costs.ranks(pool)
    most = min(len(pool), ask.want * int(np.bincount(victims.rows[pool]).max()))
    priced = prices(pool, ranks, costs, most)
    order = np.lexsort((ranks, -_sizes(ask, free, pool, victims), priced.dear, victims.rows[pool]))
    chosen, each, dear = pool[order], priced.each[order], priced.dear[order]
    rows = victims.rows[chosen]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = [*starts[1:].tolist(), len(rows)]
    bases = room(ask, free[rows[starts]], rows[starts]).tolist()
    reached = room(ask, free[rows] + _running(victims.amounts[chosen], starts), rows).tolist()
    steps = _running(each, starts).tolist()
    offers = []
    for start, end, base in zip(starts.tolist(), ends, bases, strict=True):
        row, own = int(rows[start]), slice(start, end)
        last = min(reached[end - 1], base + ask.want)
        lengths = tuple(bisect_left(reached, number, start, end) - start + 1 for number in range(base + 1, last + 1))
        once = 0 if row in touched else priced.node
        asked = tuple(once + steps[start + length - 1] for length in lengths)
        offers.append(RowOption(row, base, chosen[own], each[own], bool(dear[own].any()), lengths, asked))
    return offers, priced


def _running(amounts: Amounts, starts: Amounts) -> Amounts:
    """Sums of all up to each, again from each start on; right where they are in range themselves (sums wrap around)."""
    sums = np.cumsum(amounts, axis=0)
    before = np.concatenate([np.zeros_like(sums[:1]), sums[starts[1:] - 1]])
    return np.asarray(sums - np.repeat(before, np.diff(starts, append=len(sums)), axis=0))


def _sizes(ask: RoomRequest, free: Amounts, pool: Amounts, victims: Victims) -> Amounts:
    """How much of the next member's deficit each pod covers, in millionths summed over columns."""
    rows = victims.rows[pool]
    base = room(ask, free[rows], rows)
    sizes = np.zeros(len(pool))
    for column in np.flatnonzero(ask.request):
        deficit = (base + 1) * ask.request[column] - free[rows, column]
        share = np.minimum(victims.amounts[pool, column] / np.maximum(deficit, 1), 1.0)
        sizes += np.where(deficit > 0, share, 0.0)
    return np.asarray((sizes * 1e6).astype(np.int64))


def _buy(offers: list[RowOption], missing: int, best: Amounts) -> list[tuple[RowOption, int]]:
    """How many further members to buy on which row, at the lowest sum of prices; `best` are sums no plan comes to."""
    best[0] = 0
    choices = np.zeros((len(offers), missing + 1), np.int64)
    for number, offer in enumerate(offers):
        before = best.copy()
        for extra, price in enumerate(offer.prices[:missing], 1):
            sums = before[:-extra] + price
            better = sums < best[extra:]
            best[extra:][better] = sums[better]
            choices[number, extra:][better] = extra
    bought, left = [], missing
    for number in range(len(offers) - 1, -1, -1):
        extra = int(choices[number, left])
        if extra:
            bought.append((offers[number], extra))
            left -= extra
    return bought


def _of_row(ask: RoomRequest, free: Amounts, offer: RowOption, extra: int, victims: Victims) -> list[int]:
    """The cheapest set on the row for so many further members, as far as sets can be compared one by one."""
    greedy = np.arange(offer.lengths[extra - 1])
    deficit = (offer.base + extra) * ask.request - free[offer.row]
    deficit = np.where(ask.request > 0, deficit, 0).clip(min=0)
    sizes = np.minimum(victims.amounts[offer.order], deficit)
    best = greedy
    if not (sizes == sizes[0]).all():
        for number in range(_least_number(sizes, deficit), len(greedy) + 1):
            if comb(len(sizes), number) > _COMBINATIONS:
                break
            found = _cheapest_set(offer, sizes, number, deficit)
            if found is not None and offer.each[found].sum() < offer.each[best].sum():
                best = found
            if found is not None and not offer.dear:
                break
    return [int(index) for index in offer.order[best]]


def _least_number(sizes: Amounts, deficit: Amounts) -> int:
    """No fewer pods than this cover the deficit."""
    least = 1
    for column in np.flatnonzero(deficit).tolist():
        covered = list(accumulate(sorted(sizes[:, column].tolist(), reverse=True)))
        least = max(least, 1 + bisect_left(covered, int(deficit[column])))
    return least


def _cheapest_set(offer: RowOption, sizes: Amounts, number: int, deficit: Amounts) -> Amounts | None:
    """Positions of the least costly set of so many pods that covers the deficit, None where none does."""
    sets = _sets(len(sizes), number)
    enough = np.ones(len(sets), bool)
    for column in np.flatnonzero(deficit):
        enough &= _summed(sizes[:, column], sets) >= deficit[column]
    covering = sets[enough]
    return np.asarray(covering[int(_summed(offer.each, covering).argmin())]) if len(covering) else None


def _summed(amounts: Amounts, sets: Amounts) -> Amounts:
    """Of each set; a column at a time, since sums along short lines are slow."""
    sums = amounts.take(sets[:, 0])
    for column in range(1, sets.shape[1]):
        sums += amounts.take(sets[:, column])
    return sums


@lru_cache(maxsize=64)
def _sets(size: int, number: int) -> Amounts:
    """All sets of so many out of so many, one a line."""
    flat = chain.from_iterable(combinations(range(size), number))
    found = np.fromiter(flat, np.int64, comb(size, number) * number).reshape(-1, number)
    return np.asfortranarray(found)  # they are read a column at a time
