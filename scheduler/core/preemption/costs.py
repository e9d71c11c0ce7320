"""Costs of evictions, by which the cheaper of two plans that help is taken.

Compared in this order: whether pods outside the mid, batch and free bands go, disruption budgets broken, the highest
priority that must go, how many pods outside these bands whose jobs do not go on without them (all but what gangs can
spare), how many outside at all, how many whose jobs do not go on, how many pods, the sum of their priorities, nodes and
lost work together, work lost since the newest checkpoint, age (the younger go), and names last.

Lost work counts by its order of magnitude: a doubling of the work that one pod loses weighs as much as one more node
that loses pods. So pods of about one age go from few nodes, and days are not lost where minutes would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import fsum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.residents import Residents
from scheduler.core.preemption.budgets import DisruptionBudgets
from scheduler.core.preemption.facts import PreemptionFacts
from scheduler.core.preemption.victims import OUTSIDE, Victims, sorted_by
from scheduler.core.snapshot.snapshot import Amounts, Mask

Price: TypeAlias = tuple[bool, int, int, int, int, int, int, int, int, float, float]
Cost: TypeAlias = tuple[Price, tuple[str, ...]]
GROWING = 7
"""So many parts of a price, from the first on, only grow where more pods go."""
NODE = 256
"""Price of a node that loses pods, and of a doubling of the work that a pod loses."""
SPARE, LONE, GANG = 0, 1, 2
"""Kinds of victims, the least important first: what a gang can spare, pods by themselves, gangs."""
_FIRST_DOUBLING_SECONDS = 60.0
_MANY = 1e4


class VictimCosts:
    """Looks a victim's cost up the first time it is asked for."""

    def __init__(self, victims: Victims, residents: Residents, facts: PreemptionFacts, now: float) -> None:
        self.victims = victims
        self._residents, self._facts, self._now = residents, facts, now
        self.budgets = DisruptionBudgets(victims, residents, facts.budgets)
        self._priorities = residents.priorities[victims.slots]
        self._started = residents.started[victims.slots]

    def pod(self, index: int) -> Pod | None:
        return self._residents.pods[int(self.victims.slots[index])]

    def charge(self, index: int) -> Charge | None:
        return self._residents.charges[int(self.victims.slots[index])]

    def key(self, index: int) -> str:
        """`namespace/name`; the uid of a pod that is not known itself."""
        pod = self.pod(index)
        return pod.key if pod else self.uid(index)

    def uid(self, index: int) -> str:
        charge = self.charge(index)
        return charge.uid if charge else ""

    def named(self, indexes: list[int]) -> Iterator[tuple[Pod | None, str, WorkloadId]]:
        """Of each its pod, its uid and its subject."""
        residents, slots = self._residents, self.victims.slots[indexes]
        for slot, number in zip(slots.tolist(), residents.subjects[slots].tolist(), strict=True):
            charge = residents.charges[slot]
            yield residents.pods[slot], charge.uid if charge else "", residents.subject_names[number]

    def subject(self, index: int) -> WorkloadId:
        return self._residents.subject_names[int(self._residents.subjects[self.victims.slots[index]])]

    def started(self, index: int) -> float:
        return float(self._started[index])

    def weight(self, chosen: list[int]) -> tuple[list[int], list[float]]:
        """Of each its rank, and the seconds lost, where those of younger pods count a trifle less."""
        lost = self.lost[chosen] - self._started[chosen] * 1e-12
        return self.victims.ranks[chosen].tolist(), lost.tolist()

    def priorities(self, indexes: Amounts) -> Amounts:
        return np.asarray(self._priorities[indexes])

    def losses(self, indexes: Amounts | list[int]) -> Amounts:
        """The price of the work that each loses."""
        doublings = np.log2(1.0 + self.lost[indexes] / _FIRST_DOUBLING_SECONDS)
        return np.asarray(np.rint(NODE * doublings).astype(np.int64))

    def lost_seconds(self, index: int) -> float:
        """Work since the newest checkpoint; all of it where none is known, none before the pod started."""
        return float(self.lost[index])

    @cached_property
    def kinds(self) -> Amounts:
        """SPARE, LONE or GANG of each."""
        return np.asarray(np.where(self.victims.gangs < 0, LONE, np.where(self.victims.alone, SPARE, GANG)))

    def ended(self, chosen: list[int]) -> Mask:
        """Which of these have a job that does not go on without them: of a gang none, or all that go."""
        victims = self.victims
        if not self._spares:
            return np.ones(len(chosen), bool)
        gangs = victims.gangs[chosen]
        going = np.bincount(gangs[gangs >= 0], minlength=len(victims.surplus))
        ends = going > victims.surplus
        ends[gangs[~victims.alone[chosen]]] = True
        return np.asarray((gangs < 0) | ends[gangs])

    @cached_property
    def _spares(self) -> bool:
        """Whether there is any that a gang can spare."""
        return bool(self.victims.spare.any())

    def importance(self, index: int) -> tuple[int, int, float, float, str]:
        """Sorts the least important first: lower rank, the kind, less to lose, younger, then by name."""
        own = (int(self.victims.ranks[index]), int(self.kinds[index]), self.lost_seconds(index))
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
        started, ranks = -self._started[indexes], self.victims.ranks[indexes]
        order = np.argsort(started)
        keys: list[npt.NDArray[Any]] = [started]
        if self._facts.saved or (len(started) and started.max() >= 0):
            keys.append(self.lost[indexes])
            order = sorted_by(keys[-1], order)
        for key in (self.kinds[indexes], ranks, groups):
            lowest = key.min(initial=np.iinfo(np.int64).max)
            if bool((key != lowest).any()):
                keys.append(key - lowest)
                order = sorted_by(keys[-1], order)
        return keys, order

    @cached_property
    def lost(self) -> npt.NDArray[np.float64]:
        """`lost_seconds` of all."""
        since = np.maximum(self._started, self._saved) if self._facts.saved else self._started
        return np.asarray(np.where(self._started > 0, np.maximum(0.0, self._now - since), 0.0))

    @property
    def _saved(self) -> npt.NDArray[np.float64]:
        """Since when the work of each is safe; 0 where that is not known."""
        residents = self._residents
        known = [(residents.slot_of[uid], at) for uid, at in self._facts.saved.items() if uid in residents.slot_of]
        slots = np.array([slot for slot, _ in known], np.int64)
        own = np.zeros(len(residents.rows))
        own[slots] = [at for _, at in known]
        return np.asarray(own[self.victims.slots])

    def violating(self, indexes: Iterable[int]) -> frozenset[int]:
        """Those that break a budget, counting the budgets down from the most important on as kube-scheduler does."""
        if not self.budgets.watched:
            return frozenset()
        return self.budgets.broken_by(sorted(indexes, key=self.importance, reverse=True))

    @cached_property
    def protected(self) -> tuple[Mask, ...]:
        """Victims protected before priority counts, the most protected last; what holds of all or none is left out."""
        masks = (self.victims.ranks >= OUTSIDE, self.budgets.closed)
        return tuple(mask for mask in masks if mask.any() and not mask.all())

    @cached_property
    def burdens(self) -> npt.NDArray[np.float64]:
        """What each counts where pods are only counted: those protected before priority counts as very many, and among
        others what a gang can spare next to nothing.
        """
        return np.asarray(self._protections + np.where(self.victims.spare, 1 / _MANY, 1.0))

    @cached_property
    def gang_burdens(self) -> npt.NDArray[np.float64]:
        """Of each gang together, by its number."""
        sizes = np.diff(self.victims.ends, prepend=0).astype(float)
        if not self.protected:
            return sizes
        by_gang = self.victims.by_gang
        gangs, protections = self.victims.gangs[by_gang], self._protections[by_gang]
        return sizes + np.bincount(gangs, weights=protections, minlength=len(sizes))

    @cached_property
    def _protections(self) -> npt.NDArray[np.float64]:
        counts = np.zeros(len(self.victims))
        for power, mask in enumerate(self.protected, 1):
            counts += _MANY**power * mask
        return counts

    def cost(self, indexes: Iterable[int]) -> Cost:
        """See the module's words."""
        chosen = list(indexes)
        return self._price(chosen), tuple(sorted(self.key(index) for index in chosen))

    def cheapest(self, plans: Sequence[frozenset[int]]) -> frozenset[int] | None:
        """The plan of the lowest cost; names are looked at only where all else is equal, since they are dear."""
        if len(plans) < 2:
            return plans[0] if plans else None
        prices = [self._price(list(plan)) for plan in plans]
        lowest = min(prices)
        found = [plan for plan, price in zip(plans, prices, strict=True) if price == lowest]
        return min(found, key=self.cost) if len(found) > 1 else found[0]

    def _price(self, chosen: list[int]) -> Price:
        """The cost without names."""
        victims, ranks = self.victims, self.victims.ranks[chosen]
        highest = int(ranks.max(initial=np.iinfo(np.int64).min))
        outside, ended = ranks >= OUTSIDE, self.ended(chosen)
        return (
            highest >= OUTSIDE,
            len(self.violating(chosen)),
            highest,
            int(np.count_nonzero(outside & ended)),
            int(np.count_nonzero(outside)),
            int(np.count_nonzero(ended)),
            len(chosen),
            int(self._priorities[chosen].sum()),
            NODE * len(np.unique(victims.rows[chosen])) + int(self.losses(chosen).sum()),
            fsum(self.lost[chosen].tolist()),
            -fsum(self._started[chosen].tolist()),
        )
