"""Trying it: would everybody needed find a place, all filters considered, if these victims were gone?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from scheduler.core.gang import Candidate
from scheduler.core.place import Placed, place
from scheduler.core.preemption.choose import rows_by_price
from scheduler.core.preemption.field import Field
from scheduler.core.preemption.groups import spread_to_gangs
from scheduler.core.preemption.spare import FEW_GROUPS, items_of, least_cost, spare, spare_in_bulk
from scheduler.core.preemption.stakes import Stakes
from scheduler.core.residents import Residents
from scheduler.core.scene import Scene, Seat
from scheduler.core.snapshot import Amounts

MOST_ROWS = 1_024
"""Rows that are cleared in thought, the cheapest first; kube-scheduler looks at a tenth of the nodes, 100 or more."""
_TRIES = 200


class Trial:
    """Remembers what it was asked; `scene` has lost already what is coming free by itself."""

    def __init__(self, scene: Scene, demand: Candidate, residents: Residents, stakes: Stakes) -> None:
        self._scene, self._demand = scene, demand
        self._residents, self._stakes = residents, stakes
        self._known: dict[frozenset[int], bool] = {}

    def without(self, chosen: Iterable[int]) -> Placed | None:
        """Where everybody needed goes once these are gone, None where they still do not fit."""
        scene = self._scene.what_if()
        scene.remove(seats_of(self._residents, [int(self._stakes.herd.slots[index]) for index in sorted(chosen)]))
        found = place(scene, self._demand)
        return found if isinstance(found, Placed) else None

    def fits(self, chosen: frozenset[int]) -> bool:
        if chosen not in self._known:
            self._known[chosen] = self.without(chosen) is not None
        return self._known[chosen]

    def spared(self, chosen: frozenset[int]) -> frozenset[int] | None:
        """Who must go of these, None where all of them are not enough."""
        return spare(chosen, self.fits, self._stakes) if self.fits(chosen) else None

    def cheapest(self, field: Field) -> frozenset[int] | None:
        """Victims that help, the lowest priorities first; of a cluster too large to try, among the cheapest rows."""
        weights = self._stakes.herd.weights
        ranked = rows_by_price(field, np.arange(len(weights)), self._stakes, any_row=True)[:MOST_ROWS]
        if self.without(self._touching(np.arange(len(weights)), ranked)) is None:
            return None
        for level in np.unique(weights).tolist():
            pool = np.flatnonzero(weights <= level)
            found = next(self._widening(field, pool), None)
            best = None if found is None else spare_in_bulk(found, self.fits, self._stakes)
            items = items_of(pool.tolist(), self._stakes) if len(pool) <= 4 * FEW_GROUPS else []
            if items and len(items) <= FEW_GROUPS:
                best = least_cost(items, self.fits, self._stakes, best, _TRIES)
            if best is not None:
                return best
        return None

    def _widening(self, field: Field, pool: Amounts) -> Iterator[frozenset[int]]:
        ranked, number = rows_by_price(field, pool, self._stakes, any_row=True)[:MOST_ROWS], field.want
        while len(ranked):
            chosen = self._touching(pool, ranked[:number])
            placed = self.without(chosen)
            if placed is not None:
                yield self._of_rows(chosen, {seat.row for seat in placed.seats})
            if number >= len(ranked):
                return
            number *= 2

    def _touching(self, pool: Amounts, rows: Amounts) -> frozenset[int]:
        """Those of the pool on the rows, and whoever goes with them."""
        touched = pool[np.isin(self._stakes.herd.rows[pool], rows)]
        return frozenset(spread_to_gangs(touched.tolist(), self._stakes))

    def _of_rows(self, chosen: frozenset[int], rows: set[int]) -> frozenset[int]:
        """Only those on the rows that are used, where that is enough."""
        herd = self._stakes.herd
        used = frozenset(spread_to_gangs((index for index in chosen if int(herd.rows[index]) in rows), self._stakes))
        return used if used < chosen and self.fits(used) else chosen


def seats_of(residents: Residents, slots: Iterable[int]) -> tuple[Seat, ...]:
    """Where these residents sit."""
    charges = ((slot, residents.charges[slot]) for slot in slots)
    return tuple(
        Seat(charge.uid, int(residents.rows[slot]), charge.pod_class, charge.kin)
        for slot, charge in charges
        if charge is not None
    )
