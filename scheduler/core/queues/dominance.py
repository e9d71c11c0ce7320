"""Dominance: the dominant share of each queue of a tree (DRF), and the number by which the order compares them.

A weighted share is amount / (total · weight). In parts of the least common multiple of all totals each amount / total
is a whole number, and two of these divided by weights differ, if at all, by at least 1 / weight², with the largest
weight that there is. So in units of a power of two that is smaller than that, rounded down, weighted shares are whole
numbers that are equal where the shares are and in the same order where not. Whole numbers are compared much faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import lcm
from typing import TypeAlias

from model.queue import Cell
from scheduler.core.queues.book import Balance, Book
from scheduler.core.queues.shares import Amounts, Share, ShareKey, dominant_share
from scheduler.core.queues.tree import QueueTree

_Part: TypeAlias = tuple[int, Balance, tuple[Balance, ...]]
"""Of one resource: what a unit of it makes of the key, the node's balance, and those of further flavours."""
_Parts: TypeAlias = tuple[int, Sequence[_Part], tuple[str, ...]]
"""The node's weight, a part for each resource, and the names above it."""


class _Keys(dict[str, ShareKey]):
    """By node, made where it is asked for, with those of the nodes above it, which are charged and asked for with it.
    Those of names that no queue has are not kept, since anybody may write any number of these.
    """

    def __init__(self, dominance: Dominance) -> None:
        self._dominance = dominance
        self.parts: dict[str, _Parts] = {}

    def __missing__(self, node: str) -> ShareKey:
        parts = self.parts
        found = parts.get(node)
        if found is None:
            key = self._dominance.measured(node)
            if node in self._dominance.queues:
                self[node] = key
            return key
        weight, own, names = found
        self[node] = key = _key(weight, own)
        for name in names:
            if name in self or (found := parts.get(name)) is None:
                break
            self[name] = _key(found[0], found[1])
        return key


def _key(weight: int, parts: Sequence[_Part]) -> int:
    key = 0
    for unit, balance, flavors in parts:
        part = balance.used * unit
        if flavors:
            part += sum([each.used for each in flavors]) * unit
        if part > key:
            key = part
    return key if weight == 1 else key // weight


class Dominance:
    """A node's key is kept until its path is charged.

    `key` answers for a node as its share divided by its weight, beside those of other nodes at the same moment.
    """

    def __init__(self, tree: QueueTree, cells: Iterable[Cell], book_of: Callable[[Cell], Book]) -> None:
        self.queues = tree.queues
        self._path = tree.path
        self._measure: Callable[[str], ShareKey] | None = None
        self._keys = _Keys(self)
        self.key: Callable[[str], ShareKey] = self._keys.__getitem__
        self._places = 2 * max((queue.weight for queue in tree.queues.values()), default=1).bit_length()
        self._cells = list(cells)
        self._book_of = book_of
        self._totals: dict[str, int] = {}
        self._multiple = 1
        self._by_resource: Sequence[tuple[str, int, tuple[Book, ...]]] | None = None

    def by(self, measure: Callable[[str], ShareKey]) -> None:
        """From now on `measure` gives the keys, in place of shares of this moment."""
        self._measure = measure
        self._forget_parts()
        self._keys.clear()

    def renew(self, capacity: Amounts) -> None:
        """There is so much now; flavours of a resource count together."""
        totals: dict[str, int] = {}
        for (_, resource), amount in capacity.items():
            totals[resource] = totals.get(resource, 0) + amount
        if totals != self._totals:
            self._totals = totals
            self._multiple = lcm(*(total for total in totals.values() if total > 0)) << self._places
            self._forget_parts()
            self._keys.clear()
        elif self._measure is not None:
            self._keys.clear()

    def add(self, cell: Cell) -> None:
        """This one is used as well from now on, by those that are charged."""
        self._cells.append(cell)
        self._forget_parts()

    def _forget_parts(self) -> None:
        self._by_resource = None
        self._keys.parts.clear()

    def charged(self, path: Iterable[str]) -> None:
        """What these nodes use has changed."""
        keys = self._keys
        for node in path:
            keys.pop(node, None)

    def share(self, node: str) -> Share:
        """Of what it uses, not divided by its weight."""
        amounts = {name: sum(book.of(node).used for book in books) for name, _, books in self._resources()}
        return dominant_share(amounts, self._totals)

    def measured(self, node: str) -> ShareKey:
        """The key; what it is made of is kept where it is made of what is used."""
        if self._measure is not None:
            return self._measure(node)
        known = self.queues.get(node)
        # Balances are objects that stay the same when they change.
        parts = [
            (unit, books[0].of(node), tuple([book.of(node) for book in books[1:]]) if len(books) > 1 else ())
            for _, unit, books in self._resources()
        ]
        weight = 1 if known is None else max(1, known.weight)
        if known is not None:
            self._keys.parts[node] = weight, parts, self._path(node)[1:]
        return _key(weight, parts)

    def _resources(self) -> Sequence[tuple[str, int, tuple[Book, ...]]]:
        """Those that are used and that there are: name, what a unit makes of a key, and a book for each flavour that is
        used.
        """
        if self._by_resource is None:
            found: dict[str, list[Book]] = {}
            for cell in self._cells:
                if self._totals.get(cell[1], 0) > 0:
                    found.setdefault(cell[1], []).append(self._book_of(cell))
            multiple, totals = self._multiple, self._totals
            self._by_resource = [(name, multiple // totals[name], tuple(books)) for name, books in found.items()]
        return self._by_resource
