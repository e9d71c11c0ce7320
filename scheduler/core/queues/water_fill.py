"""Water-filling: a capacity divided by weight among claimants, none below its base and none above its cap.

One level L rises until the capacity is used up: x = min(cap, base + weight · L), or with the base as a floor
x = clamp(weight · L, base, cap). What a claimant cannot use goes to the others. Whole units by largest remainder, ties
by position. All arithmetic is of integers, so that two equal claims never differ by a rounding error. The steps are
those by which CSS resolves flexible lengths: fix those that leave their bounds on the side that outweighs, and divide
the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Claimant(msgspec.Struct, frozen=True, gc=False):
    """What one may have: at least `base`, at most `cap` (None: no bound), between them by `weight`.

    A weight of 0 gets what those with a weight leave. `cap` below `base` counts as `base`.
    """

    base: int = 0
    cap: int | None = None
    weight: int = 1


def fill(capacity: int, claimants: Sequence[Claimant], *, added: bool = True) -> tuple[int, ...]:
    """How much each gets; together min(capacity, Σ caps).

    `added`: the part by weight comes on top of the base; else the base is a floor under it. Bases that exceed the
    capacity are scaled down in proportion.
    """
    capacity = max(0, capacity)
    bases = [one.base for one in claimants]
    spare = capacity - sum(bases)
    if spare <= 0:
        return tuple(_in_proportion(capacity, bases))
    caps = [None if one.cap is None else max(one.cap, one.base) for one in claimants]
    known = [cap for cap in caps if cap is not None]
    if len(known) == len(caps) and sum(known) <= capacity:
        return tuple(known)
    weights = [one.weight for one in claimants]
    if added:
        tops = [None if cap is None else cap - base for cap, base in zip(caps, bases, strict=True)]
        extra = _level(spare, [0] * len(bases), tops, weights)
        return tuple(base + more for base, more in zip(bases, extra, strict=True))
    return tuple(_level(capacity, bases, caps, weights))


def _level(capacity: int, lows: Sequence[int], tops: Sequence[int | None], weights: Sequence[int]) -> list[int]:
    """clamp(weight · L, low, top) for all, summing to the capacity, which is at least Σ lows and at most Σ tops."""
    got = list(lows)
    open_ = [at for at, weight in enumerate(weights) if weight > 0]
    rest = capacity - sum(lows[at] for at, weight in enumerate(weights) if weight <= 0)
    while open_:
        total = sum(weights[at] for at in open_)
        low, high, balance = [], [], 0
        for at in open_:
            ideal, top = weights[at] * rest, tops[at]
            if ideal < lows[at] * total:
                low.append(at)
                balance += lows[at] * total - ideal
            elif top is not None and ideal > top * total:
                high.append(at)
                balance += top * total - ideal
        if not low and not high:
            parts = _in_proportion(rest, [weights[at] for at in open_])
            for at, part in zip(open_, parts, strict=True):
                got[at] = part
            return got
        for at in low if balance >= 0 else ():
            got[at] = lows[at]
        for at in high if balance <= 0 else ():
            got[at] = tops[at] or 0
        fixed = {*(low if balance >= 0 else ()), *(high if balance <= 0 else ())}
        rest -= sum(got[at] for at in fixed)
        open_ = [at for at in open_ if at not in fixed]
    return _left_to_weightless(capacity - sum(got), got, tops, weights)


def _left_to_weightless(left: int, got: list[int], tops: Sequence[int | None], weights: Sequence[int]) -> list[int]:
    """What those with a weight leave, in equal parts to those without one."""
    without = [at for at, weight in enumerate(weights) if weight <= 0]
    if left <= 0 or not without:
        return got
    more = fill(left, [Claimant(0, None if (top := tops[at]) is None else top - got[at]) for at in without])
    for at, part in zip(without, more, strict=True):
        got[at] += part
    return got


def _in_proportion(amount: int, parts: Sequence[int]) -> list[int]:
    """The amount in proportion to the parts, whole units by largest remainder, ties by position."""
    total = sum(parts)
    if total <= 0:
        return [0] * len(parts)
    got, remainders = [], []
    for at, part in enumerate(parts):
        whole, remainder = divmod(amount * part, total)
        got.append(whole)
        if remainder:
            remainders.append((-remainder, at))
    missing = amount - sum(got)
    if missing:
        for _, at in sorted(remainders)[:missing]:
            got[at] += 1
    return got
