"""Where a workload will fit once what runs there has ended: the rows with the least missing room.

Nothing is known of how long pods run, so the least room still to come is the best guess for the earliest. Pods of
higher priority and those of DaemonSets are taken to stay.
"""

from __future__ import annotations

import msgspec
import numpy as np

from model.workload import PodSet, Workload
from scheduler.core.filters import fit
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.residents import Flag, Residents
from scheduler.core.picture.assignment import Seat
from scheduler.core.picture.snapshot import Amounts, Mask
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import Scene
from scheduler.core.queueing.reassign import unclaimed

_WIDENING = 4
"""Rows are tried by the number that should do, then by so many times more, then all: three attempts at most."""


def vacancy(scene: Scene, candidate: Candidate, residents: Residents) -> tuple[Seat, ...] | None:
    """Seats for all needed members once enough has ended; None where they would not fit even then."""
    asked = minimum_of(candidate)
    leaving = _leaving(residents, candidate)
    rows = _rows(scene, asked, _emptied(scene, asked, residents, leaving))
    if rows is None:
        return None
    order, enough = rows
    for number in sorted({min(len(order), size) for size in (enough, enough * _WIDENING, len(order))}):
        trial = scene.what_if()
        trial.remove(_seats(residents, leaving & np.isin(residents.rows, order[:number])))
        outcome = place(trial, asked)
        if isinstance(outcome, Placed):
            return outcome.seats
    return None


def will_fit(scene: Scene, candidate: Candidate, residents: Residents, seats: tuple[Seat, ...]) -> bool:
    """Whether seats chosen before will still be free once what may end on their rows has ended."""
    rows = np.array([seat.row for seat in seats], np.int64)
    leaving = _leaving(residents, candidate, rows)
    room = _emptied(scene, candidate, residents, leaving)
    admissible = all(
        fit.counts(scene.snapshot, room, pod_class)[row] > 0
        for pod_class, row in dict.fromkeys((seat.pod_class, seat.row) for seat in seats)
    )
    for seat in seats if admissible else ():
        room[seat.row] -= fit.use(scene.snapshot, seat.pod_class)
    return admissible and bool((room[rows] >= 0).all())


def minimum_of(candidate: Candidate) -> Candidate:
    """The candidate with the members that must be placed together alone, the first of each gang."""
    left = dict(candidate.workload.gangs)
    sets: list[PodSet] = []
    for pods in candidate.workload.pod_sets:
        number = min(pods.count, left.get(pods.gang, pods.count))
        left[pods.gang] = left.get(pods.gang, number) - number
        sets.append(msgspec.structs.replace(pods, uids=pods.uids[:number]))
    kept = [index for index, pods in enumerate(sets) if pods.count]
    workload: Workload = msgspec.structs.replace(candidate.workload, pod_sets=tuple(sets[index] for index in kept))
    return msgspec.structs.replace(
        candidate,
        workload=workload,
        classes=tuple(candidate.classes[index] for index in kept),
        kins=tuple(candidate.kins[index][: sets[index].count] for index in kept),
    )


def _leaving(residents: Residents, candidate: Candidate, rows: Amounts | None = None) -> Mask:
    """By slot, whether the pod may end before the candidate is placed; of those on `rows` where these are given."""
    there = residents.rows >= 0 if rows is None else np.isin(residents.rows, rows)
    lower = residents.priorities <= candidate.workload.priority
    going = (residents.flags & np.uint8(Flag.DELETING)) != 0
    found = np.asarray(there & (lower | going))
    for slot in np.flatnonzero(found).tolist():
        pod = residents.pods[slot]
        if pod is not None and pod.daemon:
            found[slot] = False
    return found


def _emptied(scene: Scene, candidate: Candidate, residents: Residents, leaving: Mask) -> Amounts:
    """What is left for the candidate, node × resource, once the pods of these slots are gone."""
    room = np.array(unclaimed(scene, candidate))
    slots = np.flatnonzero(leaving)
    np.add.at(room, residents.rows[slots], residents.class_requests[residents.classes[slots]])
    return room


def _rows(scene: Scene, asked: Candidate, emptied: Amounts) -> tuple[Amounts, int] | None:
    """Rows that could take members, those with the least missing room a member first, and how many should do."""
    counts = np.stack([fit.counts(scene.snapshot, emptied, pod_class) for pod_class in asked.classes])
    if int(np.minimum(counts.max(axis=0), asked.pending).sum()) < asked.pending:
        return None
    members = np.minimum(counts.min(axis=0), asked.pending)
    taken = np.maximum(members, 1)[:, None] * fit.use(scene.snapshot, asked.classes[0])[None, :]
    missing = (taken - unclaimed(scene, asked)).clip(min=0) / np.maximum(scene.snapshot.allocatable, 1)
    cost = missing.max(axis=1) / np.maximum(members, 1)
    useful = np.flatnonzero(counts.max(axis=0))
    order = useful[np.lexsort((useful, cost[useful]))]
    enough = int(np.searchsorted(np.cumsum(members[order]), asked.pending)) + 1
    return order, min(enough, len(order))


def _seats(residents: Residents, slots: Mask) -> list[Seat]:
    found: list[Seat] = []
    for slot in np.flatnonzero(slots).tolist():
        charge = residents.charges[slot]
        if charge is not None:
            found.append(Seat(charge.uid, int(residents.rows[slot]), charge.pod_class, charge.kin))
    return found
