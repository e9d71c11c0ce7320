"""Many pods gone in thought at once: their amounts as arrays, and in the crowd only those whom the preemptor heeds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from model.affinity import NOWHERE
from model.selector import Selector
from scheduler.core.filters.room_view import need_of
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.residents import Residents
from scheduler.core.picture.podclass import ALONE, Company, Kin
from scheduler.core.picture.snapshot import Amounts
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Scene, Seat
from scheduler.core.preemption.demand import columns_of


class Heeds:
    """Whether it can matter to the members of a workload, but for its room, that a pod is there."""

    def __init__(self, scene: Scene, demand: Candidate) -> None:
        companies = {pod_class.company for pod_class in demand.classes}
        self.anybody = scene.crowded or companies != {ALONE}
        self._selectors = tuple({selector for company in companies for selector in _selectors(company)})
        self._known: dict[Kin, bool] = {}

    def __call__(self, kin: Kin) -> bool:
        if not self.anybody:
            return False
        known = self._known.get(kin)
        if known is None:
            known = self._known[kin] = self._matters(kin)
        return known

    def _matters(self, kin: Kin) -> bool:
        """Namespaces are left aside: one too many does no harm."""
        if kin.affinity != NOWHERE or kin.ports:
            return True
        labels = dict(kin.labels)
        return any(selector.matches(labels) for selector in self._selectors)


def _selectors(company: Company) -> Iterable[Selector]:
    """Those of its terms; a term without one matches nobody."""
    terms = company.affinity
    about = (*terms.pods, *terms.anti_pods, *(preferred.term for preferred in terms.preferred_pods))
    found = (*(term.selector for term in about), *(constraint.selector for constraint in company.spread))
    return (selector for selector in found if selector is not None)


def vacate(scene: Scene, residents: Residents, slots: Amounts, heeds: Heeds) -> None:
    """These residents, who are on the scene's rows, are gone from here on."""
    if not len(slots):
        return
    rows, classes = residents.rows[slots].astype(np.int64), residents.classes[slots]
    charges = [charge for slot in slots.tolist() if (charge := residents.charges[slot]) is not None]
    heeded = (
        Seat(charge.uid, row, charge.pod_class, charge.kin)
        for charge, row in zip(charges, rows.tolist(), strict=True)
        if heeds(charge.kin)
    )
    amounts = residents.class_requests[classes], residents.class_scored[classes]
    scene.vacate(rows, [charge.pod_class for charge in charges], amounts, heeded)


class Beside:
    """Room on the rows of some seats, in the columns the members ask for, while victims leave and are put back."""

    def __init__(self, scene: Scene, demand: Candidate, placed: Placed, requests: Amounts) -> None:
        columns = columns_of(scene.snapshot, demand)
        self._requests: Amounts = requests[:, columns]
        free = scene.free_for(demand.standing)
        self._left: dict[int, Amounts] = {seat.row: free[seat.row, columns] for seat in placed.seats}
        for seat in placed.seats:
            self._left[seat.row] -= need_of(scene.snapshot.resources, seat.pod_class).used[columns]

    def leaves(self, row: int, class_number: int) -> None:
        """A pod of this class (a line of `requests`) is gone from the row."""
        if row in self._left:
            self._left[row] += self._requests[class_number]

    def put_back(self, pods: Iterable[tuple[int, int]]) -> bool:
        """All of these (row, class), if the seats keep their room."""
        seated = [(row, number) for row, number in pods if row in self._left]
        lines = {row: self._left[row].copy() for row, _ in seated}
        for row, number in seated:
            lines[row] -= self._requests[number]
        if any(bool((line < 0).any()) for line in lines.values()):
            return False
        self._left.update(lines)
        return True
