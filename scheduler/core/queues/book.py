"""Book: one cell of a tree, kept up to date along the path of whoever is charged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from model.queue import ROOT_QUEUE, Cell, QuotaCell
from scheduler.core.queues.shares import NOTHING_SAID, PLAIN_RULES, ShareRules, kept, within
from scheduler.core.queues.tree import QueueTree


class Claim(NamedTuple):
    """What the work in and below a node uses and its children keep, and what is gone with what it keeps itself."""

    claimed: int
    gone: int


class Balance:
    """One node of the tree in one cell.

    `used` has what is below as well, `inside` its own work alone; `kept` is what it keeps even where it is idle, as far
    as there is so much; `above` is its parent's, None for the root. What is gone of it is worked out where somebody
    asks, of all that was charged since at once: `stale` says whether the queue was, `charged` is one list of those for
    all that are in a tree. `most` is its maximum, `ceiling` that or what it may have with all that it may borrow, None
    without bound.

    Room found once answers further questions: what is charged anywhere, and what is taken off the capacity, makes it
    smaller by no more than that. `spent` of the `root` is all of both so far, `until` that room and what was spent when
    it was found, −1 where there is no such room.
    """

    __slots__ = (
        "_below",
        "_gone",
        "above",
        "ceiling",
        "charged",
        "inside",
        "kept",
        "most",
        "root",
        "spent",
        "stale",
        "until",
        "used",
    )

    def __init__(
        self, quota: QuotaCell = NOTHING_SAID, rules: ShareRules = PLAIN_RULES, root: Balance | None = None
    ) -> None:
        self.above: Balance | None = None
        self.root = root or self
        self.spent, self.until = 0, -1
        self.used = self.inside = self.kept = self._below = self._gone = 0
        self.stale = False
        self.charged: list[Balance] = [] if root is None else root.charged
        self.most = quota.maximum
        self.ceiling = rules.ceiling(quota)

    @property
    def gone(self) -> int:
        """What it takes from its parent's view."""
        if self.charged:
            self._settle()
        return self._gone

    @property
    def below(self) -> int:
        """What is gone of its children."""
        if self.charged:
            self._settle()
        return self._below

    @property
    def claimed(self) -> int:
        """What its own work uses, and what is gone of its children."""
        return self.inside + self.below

    def gone_with(self, used: int, claimed: int) -> int:
        """What would be gone, were so much used and claimed."""
        gone = claimed if claimed > self.kept else self.kept
        if self.most is not None and gone > self.most:
            gone = self.most
        return used if used > gone else gone

    def charge(self, amount: int) -> None:
        """Add to the queue, and to all above it."""
        self.inside += amount
        own: Balance | None = self
        while own is not None:
            own.used += amount
            own = own.above
        if amount > 0:
            self.root.spent += amount
        if not self.stale:
            self.stale = True
            self.charged.append(self)

    def _settle(self) -> None:
        """What is gone of all queues that were charged since, and of those above them."""
        for own in self.charged:
            own.stale = False
            while (above := own.above) is not None:
                gone = own.gone_with(own.used, own.inside + own._below)
                above._below += gone - own._gone
                own._gone = gone
                own = above
        self.charged.clear()

    def begin(self) -> None:
        """Nothing is gone of its children yet; who `keep` next are these."""
        self._below, self.stale = 0, False

    def keep(self, kept: int) -> None:
        """It keeps so much from now on, and what is gone follows from it, of its parent as well."""
        self.kept = kept
        self._gone = self.gone_with(self.used, self.inside + self._below)
        if self.above is not None:
            self.above._below += self._gone

    def reserved(self) -> int:
        """What its siblings keep for themselves and do not use."""
        above = self.above or self
        return above.below + above.inside - above.used - self._gone + self.used

    def find(self, above: int | None) -> int | None:
        """How much more it may have, by how much more its parent may; None without bound."""
        room = None if above is None else above - self.reserved()
        if self.ceiling is not None and (room is None or self.ceiling - self.used < room):
            room = self.ceiling - self.used
        self.until = -1 if room is None else room + self.root.spent
        return room

    def fits(self, asked: int) -> bool:
        """Whether the queue may have so much more by what the ceilings, the root's among them, and what others keep
        leave.
        """
        spent = self.root.spent
        if asked + spent <= self.until:
            return True
        room = self._room()
        if room is None:
            return True
        self.until = room + spent
        return asked <= room

    def _room(self) -> int | None:
        """How much more it may have, None without bound."""
        if self.charged:
            self._settle()
        own, taken, least = self, 0, None
        while True:
            used, ceiling, above = own.used, own.ceiling, own.above
            if ceiling is not None and (least is None or ceiling - used - taken < least):
                least = ceiling - used - taken
            if above is None:
                return least
            taken += above._below + above.inside - above.used - own._gone + used  # `reserved`, at the cost of no call
            own = above


