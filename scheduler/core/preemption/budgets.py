"""Disruption budgets: which victims break them, and which would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from model.budget import DisruptionBudget
from scheduler.core.ledger.residents import Residents
from scheduler.core.preemption.budget_index import index_of
from scheduler.core.preemption.victims import Victims
from scheduler.core.snapshot.snapshot import Amounts, Mask


class DisruptionBudgets:
    """By index of a victim."""

    def __init__(self, victims: Victims, residents: Residents, budgets: Sequence[DisruptionBudget]) -> None:
        self._victims, self._residents, self._budgets = victims, residents, tuple(budgets)
        self._index = index_of(self._budgets)

    @property
    def watched(self) -> frozenset[str]:
        """Namespaces with disruption budgets."""
        return self._index.watched

    def broken_by(self, ranked: Iterable[int]) -> frozenset[int]:
        """Those that break a budget; `ranked`: in the order in which they use budgets up."""
        left: dict[int, int] = {}
        broken: list[int] = []
        for index in ranked:
            numbers = self._numbers(index)
            for number in numbers:
                left[number] = left.get(number, self._budgets[number].allowed) - 1
            if any(left[number] < 0 for number in numbers):
                broken.append(index)
        return frozenset(broken)

    @cached_property
    def closed(self) -> Mask:
        """Which of all victims a budget covers that allows nothing more."""
        if all(budget.allowed > 0 for budget in self._budgets):
            return np.zeros(len(self._victims), bool)
        return np.array([self._closed(index) for index in range(len(self._victims))], bool)

    def pressed(self, indexes: Amounts, ranks: Amounts) -> Mask:
        """Which of them break a budget if all do go: of each budget all but as many as it allows, the lowest ranks."""
        found = np.zeros(len(indexes), bool)
        if not self.watched:
            return found
        covered: dict[int, list[int]] = {}
        for position, index in enumerate(indexes.tolist()):
            for number in self._numbers(index):
                covered.setdefault(number, []).append(position)
        for number, positions in covered.items():
            ordered = sorted(positions, key=ranks.__getitem__)
            found[ordered[max(0, self._budgets[number].allowed) :]] = True
        return found

    def _closed(self, index: int) -> bool:
        return any(self._budgets[number].allowed <= 0 for number in self._numbers(index))

    def _numbers(self, index: int) -> tuple[int, ...]:
        """Of the budgets that cover the victim; one that has already counted it as going does not."""
        slot = int(self._victims.slots[index])
        pod, charge = self._residents.pods[slot], self._residents.charges[slot]
        if pod is None or charge is None or pod.namespace not in self.watched:
            return ()
        found = self._index.covering(charge.pod_traits)
        return tuple(number for number in found if pod.name not in self._budgets[number].disrupted) if found else ()
