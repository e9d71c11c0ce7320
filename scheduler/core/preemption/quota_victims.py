"""Quota victims: whose going gives a queue the quota that its workload lacks, wherever on the nodes they are."""

from __future__ import annotations

from collections.abc import Iterable

from model.queue import Cell
from scheduler.core.ledger.queue_book import add, cells_of
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.queue_rules import QueueRules, joined
from scheduler.core.preemption.victim_groups import VictimGroup, put_back_first
from scheduler.core.queues.headroom import Shortage


class QuotaVictims:
    """Which of the possible victims a workload's quota needs gone."""

    def __init__(self, rules: QueueRules, costs: VictimCosts) -> None:
        self._rules = rules
        self._costs = costs

    def lawful(self, chosen: Iterable[int]) -> bool:
        """Whether the queues of these may lose all of them, the cheapest first."""
        lost: dict[str, dict[Cell, int]] = {}
        for group in reversed(put_back_first(chosen, self._costs)):
            for queue, amounts in self._removed(group).items():
                if not self._rules.foreign(queue):
                    continue
                if not self._rules.may_lose(queue, amounts, lost):
                    return False
                add(lost.setdefault(queue, {}), amounts)
        return True

    def enough(self, chosen: Iterable[int]) -> bool:
        """Whether the quota is there once these are gone."""
        return not self._rules.short(self._removed(chosen))

    def cheapest(self) -> frozenset[int] | None:
        """The cheapest whose going is enough, each needed; None where not even all are enough."""
        lacking = self._lack(self._rules.short({}))
        taken: list[VictimGroup] = []
        removed: dict[str, dict[Cell, int]] = {}
        for group in reversed(put_back_first(range(len(self._costs.victims)), self._costs)):
            if not lacking:
                break
            more = joined(removed, self._removed(group))
            left = self._lack(self._rules.short(more))
            if left < lacking and self.lawful({*group, *(index for each in taken for index in each)}):
                taken.append(group)
                removed, lacking = more, left
        if lacking:
            return None
        return self._needed(taken)

    def _needed(self, taken: list[VictimGroup]) -> frozenset[int]:
        """Without those that the others make needless, the dearest given back first."""
        going = {index for group in taken for index in group}
        for group in reversed(taken):
            if self.enough(going.difference(group)):
                going.difference_update(group)
        return frozenset(going)

    def _removed(self, chosen: Iterable[int]) -> dict[str, dict[Cell, int]]:
        found: dict[str, dict[Cell, int]] = {}
        for charge in filter(None, map(self._costs.charge, chosen)):
            if charge.counted_to is not None:
                add(found.setdefault(charge.counted_to, {}), cells_of(charge.pod_class))
        return found

    @staticmethod
    def _lack(short: tuple[Shortage, ...]) -> int:
        """How much is lacking in all; 0 where nothing is."""
        return sum(each.asked - each.room for each in short)
