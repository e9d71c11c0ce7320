"""Whole gangs onto nodes, all members in one vectorised step: all that are needed, or none.

A lone pod goes to the least allocated node (kube-scheduler's and Koordinator's default); a gang is packed onto the
fewest nodes, the last of them the one it fills best, since its members talk to each other and fragments block the
next gang. Ties go to the first node by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec
import numpy as np

from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY
from scheduler.core import fit
from scheduler.core.cause import cause
from scheduler.core.gang import Candidate
from scheduler.core.podclass import PodClass
from scheduler.core.snapshot import Amounts, ClusterSnapshot

_SCORED = (CPU, MEMORY, BATCH_CPU, BATCH_MEMORY)
"""Koordinator's shipped profile: LeastAllocated over these, weight 1 each (config/manager/scheduler-config.yaml)."""


class Assignment(msgspec.Struct, frozen=True):
    """One pod and the row of the node it goes to."""

    uid: str
    row: int


class Placed(msgspec.Struct, frozen=True, eq=False):
    """At least the needed members have a node; `free` is what is left, node × resource."""

    assignments: tuple[Assignment, ...]
    free: Amounts


class Misfit(msgspec.Struct, frozen=True):
    """`fits` of the waiting members would fit, fewer than needed; the rest is about the next member after those."""

    fits: int
    report: fit.FitReport
    cause: Reason = Reason.UNSCHEDULABLE


class _Group(msgspec.Struct, frozen=True):
    """Members alike."""

    pod_class: PodClass
    uids: tuple[str, ...]


class _Filling(msgspec.Struct, frozen=True, eq=False):
    """How far filling got: what is assigned and left, the members not assigned, the first class that ran short."""

    assignments: tuple[Assignment, ...]
    free: Amounts
    rest: tuple[_Group, ...]
    short: PodClass | None


_Groups: TypeAlias = tuple[_Group, ...]


def place(snapshot: ClusterSnapshot, free: Amounts, candidate: Candidate) -> Placed | Misfit:
    """Nodes for a workload out of `free` (node × resource, not written to).

    If not all members fit, the needed ones are placed first and then as many more as there is room for. Packing
    several sizes is a heuristic: largest members first, and for the minimum of an elastic gang also smallest first.
    """
    groups = tuple(_Group(c, p.uids) for c, p in zip(candidate.classes, candidate.workload.pod_sets, strict=True))
    largest_first = tuple(sorted(groups, key=lambda group: _size(snapshot, group.pod_class), reverse=True))
    spread = candidate.workload.gang is None
    whole = _fill(snapshot, free, largest_first, candidate.pending, spread=spread)
    if len(whole.assignments) == candidate.pending:
        return Placed(whole.assignments, whole.free)
    if candidate.needed < candidate.pending:
        for order in (groups, tuple(reversed(largest_first))):
            minimum = _fill(snapshot, free, order, candidate.needed, spread=spread)
            if len(minimum.assignments) == candidate.needed:
                return _with_surplus(snapshot, minimum, candidate)
    short = whole.short or candidate.classes[0]
    return _misfit(snapshot, whole.free, short, len(whole.assignments))


def _misfit(snapshot: ClusterSnapshot, free: Amounts, short: PodClass, fits: int) -> Misfit:
    return Misfit(fits, fit.report(snapshot, free, short), cause(snapshot, free, short))


def _with_surplus(snapshot: ClusterSnapshot, minimum: _Filling, candidate: Candidate) -> Placed | Misfit:
    """The minimum stands; members above it take what room is left."""
    surplus = _fill(snapshot, minimum.free, minimum.rest, candidate.pending - candidate.needed, spread=False)
    assignments = minimum.assignments + surplus.assignments
    if not assignments:
        return _misfit(snapshot, surplus.free, surplus.short or candidate.classes[0], 0)
    return Placed(assignments, surplus.free)


def _fill(snapshot: ClusterSnapshot, free: Amounts, groups: Iterable[_Group], limit: int, *, spread: bool) -> _Filling:
    """Assign up to `limit` members, group after group, each against what those before it left."""
    assigned: list[Assignment] = []
    rest: list[_Group] = []
    short: PodClass | None = None
    for group in groups:
        want = min(len(group.uids), limit - len(assigned))
        rows = _rows(snapshot, free, group.pod_class, want, spread=spread)
        if len(rows):
            free = free - _taken(snapshot, group.pod_class, rows)
        assigned.extend(Assignment(uid, int(row)) for uid, row in zip(group.uids, rows, strict=False))
        if len(rows) < len(group.uids):
            rest.append(_Group(group.pod_class, group.uids[len(rows) :]))
        if len(rows) < want and short is None:
            short = group.pod_class
    return _Filling(tuple(assigned), free, tuple(rest), short)


def _rows(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass, want: int, *, spread: bool) -> Amounts:
    """A row for each of at most `want` pods, ascending; fewer where there is no more room."""
    room = fit.counts(snapshot, free, pod_class)
    if want == 0 or not room.any():
        return np.zeros(0, np.int64)
    if spread and want == 1:
        return np.array([_least_allocated(snapshot, free, pod_class, room)], np.int64)
    return pack(room, want)


def pack(room: Amounts, want: int) -> Amounts:
    """Rows for `want` pods on the fewest nodes, the last one filled best; `room` is how many fit per node.

    Returns one row a pod, ascending; all there is room for where that is less than `want`.
    """
    useful = np.minimum(room, want)
    order = np.lexsort((np.arange(len(room)), -useful))
    filled = np.cumsum(useful[order])
    want = min(want, int(filled[-1]))
    full = int(np.searchsorted(filled, want))
    rest = want - (int(filled[full - 1]) if full else 0)
    others = order[full:]
    enough = others[room[others] >= rest]
    last = enough[np.lexsort((enough, room[enough]))[0]]
    rows = np.concatenate([np.repeat(order[:full], useful[order[:full]]), np.repeat(last, rest)])
    return np.asarray(np.sort(rows))


def _taken(snapshot: ClusterSnapshot, pod_class: PodClass, rows: Amounts) -> Amounts:
    """Node × resource that pods of the class on `rows` take."""
    numbers = np.bincount(rows, minlength=len(snapshot.names))
    return np.asarray(numbers[:, None] * fit.use(snapshot, pod_class)[None, :])


def _least_allocated(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass, room: Amounts) -> int:
    """The feasible row with the largest mean free percentage after placing (LeastAllocated, whole percent)."""
    asked = {name for name, _ in pod_class.request}
    columns = [snapshot.resources.index(name) for name in _SCORED if name in asked and name in snapshot.resources]
    columns = columns or [snapshot.resources.index(name) for name in (CPU, MEMORY) if name in snapshot.resources]
    total = snapshot.allocatable[:, columns].astype(np.float64)
    left = (free - fit.use(snapshot, pod_class))[:, columns]
    percent = np.floor(100.0 * left / np.maximum(total, 1.0)).sum(axis=1)
    return int(np.argmax(np.where(room > 0, percent, -np.inf)))


def _size(snapshot: ClusterSnapshot, pod_class: PodClass) -> float:
    """The largest share of the cluster one pod asks for."""
    totals = snapshot.allocatable.sum(axis=0, dtype=np.float64)
    shares = (
        amount / max(float(totals[snapshot.resources.index(name)]), 1.0)
        for name, amount in pod_class.request
        if name in snapshot.resources
    )
    return max(shares, default=0.0)
