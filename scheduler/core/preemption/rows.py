"""Pods that may go one by one: which rows to clear how far, for one class of preemptors.

Each row gets a price list (so many victims for so many members), and the lists are combined by dynamic programming.
Exact where all rows are looked at and the pods of a row are few; on large clusters only the most promising rows are.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate, chain, combinations
from math import comb

import msgspec
import numpy as np

from scheduler.core.preemption.field import Ask, room
from scheduler.core.preemption.herd import Herd, sorted_by
from scheduler.core.preemption.stakes import Stakes
from scheduler.core.snapshot import Amounts

_FEWEST_ROWS = 32
_COMBINATIONS = 5_000
"""Sets of a row's pods that are compared one with another; beyond that the largest pods go first."""
_GUARDED, _VICTIM = 1 << 50, 1 << 36
"""Price of breaking a budget and of one more victim; what is below breaks ties."""
_NEVER = np.int64(1 << 61)


class Prices(msgspec.Struct, frozen=True, eq=False):
    """On `row`, with `base` members for nothing, so many more are had by evicting `order` up to `lengths`.

    `weights` of the pods in that order: broken budgets first, then priority; `ties` decide among equals.
    """

    row: int
    base: int
    order: Amounts
    weights: Amounts
    ties: Amounts
    lengths: tuple[int, ...] = ()
    prices: tuple[int, ...] = ()


def clear_rows(ask: Ask, free: Amounts, pool: Amounts, stakes: Stakes) -> list[int] | None:
    """Indexes of the pool whose going makes the ask fit, None where all of them are not enough."""
    herd, every = stakes.herd, np.arange(len(free))
    base = room(ask, free, every)
    reach = room(ask, free + herd.freed(pool, len(free)), every)
    missing = ask.want - int(base.sum())
    if missing <= 0:
        return []
    if int(reach.sum()) < ask.want:
        return None
    rows = _promising(ask, free, pool, stakes, (base, reach, missing))
    lists = _price_lists(ask, free, pool[np.isin(herd.rows[pool], rows)], stakes)
    bought = _buy(lists, missing)
    return [index for prices, extra in bought for index in _of_row(ask, free, prices, extra, herd)]


def _promising(
    ask: Ask, free: Amounts, pool: Amounts, stakes: Stakes, reaches: tuple[Amounts, Amounts, int]
) -> Amounts:
    """Rows that gain, the fewest victims a member first, until they hold what is missing several times over."""
    base, reach, missing = reaches
    herd = stakes.herd
    rows = np.flatnonzero(reach > base)
    if len(rows) <= _FEWEST_ROWS:
        return rows
    order = sorted_by(herd.rows, pool)
    own = herd.rows[order]
    starts = np.searchsorted(own, rows)
    first, last = base[rows] + 1, np.minimum(reach[rows], base[rows] + missing)
    each = np.ones(len(rows)), np.ones(len(rows))
    for column in np.flatnonzero(ask.request):
        largest = _largest(herd.amounts[order, column], own, rows, starts)
        for number, least in zip((first, last), each, strict=True):
            deficit = number * ask.request[column] - free[rows, column]
            np.maximum(least, np.ceil(deficit / np.maximum(largest, 1)), out=least)
    per_member = np.minimum(each[0], each[1] / (last - base[rows]))
    guarded = _guarded_share(stakes, order, own, rows)
    counts = np.bincount(own, minlength=len(free))[rows]
    means = np.bincount(own, weights=herd.weights[order], minlength=len(free))[rows] / np.maximum(counts, 1)
    ranked = rows[np.lexsort((rows, means, per_member, guarded))]
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


def _guarded_share(stakes: Stakes, order: Amounts, own: Amounts, rows: Amounts) -> Amounts:
    """Per row how many of its pods no budget lets go, in whole tenths of them."""
    if not stakes.watched:
        return np.zeros(len(rows), np.int64)
    guarded = stakes.guarded(order).astype(float)
    width = int(own.max()) + 1
    share = np.bincount(own, weights=guarded, minlength=width) / np.maximum(np.bincount(own, minlength=width), 1)
    return np.asarray((share * 10).astype(np.int64)[rows])


