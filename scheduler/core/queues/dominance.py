"""Dominance: the dominant share of each queue of a tree (DRF), and the number by which the order compares them.

A weighted share is amount / (total · weight). Two that differ do so by at least 1 / (total · weight)², with the largest
total and weight that there are; so in units of a power of two that is smaller than that, rounded down, they are whole
numbers that are equal where the shares are and in the same order where not. Whole numbers are compared much faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from model.queue import Cell
from scheduler.core.queues.book import Balance, Book
from scheduler.core.queues.shares import Amounts, Share, ShareKey, dominant_share
from scheduler.core.queues.tree import QueueTree


class Dominance:
    """A node's key is kept until its path is charged. `measure` gives other keys in place of shares of this moment."""

    def __init__(self, tree: QueueTree, cells: Iterable[Cell], book_of: Callable[[Cell], Book]) -> None:
        self.measure: Callable[[str], ShareKey] | None = None
        self._queues = tree.queues
        self._weights = {name: queue.weight for name, queue in tree.queues.items() if queue.weight > 1}
        self._cells = list(cells)
        self._book_of = book_of
        self._totals: dict[str, int] = {}
        self._bits = 0
        self._by_resource: Sequence[tuple[str, int, tuple[Book, ...]]] | None = None
        self._balances: dict[str, tuple[tuple[int, tuple[Balance, ...]], ...]] = {}
        self._keys: dict[str, ShareKey] = {}

    def renew(self, capacity: Amounts) -> None:
        """There is so much now; flavours of a resource count together."""
        self._totals.clear()
        for (_, resource), amount in capacity.items():
            self._totals[resource] = self._totals.get(resource, 0) + amount
        total, weight = (max(of.values(), default=1) for of in (self._totals, self._weights))
        self._bits = 2 * (total.bit_length() + weight.bit_length())
        self.forget()

    def add(self, cell: Cell) -> None:
        """This one is used as well from now on."""
        self._cells.append(cell)
        self.forget()

    def forget(self) -> None:
        """All totals may be others now."""
        self._by_resource = None
        self._balances.clear()
        self._keys.clear()

    def charged(self, path: Iterable[str]) -> None:
        """What these nodes use has changed."""
        for node in path:
            self._keys.pop(node, None)

    def share(self, node: str) -> Share:
        """Of what it uses, not divided by its weight."""
        amounts = {name: sum(book.of(node).used for book in books) for name, _, books in self._resources()}
        return dominant_share(amounts, self._totals)

    def key(self, node: str) -> ShareKey:
        """As its share divided by its weight, beside those of other nodes at the same moment."""
        found = self._keys.get(node)
        if found is None:
            self._keys[node] = found = self._key(node) if self.measure is None else self.measure(node)
        return found

    def _key(self, node: str) -> int:
        most, bits = 0, self._bits
        for total, balances in self._balances.get(node) or self._balances_of(node):
            used = 0
            for balance in balances:
                used += balance.used
            part = (used << bits) // total
            if part > most:
                most = part
        weight = self._weights.get(node)
        return most if weight is None else most // weight

    def _balances_of(self, node: str) -> tuple[tuple[int, tuple[Balance, ...]], ...]:
        """The node's balance in each of those books, beside the total: objects that stay the same when they change.

        Those of names that no queue has are not kept, since anybody may write any number of these.
        """
        found = tuple((total, tuple(book.of(node) for book in books)) for _, total, books in self._resources())
        if node in self._queues:
            self._balances[node] = found
        return found

    def _resources(self) -> Sequence[tuple[str, int, tuple[Book, ...]]]:
        """Those that are used and that there are: name, total, and a book for each flavour that is used."""
        if self._by_resource is None:
            found: dict[str, list[Book]] = {}
            for cell in self._cells:
                if self._totals.get(cell[1], 0) > 0:
                    found.setdefault(cell[1], []).append(self._book_of(cell))
            self._by_resource = [(name, self._totals[name], tuple(books)) for name, books in found.items()]
        return self._by_resource
