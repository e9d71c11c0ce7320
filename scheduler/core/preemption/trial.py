"""Trying it: would everybody needed find a place, all filters considered, if these victims were gone?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.residents import Residents
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.preemption.capacity import Capacity
from scheduler.core.preemption.choose import lowest, rows_by_price
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.reprieve import FEW_GROUPS, Fits, items_of, least_cost, reprieve, reprieve_in_bulk
from scheduler.core.preemption.terminating import FreedRoom, KinRelevance, vacate
from scheduler.core.preemption.victim_groups import put_back_first, spread_to_gangs
from scheduler.core.snapshot.snapshot import Amounts

MOST_ROWS = 1_024
"""Rows that are cleared in thought, the cheapest first; kube-scheduler looks at a tenth of the nodes, 100 or more."""
_TRIES = 200
_MEMBERS_TRIED, _LEAST_TRIES = 256, 4
"""How often everybody is placed again to see whether one victim fewer does: less often for larger gangs."""
_ASKS, _LEAST_PLACED = 1_024, 4
"""Asks to filters (`Candidate.asks`) by which one search places everybody again; at least so many times."""


class Trial:
    """Remembers what it was asked; `working` has lost already what is coming free by itself."""

    def __init__(
        self,
        working: WorkingSnapshot,
        demand: Candidate,
        residents: Residents,
        costs: VictimCosts,
        relevant: KinRelevance,
    ) -> None:
        self._working, self._demand = working, demand
        self._residents, self._costs, self._relevant = residents, costs, relevant
        self._known: dict[frozenset[int], Placed | None] = {}
        self._left = max(_LEAST_PLACED, _ASKS // max(demand.asks, 1))

    @property
    def spent(self) -> bool:
        """Whether nothing else is tried."""
        return self._left <= 0

    def without(self, chosen: Iterable[int]) -> Placed | None:
        """Where everybody needed goes once these are gone; None where they still do not fit, or too much was tried."""
        gone = frozenset(chosen)
        if gone not in self._known and not self.spent:
            self._left -= 1
            self._known[gone] = self._placed(gone)
        return self._known.get(gone)

    def _placed(self, gone: frozenset[int]) -> Placed | None:
        working = self._working.what_if(silent=True)
        vacate(working, self._residents, self._costs.victims.slots[sorted(gone)], self._relevant)
        found = place(working, self._demand)
        return found if isinstance(found, Placed) else None

    def fits(self, chosen: frozenset[int]) -> bool:
        return self.without(chosen) is not None

    def reprieved(self, chosen: frozenset[int]) -> frozenset[int] | None:
        """The needed victims of these, None where all of them are not enough."""
        if not self.fits(chosen):
            return None
        return reprieve(self._around_assignments(chosen), self._a_few(), self._costs)

    def cheapest(self, capacity: Capacity) -> frozenset[int] | None:
        """Victims that help, the lowest priorities first; of a cluster too large to try, among the cheapest rows."""
        every = np.arange(len(self._costs.victims))
        ranked = rows_by_price(capacity, every, self._costs, any_row=True)[:MOST_ROWS]
        if self.without(self._touching(every, ranked)) is None:
            return None
        return lowest(self._costs.victims.opened.weights, lambda level: self._up_to(level, capacity), self._costs)

    def _up_to(self, level: int, capacity: Capacity) -> frozenset[int] | None:
        pool = np.flatnonzero(self._costs.victims.weights <= level)
        found = next(self._widening(capacity, pool), None)
        best = None if found is None else reprieve_in_bulk(self._around_assignments(found), self._a_few(), self._costs)
        items = items_of(pool.tolist(), self._costs) if len(pool) <= 4 * FEW_GROUPS else []
        if items and len(items) <= FEW_GROUPS:
            return least_cost(items, self.fits, self._costs, best, _TRIES)
        return best

    def _a_few(self) -> Fits:
        """`fits` for so many members in all, then False: what is not asked any more counts as needed."""
        left = max(_LEAST_TRIES, _MEMBERS_TRIED // max(self._demand.pending, 1))

        def fits(chosen: frozenset[int]) -> bool:
            nonlocal left
            if chosen not in self._known:
                left -= 1
            return left >= 0 and self.fits(chosen)

        return fits

    def _around_assignments(self, chosen: frozenset[int]) -> frozenset[int]:
        """Without those beside whom the assignments just found still have room; all where that proves wrong."""
        placed = self.without(chosen)
        if placed is None:
            return chosen
        beside = FreedRoom(self._working, self._demand, placed, self._residents.class_requests)
        slots, victims = self._residents, self._costs.victims
        lines = {index: int(slots.classes[victims.slots[index]]) for index in chosen}
        for index in chosen:
            beside.leaves(int(victims.rows[index]), lines[index])
        going = set(chosen)
        for group in put_back_first(chosen, self._costs):
            if not any(self._heeded(index) for index in group) and beside.put_back(
                [(int(victims.rows[index]), lines[index]) for index in group]
            ):
                going.difference_update(group)
        fewer = frozenset(going)
        return fewer if self.fits(fewer) else chosen

    def _heeded(self, index: int) -> bool:
        charge = self._residents.charges[int(self._costs.victims.slots[index])]
        return charge is None or self._relevant(charge.pod_traits)

    def _widening(self, capacity: Capacity, pool: Amounts) -> Iterator[frozenset[int]]:
        ranked, number = rows_by_price(capacity, pool, self._costs, any_row=True)[:MOST_ROWS], capacity.want
        while len(ranked):
            chosen = self._touching(pool, ranked[:number])
            placed = self.without(chosen)
            if placed is not None:
                yield self._of_rows(chosen, {assignment.row for assignment in placed.assignments})
            if number >= len(ranked):
                return
            number *= 2

    def _touching(self, pool: Amounts, rows: Amounts) -> frozenset[int]:
        """Those of the pool on the rows, and the pods that are evicted with them."""
        touched = pool[np.isin(self._costs.victims.rows[pool], rows)]
        return frozenset(spread_to_gangs(touched.tolist(), pool, self._costs))

    def _of_rows(self, chosen: frozenset[int], rows: set[int]) -> frozenset[int]:
        """Only those on the rows that are used, where that is enough."""
        victims, pool = self._costs.victims, np.array(sorted(chosen), np.int64)
        touched = [index for index in chosen if int(victims.rows[index]) in rows]
        used = frozenset(spread_to_gangs(touched, pool, self._costs))
        return used if used < chosen and self.fits(used) else chosen