def _price_lists(ask: Ask, free: Amounts, pool: Amounts, stakes: Stakes) -> list[Prices]:
    herd = stakes.herd
    if not len(pool):
        return []
    ties = _ties(pool, stakes)
    guarded = stakes.guarded(pool)
    sizes = _sizes(ask, free, pool, herd)
    order = np.lexsort((ties, -sizes, guarded, herd.rows[pool]))
    chosen, ties, guarded = pool[order], ties[order], guarded[order]
    rows = herd.rows[chosen]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = [*starts[1:].tolist(), len(rows)]
    bases = room(ask, free[rows[starts]], rows[starts]).tolist()
    reached = room(ask, free[rows] + _running(herd.amounts[chosen], starts), rows).tolist()
    weights = guarded * _GUARDED + herd.weights[chosen]
    steps = _running(guarded * _GUARDED + _VICTIM + ties, starts).tolist()
    lists = []
    for start, end, base in zip(starts.tolist(), ends, bases, strict=True):
        last = min(reached[end - 1], base + ask.want)
        lengths = tuple(bisect_left(reached, number, start, end) - start + 1 for number in range(base + 1, last + 1))
        prices = tuple(steps[start + length - 1] for length in lengths)
        own = slice(start, end)
        lists.append(Prices(int(rows[start]), base, chosen[own], weights[own], ties[own], lengths, prices))
    return lists


def _running(amounts: Amounts, starts: Amounts) -> Amounts:
    """Sums of all up to each, anew from each start on; right where they are in range themselves (sums wrap around)."""
    sums = np.cumsum(amounts, axis=0)
    before = np.concatenate([np.zeros_like(sums[:1]), sums[starts[1:] - 1]])
    return np.asarray(sums - np.repeat(before, np.diff(starts, append=len(sums)), axis=0))


def _ties(pool: Amounts, stakes: Stakes) -> Amounts:
    """Rank by importance, spread over 20 bits, so that no sum of a thousand of them is worth a victim."""
    return np.asarray(stakes.ranks(pool) * (1 << 20) // max(len(pool), 1))


def _sizes(ask: Ask, free: Amounts, pool: Amounts, herd: Herd) -> Amounts:
    """How much of the next member's deficit each pod covers, in millionths summed over columns."""
    rows = herd.rows[pool]
    base = room(ask, free[rows], rows)
    sizes = np.zeros(len(pool))
    for column in np.flatnonzero(ask.request):
        deficit = (base + 1) * ask.request[column] - free[rows, column]
        share = np.minimum(herd.amounts[pool, column] / np.maximum(deficit, 1), 1.0)
        sizes += np.where(deficit > 0, share, 0.0)
    return np.asarray((sizes * 1e6).astype(np.int64))


def _buy(lists: list[Prices], missing: int) -> list[tuple[Prices, int]]:
    """How many further members to buy on which row, at the lowest sum of prices."""
    best = np.full(missing + 1, _NEVER)
    best[0] = 0
    choices = np.zeros((len(lists), missing + 1), np.int64)
    for number, prices in enumerate(lists):
        before = best.copy()
        for extra, price in enumerate(prices.prices[:missing], 1):
            offer = before[:-extra] + price
            better = offer < best[extra:]
            best[extra:][better] = offer[better]
            choices[number, extra:][better] = extra
    bought, left = [], missing
    for number in range(len(lists) - 1, -1, -1):
        extra = int(choices[number, left])
        if extra:
            bought.append((lists[number], extra))
            left -= extra
    return bought


def _of_row(ask: Ask, free: Amounts, prices: Prices, extra: int, herd: Herd) -> list[int]:
    """The cheapest set on the row for so many further members, as far as sets can be compared one by one."""
    greedy = prices.order[: prices.lengths[extra - 1]]
    deficit = (prices.base + extra) * ask.request - free[prices.row]
    deficit = np.where(ask.request > 0, deficit, 0).clip(min=0)
    sizes = np.minimum(herd.amounts[prices.order], deficit)
    if (sizes == sizes[0]).all():
        return [int(index) for index in greedy]
    for number in range(_least_number(sizes, deficit), len(greedy) + 1):
        if comb(len(sizes), number) > _COMBINATIONS:
            break
        found = _cheapest_set(prices, sizes, number, deficit)
        if found:
            return found
    return [int(index) for index in greedy]


def _least_number(sizes: Amounts, deficit: Amounts) -> int:
    """No fewer pods than this cover the deficit."""
    least = 1
    for column in np.flatnonzero(deficit).tolist():
        covered = list(accumulate(sorted(sizes[:, column].tolist(), reverse=True)))
        least = max(least, 1 + bisect_left(covered, int(deficit[column])))
    return least


def _cheapest_set(prices: Prices, sizes: Amounts, number: int, deficit: Amounts) -> list[int]:
    """The least costly set of so many pods that covers the deficit, empty where none does."""
    sets = _sets(len(sizes), number)
    enough = np.ones(len(sets), bool)
    for column in np.flatnonzero(deficit):
        enough &= _summed(sizes[:, column], sets) >= deficit[column]
    covering = sets[enough]
    if not len(covering):
        return []
    weights = _summed(prices.weights, covering)
    covering = covering[weights == weights.min()]
    first = int(_summed(prices.ties, covering).argmin())
    return [int(index) for index in prices.order[covering[first]]]


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
