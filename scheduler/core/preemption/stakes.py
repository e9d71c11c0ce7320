"""What an eviction costs, so that of two plans that help the cheaper is taken.

Compared in this order: the highest priority that must go, disruption budgets broken, how many pods, the sum of their
priorities, work lost since the newest checkpoint, age (the younger go), and names last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import fsum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from model.budget import DisruptionBudget
from model.pod import Pod
from scheduler.core.preemption.facts import PreemptionFacts
from scheduler.core.preemption.herd import Herd, sorted_by
from scheduler.core.residents import Residents
from scheduler.core.snapshot import Amounts, Mask

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
        pod = self.pod(index)
        return pod.key if pod else self.uid(index)

    def uid(self, index: int) -> str:
        charge = self._residents.charges[int(self.herd.slots[index])]
        return charge.uid if charge else ""

    def named(self, indexes: list[int]) -> Iterator[tuple[Pod | None, str, str]]:
        """Of each its pod, its uid and its subject."""
        residents, slots = self._residents, self.herd.slots[indexes]
        for slot, number in zip(slots.tolist(), residents.subjects[slots].tolist(), strict=True):
            charge = residents.charges[slot]
            yield residents.pods[slot], charge.uid if charge else "", residents.subject_names[number]

    def subject(self, index: int) -> str:
        return self._residents.subject_names[int(self._residents.subjects[self.herd.slots[index]])]

    def started(self, index: int) -> float:
        return float(self._started[index])

    def priority(self, index: int) -> int:
        return int(self._priorities[index])

    def weight(self, chosen: list[int]) -> tuple[list[int], list[float]]:
        """Of each its priority, and the seconds lost, where those of younger pods count a trifle less."""
        lost = self.lost[chosen] - self._started[chosen] * 1e-12
        return self._priorities[chosen].tolist(), lost.tolist()

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
        keys, order = self._sorted(indexes, groups)
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

    def _sorted(self, indexes: Amounts, groups: Amounts) -> tuple[list[npt.NDArray[Any]], Amounts]:
        """What decides but for names, and positions in that order; one key after the other, the least important first.

        Where all have started and no checkpoint is known, the younger have lost less: age is enough then.
        """
        started, priorities = -self._started[indexes], self._priorities[indexes]
        order = np.argsort(started)
        keys: list[npt.NDArray[Any]] = [started]
        if self._facts.saved or (len(started) and started.max() >= 0):
            keys.append(self.lost[indexes])
            order = sorted_by(keys[-1], order)
        for key in ((self.herd.gangs[indexes] >= 0).astype(np.int64), priorities, groups):
            lowest = key.min(initial=np.iinfo(np.int64).max)
            if bool((key != lowest).any()):
                keys.append(key - lowest)
                order = sorted_by(keys[-1], order)
        return keys, order

    @cached_property
    def lost(self) -> Amounts:
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

    def guarded(self, indexes: Amounts) -> Mask:
        """Which of them a budget covers that allows nothing more."""
        if not self.watched:
            return np.zeros(len(indexes), bool)
        return np.array([self._guarded(index) for index in indexes.tolist()], bool)

    def cost(self, indexes: Iterable[int]) -> Cost:
        """See the module's words."""
        chosen = list(indexes)
        return (*self._price(chosen), tuple(sorted(self.key(index) for index in chosen)))

    def cheapest(self, plans: Sequence[frozenset[int]]) -> frozenset[int] | None:
        """The plan of the lowest cost; names are looked at only where all else is equal, since they are dear."""
        if len(plans) < 2:
            return plans[0] if plans else None
        prices = [self._price(list(plan)) for plan in plans]
        lowest = min(prices)
        found = [plan for plan, price in zip(plans, prices, strict=True) if price == lowest]
        return min(found, key=self.cost) if len(found) > 1 else found[0]

    def _price(self, chosen: list[int]) -> tuple[int, int, int, int, float, float]:
        """The cost without names."""
        priorities = self._priorities[chosen]
        return (
            int(priorities.max()) if chosen else -(1 << 31),
            len(self.violating(chosen)),
            len(chosen),
            int(priorities.sum()),
            fsum(self.lost[chosen].tolist()),
            -fsum(self._started[chosen].tolist()),
        )

    def _guarded(self, index: int) -> bool:
        return any(self._facts.budgets[number].allowed <= 0 for number in self._matched(index))

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
