"""Assignments kept for a workload, moved to where there is room at this moment.

Room that becomes free elsewhere first replaces an assignment that still waits for its own: so every place a member
could take counts for the head as it comes, and back-fill gets only what the head has no use for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from scheduler.core.filters import fit
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.snapshot.assignment import Assignment, Requester
from scheduler.core.snapshot.podclass import NO_INTERPOD, PodClass
from scheduler.core.snapshot.snapshot import Amounts

_LOWEST = -(1 << 31)


def unclaimed(working: WorkingSnapshot, candidate: Candidate) -> Amounts:
    """What is left beside all that is kept for others, of lower priority too.

    A reservation takes no room that was made by evicting somebody: it would be lost to who had it made.
    """
    return working.free_for(Requester(candidate.subject, _LOWEST))


def reassign(
    working: WorkingSnapshot, candidate: Candidate, assignments: Sequence[Assignment]
) -> tuple[Assignment, ...]:
    """The same members, as many as possible on rows that take them now; the others stay where they are.

    Assignments of workloads with a topology or terms about other pods stay, since which rows go together matters there.
    """
    if candidate.workload.topology or any(pod_class.interpod != NO_INTERPOD for pod_class in candidate.classes):
        return tuple(assignments)
    free = np.array(unclaimed(working, candidate))
    moved: list[Assignment] = []
    for pod_class in dict.fromkeys(assignment.pod_class for assignment in assignments):
        own = [assignment for assignment in assignments if assignment.pod_class == pod_class]
        found = _reassign(working, pod_class, own, free)
        for assignment in found:
            free[assignment.row] -= fit.use(working.snapshot, pod_class)
        moved.extend(found)
    return tuple(moved)


def _reassign(
    working: WorkingSnapshot, pod_class: PodClass, assignments: Sequence[Assignment], free: Amounts
) -> list[Assignment]:
    """Assignments of one class: those on the rows that miss most go first, to the rows with most to spare."""
    room = fit.counts(working.snapshot, free, pod_class)
    spare = room - np.bincount([assignment.row for assignment in assignments], minlength=len(room))
    gained = _repeated(spare.clip(min=0), len(assignments))
    lost = Counter(_repeated((-spare).clip(min=0), len(gained)))
    places = iter(gained)
    found: list[Assignment] = []
    for assignment in assignments:
        if lost[assignment.row]:
            lost[assignment.row] -= 1
            found.append(msgspec.structs.replace(assignment, row=next(places)))
        else:
            found.append(assignment)
    return found


def _repeated(numbers: Amounts, limit: int) -> list[int]:
    """Each row as often as its number says, the largest numbers first, `limit` in all."""
    rows = np.flatnonzero(numbers)
    order = rows[np.lexsort((rows, -numbers[rows]))][:limit]
    return [int(row) for row in np.repeat(order, np.minimum(numbers[order], limit))[:limit]]
