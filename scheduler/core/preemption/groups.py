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
    kept = [index for gang in np.unique(herd.gangs[members]).tolist() for index in _surplus(gang, members, stakes)]
    return np.sort(np.concatenate([free[herd.gangs[free] < 0], np.array(kept, np.int64)]))


def _surplus(gang: int, members: Amounts, stakes: Stakes) -> list[int]:
    own = members[stakes.herd.gangs[members] == gang].tolist()
    return sorted(own, key=stakes.importance)[: int(stakes.herd.surplus[gang])]


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
