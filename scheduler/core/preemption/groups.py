"""What goes together: single pods, members of an elastic gang down to its minimum, and whole gangs."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import TypeAlias

import numpy as np

from scheduler.core.preemption.stakes import Stakes
from scheduler.core.snapshot import Amounts

Group: TypeAlias = tuple[int, ...]
"""Indexes of victims that go together, ascending."""


def groups_of(chosen: Iterable[int], stakes: Stakes) -> list[Group]:
    """The chosen victims by what may be put back by itself; a gang of which more than its surplus goes is one."""
    herd = stakes.herd
    singles: list[Group] = []
    members: dict[int, list[int]] = {}
    for index in sorted(set(chosen)):
        if herd.gangs[index] < 0:
            singles.append((index,))
        else:
            members.setdefault(int(herd.gangs[index]), []).append(index)
    for gang, own in members.items():
        if len(own) <= int(herd.surplus[gang]):
            singles.extend((index,) for index in own)
        else:
            singles.append(tuple(own))
    return singles


def spread_to_gangs(chosen: Iterable[int], stakes: Stakes) -> set[int]:
    """With every member of the gangs that cannot lose what is chosen of them."""
    herd = stakes.herd
    found = set(chosen)
    if not found or not bool((herd.gangs[list(found)] >= 0).any()):
        return found
    for group in groups_of(found, stakes):
        gang = int(herd.gangs[group[0]])
        if len(group) > 1 or (gang >= 0 and not herd.alone[group[0]]):
            found.update(herd.members(gang))
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
    return sorted(groups, key=lambda group: (bool(violating & set(group)), _importance(group, stakes)), reverse=True)


def _importance(group: Group, stakes: Stakes) -> tuple[int, bool, int, float, tuple[str, ...]]:
    """Higher priority, members before lone pods, larger gangs, more to lose; then by name."""
    member = bool(stakes.herd.gangs[group[0]] >= 0)
    lost = fsum(stakes.lost_seconds(index) - stakes.started(index) * 1e-12 for index in group)
    names = tuple(sorted(stakes.key(index) for index in group))
    return (max(stakes.priority(index) for index in group), member, len(group), lost, names)
