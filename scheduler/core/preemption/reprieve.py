"""Putting victims back while everything still fits, and comparing all plans where only few could go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from scheduler.core.preemption.costs import GROWING, Cost, VictimCosts
from scheduler.core.preemption.victim_groups import VictimGroup, put_back_first

Fits: TypeAlias = Callable[[frozenset[int]], bool]
"""Whether everybody needed fits once these victims are gone."""

FEW_GROUPS = 16


def reprieve(chosen: Iterable[int], fits: Fits, costs: VictimCosts) -> frozenset[int]:
    """What must go of a set with which everything fits: nobody left in it can be put back."""
    left = frozenset(chosen)
    for group in put_back_first(left, costs):
        if fits(left - frozenset(group)):
            left -= frozenset(group)
    return left


def reprieve_in_bulk(chosen: Iterable[int], fits: Fits, costs: VictimCosts) -> frozenset[int]:
    """The same where asking is dear: halves are tried before their parts."""
    left = frozenset(chosen)
    waiting = [put_back_first(left, costs)]
    while waiting:
        part = waiting.pop()
        members = frozenset(index for group in part for index in group)
        if fits(left - members):
            left -= members
        elif len(part) > 1:
            waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
    return left


def at_most(tries: int, fits: Fits) -> Fits:
    """The answers as long as there are tries, then False: what is not asked any more counts as needed."""
    left = tries

    def answer(chosen: frozenset[int]) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fits(chosen)

    return answer


def least_cost(
    items: Sequence[VictimGroup], fits: Fits, costs: VictimCosts, known: frozenset[int] | None, tries: int
) -> frozenset[int] | None:
    """The cheapest plan out of the items, or the best one found where the tries are up before all were compared."""
    found = _Search(items, fits, costs, known, tries).run()
    return None if found is None else reprieve(found, fits, costs)


def items_of(pool: Iterable[int], costs: VictimCosts) -> list[VictimGroup]:
    """All possible victims: each pod that may be evicted alone, and each gang that may be evicted whole."""
    victims = costs.victims
    members = list(pool)
    singles = [(index,) for index in members if victims.alone[index]]
    gangs = sorted({int(victims.gangs[index]) for index in members if victims.gangs[index] >= 0})
    inside = set(members)
    whole = [
        victims.members(gang) for gang in gangs if victims.whole[gang] and inside.issuperset(victims.members(gang))
    ]
    return sorted(singles + whole, key=lambda group: sorted(costs.importance(index) for index in group))


class _Search:
    """Branch and bound; one item is in or out at each step."""

    def __init__(
        self, items: Sequence[VictimGroup], fits: Fits, costs: VictimCosts, known: frozenset[int] | None, tries: int
    ) -> None:
        self._items, self._fits, self._costs = items, fits, costs
        self._best = known
        self._cost: Cost | None = costs.cost(known) if known else None
        self._tries = tries

    def run(self) -> frozenset[int] | None:
        self._step(0, frozenset())
        return self._best

    def _step(self, number: int, chosen: frozenset[int]) -> None:
        if self._tries <= 0:
            return
        cost = self._costs.cost(chosen)
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

    def _may_join(self, item: VictimGroup, chosen: frozenset[int]) -> bool:
        """Not a gang and its members both, nor more members than the gang can spare."""
        if not chosen.isdisjoint(item):
            return False
        victims, gang = self._costs.victims, int(self._costs.victims.gangs[item[0]])
        if gang < 0:
            return True
        already = sum(1 for index in chosen if victims.gangs[index] == gang)
        if len(item) > 1 or not victims.alone[item[0]]:
            return already == 0
        return already < int(victims.surplus[gang])
