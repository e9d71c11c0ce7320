"""Topology domains: nodes that share the values of some labels, such as those of one block, or of one rack in it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from model.workload import TopologyLevel
from scheduler.core.placement.pack import pack
from scheduler.core.snapshot.snapshot import Amounts, NodeTraits


class Domains(msgspec.Struct, frozen=True, eq=False):
    """Per level, widest first: `codes` by row (−1: in no domain), and the names by code, in order of name.

    A domain is named by its own label's value after those of the levels around it; a node that lacks one of these
    labels is in no domain. `parents` are codes of the level around.
    """

    codes: tuple[Amounts, ...]
    names: tuple[tuple[tuple[str, ...], ...], ...]
    parents: tuple[Amounts, ...]

    def sums(self, numbers: Amounts, level: int, codes: Amounts) -> Amounts:
        """`numbers` summed by domain of a level, where `codes` (−1: none) say which domain each belongs to."""
        return np.bincount(codes + 1, numbers, len(self.names[level]) + 1)[1:].astype(np.int64)


def domains_of(traits: NodeTraits, keys: Sequence[str]) -> Domains:
    """The domains of nested labels."""
    paths = [tuple(labels.get(key) for key in keys) for labels in traits.labels]
    codes, names, parents = [], [], []
    around: dict[tuple[str, ...], int] = {}
    for depth in range(1, len(keys) + 1):
        named = [_named(path[:depth]) for path in paths]
        level = sorted({name for name in named if name is not None})
        code_of = {name: code for code, name in enumerate(level)}
        codes.append(np.array([-1 if name is None else code_of[name] for name in named], np.int64))
        names.append(tuple(level))
        parents.append(np.array([around.get(name[:-1], -1) for name in level], np.int64))
        around = code_of
    return Domains(tuple(codes), tuple(names), tuple(parents))


def _named(path: tuple[str | None, ...]) -> tuple[str, ...] | None:
    found = tuple(value for value in path if value is not None)
    return found if len(found) == len(path) else None


class TopologyDomains(msgspec.Struct, frozen=True, eq=False):
    """Domains, and the levels' word on how many members one may hold."""

    domains: Domains
    levels: tuple[TopologyLevel, ...]

    def slots(self, room: Amounts, level: int) -> Amounts:
        """Per domain of a level, how many members it holds in multiples of its level and of those inside it.

        `room` counts no node for more than all members, so that sums are exact.
        """
        if level + 1 < len(self.levels):
            inner, parents = self.slots(room, level + 1), self.domains.parents[level + 1]
        else:
            inner, parents = room, self.domains.codes[level]
        held = self.domains.sums(inner, level, parents)
        multiple = self.levels[level].multiple
        return held if multiple == 1 else held // multiple * multiple

    def allot(self, room: Amounts, want: int, level: int, code: int) -> Amounts:
        """Rows for up to `want` members in one domain, in as few and as well filled domains inside it as there are."""
        within = np.where(self.domains.codes[level] == code, room, 0)
        multiple = self.levels[level].multiple
        return self._over(within, want // multiple * multiple, level + 1)

    def everywhere(self, room: Amounts, want: int) -> Amounts:
        """Rows for up to `want` members in as few of the widest domains as possible."""
        return self._over(room, want, 0)

    def _over(self, room: Amounts, want: int, level: int) -> Amounts:
        """Over the domains of a level: the roomiest whole, the last the one that is filled best."""
        if level == len(self.levels) or want <= 0:
            return pack(room, want)
        slots = self.slots(np.minimum(room, want), level)
        chosen: list[Amounts] = []
        for _ in range(len(slots)):
            enough = np.flatnonzero(slots >= want)
            code = int(enough[slots[enough].argmin()]) if len(enough) else int(slots.argmax())
            rows = self.allot(room, min(want, int(slots[code])), level, code)
            if not len(rows):
                break
            chosen.append(rows)
            want -= len(rows)
            slots[code] = 0
            if want <= 0:
                break
        return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)