_NOTHING = Balance()


class Book:
    """One cell by node; a node that is not known has nothing. `capacity` is what there is, None without bound.

    Where queues keep more than there is, as when a node is lost, none may have all that it keeps: each keeps its part
    (`within`), so that what there is does not stand idle for others.
    """

    def __init__(
        self,
        tree: QueueTree,
        cell: Cell,
        use: Mapping[str, int],
        rules: ShareRules = PLAIN_RULES,
        capacity: int | None = None,
    ) -> None:
        self._tree = tree
        self._keeping = kept(tree, cell, rules)
        self._kept_in_all = sum(self._keeping.get(name, 0) for name in tree.children[ROOT_QUEUE])
        self._root = root = Balance()
        self._balances = {ROOT_QUEUE: root}
        for name, queue in tree.queues.items():
            self._balances[name] = Balance(queue.cells.get(cell, NOTHING_SAID), rules, root)
        for name in tree.queues:
            self._balances[name].above = self._balances[tree.parent(name)]
        for name in use:
            self.known(name)
        self._begin(use)
        root.ceiling = capacity
        self._keep(self._most)

    def _begin(self, use: Mapping[str, int]) -> None:
        balances, tree = self._balances, self._tree
        below: dict[str, int] = {}
        for name in self._bottom_up:
            own, used = balances[name], use.get(name, 0)
            own.used, own.inside = used, max(0, used - below.get(name, 0))
            parent = tree.parent(name)
            below[parent] = below.get(parent, 0) + used
        root, under = balances[ROOT_QUEUE], below.get(ROOT_QUEUE, 0)
        root.used = use.get(ROOT_QUEUE, under)
        root.inside = max(0, root.used - under)

    def bound(self, capacity: int | None) -> None:
        """There is so much now."""
        root, most = self._root, self._most
        before, root.ceiling = root.ceiling, capacity
        if capacity is not None and before is not None and before > capacity:
            root.spent += before - capacity
        if self._most != most or (before is None and capacity is not None):
            self._keep(self._most)

    @property
    def _most(self) -> int:
        """What queues keep at most, all together."""
        capacity = self._root.ceiling
        return self._kept_in_all if capacity is None else min(capacity, self._kept_in_all)

    @property
    def _bottom_up(self) -> Iterator[str]:
        """All nodes but the root, each before its parent."""
        yield from (name for name in self._balances if name not in self._tree.queues and name != ROOT_QUEUE)
        yield from reversed(self._tree.top_down)

    def _keep(self, most: int) -> None:
        """So much in all is kept from now on, and what is gone, and how much room is left, follow from it."""
        balances, keeping = self._balances, within(self._tree, self._keeping, most)
        self._root.charged.clear()
        for own in balances.values():
            own.begin()
        names = list(self._bottom_up)
        for name in names:
            balances[name].keep(keeping.get(name, 0))
        root = self._root
        rooms = {ROOT_QUEUE: None if root.ceiling is None else root.ceiling - root.used}
        for name in reversed(names):
            rooms[name] = balances[name].find(rooms[self._tree.parent(name)])

    @property
    def nodes(self) -> Iterable[str]:
        """All that are known, the root among them."""
        return self._balances.keys()

    def of(self, node: str) -> Balance:
        """One node, to be read."""
        return self._balances.get(node, _NOTHING)

    def after(self, path: tuple[str, ...], amount: int) -> dict[str, Claim]:
        """Each node of the path but the root, as if the queue that the path begins with had so much more."""
        found: dict[str, Claim] = {}
        more = amount
        for name in path[:-1]:
            own = self.of(name)
            claimed = own.claimed + more
            gone = own.gone_with(own.used + amount, claimed)
            found[name] = Claim(claimed, gone)
            more = gone - own.gone
        return found

    def reserved(self, parent: str, child: str) -> int:
        """What the child's siblings keep for themselves and do not use."""
        above, own = self.of(parent), self.of(child)
        return above.below + above.inside - above.used - own.gone + own.used

    def known(self, queue: str) -> Balance:
        """One node, to be charged; that of a queue that is not known is made, below the root."""
        found = self._balances.get(queue)
        if found is None:
            self._balances[queue] = found = Balance(root=self._root)
            found.above = self._root
        return found
