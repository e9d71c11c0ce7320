"""Book: one cell of a tree, kept up to date along the path of whoever is charged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from model.queue import ROOT_QUEUE, Cell, QuotaCell
from scheduler.core.queues.shares import NOTHING_SAID, PLAIN_RULES, ShareRules, kept
from scheduler.core.queues.tree import QueueTree


class Claim(NamedTuple):
    """What the work in and below a node uses and its children keep, and what is gone with what it keeps itself."""

    claimed: int
    gone: int


class Balance:
    """One node of the tree in one cell.

    `used` has what is below as well, `inside` its own work alone; `kept` is what it keeps even where it is idle; `gone`
    what it takes from its parent's view, `below` the sum of that over its children. `most` is its maximum, `ceiling`
    that or what it may have with all that it may borrow, None without bound.
    """

    __slots__ = ("below", "ceiling", "gone", "inside", "kept", "most", "used")

    def __init__(self, quota: QuotaCell = NOTHING_SAID, rules: ShareRules = PLAIN_RULES, kept: int = 0) -> None:
        self.used = self.inside = self.below = self.gone = 0
        self.kept = kept
        self.most = quota.maximum
        self.ceiling = rules.ceiling(quota)

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


_NOTHING = Balance()


class Book:
    """One cell by node; a node that is not known has nothing."""

    def __init__(self, tree: QueueTree, cell: Cell, use: Mapping[str, int], rules: ShareRules = PLAIN_RULES) -> None:
        keeping = kept(tree, cell, rules)
        self._keeping = bool(keeping)
        self._lines: dict[str, tuple[Balance, ...]] = {}
        self._balances = {ROOT_QUEUE: Balance()}
        for name, queue in tree.queues.items():
            self._balances[name] = Balance(queue.cells.get(cell, NOTHING_SAID), rules, keeping.get(name, 0))
        unknown = [name for name in use if name not in self._balances]
        self._balances.update((name, Balance()) for name in unknown)
        self._begin(tree, use, [*unknown, *reversed(tree.top_down)])

    def _begin(self, tree: QueueTree, use: Mapping[str, int], bottom_up: list[str]) -> None:
        children: dict[str, int] = {}
        for name in bottom_up:
            own, used, parent = self._balances[name], use.get(name, 0), tree.parent(name)
            own.used, own.inside = used, max(0, used - children.get(name, 0))
            own.gone = own.gone_with(used, own.claimed)
            children[parent] = children.get(parent, 0) + used
            self._balances[parent].below += own.gone
        root, below = self._balances[ROOT_QUEUE], children.get(ROOT_QUEUE, 0)
        root.used = use.get(ROOT_QUEUE, below)
        root.inside = max(0, root.used - below)

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

    def charge(self, path: tuple[str, ...], amount: int) -> None:
        """Add to the queue that the path begins with, and to all above it."""
        line = self._lines.get(path[0]) or self._line(path)
        own = line[0]
        own.inside += amount
        for above in line[1:]:
            own.used = used = own.used + amount
            gone = own.inside + own.below  # what follows is `gone_with`, at the cost of no call
            if gone < own.kept:
                gone = own.kept
            if own.most is not None and gone > own.most:
                gone = own.most
            if gone < used:
                gone = used
            if gone != own.gone:
                above.below += gone - own.gone
                own.gone = gone
            own = above
        own.used += amount

    def fits(self, path: tuple[str, ...], asked: int, capacity: int | None) -> bool:
        """Whether the queue that the path begins with may have so much more by what its ceilings, what others keep and
        the capacity (None: not bounded) leave.
        """
        line = self._lines.get(path[0]) or self._line(path)
        keeping, own = self._keeping, line[0]
        for above in line[1:]:
            used = own.used
            if own.ceiling is not None and asked > own.ceiling - used:
                return False
            if keeping:
                asked += above.below + above.inside - above.used - own.gone + used  # `reserved`
            own = above
        return capacity is None or asked <= capacity - own.used

    def reserved(self, parent: str, child: str) -> int:
        """What the child's siblings keep for themselves and do not use."""
        above, own = self.of(parent), self.of(child)
        return above.below + above.inside - above.used - own.gone + own.used

    def _line(self, path: tuple[str, ...]) -> tuple[Balance, ...]:
        """The balances along a path; those of queues that are not known are made."""
        balances = self._balances
        self._lines[path[0]] = line = tuple(
            [balances.get(name) or balances.setdefault(name, Balance()) for name in path]
        )
        return line
