"""Reclaim: which residents of other queues may be taken back for a preemptor."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from model.priority import SYSTEM_PRIORITY
from model.qos import LOWEST_PROD
from model.queue import Cell, VictimPolicy
from model.workload import WorkloadId
from scheduler.core.ledger.queue_book import add, cells_of
from scheduler.core.ledger.residents import Flag, Residents
from scheduler.core.preemption.facts import GangFacts, Preemptor
from scheduler.core.preemption.queue_rules import QueueRules
from scheduler.core.snapshot.snapshot import Mask


class QueueVerdict(msgspec.Struct, frozen=True, eq=False):
    """By slot: `reclaimable` may go as its queue has more than it is entitled to, `regardless` of these whatever their
    priority, `kept` may not go for its queue's sake.
    """

    reclaimable: Mask
    kept: Mask
    regardless: Mask


def verdict(residents: Residents, rules: QueueRules | None, preemptor: Preemptor) -> QueueVerdict:
    """What queues say of each resident; system-critical pods are taken back from nobody.

    Services keep what their priority keeps: of pods outside the mid, batch and free bands from koord-prod up lower
    priority alone goes. A pod that names a queue and has no such class is work of that queue as any other.
    """
    nobody = np.zeros(len(residents.rows), bool)
    names = residents.queue_names
    foreign = np.array([rules is not None and rules.foreign(name) for name in names], bool)
    if rules is None:
        return QueueVerdict(nobody, nobody, nobody)
    if not foreign.any():
        return _by_own_word(QueueVerdict(nobody, nobody, nobody), residents, rules, preemptor)
    may = np.array(rules.open_to_it(names), bool)
    present = residents.rows >= 0
    reclaimable = present & may[residents.queues] & (residents.priorities < SYSTEM_PRIORITY)
    kept = np.asarray(present & foreign[residents.queues] & ~reclaimable)
    prod = (residents.outer_priorities >= LOWEST_PROD) & ((residents.flags & Flag.BELOW_PROD) == 0)
    found = QueueVerdict(np.asarray(reclaimable), kept, np.asarray(reclaimable & (~prod | rules.reclaims_prod)))
    return _by_own_word(found, residents, rules, preemptor)


def _by_own_word(found: QueueVerdict, residents: Residents, rules: QueueRules, preemptor: Preemptor) -> QueueVerdict:
    """As far as the preemptor's queue says whom it may evict."""
    words = rules.words
    if words is None:
        return found
    names, present = residents.queue_names, residents.rows >= 0
    own = present & np.array([name == rules.own for name in names], bool)[residents.queues]
    kept, regardless = found.kept.copy(), found.regardless.copy()
    if words.within is VictimPolicy.NEVER:
        kept |= own
    elif words.within is VictimPolicy.LOWER_OR_NEWER_EQUAL:
        regardless |= _newer_equals(residents, own, preemptor)
    if words.reclaim is VictimPolicy.LOWER:
        regardless &= own
    borrowed = np.array([rules.foreign(name) and rules.to_borrow(name) for name in names], bool)[residents.queues]
    regardless &= ~borrowed
    if words.borrowing_most is not None:
        kept |= present & borrowed & (residents.priorities > words.borrowing_most)
    return QueueVerdict(np.asarray(found.reclaimable & ~kept), np.asarray(kept), np.asarray(regardless & ~kept))


def _newer_equals(residents: Residents, own: Mask, preemptor: Preemptor) -> Mask:
    found = np.zeros(len(own), bool)
    for slot in np.flatnonzero(own & (residents.priorities == preemptor.priority)).tolist():
        pod = residents.pods[slot]
        found[slot] = pod is not None and pod.created_seconds > preemptor.created_seconds
    return found


def beyond(
    residents: Residents, reclaimed: Mask, rules: QueueRules | None, gangs: Mapping[WorkloadId, GangFacts]
) -> Mask:
    """Of those that may be taken back the ones that their queues may not lose as well.

    The cheapest jobs of a queue are counted first: lower priority, then younger. A gang without surplus counts whole,
    as do those of another that it does not go on without.
    """
    out = np.zeros(len(reclaimed), bool)
    if rules is None:
        return out
    for number in np.unique(residents.queues[reclaimed]).tolist():
        slots = np.flatnonzero(reclaimed & (residents.queues == number)).tolist()
        name = residents.queue_names[number]
        with rules.losing() as books:
            for unit in _units(residents, slots, gangs):
                if not books.lose({name: _amounts(residents, unit)}):
                    out[unit] = True
    return out


def _amounts(residents: Residents, slots: list[int]) -> dict[Cell, int]:
    """What these residents take together."""
    total: dict[Cell, int] = {}
    for charge in (residents.charges[slot] for slot in slots):
        if charge is not None:
            add(total, cells_of(charge.counted))
    return total


def _units(residents: Residents, slots: list[int], gangs: Mapping[WorkloadId, GangFacts]) -> list[list[int]]:
    """The slots by what goes together, the cheapest first."""
    jobs: dict[WorkloadId | int, list[int]] = {}
    for slot in slots:
        job = residents.subject_names[residents.subjects[slot]]
        facts = gangs.get(job)
        needed = bool(residents.flags[slot] & Flag.MINIMUM_MEMBER)
        jobs.setdefault(slot if facts is None or (facts.surplus and not needed) else job, []).append(slot)
    return sorted(jobs.values(), key=lambda unit: _price(residents, unit))


def _price(residents: Residents, unit: list[int]) -> tuple[int, float, str]:
    charge = residents.charges[unit[0]]
    highest = max(int(residents.priorities[slot]) for slot in unit)
    return (highest, -max(float(residents.started[slot]) for slot in unit), charge.uid if charge else "")
