"""Pods taken away in thought: their amounts as arrays, in the pod index only those that matter to the preemptor."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from model.pod.affinity import NOWHERE
from model.selector import Selector
from scheduler.core.filters.room_view import need_of
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.residents import Residents
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, WorkingSnapshot
from scheduler.core.preemption.demand import columns_of
from scheduler.core.snapshot.podclass import NO_INTERPOD, InterPod, PodTraits
from scheduler.core.snapshot.snapshot import Amounts


class KinRelevance:
    """Whether it can matter to the members of a workload, but for its room, that a pod is there."""

    def __init__(self, working: WorkingSnapshot, demand: Candidate) -> None:
        interpods = {pod_class.interpod for pod_class in demand.classes}
        self.anybody = working.indexed or interpods != {NO_INTERPOD}
        self._selectors = tuple({selector for interpod in interpods for selector in _selectors(interpod)})
        self._known: dict[PodTraits, bool] = {}

    def __call__(self, pod_traits: PodTraits) -> bool:
        if not self.anybody:
            return False
        known = self._known.get(pod_traits)
        if known is None:
            known = self._known[pod_traits] = self._matters(pod_traits)
        return known

    def _matters(self, pod_traits: PodTraits) -> bool:
        """Namespaces are left aside: one too many does no harm."""
        if pod_traits.affinity != NOWHERE or pod_traits.ports:
            return True
        labels = dict(pod_traits.labels)
        return any(selector.matches(labels) for selector in self._selectors)


def _selectors(interpod: InterPod) -> Iterable[Selector]:
    """Those of its terms; a term without one matches nobody."""
    terms = interpod.affinity
    about = (*terms.pods, *terms.anti_pods, *(preferred.term for preferred in terms.preferred_pods))
    found = (*(term.selector for term in about), *(constraint.selector for constraint in interpod.spread))
    return (selector for selector in found if selector is not None)


def vacate(working: WorkingSnapshot, residents: Residents, slots: Amounts, relevant: KinRelevance) -> None:
    """These residents, who are on the working snapshot's rows, are gone from here on."""
    if not len(slots):
        return
    rows, classes = residents.rows[slots].astype(np.int64), residents.classes[slots]
    charges = [charge for slot in slots.tolist() if (charge := residents.charges[slot]) is not None]
    relevant_pods = (
        Assignment(charge.uid, row, charge.pod_class, charge.pod_traits)
        for charge, row in zip(charges, rows.tolist(), strict=True)
        if relevant(charge.pod_traits)
    )
    amounts = residents.class_requests[classes], residents.class_scored[classes]
    working.vacate(rows, [charge.pod_class for charge in charges], amounts, relevant_pods)
    for charge, row in zip(charges, rows.tolist(), strict=True):
        if charge.cpus is not None:
            working.cpus.remove(row, charge.uid)


class FreedRoom:
    """Room on the rows of some assignments, in the columns the members ask for, while victims go and are put back."""

    def __init__(self, working: WorkingSnapshot, demand: Candidate, placed: Placed, requests: Amounts) -> None:
        columns = columns_of(working.snapshot, demand)
        self._requests: Amounts = requests[:, columns]
        free = working.free_for(demand.requester)
        self._left: dict[int, Amounts] = {
            assignment.row: free[assignment.row, columns] for assignment in placed.assignments
        }
        for assignment in placed.assignments:
            self._left[assignment.row] -= need_of(working.snapshot.resources, assignment.pod_class).used[columns]

    def leaves(self, row: int, class_number: int) -> None:
        """A pod of this class (a line of `requests`) is gone from the row."""
        if row in self._left:
            self._left[row] += self._requests[class_number]

    def put_back(self, pods: Iterable[tuple[int, int]]) -> bool:
        """All of these (row, class), if the assignments keep their room."""
        assigned = [(row, number) for row, number in pods if row in self._left]
        lines = {row: self._left[row].copy() for row, _ in assigned}
        for row, number in assigned:
            lines[row] -= self._requests[number]
        if any(bool((line < 0).any()) for line in lines.values()):
            return False
        self._left.update(lines)
        return True
