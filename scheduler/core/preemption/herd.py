"""The legal victims as arrays, and which of them can only go together."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from scheduler.core.preemption.facts import GangFacts
from scheduler.core.preemption.legal import numbers_of
from scheduler.core.residents import Flag, Residents
from scheduler.core.snapshot import Amounts, Mask

_SHORT = 1 << 16


class Herd(msgspec.Struct, frozen=True, eq=False):
    """One entry a legal victim: its slot, row and what it frees of the demanded columns.

    `weights` is the priority at which it can go: its own, or where it goes with its gang the highest in that gang.
    `gangs` is the number of its gang, −1 for a pod that is no member; `alone` may go by themselves, at most
    `surplus[gang]` of them; a gang goes whole only where `whole[gang]`. `by_gang` lists members gang after gang, those
    of one gang by row; those of a gang end at `ends[gang]`.
    """

    slots: Amounts
    rows: Amounts
    amounts: Amounts
    weights: Amounts
    gangs: Amounts
    alone: Mask
    surplus: Amounts
    whole: Mask
    by_gang: Amounts
    ends: Amounts

    def __len__(self) -> int:
        return len(self.slots)

    def members(self, gang: int) -> tuple[int, ...]:
        """The members that may go, ascending."""
        start = int(self.ends[gang - 1]) if gang else 0
        return tuple(sorted(self.by_gang[start : int(self.ends[gang])].tolist()))

    def freed(self, indexes: Amounts, rows: int) -> Amounts:
        """Row × demanded column, what these free together; exact while a row's sum is below 2^53."""
        sums = np.zeros((rows, self.amounts.shape[1]), np.int64)
        for column in range(self.amounts.shape[1]):
            amounts = self.amounts[indexes, column]
            sums[:, column] = np.bincount(self.rows[indexes], weights=amounts, minlength=rows)
        return sums


class _Gangs(msgspec.Struct, frozen=True, eq=False):
    """By number of a subject: whether it is a gang, and how many of it may go one by one."""

    known: Mask
    surplus: Amounts


def herd_of(residents: Residents, legal: Mask, columns: list[int], gangs: Mapping[str, GangFacts]) -> Herd:
    """The victims there could be; members that may go neither alone nor with their whole gang are left out."""
    known = _gangs(residents, gangs)
    present = (residents.rows >= 0) & ((residents.flags & Flag.DELETING) == 0) & known.known[residents.subjects]
    whole = known.known & (_numbers(residents, present) == _numbers(residents, legal & present))
    stuck = known.known & ~whole & (known.surplus == 0)
    slots = np.flatnonzero(legal & ~stuck[residents.subjects])
    subjects = residents.subjects[slots].astype(np.int64)
    member = known.known[subjects]
    alone = ~member | (known.surplus[subjects] > 0)
    own = np.where(member, subjects, -1)
    rows = residents.rows[slots].astype(np.int64)
    by_gang = sorted_by(rows, np.flatnonzero(member))
    by_gang = sorted_by(own, by_gang)
    return Herd(
        slots=slots,
        rows=rows,
        amounts=np.ascontiguousarray(residents.class_requests[:, columns])[residents.classes[slots]],
        weights=_weights(residents.priorities[slots], subjects, alone, len(whole)),
        gangs=own,
        alone=alone,
        surplus=known.surplus,
        whole=whole,
        by_gang=by_gang,
        ends=np.cumsum(np.bincount(own[by_gang], minlength=len(whole))),
    )


def sorted_by(keys: Amounts, indexes: Amounts) -> Amounts:
    """The indexes by their keys, equal ones in the order they had; the narrower the type, the faster."""
    own = keys[indexes]
    narrow = len(own) and int(own.min()) >= 0 and int(own.max()) < _SHORT
    return np.asarray(indexes[np.argsort(own.astype(np.uint16) if narrow else own, kind="stable")])


def _gangs(residents: Residents, gangs: Mapping[str, GangFacts]) -> _Gangs:
    known = np.zeros(max(len(residents.subject_names), 1), bool)
    surplus = np.zeros(len(known), np.int64)
    numbers = numbers_of(residents, gangs)
    known[numbers] = True
    surplus[numbers] = [gangs[residents.subject_names[number]].surplus for number in numbers]
    return _Gangs(known, surplus)


def _numbers(residents: Residents, mask: Mask) -> Amounts:
    return np.bincount(residents.subjects[mask], minlength=max(len(residents.subject_names), 1))


def _weights(priorities: Amounts, subjects: Amounts, alone: Mask, number: int) -> Amounts:
    """Each member that only goes with its gang weighs as the highest of it."""
    peaks = np.full(number, np.iinfo(np.int64).min)
    np.maximum.at(peaks, subjects[~alone], priorities[~alone])
    return np.asarray(np.where(alone, priorities, peaks[subjects]))
