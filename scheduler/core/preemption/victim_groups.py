"""What goes together: single pods, members of an elastic gang down to its minimum, and whole gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum
from typing import TypeAlias

import numpy as np

from scheduler.core.picture.snapshot import Amounts
from scheduler.core.preemption.costs import Stakes

Group: TypeAlias = tuple[int, ...]
"""Indexes of victims that go together, ascending."""


def groups_of(chosen: Iterable[int], stakes: Stakes) -> list[Group]:
    """The chosen victims by what may be put back by itself; a gang of which more than its surplus goes is one."""
    herd, every = stakes.herd, sorted(set(chosen))
    gangs: list[int] = herd.gangs[every].tolist()
    singles: list[Group] = []
    members: dict[int, list[int]] = {}
    for index, gang in zip(every, gangs, strict=True):
        if gang < 0:
            singles.append((index,))
        else:
            members.setdefault(gang, []).append(index)
    for gang, own in members.items():
        if len(own) <= int(herd.surplus[gang]):
            singles.extend((index,) for index in own)
        else:
            singles.append(tuple(own))
    return singles


def spread_to_gangs(chosen: Iterable[int], pool: Amounts, stakes: Stakes) -> set[int]:
    """With all of a gang that cannot lose what is chosen of it; with none of it where a member is not in the pool."""
    herd = stakes.herd
    found = set(chosen)
    gangs = herd.gangs[list(found)]
    going = np.bincount(gangs[gangs >= 0], minlength=len(herd.surplus))
    inside = np.zeros(len(herd), bool)
    inside[pool] = True
    for gang in np.flatnonzero(going > herd.surplus).tolist():
        members = herd.members(gang)
        if herd.whole[gang] and inside[list(members)].all():
            found.update(members)
        else:
            found.difference_update(members)
    return found


def one_by_one(pool: Amounts, stakes: Stakes) -> Amounts:
    """Those of the pool that may all go by themselves: of an elastic gang the least important of its surplus."""
    herd = stakes.herd
    free = pool[herd.alone[pool]]
    members = free[herd.gangs[free] >= 0]
    if not len(members):
        return free
    return np.sort(np.concatenate([free[herd.gangs[free] < 0], _surplus(members, stakes)]))


def _surplus(members: Amounts, stakes: Stakes) -> Amounts:
    """Of each gang the least important of these members, as many as it can spare."""
    ordered = stakes.by_importance(members, stakes.herd.gangs[members])
    gangs = stakes.herd.gangs[ordered]
    starts = np.flatnonzero(np.diff(gangs, prepend=-1))
    place = np.arange(len(gangs)) - np.repeat(starts, np.diff(starts, append=len(gangs)))
    return np.asarray(ordered[place < stakes.herd.surplus[gangs]])


def put_back_first(chosen: Iterable[int], stakes: Stakes) -> list[Group]:
    """In the order in which they are spared: those that break a budget first, then the most important."""
    chosen = list(chosen)
    violating = stakes.violating(chosen)
    groups = groups_of(chosen, stakes)
    order = _importances(groups, stakes)
    alike = Counter(order)
    ranked = [
        (not violating.isdisjoint(group), *importance, _names(group, stakes) if alike[importance] > 1 else ())
        for group, importance in zip(groups, order, strict=True)
    ]
    return [groups[at] for at in sorted(range(len(groups)), key=ranked.__getitem__, reverse=True)]


def _importances(groups: list[Group], stakes: Stakes) -> list[tuple[int, bool, int, float]]:
    """Higher standing, members before lone pods, larger gangs, more to lose."""
    every = [index for group in groups for index in group]
    standings, lost = stakes.weight(every)
    member = (stakes.herd.gangs[[group[0] for group in groups]] >= 0).tolist()
    found, start = [], 0
    for group, inside in zip(groups, member, strict=True):
        if len(group) == 1:
            found.append((standings[start], inside, 1, lost[start]))
        else:
            own = slice(start, start + len(group))
            found.append((max(standings[own]), inside, len(group), fsum(lost[own])))
        start += len(group)
    return found


def _names(group: Group, stakes: Stakes) -> tuple[str, ...]:
    """They decide only where all else is equal, since they are dear."""
    return tuple(sorted(stakes.key(index) for index in group))
