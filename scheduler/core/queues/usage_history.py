"""Usage history: what each queue used over time, older use counting for less.

A use that ended a half-life ago counts half. The average of a queue is 2^(−t/H) of what it was t seconds before, and
the rest of what it used meanwhile. With it the order gives the place of a queue that ran all night to those that did
not. It is the one place of queues with floating point: an error in the sixteenth digit moves nobody, and equal
histories give equal numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from model.queue import Cell
from scheduler.core.queues.shares import Amounts, Share, Use, dominant_share

_NOTHING = 1e-9
"""In base units; an average below it is forgotten."""


class UsageHistory:
    """Averages by queue and cell in base units. Times are seconds of one clock; one that goes back covers nothing."""

    def __init__(self, half_life_seconds: float) -> None:
        if half_life_seconds <= 0:
            raise ValueError("half_life_seconds must be above 0")
        self._half_life = half_life_seconds
        self._averages: dict[str, dict[Cell, float]] = {}
        self._used: dict[str, dict[Cell, int]] = {}
        self._at: float | None = None

    def observe(self, use: Use, now: float) -> None:
        """Once a turn: what was used since the last time is what that one saw. The first use counts as if for ever."""
        if self._at is None:
            self._averages = {name: {cell: float(amount) for cell, amount in of.items()} for name, of in use.items()}
        elif now > self._at:
            self._age(2.0 ** (-(now - self._at) / self._half_life))
        self._at = now if self._at is None else max(now, self._at)
        self._used = {name: dict(of) for name, of in use.items()}

    def restore(self, queue: str, average: Mapping[Cell, float], at: float) -> None:
        """What another process knew of it at that time; it used since what it uses now. After the first observation."""
        since = max(0.0, (at if self._at is None else self._at) - at)
        self._averages[queue] = dict(average)
        self._age_one(queue, 2.0 ** (-since / self._half_life))

    def average(self, queue: str) -> Mapping[Cell, float]:
        """Cell → average up to the last observation."""
        return self._averages.get(queue, {})

    def counted(self, queue: str, used: Amounts) -> Mapping[Cell, Fraction]:
        """The average, and in full what came since the last observation, so that a turn's own placements count."""
        average, before = self.average(queue), self._used.get(queue, {})
        return {
            cell: Fraction(max(0.0, average.get(cell, 0.0) + used.get(cell, 0) - before.get(cell, 0)))
            for cell in average.keys() | used.keys()
        }

    def share(self, queue: str, used: Amounts, totals: Amounts, weight: int = 1) -> Share:
        """The dominant share over time; `used` is what the queue uses at this moment."""
        return dominant_share(self.counted(queue, used), totals, weight)

    def _age(self, kept: float) -> None:
        for name in self._averages.keys() | self._used.keys():
            self._age_one(name, kept)
        self._averages = {name: of for name, of in self._averages.items() if of}

    def _age_one(self, name: str, kept: float) -> None:
        before, used = self._averages.get(name, {}), self._used.get(name, {})
        aged = {
            cell: used.get(cell, 0) + (before.get(cell, 0.0) - used.get(cell, 0)) * kept
            for cell in before.keys() | used.keys()
        }
        self._averages[name] = {cell: amount for cell, amount in aged.items() if amount > _NOTHING}
