"""Disruption budgets: which victims break them, and which would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from model.budget import DisruptionBudget
from model.pod import Pod
from scheduler.core.preemption.herd import Herd
from scheduler.core.residents import Residents
from scheduler.core.snapshot import Amounts, Mask


class Guards:
    """By index of a victim; which budgets cover it is looked up the first time it is asked for."""

    def __init__(self, herd: Herd, residents: Residents, budgets: Sequence[DisruptionBudget]) -> None:
        self._herd, self._residents, self._budgets = herd, residents, tuple(budgets)
        self._known: dict[int, tuple[int, ...]] = {}

    @cached_property
    def watched(self) -> frozenset[str]:
        """Namespaces with disruption budgets."""
        return frozenset(budget.namespace for budget in self._budgets)

    def broken_by(self, ranked: Iterable[int]) -> frozenset[int]:
        """Those that break a budget; `ranked`: in the order in which they use budgets up."""
        left = [budget.allowed for budget in self._budgets]
        broken: list[int] = []
        for index in ranked:
            numbers = self._numbers(index)
            for number in numbers:
                left[number] -= 1
            if any(left[number] < 0 for number in numbers):
                broken.append(index)
        return frozenset(broken)

    def closed(self, indexes: Amounts) -> Mask:
        """Which of them a budget covers that allows nothing more."""
        if not self.watched:
            return np.zeros(len(indexes), bool)
        return np.array([self._closed(index) for index in indexes.tolist()], bool)

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
        """Of the budgets that cover the victim."""
        pod = self._residents.pods[int(self._herd.slots[index])]
        if pod is None or pod.namespace not in self.watched:
            return ()
        if index not in self._known:
            self._known[index] = tuple(n for n, budget in enumerate(self._budgets) if covers(budget, pod))
        return self._known[index]


def covers(budget: DisruptionBudget, pod: Pod) -> bool:
    """Whether evicting the pod uses up the budget; one it has already counted as going does not."""
    if budget.namespace != pod.namespace or pod.name in budget.disrupted:
        return False
    return bool(budget.selector.requirements) and budget.selector.matches(pod.labels)
