"""Victim groups: single pods, members of an elastic gang down to its minimum, and whole gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from math import fsum
from typing import TypeAlias

import numpy as np

from scheduler.core.preemption.costs import GANG, VictimCosts
from scheduler.core.snapshot.snapshot import Amounts

VictimGroup: TypeAlias = tuple[int, ...]
"""Indexes of victims that go together, ascending."""


def groups_of(chosen: Iterable[int], costs: VictimCosts) -> list[VictimGroup]:
    """The chosen victims by what may be put back by itself; a gang of which more than its surplus goes is one."""
    victims, every = costs.victims, sorted(set(chosen))
    gangs: list[int] = victims.gangs[every].tolist()
    singles: list[VictimGroup] = []
    members: dict[int, list[int]] = {}
    for index, gang in zip(every, gangs, strict=True):
        if gang < 0:
            singles.append((index,))
        else:
            members.setdefault(gang, []).append(index)
    for gang, own in members.items():
        if len(own) <= int(victims.surplus[gang]) and victims.alone[own].all():
            singles.extend((index,) for index in own)
        else:
            singles.append(tuple(own))
    return singles


def spread_to_gangs(chosen: Iterable[int], pool: Amounts, costs: VictimCosts) -> set[int]:
    """With all of a gang that cannot lose what is chosen of it; with none of it where a member is not in the pool."""
    victims = costs.victims
    found = set(chosen)
    every = list(found)
    gangs = victims.gangs[every]
    going = np.bincount(gangs[gangs >= 0], minlength=len(victims.surplus))
    inside = np.zeros(len(victims), bool)
    inside[pool] = True
    together = going > victims.surplus
    together[gangs[~victims.alone[every]]] = True
    for gang in np.flatnonzero(together).tolist():
        members = victims.members(gang)
        if victims.whole[gang] and inside[list(members)].all():
            found.update(members)
        else:
            found.difference_update(members)
    return found


def one_by_one(pool: Amounts, costs: VictimCosts) -> Amounts:
    """Those of the pool that may all go by themselves: of an elastic gang the least important of its surplus."""
    victims = costs.victims
    free = pool[victims.alone[pool]]
    members = free[victims.gangs[free] >= 0]
    if not len(members):
        return free
    return np.sort(np.concatenate([free[victims.gangs[free] < 0], _surplus(members, costs)]))


def _surplus(members: Amounts, costs: VictimCosts) -> Amounts:
    """Of each gang the least important of these members, as many as it can spare."""
    ordered = costs.by_importance(members, costs.victims.gangs[members])
    gangs = costs.victims.gangs[ordered]
    starts = np.flatnonzero(np.diff(gangs, prepend=-1))
    place = np.arange(len(gangs)) - np.repeat(starts, np.diff(starts, append=len(gangs)))
    return np.asarray(ordered[place < costs.victims.surplus[gangs]])


def put_back_first(chosen: Iterable[int], costs: VictimCosts) -> list[VictimGroup]:
    """In the order in which they are spared: those that break a budget first, then the most important."""
    chosen = list(chosen)
    return most_important_first(groups_of(chosen, costs), costs.violating(chosen), costs)


def most_important_first(
    groups: list[VictimGroup], violating: Collection[int], costs: VictimCosts
) -> list[VictimGroup]:
    """Those of `violating`, which break a budget, before all others."""
    order = _importances(groups, costs)
    alike = Counter(order)
    ranked = [
        (any(index in violating for index in group), *importance, _names(group, costs) if alike[importance] > 1 else ())
        for group, importance in zip(groups, order, strict=True)
    ]
    return [groups[at] for at in sorted(range(len(groups)), key=ranked.__getitem__, reverse=True)]


def least_important_first(singles: Amounts, costs: VictimCosts) -> Iterator[int]:
    """Pods that go by themselves and break no budget, in the order of `most_important_first` from its end.

    Names are looked at where they are reached: of thousands the first few are wanted as a rule.
    """
    ranks, lost = map(np.array, costs.weight(singles.tolist()))
    order = np.lexsort((lost, costs.kinds[singles], ranks))
    keys = (ranks[order], costs.kinds[singles[order]], lost[order])
    other = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    ordered: list[int] = singles[order].tolist()
    for begin, end in pairwise([0, *(np.flatnonzero(other) + 1).tolist(), len(ordered)]):
        alike = ordered[begin:end]
        yield from sorted(alike, key=costs.key) if len(alike) > 1 else alike


def _importances(groups: list[VictimGroup], costs: VictimCosts) -> list[tuple[int, int, int, float]]:
    """Higher rank, gangs before lone pods and these before what a gang can spare, larger gangs, more to lose."""
    every = [index for group in groups for index in group]
    ranks, lost = costs.weight(every)
    kinds: list[int] = costs.kinds[[group[0] for group in groups]].tolist()
    found, start = [], 0
    for group, kind in zip(groups, kinds, strict=True):
        if len(group) == 1:
            found.append((ranks[start], kind, 1, lost[start]))
        else:
            own = slice(start, start + len(group))
            found.append((max(ranks[own]), GANG, len(group), fsum(lost[own])))
        start += len(group)
    return found


def _names(group: VictimGroup, costs: VictimCosts) -> tuple[str, ...]:
    """They decide only where all else is equal, since they are dear."""
    return tuple(sorted(costs.key(index) for index in group))
