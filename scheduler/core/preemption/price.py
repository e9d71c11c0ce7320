"""Prices of pods that may be evicted one by one: whole numbers whose sums compare as plans' costs do (see `costs`).

Each criterion is a digit of the number, as wide as its sum over all victims can become. Where that is too wide for 64
bits the numbers are Python's own. The highest priority is no digit: the victims to choose from are limited by it.
"""

from __future__ import annotations

import msgspec
import numpy as np

from scheduler.core.preemption.costs import NODE, VictimCosts
from scheduler.core.preemption.victims import OUTSIDE
from scheduler.core.snapshot.snapshot import Amounts, Mask

_MOST = 1 << 61


class Prices(msgspec.Struct, frozen=True, eq=False):
    """`each` of the victims asked about, `node` of one more node that loses pods; no sum comes to `never`.

    `dear` is above 0 where one weighs more than any number of others: 1 outside the bands, 2 breaking a budget, 3 both.
    Nobody is where all break one: fewer of them are cheaper then, whoever they are.
    """

    each: Amounts
    node: int
    never: int
    dear: Amounts


def prices(pool: Amounts, ranks: Amounts, costs: VictimCosts, most: int) -> Prices:
    """Of the pool's pods, of which at most so many go; `ranks` by importance decide where all else is equal."""
    outside = _if_mixed(costs.victims.ranks[pool] >= OUTSIDE)
    breaking = costs.budgets.pressed(pool, ranks)
    dear = np.zeros(len(pool), np.int64) if breaking.all() else outside + 2 * breaking
    # Outside the bands stands between the budgets and the number.
    pressed = breaking if outside.any() else _if_mixed(breaking)
    losses, priorities = costs.losses(pool), _levels(costs.priorities(pool))
    widths = [(int(losses.max(initial=0)) + NODE) * most + 1]
    widths += [int(digit.max(initial=0)) * most + 1 for digit in (priorities, np.ones(1, np.int64), outside, pressed)]
    units = np.cumprod([1, *widths], dtype=object).tolist()
    whole = units.pop()
    ties = len(pool) if whole >= _MOST else min(len(pool), _MOST // (whole * most))
    scale = max(1, ties * most)
    kind = np.int64 if whole * scale <= _MOST else object
    each = (ranks * ties // max(1, len(pool))).astype(kind)
    for digit, unit in zip((losses, priorities, np.ones_like(losses), outside, pressed), units, strict=True):
        each = each + digit.astype(kind) * (unit * scale)
    return Prices(each, NODE * scale, whole * scale, dear)


def _levels(priorities: Amounts) -> Amounts:
    """The priorities as small as they can be written with their differences in proportion."""
    above = priorities - priorities.min(initial=np.iinfo(np.int64).max)
    return np.asarray(above // max(1, int(np.gcd.reduce(above))))


def _if_mixed(mask: Mask) -> Mask:
    """Nobody where it is everybody: what all have in common is in their number."""
    return np.zeros(len(mask), bool) if mask.all() else mask
