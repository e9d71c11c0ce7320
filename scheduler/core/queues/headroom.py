"""Headroom: how much more a queue may have, and which node of the tree binds it.

One picture of a turn answers whether work is admitted, borrows, reclaims and why not, all from the same books:

- gone(n) = max(used(n), kept(n), own work + Σ gone(children)): what is gone from its parent's view; where all that is
  kept is more than there is, kept(n) is the queue's part of that;
- room(root) = the capacity; room(n) = min(maximum, nominal + borrowing limit, lenders, room(parent) − gone(siblings));
- headroom(n) = room(n) − used(n), negative where quota was cut below use.

Every question costs the depth of the tree times the cells that it names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

import msgspec

from model.queue import NO_FLAVOR, ROOT_QUEUE, Cell, CellStanding
from scheduler.core.queues.book import Balance, Book, Claim
from scheduler.core.queues.dominance import Dominance
from scheduler.core.queues.lending import Holding, Lending, lending
from scheduler.core.queues.reclaimable import Reclaim, may_lose
from scheduler.core.queues.shares import (
    PLAIN_RULES,
    Amounts,
    Share,
    ShareKey,
    ShareRules,
    Shares,
    Use,
    entitlements,
    guarantees,
    said,
)
from scheduler.core.queues.tree import QueueTree

MAXIMUM = "maximum"
BORROWING_LIMIT = "borrowing limit"
GUARANTEES_OF_OTHERS = "guarantees of others"
CAPACITY = "capacity"
LENDERS = "lenders"


class Headroom(msgspec.Struct, frozen=True, gc=False):
    """How much more of a cell there is, None without bound; `bound` of `node` is what there is least of.

    `reserved` is how much of it other queues keep for themselves and do not use.
    """

    cell: Cell
    node: str = ROOT_QUEUE
    amount: int | None = None
    bound: str = CAPACITY
    reserved: int = 0


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """A cell of which more is asked than there is room for, and whose bound that is; `room` may be negative."""

    cell: Cell
    node: str
    bound: str
    asked: int
    room: int


class BookVersion(msgspec.Struct, frozen=True, gc=False):
    """What a top queue and those below it use: another `number` once any of it is another.

    `book` tells apart books that were begun one after the other.
    """

    top: str
    number: int
    book: int = 0


class Quota:
    """The books of one turn: the tree, what there is, what is used and what is due.

    `capacity`: a cell that it lacks is not bounded at the root. `cells` are those that are counted, None: all; others
    are bounded by nobody, and a pod may name thousands. `use` is what is used and nominated, that of queues
    below included; it is copied, and changes by `charge` alone. `shares` are those of `fair_shares`. `revision` is
    another number after each change of `capacity` or of what is used, and the same one again where what was taken as
    gone for a question is back. `number` is that of the book among all that were begun.
    """

    def __init__(
        self, tree: QueueTree, capacity: Amounts, use: Use, shares: Shares, rules: ShareRules = PLAIN_RULES
    ) -> None:
        self.tree = tree
        self.capacity = capacity
        self.shares = shares
        self.rules = rules
        self.levels: int | None = None
        self.cells: Set[Cell] | None = None
        self.revision = self._revisions = 0
        self.number = 0
        self._changes: dict[str, int] = {}
        self._asking = 0
        self._use: dict[Cell, dict[str, int]] = {}
        for name, amounts in use.items():
            for cell, amount in amounts.items():
                self._use.setdefault(cell, {})[name] = amount
        self._books: dict[Cell, Book] = {}
        self._balances: dict[str, tuple[dict[Cell, Balance], tuple[str, ...]]] = {}
        self._idle: dict[Cell, Book] = {}
        self._guaranteed: dict[Cell, dict[str, int]] = {}
        self._entitled: dict[Cell, dict[str, int]] = {}
        self._lending: dict[Cell, Lending] = {}
        self._borrowers: dict[tuple[str, Cell], set[str]] = {}
        self._charged: set[str] = set()
        self.dominance = Dominance(tree, self._use, self._book)
        self._shared = capacity
        self.dominance.renew(capacity)
        self._choosy = {name: set(queue.lenders) for name, queue in tree.queues.items() if queue.lenders}

    def renew(self, capacity: Amounts, shared: Amounts | None = None) -> None:
        """There is so much now; what is used stays as it is. `shared` is what dominant shares are of, None: that."""
        self.capacity = capacity
        self._entitled.clear()
        self._lending.clear()
        self._borrowers.clear()
        for books in (self._books, self._idle):
            for cell, book in books.items():
                book.bound(capacity.get(cell))
        self._shared = capacity if shared is None else shared
        self.dominance.renew(self._shared)
        self._revise()

    def copy(self) -> Quota:
        """The books as they are, to be charged apart."""
        cells = tuple(self._use)
        nodes = (ROOT_QUEUE, *self.tree.top_down)
        use = {node: {cell: amount for cell in cells if (amount := self.used(node, cell))} for node in nodes}
        found = Quota(self.tree, self.capacity, use, self.shares, self.rules)
        found.levels, found.cells = self.levels, self.cells
        found.renew(self.capacity, self._shared)
        return found

    # what is

    def counted(self, amounts: Amounts) -> Amounts:
        """Those of cells that are counted."""
        if self.cells is None or amounts.keys() <= self.cells:
            return amounts
        return {cell: amount for cell, amount in amounts.items() if cell in self.cells}

    def used(self, node: str, cell: Cell) -> int:
        """Used and nominated in and below it."""
        return self._book(cell).of(node).used if self.cells is None or cell in self.cells else 0

    def share(self, node: str, cell: Cell) -> int | None:
        """Its fair share; None in a cell in which shares are unknown. A queue that is not known has none."""
        amounts = self.shares.get(node)
        if amounts is None or cell not in amounts:
            return 0 if cell in self.shares.get(ROOT_QUEUE, {}) else None
        return amounts[cell]

    def own(self, node: str, cell: Cell) -> int | None:
        """What is its own, above which it borrows: nominal, or what it is entitled to where it has none. The root's:
        all.
        """
        if node == ROOT_QUEUE:
            return self.capacity.get(cell)
        nominal = self.rules.nominal(said(self.tree, node, cell))
        return self.entitled(node, cell) if nominal is None else nominal

    def guaranteed(self, node: str, cell: Cell) -> int:
        """What no reclaim takes from it."""
        if cell not in self._guaranteed:
            self._guaranteed[cell] = guarantees(self.tree, cell)
        return self._guaranteed[cell].get(node, 0)

    def entitled(self, node: str, cell: Cell) -> int | None:
        """What nobody may take back from it; None in a cell in which shares are unknown."""
        found = self._entitled.get(cell)
        if found is None:
            self._entitled[cell] = found = self._entitlements(cell)
        return found.get(node, 0) if found else None

    def held(self, node: str, cell: Cell) -> int:
        """What is used in and below it, and what those below keep for themselves and do not use."""
        return self._book(cell).of(node).gone

    def after(self, queue: str, cell: Cell, amount: int) -> Mapping[str, Claim]:
        """Each node of the queue's path but the root, as if the queue had so much more."""
        return self._book(cell).after(self.tree.path(queue), amount)

    def all_over(self, nodes: Iterable[str], cell: Cell) -> list[bool]:
        """Of each node, whether it is `over`: for those who ask about thousands."""
        if self.entitled(ROOT_QUEUE, cell) is None:
            return [False for _ in nodes]
        book, entitled = self._book(cell), self._entitled[cell]
        return [book.of(node).gone > entitled.get(node, 0) for node in nodes]

    def over(self, node: str, cell: Cell) -> bool:
        """Whether it holds more than it is entitled to: the one comparison of reclaim."""
        return self.exceeds(node, cell, self.held(node, cell))

    def exceeds(self, node: str, cell: Cell, held: int) -> bool:
        """Whether it would be over if it held so much."""
        own = self.entitled(node, cell)
        return own is not None and held > own

    def balance(self, node: str, cell: Cell) -> Balance:
        """How the node stands in the cell at every moment, to be read."""
        return self._book(cell).of(node)

    def dominant_share(self, node: str) -> Share:
        """Of used and nominated, not divided by the weight; flavours of a resource count together."""
        return self.dominance.share(node)

    def share_key(self, node: str) -> ShareKey:
        """What orders nodes as their dominant shares, each divided by its weight, do at this moment."""
        return self.dominance.key(node)

    def lending(self, cell: Cell) -> Lending:
        """Who borrows of the cell, and from whom."""
        if cell not in self._lending:
            self._lending[cell] = lending(self.tree, self._holdings(cell))
        return self._lending[cell]

    def others_borrow(self, queue: str, cell: Cell) -> bool:
        """Whether another queue of the same tree has more of the cell than is its own."""
        top = _top(self.tree.path(queue))
        self._count_borrowers()
        found = self._borrowers.get((top, cell))
        if found is None:
            found = self._borrowers[top, cell] = {leaf for leaf in self._leaves(top) if self._borrows(leaf, cell)}
        return len(found) > (queue in found)

    def _count_borrowers(self) -> None:
        """Those that were charged since the last question may borrow now, or no more."""
        for queue in self._charged if self._borrowers else ():
            top = _top(self.tree.path(queue))
            for (known, cell), found in self._borrowers.items():
                if known == top and queue not in self.tree.children:
                    (found.add if self._borrows(queue, cell) else found.discard)(queue)
        self._charged.clear()

    def _leaves(self, top: str) -> Iterator[str]:
        waiting = [top]
        while waiting:
            node = waiting.pop()
            below = self.tree.children.get(node, ())
            waiting.extend(below)
            if not below:
                yield node

    def _borrows(self, node: str, cell: Cell) -> bool:
        own = self.own(node, cell)
        return own is not None and self.used(node, cell) > own

    # what may be

    def charge(self, queue: str, amounts: Amounts, sign: int = 1) -> None:
        """Add the amounts along the queue's path, or take them off with `sign` −1."""
        balances, path = self._balances.get(queue) or self._known(queue)
        for cell, amount in amounts.items():
            if amount and (own := balances.get(cell) or self._counted(queue, cell)):
                own.charge(sign * amount)
                if cell not in self._use:
                    self._use[cell] = {}
                    self.dominance.add(cell)
        if self._lending:
            self._lending.clear()
        self._charged.add(queue)
        self.dominance.charged(path)
        self._revisions += 1  # as `_revise` does, at the cost of no call
        self.revision = self._revisions
        if not self._asking:
            self._changes[_top(path)] = self._revisions

    def _revise(self) -> None:
        """No number is given twice: what is remembered by one of a block's is of no use after it."""
        self._revisions += 1
        self.revision = self._revisions

    def version(self, queue: str) -> BookVersion:
        """Of what the queue and its relatives use; what is taken as gone for a question is no change."""
        top = _top(self.tree.path(queue))
        return BookVersion(top, self._changes.get(top, 0), self.number)

    def headroom(self, queue: str, cell: Cell) -> Headroom:
        """How much more the queue may have at this moment."""
        return self._descend(queue, cell, self._book(cell), idle=False)

    def potential(self, queue: str, cell: Cell) -> Headroom:
        """How much the queue may have where nobody has anything."""
        return self._descend(queue, cell, self._idle_book(cell), idle=True)

    def unlent(self, node: str, cell: Cell) -> int:
        """What those below the node keep for themselves where nobody has anything."""
        return self._idle_book(cell).of(node).below

    def short(self, queue: str, amounts: Amounts, without: Mapping[str, Amounts] | None = None) -> tuple[Shortage, ...]:
        """The cells of which the queue may not have so much more, by cell; empty: it fits.

        `without`: as if these amounts of these queues were gone.
        """
        if without:
            with self.as_if_gone(without):
                return self.short(queue, amounts)
        if self.fits(queue, amounts):
            return ()
        amounts = self.counted(amounts)
        return _shortages(amounts, [self.headroom(queue, cell) for cell in _asked(amounts)])

    def fits(self, queue: str, amounts: Amounts) -> bool:
        """Whether `headroom` has so much, without a word on what binds; most work fits."""
        if self._choosy and not self._choosy.keys().isdisjoint(self.tree.path(queue)):
            counted = self.counted(amounts).items()
            rooms = ((self.headroom(queue, cell).amount, asked) for cell, asked in counted if asked > 0)
            return all(room is None or asked <= room for room, asked in rooms)
        balances, _ = self._balances.get(queue) or self._known(queue)
        for cell, asked in amounts.items():
            own = balances.get(cell) or self._counted(queue, cell)
            if own is None or asked <= 0 or asked + own.root.spent <= own.until:
                continue
            if not own.fits(asked):
                return False
        return True

    def potential_short(self, queue: str, amounts: Amounts) -> tuple[Shortage, ...]:
        """The cells of which the queue may never have so much, whatever ends; empty: it may fit one day."""
        return _shortages(amounts, [self.potential(queue, cell) for cell in _asked(self.counted(amounts))])

    def would_borrow(self, queue: str, amounts: Amounts) -> bool:
        """Whether the queue or inner node would have more of a cell than is its own."""
        for cell in _asked(self.counted(amounts)):
            own = self.own(queue, cell)
            if own is not None and self.used(queue, cell) + amounts[cell] > own:
                return True
        return False

    def contested(self, queue: str, amounts: Amounts) -> tuple[Cell, ...]:
        """The cells that the queue is short of; all it asks for where its quota has room and nodes have not."""
        return tuple(one.cell for one in self.short(queue, amounts)) or _asked(self.counted(amounts))

    def may_reclaim(
        self, queue: str, amounts: Amounts, victim_queue: str, cells: Collection[Cell] | None = None
    ) -> str:
        """Why work of `queue` that asks for `amounts` takes nothing from `victim_queue`; empty where it may.

        `cells` are the contested ones, None: those of `contested`.
        """
        return self.reclaim(queue, amounts, self.contested(queue, amounts) if cells is None else cells).why_not(
            victim_queue
        )

    def reclaim(self, queue: str, amounts: Amounts, cells: Collection[Cell]) -> Reclaim:
        """What work of `queue` that asks for `amounts` may take back while nothing changes; `cells` are contested."""
        return Reclaim(self, queue, amounts, cells, self.levels)

    def may_lose(
        self,
        victim_queue: str,
        amounts: Amounts,
        queue: str | None = None,
        cells: Collection[Cell] | None = None,
    ) -> bool:
        """Whether a victim of these amounts may go: its queue is over before, and keeps its guarantee.

        `queue` is the requester's: nodes that both are below do not matter. `cells` are the contested ones, None: all
        that the victim has.
        """
        path = self.tree.path(victim_queue)[:-1]
        nodes = path if queue is None else self.tree.apart(queue, victim_queue)[1]
        contested = tuple(self.counted(amounts)) if cells is None else cells
        return bool(nodes) and may_lose(self, victim_queue, nodes, amounts, contested)

    def standing(
        self, queue: str, nominated: Amounts | None = None, demand: Amounts | None = None
    ) -> Mapping[Cell, CellStanding]:
        """How the queue stands in the cells that it or the cluster knows.

        `nominated` is the part of its use that is kept for work that waits, `demand` is as `subtree_demand` has it,
        None: what it uses.
        """
        nominated = nominated or {}
        cells = {*self.capacity, *self._use}
        if queue in self.tree.queues:
            cells.update(self.tree.queues[queue].cells)
        return {
            cell: self._cell_standing(
                queue, cell, nominated.get(cell, 0), None if demand is None else demand.get(cell, 0)
            )
            for cell in sorted(cells)
        }

    def _cell_standing(self, queue: str, cell: Cell, nominated: int, demand: int | None) -> CellStanding:
        quota, used, own = said(self.tree, queue, cell), self.used(queue, cell), self.own(queue, cell)
        return CellStanding(
            guaranteed=self.guaranteed(queue, cell),
            nominal=quota.nominal,
            maximum=quota.maximum,
            share=self.share(queue, cell) or 0,
            entitled=self.entitled(queue, cell) or 0,
            used=used - nominated,
            nominated=nominated,
            demand=used if demand is None else demand,
            borrowed=0 if own is None else max(0, used - own),
            lent=self.lending(cell).with_below.get(queue, 0),
            headroom=self.headroom(queue, cell).amount,
        )

    # inside

    def _entitlements(self, cell: Cell) -> dict[str, int]:
        """Empty where no share of the cell is known. Of a flavour nothing but quota is known, so that all that is a
        queue's own is due to it.
        """
        if cell[0] != NO_FLAVOR and cell not in self.capacity:
            return {name: said(self.tree, name, cell).nominal or 0 for name in self.tree.top_down}
        if cell not in self.shares.get(ROOT_QUEUE, {}):
            return {}
        shares = {name: self.share(name, cell) or 0 for name in (ROOT_QUEUE, *self.tree.top_down)}
        return entitlements(self.tree, shares, cell, self.rules)

    def _idle_book(self, cell: Cell) -> Book:
        if cell not in self._idle:
            self._idle[cell] = Book(self.tree, cell, {}, self.rules, self.capacity.get(cell))
        return self._idle[cell]

    def _book(self, cell: Cell) -> Book:
        book = self._books.get(cell)
        if book is None:
            use, capacity = self._use.get(cell, {}), self.capacity.get(cell)
            self._books[cell] = book = Book(self.tree, cell, use, self.rules, capacity)
        return book

    def _known(self, queue: str) -> tuple[dict[Cell, Balance], tuple[str, ...]]:
        """The queue's balances and its path, kept from the first question on; none of a queue that nobody wrote."""
        path = self.tree.path(queue)
        if queue not in self.tree.queues:
            return {}, path
        known = {cell: self._book(cell).known(queue) for cell in self.cells or ()}, path
        self._balances[queue] = known
        return known

    def _counted(self, queue: str, cell: Cell) -> Balance | None:
        """The queue's balance in the cell; None where the cell is not counted."""
        return self._book(cell).known(queue) if self.cells is None or cell in self.cells else None

    def _descend(self, queue: str, cell: Cell, book: Book, idle: bool) -> Headroom:
        capacity = self.capacity.get(cell)
        least = Headroom(cell, ROOT_QUEUE, None if capacity is None else capacity - book.of(ROOT_QUEUE).used)
        path = self.tree.path(queue)
        for at in range(len(path) - 2, -1, -1):
            node = path[at]
            if least.amount is not None:
                reserved = book.reserved(path[at + 1], node)
                if reserved:
                    least = _less(least, reserved)
            for bound, most in self._bounds(node, cell, idle):
                left = most - book.of(node).used
                # Of equal bounds the queue's own is told: no room elsewhere would help it.
                if least.amount is None or left < least.amount or (left == least.amount and least.node != node):
                    least = Headroom(cell, node, left, bound)
        return least

    def _bounds(self, node: str, cell: Cell, idle: bool) -> Iterator[tuple[str, int]]:
        queue = self.tree.queues.get(node)
        quota = queue.cells.get(cell) if queue is not None else None
        if quota is not None:
            if quota.maximum is not None:
                yield MAXIMUM, quota.maximum
            ceiling = self.rules.borrowing_ceiling(quota)
            if ceiling is not None:
                yield BORROWING_LIMIT, ceiling
        if node in self._choosy:
            lent = self._from_lenders(node, cell, idle)
            if lent is not None:
                yield LENDERS, lent

    def _from_lenders(self, node: str, cell: Cell, idle: bool) -> int | None:
        """Its own and what its lenders have for it: their unused, without what others borrow who name them too."""
        own, names = self._firm(node, cell, idle), self._choosy[node]
        if own is None:
            return None
        pool = 0
        book = self._idle[cell] if idle else self._book(cell)
        for lender in sorted(names & self.tree.queues.keys()):
            theirs = self._firm(lender, cell, idle)
            if theirs is None:
                return None
            their = book.of(lender)
            pool += max(0, theirs - max(their.used, their.kept))
        if not idle:
            rivals = (other for other, lenders in self._choosy.items() if other != node and lenders & names)
            pool -= sum(max(0, self.used(other, cell) - (self.own(other, cell) or 0)) for other in rivals)
        return own + max(0, pool)

    def _firm(self, node: str, cell: Cell, idle: bool) -> int | None:
        """Its own; for ever (`idle`) only where its quota says it, since shares follow demand."""
        return self.rules.nominal(said(self.tree, node, cell)) if idle else self.own(node, cell)

    @contextmanager
    def as_if_gone(self, without: Mapping[str, Amounts]) -> Iterator[None]:
        """Within the block all is answered as if these amounts of these queues were gone. What else is charged in it is
        taken off again by its end.
        """
        before = self.revision
        self._asking += 1
        for queue, amounts in without.items():
            self.charge(queue, amounts, -1)
        try:
            yield
        finally:
            for queue, amounts in without.items():
                self.charge(queue, amounts)
            self.revision = before
            self._asking -= 1

    def _holdings(self, cell: Cell) -> dict[str, Holding]:
        """What each node has for its own work, an inner one what it gave to no child."""
        book = self._book(cell)
        found: dict[str, Holding] = {}
        for name in book.nodes:
            children, balance = self.tree.children.get(name, ()), book.of(name)
            own, given = self.own(name, cell) or 0, sum(self.own(child, cell) or 0 for child in children)
            inside = balance.inside
            idle = max(0, balance.kept - inside - balance.below) if children else 0
            keeps = inside + idle if children else balance.kept
            if inside or own > given:
                found[name] = Holding(inside, max(0, own - given), keeps)
        return found


def _top(path: tuple[str, ...]) -> str:
    """The queue of a path that is right below the root."""
    return path[-2] if len(path) > 1 else ROOT_QUEUE


def _asked(amounts: Amounts) -> tuple[Cell, ...]:
    return tuple(cell for cell in sorted(amounts) if amounts[cell] > 0)


def _less(least: Headroom, reserved: int) -> Headroom:
    amount = None if least.amount is None else least.amount - reserved
    return Headroom(least.cell, least.node, amount, least.bound, least.reserved + reserved)


def _shortages(amounts: Amounts, rooms: list[Headroom]) -> tuple[Shortage, ...]:
    """Where the room would do but for what others keep for themselves, that is what binds."""
    found = []
    for room in rooms:
        asked = amounts[room.cell]
        if room.amount is not None and asked > room.amount:
            bound = GUARANTEES_OF_OTHERS if room.reserved and asked <= room.amount + room.reserved else room.bound
            found.append(Shortage(room.cell, room.node, bound, asked, room.amount))
    return tuple(found)
