"""Prices of pods that may be evicted one by one: whole numbers whose sums compare as plans' costs do (see `costs`).

Each criterion is a digit of the number, as wide as its sum over all victims can become. Where that is too wide for 64
bits the numbers are Python's own. The highest priority is no digit: the victims to choose from are limited by it.
"""

from __future__ import annotations

from itertools import takewhile

import msgspec
import numpy as np

from scheduler.core.preemption.costs import NODE, VictimCosts
from scheduler.core.preemption.victims import OUTSIDE
from scheduler.core.snapshot.snapshot import Amounts, Mask

_MOST = 1 << 61


class Prices(msgspec.Struct, frozen=True, eq=False):
    """`each` of the victims asked about, `node` of one more node that loses pods; no sum comes to `never`.

    `dear` is above 0 where one weighs more than any number of others, the higher the more: outside the bands, without
    whom a job does not go on, breaking a budget. Nobody is where all break one: fewer of them are cheaper then.
    """

    each: Amounts
    node: int
    never: int
    dear: Amounts


def prices(pool: Amounts, ranks: Amounts, costs: VictimCosts, most: int) -> Prices:
    """Of the pool's pods, of which at most so many go; `ranks` by importance decide where all else is equal."""
    victims, outside = costs.victims, costs.victims.ranks[pool] >= OUTSIDE
    ended = ~victims.spare[pool]
    masks = _telling([costs.budgets.pressed(pool, ranks), outside & ended, outside, ended])
    losses, priorities = costs.losses(pool), _levels(costs.priorities(pool))
    digits = (priorities, np.ones_like(losses), *reversed(masks))
    widths = [(int(losses.max(initial=0)) + NODE) * most + 1]
    widths += [int(digit.max(initial=0)) * most + 1 for digit in digits]
    units = np.cumprod([1, *widths], dtype=object).tolist()
    whole = units.pop()
    ties = len(pool) if whole >= _MOST else min(len(pool), _MOST // (whole * most))
    scale = max(1, ties * most)
    kind = np.int64 if whole * scale <= _MOST else object
    each = (ranks * ties // max(1, len(pool))).astype(kind)
    for digit, unit in zip((losses, *digits), units, strict=True):
        each = each + digit.astype(kind) * (unit * scale)
    return Prices(each, NODE * scale, whole * scale, _dear(masks, len(pool)))


def _levels(priorities: Amounts) -> Amounts:
    """The priorities as small as they can be written with their differences in proportion."""
    above = priorities - priorities.min(initial=np.iinfo(np.int64).max)
    return np.asarray(above // max(1, int(np.gcd.reduce(above))))


def _telling(masks: list[Mask]) -> list[Mask]:
    """Those of the masks, the weightiest first, that tell pods apart: what all have in common is in their number."""
    kept: list[Mask] = []
    for mask in masks:
        if mask.any() and not (kept and (mask == kept[-1]).all()):
            kept.append(mask)
    while kept and kept[-1].all():
        kept.pop()
    return kept


def _dear(masks: list[Mask], size: int) -> Amounts:
    """By the masks that weigh more than the number of pods does."""
    dear = np.zeros(size, np.int64)
    for mask in takewhile(lambda mask: not mask.all(), masks):
        dear = 2 * dear + mask
    return dear
