"""Quota victims: whose going gives a queue the quota that its workload lacks, wherever on the nodes they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from model.queue import Cell
from scheduler.core.ledger.queue_book import add, cells_of
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.queue_rules import QueueRules, Removed, joined
from scheduler.core.preemption.victim_groups import (
    VictimGroup,
    least_important_first,
    most_important_first,
    one_by_one,
    put_back_first,
)
from scheduler.core.queues.headroom import Shortage


class _Taken(msgspec.Struct, frozen=True):
    """Victims that go together, and what queues lose by it; `whole`: what had been left of their gang."""

    group: VictimGroup
    removed: Removed
    whole: bool


class QuotaVictims:
    """Which of the possible victims a workload's quota needs gone."""

    def __init__(self, rules: QueueRules, costs: VictimCosts) -> None:
        self._rules = rules
        self._costs = costs

    def lawful(self, chosen: Iterable[int]) -> bool:
        """Whether the queues of these may lose all of them, the cheapest first."""
        groups = reversed(put_back_first(chosen, self._costs))
        with self._rules.losing() as books:
            return all(books.lose(self._foreign(self._removed(group))) for group in groups)

    def enough(self, chosen: Iterable[int]) -> bool:
        """Whether the quota is there once these are gone."""
        return not self._rules.short(self._removed(chosen))

    def cheapest(self) -> frozenset[int] | None:
        """The cheapest whose going is enough, each needed; None where not even all are enough.

        Of a gang that goes whole what it can spare has been taken before: then the rest follows.
        """
        taken: list[_Taken] = []
        going: set[int] = set()
        others: dict[str, dict[Cell, int]] = {}
        with self._rules.losing() as books:
            lacking = self._lack(books.lacking({}))
            for whole, group in self._cheapest_first():
                if not lacking:
                    break
                group = tuple(index for index in group if index not in going)
                removed = self._removed(group)
                foreign = self._foreign(removed)
                own = joined(others, {queue: removed[queue] for queue in removed if queue not in foreign})
                if not books.lose(foreign):
                    continue
                left = self._lack(books.lacking(own))
                if left < lacking:
                    taken.append(_Taken(group, removed, whole))
                    going.update(group)
                    lacking, others = left, own
                else:
                    books.give_back(foreign)
        return None if lacking else self._needed(taken)

    def _cheapest_first(self) -> Iterator[tuple[bool, VictimGroup]]:
        """Pods that may go by themselves and gangs that may go whole, with whether it is such a gang.

        As a rule a few are enough, of thousands of single pods.
        """
        victims, every = self._costs.victims, np.arange(len(self._costs.victims))
        singles = one_by_one(every, self._costs)
        gangs = np.unique(victims.gangs[victims.gangs >= 0])
        whole, violating = gangs[victims.whole[gangs]], self._costs.violating(every.tolist())
        if not len(whole) and not violating:
            yield from ((False, (index,)) for index in least_important_first(singles, self._costs))
            return
        groups: list[VictimGroup] = [(index,) for index in singles.tolist()]
        groups += [victims.members(gang) for gang in whole.tolist()]
        ordered = most_important_first(groups, violating, self._costs)
        yield from ((victims.gangs[group[0]] >= 0 and len(group) > 1, group) for group in reversed(ordered))

    def _needed(self, taken: list[_Taken]) -> frozenset[int]:
        """Without those that the others make needless, the dearest given back first; gangs that go whole stay whole."""
        needed: list[int] = []
        whole: set[int] = set()
        with self._rules.losing() as books:
            for each in taken:
                books.take(each.removed)
            for each in reversed(taken):
                gang = int(self._costs.victims.gangs[each.group[0]])
                books.give_back(each.removed)
                if gang in whole or books.lacking({}):
                    books.take(each.removed)
                    needed += each.group
                    whole |= {gang} if each.whole else set()
        return frozenset(needed)

    def _removed(self, chosen: Iterable[int]) -> dict[str, dict[Cell, int]]:
        found: dict[str, dict[Cell, int]] = {}
        for charge in filter(None, map(self._costs.charge, chosen)):
            add(found.setdefault(charge.governed_by, {}), cells_of(charge.counted))
        return found

    def _foreign(self, removed: Removed) -> Removed:
        """What of it queues lose that are not the preemptor's."""
        return {queue: amounts for queue, amounts in removed.items() if self._rules.foreign(queue)}

    @staticmethod
    def _lack(short: tuple[Shortage, ...]) -> int:
        """How much is lacking in all; 0 where nothing is."""
        return sum(each.asked - each.room for each in short)
