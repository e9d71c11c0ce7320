"""Reclaim across queues: whether one queue may take back what another has, and whether that one may lose it.

Both ask the one comparison `over`, so that who may take and who may be taken from never disagree (Volcano issue 561):
a queue that has reclaimed is within what it is entitled to, so nobody reclaims from it in turn. Compared is what a
node holds: its use and, of an inner one, the guarantees that its children do not use, since both are gone for others.
A cell is contested where the requester is short of it; elsewhere what a victim leaves stays free for its queue.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from model.queue import ROOT_QUEUE, Cell
from scheduler.core.queues.book import Claim
from scheduler.core.queues.shares import Amounts
from scheduler.core.queues.tree import QueueTree


class Books(Protocol):
    """What is used, guaranteed and due, by node of the tree and cell."""

    @property
    def tree(self) -> QueueTree: ...

    def guaranteed(self, node: str, cell: Cell) -> int:
        """What no reclaim takes."""
        ...

    def entitled(self, node: str, cell: Cell) -> int | None:
        """What nobody may take back, None where nothing is contested."""
        ...

    def after(self, queue: str, cell: Cell, amount: int) -> Mapping[str, Claim]:
        """Each node of the queue's path, as if the queue had so much more."""
        ...

    def exceeds(self, node: str, cell: Cell, held: int) -> bool:
        """Whether it would be over if it held so much."""
        ...

    def over(self, node: str, cell: Cell) -> bool:
        """Whether it holds more than it is entitled to."""
        ...


class Reclaim:
    """What one requester may take back, by the books as they stand: `queue` asks for `amounts`, and `cells` are the
    contested ones.

    Compared are the nodes below the lowest ancestor that both share; of the requester's own at most so many `levels`
    above its queue, once for all queues on the other side of the same ancestor.
    """

    def __init__(
        self, books: Books, queue: str, amounts: Amounts, cells: Collection[Cell], levels: int | None = None
    ) -> None:
        self._books = books
        self._queue = queue
        self._amounts = amounts
        self._cells = sorted(cells)
        self._levels = levels
        self._bounds: dict[tuple[str, ...], str] = {}

    def why_not(self, victim_queue: str) -> str:
        """Why it takes nothing from `victim_queue`; empty where it may."""
        tree, queue = self._books.tree, self._queue
        ours, theirs = tree.apart(queue, victim_queue)
        if not ours or not theirs:
            return f'both are of queue "{queue or ROOT_QUEUE}", where priority decides'
        refused = _refused(tree, tree.path(queue), theirs)
        if refused:
            return refused
        if ours not in self._bounds:
            self._bounds[ours] = self._bound(ours if self._levels is None else ours[: self._levels + 1])
        if self._bounds[ours]:
            return self._bounds[ours]
        if not over_in(self._books, theirs, self._cells):
            told = _names(self._cells)
            return f'queue "{victim_queue}", or one above it, has no more {told} than it is entitled to'
        return ""

    def _bound(self, nodes: Collection[str]) -> str:
        """Which of the requester's own nodes would have more than it is entitled to; empty where none would."""
        for cell in self._cells:
            after = self._books.after(self._queue, cell, self._amounts.get(cell, 0))
            for node in nodes:
                held = after[node].gone
                if self._books.exceeds(node, cell, held):
                    own = self._books.entitled(node, cell)
                    return f'queue "{node}" would have {held} {_told(cell)}, and may take back no more than {own}'
        return ""


def over_in(books: Books, nodes: Collection[str], cells: Collection[Cell]) -> tuple[Cell, ...]:
    """The cells, sorted, in which all of these nodes have more than they are entitled to."""
    return tuple(cell for cell in sorted(cells) if all(books.over(node, cell) for node in nodes))


def may_lose(books: Books, queue: str, nodes: Collection[str], amounts: Amounts, cells: Collection[Cell]) -> bool:
    """Whether work of `queue` of these amounts may go: it has some of a contested cell that all the nodes have too
    much of, and leaves each node what it is guaranteed of all contested cells. `nodes` are of the queue's path.
    """
    taken = {cell: amount for cell in cells if (amount := amounts.get(cell, 0)) > 0}
    if not over_in(books, nodes, taken):
        return False
    for cell, amount in taken.items():
        after = books.after(queue, cell, -amount)
        if any(after[node].claimed < books.guaranteed(node, cell) for node in nodes):
            return False
    return True


def _refused(tree: QueueTree, requester: Collection[str], nodes: Collection[str]) -> str:
    for node in nodes:
        rules = tree.queues[node].preemption if node in tree.queues else None
        if rules is None:
            continue
        if not rules.reclaimable:
            return f'queue "{node}" does not let its work be reclaimed'
        if rules.preemptors and set(rules.preemptors).isdisjoint(requester):
            return f'queue "{node}" lets only {", ".join(rules.preemptors)} reclaim its work'
    return ""


def _told(cell: Cell) -> str:
    flavor, resource = cell
    return f"{resource} of {flavor}" if flavor else resource


def _names(cells: Collection[Cell]) -> str:
    return ", ".join(map(_told, sorted(cells)))
