"""Future fit: the rows where a workload will fit once what runs there has ended, those with the least missing room.

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
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.queueing.reassign import unclaimed
from scheduler.core.snapshot.assignment import Assignment
from scheduler.core.snapshot.snapshot import Amounts, Mask

_WIDENING = 4
"""Rows are tried by the number that should do, then by so many times more, then all: three attempts at most."""


def future_fit(working: WorkingSnapshot, candidate: Candidate, residents: Residents) -> tuple[Assignment, ...] | None:
    """Assignments for all needed members once enough has ended; None where they would not fit even then."""
    asked = minimum_of(candidate)
    ending = _ending(residents, candidate)
    rows = _rows(working, asked, _emptied(working, asked, residents, ending))
    if rows is None:
        return None
    order, enough = rows
    for number in sorted({min(len(order), size) for size in (enough, enough * _WIDENING, len(order))}):
        trial = working.what_if()
        trial.remove(_assignments(residents, ending & np.isin(residents.rows, order[:number])))
        outcome = place(trial, asked)
        if isinstance(outcome, Placed):
            return outcome.assignments
    return None


def will_fit(
    working: WorkingSnapshot, candidate: Candidate, residents: Residents, assignments: tuple[Assignment, ...]
) -> bool:
    """Whether assignments chosen before will still be free once what may end on their rows has ended."""
    rows = np.array([assignment.row for assignment in assignments], np.int64)
    ending = _ending(residents, candidate, rows)
    room = _emptied(working, candidate, residents, ending)
    admissible = all(
        fit.counts(working.snapshot, room, pod_class)[row] > 0
        for pod_class, row in dict.fromkeys((assignment.pod_class, assignment.row) for assignment in assignments)
    )
    for assignment in assignments if admissible else ():
        room[assignment.row] -= fit.use(working.snapshot, assignment.pod_class)
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
        member_traits=tuple(candidate.member_traits[index][: sets[index].count] for index in kept),
    )


def _ending(residents: Residents, candidate: Candidate, rows: Amounts | None = None) -> Mask:
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


def _emptied(working: WorkingSnapshot, candidate: Candidate, residents: Residents, ending: Mask) -> Amounts:
    """What is left for the candidate, node × resource, once the pods of these slots are gone."""
    room = np.array(unclaimed(working, candidate))
    slots = np.flatnonzero(ending)
    np.add.at(room, residents.rows[slots], residents.class_requests[residents.classes[slots]])
    return room


def _rows(working: WorkingSnapshot, asked: Candidate, emptied: Amounts) -> tuple[Amounts, int] | None:
    """Rows that could take members, those with the least missing room a member first, and how many should do."""
    counts = np.stack([fit.counts(working.snapshot, emptied, pod_class) for pod_class in asked.classes])
    if int(np.minimum(counts.max(axis=0), asked.pending).sum()) < asked.pending:
        return None
    members = np.minimum(counts.min(axis=0), asked.pending)
    taken = np.maximum(members, 1)[:, None] * fit.use(working.snapshot, asked.classes[0])[None, :]
    missing = (taken - unclaimed(working, asked)).clip(min=0) / np.maximum(working.snapshot.allocatable, 1)
    cost = missing.max(axis=1) / np.maximum(members, 1)
    useful = np.flatnonzero(counts.max(axis=0))
    order = useful[np.lexsort((useful, cost[useful]))]
    enough = int(np.searchsorted(np.cumsum(members[order]), asked.pending)) + 1
    return order, min(enough, len(order))


def _assignments(residents: Residents, slots: Mask) -> list[Assignment]:
    found: list[Assignment] = []
    for slot in np.flatnonzero(slots).tolist():
        charge = residents.charges[slot]
        if charge is not None:
            found.append(Assignment(charge.uid, int(residents.rows[slot]), charge.pod_class, charge.pod_traits))
    return found
