"""What an eviction costs, so that of two plans that help the cheaper is taken.

Compared in this order: the highest priority that must go, disruption budgets broken, how many pods, the sum of their
priorities, work lost since the newest checkpoint, age (the younger go), and names last.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import fsum
from typing import TypeAlias

import numpy as np

from model.budget import DisruptionBudget
from model.pod import Pod
from scheduler.core.preemption.facts import PreemptionFacts
from scheduler.core.preemption.herd import Herd
from scheduler.core.residents import Residents
from scheduler.core.snapshot import Amounts

Cost: TypeAlias = tuple[int, int, int, int, float, float, tuple[str, ...]]


class Stakes:
    """Looks a victim's cost up the first time it is asked for."""

    def __init__(self, herd: Herd, residents: Residents, facts: PreemptionFacts, now: float) -> None:
        self.herd = herd
        self._residents, self._facts, self._now = residents, facts, now
        self._budgets: dict[int, tuple[int, ...]] = {}
        self._priorities = residents.priorities[herd.slots]
        self._started = residents.started[herd.slots]

    @cached_property
    def watched(self) -> frozenset[str]:
        """Namespaces with disruption budgets."""
        return frozenset(budget.namespace for budget in self._facts.budgets)

    def pod(self, index: int) -> Pod | None:
        return self._residents.pods[int(self.herd.slots[index])]

    def key(self, index: int) -> str:
        """`namespace/name`; the uid of a pod that is not known itself."""
        pod, charge = self.pod(index), self._residents.charges[int(self.herd.slots[index])]
        return pod.key if pod else charge.uid if charge else ""

    def uid(self, index: int) -> str:
        charge = self._residents.charges[int(self.herd.slots[index])]
        return charge.uid if charge else ""

    def subject(self, index: int) -> str:
        return self._residents.subject_names[int(self._residents.subjects[self.herd.slots[index]])]

    def started(self, index: int) -> float:
        return float(self._started[index])

    def priority(self, index: int) -> int:
        return int(self._priorities[index])

    def lost_seconds(self, index: int) -> float:
        """Work since the newest checkpoint; all of it where none is known, none before the pod started."""
        started = self.started(index)
        if started <= 0:
            return 0.0
        return max(0.0, self._now - max(started, self._facts.saved.get(self.uid(index), started)))

    def importance(self, index: int) -> tuple[int, bool, float, float, str]:
        """Sorts the least important first: lower priority, no gang, less to lose, younger, then by name."""
        own = (self.priority(index), bool(self.herd.gangs[index] >= 0), self.lost_seconds(index))
        return (*own, -self.started(index), self.key(index))

    def ranks(self, indexes: Amounts) -> Amounts:
        """The place of each by importance, the least important 0."""
        places = np.empty(len(indexes), np.int64)
        whole = np.zeros(len(indexes), np.int64)
        places[self._ordered(indexes, whole)] = np.arange(len(indexes))
        return places

    def by_importance(self, indexes: Amounts, groups: Amounts) -> Amounts:
        """The indexes by their group's number, of one group the least important first."""
        return np.asarray(indexes[self._ordered(indexes, groups)])

    def _ordered(self, indexes: Amounts, groups: Amounts) -> Amounts:
        """Positions in that order; names are looked at only where all else is equal, since they are dear."""
        member, started = self.herd.gangs[indexes] >= 0, -self._started[indexes]
        keys = (groups, self._priorities[indexes], member, self._lost[indexes], started)
        order = np.lexsort(keys[::-1])
        alike = np.ones(max(len(order) - 1, 0), bool)
        for key in keys:
            alike &= key[order[1:]] == key[order[:-1]]
        if not alike.any():
            return np.asarray(order)
        runs = np.concatenate([[0], np.cumsum(~alike)])
        tied = np.flatnonzero(np.concatenate([alike, [False]]) | np.concatenate([[False], alike]))
        names = {at: (int(runs[at]), self.key(int(indexes[order[at]]))) for at in tied.tolist()}
        order[tied] = order[sorted(names, key=names.__getitem__)]
        return np.asarray(order)

    @cached_property
    def _lost(self) -> Amounts:
        """`lost_seconds` of all."""
        lost = np.where(self._started > 0, np.maximum(0.0, self._now - self._started), 0.0)
        for index in self._saved():
            lost[index] = self.lost_seconds(index)
        return lost

    def _saved(self) -> list[int]:
        """Those of which a checkpoint is known."""
        slots = self._residents.slot_of
        known = np.array(sorted(slots[uid] for uid in self._facts.saved if uid in slots), np.int64)
        return list(np.flatnonzero(np.isin(self.herd.slots, known)).tolist()) if len(known) else []

    def violating(self, indexes: Iterable[int]) -> frozenset[int]:
        """Those that break a budget, counting the budgets down from the most important on as kube-scheduler does."""
        if not self._facts.budgets:
            return frozenset()
        left = [budget.allowed for budget in self._facts.budgets]
        broken: list[int] = []
        for index in sorted(indexes, key=self.importance, reverse=True):
            matched = self._matched(index)
            for number in matched:
                left[number] -= 1
            if any(left[number] < 0 for number in matched):
                broken.append(index)
        return frozenset(broken)

    def guarded(self, index: int) -> bool:
        """A budget that allows nothing more covers it."""
        return any(self._facts.budgets[number].allowed <= 0 for number in self._matched(index))

    def cost(self, indexes: Iterable[int]) -> Cost:
        """See the module's words."""
        chosen = sorted(indexes)
        return (
            max((self.priority(index) for index in chosen), default=-(1 << 31)),
            len(self.violating(chosen)),
            len(chosen),
            sum(self.priority(index) for index in chosen),
            fsum(self.lost_seconds(index) for index in chosen),
            -fsum(self.started(index) for index in chosen),
            tuple(sorted(self.key(index) for index in chosen)),
        )

    def _matched(self, index: int) -> tuple[int, ...]:
        pod = self.pod(index)
        if pod is None or pod.namespace not in self.watched:
            return ()
        if index not in self._budgets:
            budgets = enumerate(self._facts.budgets)
            self._budgets[index] = tuple(number for number, budget in budgets if covers(budget, pod))
        return self._budgets[index]


def covers(budget: DisruptionBudget, pod: Pod) -> bool:
    """Whether evicting the pod uses up the budget; one it has already counted as going does not."""
    if budget.namespace != pod.namespace or pod.name in budget.disrupted:
        return False
    return bool(budget.selector.requirements) and budget.selector.matches(pod.labels)
