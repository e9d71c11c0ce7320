"""Seats kept for a workload, moved to where there is room at this moment.

Room that becomes free elsewhere first replaces a seat that still waits for its own: so every place a member could take
counts for the head as it comes, and back-fill gets only what the head has no use for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from scheduler.core.filters import fit
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.picture.assignment import Seat, Standing
from scheduler.core.picture.podclass import ALONE, PodClass
from scheduler.core.picture.snapshot import Amounts
from scheduler.core.placement.working_snapshot import Scene

_LOWEST = -(1 << 31)


def unclaimed(scene: Scene, candidate: Candidate) -> Amounts:
    """What is left beside all that is kept for others, of lower priority too.

    A reservation takes no room that was made by evicting somebody: it would be lost to who had it made.
    """
    return scene.free_for(Standing(candidate.subject, _LOWEST))


def reseat(scene: Scene, candidate: Candidate, seats: Sequence[Seat]) -> tuple[Seat, ...]:
    """The same members, as many as possible on rows that take them now; the others stay where they are.

    Seats of workloads with a topology or terms about other pods stay, since which rows go together matters there.
    """
    if candidate.workload.topology or any(pod_class.company != ALONE for pod_class in candidate.classes):
        return tuple(seats)
    free = np.array(unclaimed(scene, candidate))
    moved: list[Seat] = []
    for pod_class in dict.fromkeys(seat.pod_class for seat in seats):
        own = [seat for seat in seats if seat.pod_class == pod_class]
        found = _reseat(scene, pod_class, own, free)
        for seat in found:
            free[seat.row] -= fit.use(scene.snapshot, pod_class)
        moved.extend(found)
    return tuple(moved)


def _reseat(scene: Scene, pod_class: PodClass, seats: Sequence[Seat], free: Amounts) -> list[Seat]:
    """Seats of one class: those on the rows that miss most go first, to the rows with most to spare."""
    room = fit.counts(scene.snapshot, free, pod_class)
    spare = room - np.bincount([seat.row for seat in seats], minlength=len(room))
    gained = _repeated(spare.clip(min=0), len(seats))
    lost = Counter(_repeated((-spare).clip(min=0), len(gained)))
    places = iter(gained)
    found: list[Seat] = []
    for seat in seats:
        if lost[seat.row]:
            lost[seat.row] -= 1
            found.append(msgspec.structs.replace(seat, row=next(places)))
        else:
            found.append(seat)
    return found


def _repeated(numbers: Amounts, limit: int) -> list[int]:
    """Each row as often as its number says, the largest numbers first, `limit` in all."""
    rows = np.flatnonzero(numbers)
    order = rows[np.lexsort((rows, -numbers[rows]))][:limit]
    return [int(row) for row in np.repeat(order, np.minimum(numbers[order], limit))[:limit]]
