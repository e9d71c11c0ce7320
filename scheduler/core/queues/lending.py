"""Lending: whose own amounts those have who use more than their own.

What a queue borrows comes from the nearest relatives with unused amounts of their own: siblings first, then what their
parent has and gave to no child, then cousins, and so on up to the root. Those that name their lenders are served
first, by these. Within one step in proportion, whole units by largest remainder, ties by name. What nobody's own
covers, as after a node is lost, counts as lent by the root, so that what is borrowed is what is lent, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.queue import ROOT_QUEUE
from scheduler.core.queues.tree import QueueTree
from scheduler.core.queues.water_fill import Claimant, fill


class Holding(msgspec.Struct, frozen=True, gc=False):
    """A queue in one cell, for its own work: what it uses, has of its own, and keeps of that even where it is idle.

    That of an inner queue is what it has and no child has.
    """

    used: int = 0
    own: int = 0
    kept: int = 0

    @property
    def borrowed(self) -> int:
        """What it uses above its own."""
        return max(0, self.used - self.own)

    @property
    def lendable(self) -> int:
        """What others may have of its own at this moment."""
        return max(0, self.own - max(self.used, self.kept))


class Lending(msgspec.Struct, frozen=True):
    """One cell's loans. `borrowed` and `lent` are of queues for themselves, the root included; their sums are equal.

    `with_below` is `lent` with that of all queues below, as far as those have it who are outside of the subtree; of an
    inner queue's own part, what those below have as well. `loans` are by lender and borrower: whoever lends in one step
    is matched with whoever borrows in it, both by name.
    """

    borrowed: Mapping[str, int] = {}
    lent: Mapping[str, int] = {}
    with_below: Mapping[str, int] = {}
    loans: Mapping[tuple[str, str], int] = {}


def lending(tree: QueueTree, holdings: Mapping[str, Holding]) -> Lending:
    """Attribute all that is borrowed; queues that have neither use nor own may be left out."""
    borrowed = {name: holdings[name].borrowed for name in sorted(holdings) if holdings[name].borrowed}
    if not borrowed:
        return Lending()
    loans = _Loans(tree, {name: one.lendable for name, one in holdings.items() if one.lendable})
    needs = dict(borrowed)
    for name in borrowed:
        lenders = tree.queues[name].lenders if name in tree.queues else ()
        if lenders:
            needs[name] -= loans.take({name: needs[name]}, loans.of_these(lenders))[name]
    loans.climb(needs)
    return Lending(borrowed, loans.lent, loans.with_below, loans.pairs)


class _Loans:
    """What is attributed so far, and what may still be lent."""

    def __init__(self, tree: QueueTree, offers: Mapping[str, int]) -> None:
        self._tree = tree
        self._offers = dict(offers)
        self.lent: dict[str, int] = {}
        self.with_below: dict[str, int] = {}
        self.pairs: dict[tuple[str, str], int] = {}

    def of_these(self, lenders: tuple[str, ...]) -> list[str]:
        """Who has something to lend among these queues and those below them."""
        wanted = set(lenders)
        return [name for name in self._offers if not wanted.isdisjoint(self._tree.path(name))]

    def climb(self, needs: Mapping[str, int]) -> None:
        """Match within each queue's subtree before its parent's, from the leaves up; the root covers what is left."""
        wanted, offered = self._by_queue(needs), self._by_queue(self._offers)
        for queue in (*reversed(self._tree.top_down), ROOT_QUEUE):
            here, lenders = wanted.pop(queue, {}), offered.pop(queue, {})
            for sources in ([name for name in lenders if name != queue], [queue] if queue in lenders else []):
                given = self.take(here, sources)
                here = {name: left for name, amount in here.items() if (left := amount - given[name])}
            if queue == ROOT_QUEUE:
                self._count(ROOT_QUEUE, sum(here.values()), (ROOT_QUEUE,))
                self._pair({ROOT_QUEUE: sum(here.values())}, here)
                continue
            parent = self._tree.parent(queue)
            wanted.setdefault(parent, {}).update(here)
            offered.setdefault(parent, {}).update({name: 0 for name in lenders if self._offers[name]})

    def take(self, needs: Mapping[str, int], lenders: list[str]) -> dict[str, int]:
        """Lend to these as much as there is, in proportion on both sides; returns what each got."""
        offers = {name: self._offers[name] for name in sorted(lenders)}
        amount = min(sum(needs.values()), sum(offers.values()))
        got = _in_proportion(amount, dict(sorted(needs.items())))
        if amount:
            borrower = next(iter(needs))
            parts = _in_proportion(amount, offers)
            self._pair(parts, got)
            for name, part in parts.items():
                self._offers[name] -= part
                self._count(name, part, self._tree.apart(name, borrower)[0] or (name,))
        return got

    def _pair(self, parts: Mapping[str, int], got: Mapping[str, int]) -> None:
        """Whose part goes to whom: one lender after the other fills one borrower after the other."""
        left = dict(parts)
        for borrower, wanted in got.items():
            for lender in parts:
                amount = min(left[lender], wanted)
                if amount:
                    left[lender] -= amount
                    wanted -= amount
                    self.pairs[lender, borrower] = self.pairs.get((lender, borrower), 0) + amount

    def _count(self, lender: str, amount: int, nodes: tuple[str, ...]) -> None:
        if amount:
            self.lent[lender] = self.lent.get(lender, 0) + amount
            for node in nodes:
                self.with_below[node] = self.with_below.get(node, 0) + amount

    def _by_queue(self, amounts: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Each amount at its queue; that of a queue that is not known at the root."""
        found: dict[str, dict[str, int]] = {}
        for name, amount in amounts.items():
            known = name in self._tree.queues or name == ROOT_QUEUE
            found.setdefault(name if known else ROOT_QUEUE, {})[name] = amount
        return found


def _in_proportion(amount: int, parts: Mapping[str, int]) -> dict[str, int]:
    got = fill(amount, [Claimant(0, part, part) for part in parts.values()])
    return dict(zip(parts, got, strict=True))
