"""The legal victims as arrays, and which of them can only go together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec
import numpy as np

from model.workload import WorkloadId
from scheduler.core.ledger.residents import Flag, Residents
from scheduler.core.preemption.facts import GangFacts
from scheduler.core.preemption.gang_store import stored
from scheduler.core.snapshot.snapshot import Amounts, Mask

_SHORT = 1 << 16
_MOST_LEVELS = 32
OUTSIDE = 1 << 40
"""Standings from here up are those of pods outside the mid, batch and free bands."""
_LOWEST_PRIORITY = -(1 << 31)


class WeightSums(msgspec.Struct, frozen=True, eq=False):
    """Weights that occur, ascending; `numbers` and `sums` (row × demanded column) are of all up to each of them.

    `level_of` is the position of each victim's weight. Without `sums` there are too many levels to keep them all.
    """

    weights: tuple[int, ...]
    level_of: Amounts
    numbers: tuple[int, ...]
    sums: tuple[Amounts, ...] = ()

    def sums_of(self, indexes: Amounts, rows: int) -> Amounts | None:
        """A new array of what distinct victims free, where these are all up to some level."""
        if not self.sums or len(indexes) not in self.numbers or len(self.sums[0]) != rows:
            return None
        level = self.numbers.index(len(indexes))
        return self.sums[level].copy() if int(self.level_of[indexes].max()) <= level else None


class Victims(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One entry a legal victim: its slot, row and what it frees of the demanded columns.

    `ranks` is its priority, that of pods outside the mid, batch and free bands above all inside (see OUTSIDE).
    `weights` is the rank at which it can go: its own, or where it goes with its gang the highest in that gang.
    `gangs` is the number of its gang, −1 for a pod that is no member; `alone` may be evicted by themselves, at most
    `surplus[gang]` of them, which ends no job; a gang goes whole only where `whole[gang]`. `by_gang` lists members gang
    after gang, those of one gang by row; those of a gang end at `ends[gang]`. `opened` is what they free by level.
    """

    slots: Amounts
    rows: Amounts
    amounts: Amounts
    ranks: Amounts
    weights: Amounts
    gangs: Amounts
    alone: Mask
    surplus: Amounts
    whole: Mask
    by_gang: Amounts
    ends: Amounts
    opened: WeightSums

    def __len__(self) -> int:
        return len(self.slots)

    @cached_property
    def spare(self) -> Mask:
        """Members that their gangs may do without."""
        return np.asarray(self.alone & (self.gangs >= 0))

    def members(self, gang: int) -> tuple[int, ...]:
        """The members that may be evicted, ascending."""
        start = int(self.ends[gang - 1]) if gang else 0
        return tuple(sorted(self.by_gang[start : self.ends[gang]].tolist()))

    def freed(self, indexes: Amounts, rows: int) -> Amounts:
        """Row × demanded column, what these free together; exact while a row's sum is below 2^53."""
        known = self.opened.sums_of(indexes, rows)
        return _sums(self.rows[indexes], self.amounts[indexes], rows) if known is None else known


class _Gangs(msgspec.Struct, frozen=True, eq=False):
    """By number of a subject: whether it is a gang, and how many of it may be evicted one by one."""

    known: Mask
    surplus: Amounts


def victims_of(
    residents: Residents, legal: Mask, columns: list[int], gangs: Mapping[WorkloadId, GangFacts], size: int
) -> Victims:
    """Possible victims on `size` rows; members that may be evicted neither alone nor with all others are left out."""
    known = _Gangs(*stored(gangs).arrays(residents))
    present = (residents.rows >= 0) & ((residents.flags & Flag.DELETING) == 0) & known.known[residents.subjects]
    whole = known.known & (_numbers(residents, present) == _numbers(residents, legal & present))
    needed = (residents.flags & Flag.MINIMUM_MEMBER) != 0
    together = known.known[residents.subjects] & ((known.surplus[residents.subjects] == 0) | needed)
    slots = np.flatnonzero(legal & ~(together & ~whole[residents.subjects]))
    subjects = residents.subjects[slots].astype(np.int64)
    member, alone = known.known[subjects], ~together[slots]
    own = np.where(member, subjects, -1)
    rows = residents.rows[slots].astype(np.int64)
    by_gang = sorted_by(rows, np.flatnonzero(member))
    by_gang = sorted_by(own, by_gang)
    amounts = residents.class_requests[:, columns].take(residents.classes[slots], axis=0)
    ranks = _ranks(residents.priorities[slots], (residents.flags[slots] & Flag.BELOW_PROD) == 0)
    weights = _weights(ranks, subjects, alone, len(whole))
    return Victims(
        slots=slots,
        rows=rows,
        amounts=amounts,
        ranks=ranks,
        weights=weights,
        gangs=own,
        alone=alone,
        surplus=known.surplus,
        whole=whole,
        by_gang=by_gang,
        ends=np.cumsum(np.bincount(own[by_gang], minlength=len(whole))),
        opened=_opened(weights, rows, amounts, size),
    )


def _opened(weights: Amounts, rows: Amounts, amounts: Amounts, size: int) -> WeightSums:
    found = _distinct(weights)
    level_of = np.searchsorted(found, weights)
    numbers = np.cumsum(np.bincount(level_of, minlength=len(found)))
    sums: tuple[Amounts, ...] = ()
    if len(found) <= _MOST_LEVELS:
        each = _sums(level_of * size + rows, amounts, len(found) * size)
        sums = tuple(np.cumsum(each.reshape(len(found), size, amounts.shape[1]), axis=0))
    return WeightSums(tuple(found.tolist()), level_of, tuple(numbers.tolist()), sums)


def _distinct(weights: Amounts) -> Amounts:
    """Those that occur, ascending; they are few as a rule, and then it takes less to find one after the other."""
    found, left = list[int](), weights
    while len(left) and len(found) < _MOST_LEVELS:
        found.append(int(left.min()))
        left = left[left > found[-1]]
    return np.unique(weights) if len(left) else np.array(found, np.int64)


def _sums(rows: Amounts, amounts: Amounts, size: int) -> Amounts:
    sums = np.empty((size, amounts.shape[1]), np.int64)
    for column in range(amounts.shape[1]):
        sums[:, column] = np.bincount(rows, weights=amounts[:, column], minlength=size)
    return sums


def sorted_by(keys: Amounts, indexes: Amounts) -> Amounts:
    """The indexes by their keys, equal ones in the order they had; the narrower the type, the faster."""
    own = keys[indexes]
    narrow = len(own) and own.dtype.kind != "f" and int(own.min()) >= 0 and int(own.max()) < _SHORT
    return np.asarray(indexes[np.argsort(own.astype(np.uint16) if narrow else own, kind="stable")])


def _numbers(residents: Residents, mask: Mask) -> Amounts:
    return np.bincount(residents.subjects[mask], minlength=max(len(residents.subject_names), 1))


def _ranks(priorities: Amounts, outside: Mask) -> Amounts:
    lifted = OUTSIDE - _LOWEST_PRIORITY
    return np.asarray(priorities + (lifted if outside.all() else lifted * outside))


def _weights(ranks: Amounts, subjects: Amounts, alone: Mask, number: int) -> Amounts:
    """Each member that only goes with its gang weighs as the highest of it."""
    peaks = np.full(number, np.iinfo(np.int64).min)
    mixed = np.zeros(number, bool)
    mixed[subjects[~alone]] = True
    inside = mixed[subjects]
    np.maximum.at(peaks, subjects[inside], ranks[inside])
    return np.asarray(np.where(alone, ranks, peaks[subjects]))
