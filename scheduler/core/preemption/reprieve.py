"""Putting victims back while everything still fits, and comparing all plans where only few could go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from scheduler.core.preemption.costs import GROWING, Cost, Stakes
from scheduler.core.preemption.victim_groups import Group, put_back_first

Fits: TypeAlias = Callable[[frozenset[int]], bool]
"""Whether everybody needed fits once these victims are gone."""

FEW_GROUPS = 16


def spare(chosen: Iterable[int], fits: Fits, stakes: Stakes) -> frozenset[int]:
    """What must go of a set with which everything fits: nobody left in it can be put back."""
    left = frozenset(chosen)
    for group in put_back_first(left, stakes):
        if fits(left - frozenset(group)):
            left -= frozenset(group)
    return left


def spare_in_bulk(chosen: Iterable[int], fits: Fits, stakes: Stakes) -> frozenset[int]:
    """The same where asking is dear: halves are tried before their parts."""
    left = frozenset(chosen)
    waiting = [put_back_first(left, stakes)]
    while waiting:
        part = waiting.pop()
        members = frozenset(index for group in part for index in group)
        if fits(left - members):
            left -= members
        elif len(part) > 1:
            waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
    return left


def least_cost(
    items: Sequence[Group], fits: Fits, stakes: Stakes, known: frozenset[int] | None, tries: int
) -> frozenset[int] | None:
    """The cheapest plan out of the items, or the best one found where the tries are up before all were compared."""
    found = _Search(items, fits, stakes, known, tries).run()
    return None if found is None else spare(found, fits, stakes)


def items_of(pool: Iterable[int], stakes: Stakes) -> list[Group]:
    """All that might go: each pod that may go alone, and each gang that may go whole."""
    herd = stakes.herd
    members = list(pool)
    singles = [(index,) for index in members if herd.alone[index]]
    gangs = sorted({int(herd.gangs[index]) for index in members if herd.gangs[index] >= 0})
    inside = set(members)
    whole = [herd.members(gang) for gang in gangs if herd.whole[gang] and inside.issuperset(herd.members(gang))]
    return sorted(singles + whole, key=lambda group: sorted(stakes.importance(index) for index in group))


class _Search:
    """Branch and bound; one item is in or out at each step."""

    def __init__(
        self, items: Sequence[Group], fits: Fits, stakes: Stakes, known: frozenset[int] | None, tries: int
    ) -> None:
        self._items, self._fits, self._stakes = items, fits, stakes
        self._best = known
        self._cost: Cost | None = stakes.cost(known) if known else None
        self._tries = tries

    def run(self) -> frozenset[int] | None:
        self._step(0, frozenset())
        return self._best

    def _step(self, number: int, chosen: frozenset[int]) -> None:
        if self._tries <= 0:
            return
        cost = self._stakes.cost(chosen)
        if self._cost is not None and cost[0][:GROWING] > self._cost[0][:GROWING]:
            return
        if self._asked(chosen):
            if self._cost is None or cost < self._cost:
                self._best, self._cost = chosen, cost
            return
        rest = self._items[number:]
        if not rest or not self._asked(chosen.union(*rest)):
            return
        if self._may_join(rest[0], chosen):
            self._step(number + 1, chosen.union(rest[0]))
        self._step(number + 1, chosen)

    def _asked(self, chosen: frozenset[int]) -> bool:
        self._tries -= 1
        return self._fits(chosen)

    def _may_join(self, item: Group, chosen: frozenset[int]) -> bool:
        """Not a gang and its members both, nor more members than the gang can spare."""
        if not chosen.isdisjoint(item):
            return False
        herd, gang = self._stakes.herd, int(self._stakes.herd.gangs[item[0]])
        if gang < 0:
            return True
        already = sum(1 for index in chosen if herd.gangs[index] == gang)
        if len(item) > 1 or not herd.alone[item[0]]:
            return already == 0
        return already < int(herd.surplus[gang])
