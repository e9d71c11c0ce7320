"""Quota victims: whose going gives a queue the quota that its workload lacks, wherever on the nodes they are."""

from __future__ import annotations

from collections.abc import Iterable

from model.queue import Cell
from scheduler.core.ledger.queue_book import add, cells_of
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.queue_rules import QueueRules, Removed, joined
from scheduler.core.preemption.victim_groups import VictimGroup, put_back_first
from scheduler.core.queues.headroom import Shortage


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
        """The cheapest whose going is enough, each needed; None where not even all are enough."""
        taken: list[tuple[VictimGroup, Removed]] = []
        others: dict[str, dict[Cell, int]] = {}
        with self._rules.losing() as books:
            lacking = self._lack(books.lacking({}))
            for group in reversed(put_back_first(range(len(self._costs.victims)), self._costs)):
                if not lacking:
                    break
                removed = self._removed(group)
                foreign = self._foreign(removed)
                own = joined(others, {queue: removed[queue] for queue in removed if queue not in foreign})
                if not books.lose(foreign):
                    continue
                left = self._lack(books.lacking(own))
                if left < lacking:
                    taken.append((group, removed))
                    lacking, others = left, own
                else:
                    books.give_back(foreign)
        return None if lacking else self._needed(taken)

    def _needed(self, taken: list[tuple[VictimGroup, Removed]]) -> frozenset[int]:
        """Without those that the others make needless, the dearest given back first."""
        going: dict[str, dict[Cell, int]] = {}
        for _, removed in taken:
            going = joined(going, removed)
        needed = []
        for group, removed in reversed(taken):
            without = joined(going, _negative(removed))
            if self._rules.short(without):
                needed.append(group)
            else:
                going = without
        return frozenset(index for group in needed for index in group)

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


def _negative(removed: Removed) -> dict[str, dict[Cell, int]]:
    return {queue: {cell: -amount for cell, amount in amounts.items()} for queue, amounts in removed.items()}
