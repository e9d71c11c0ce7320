"""Book: one cell of a tree, kept up to date along the path of whoever is charged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from model.queue import ROOT_QUEUE, Cell
from scheduler.core.queues.shares import PLAIN_RULES, ShareRules, kept
from scheduler.core.queues.tree import QueueTree


class Claim(NamedTuple):
    """What the work in and below a node uses and its children keep, and what is gone with what it keeps itself."""

    claimed: int
    gone: int


class Book:
    """One cell by node; a node that is not in a table has 0.

    `used` has what is below as well, `inside` the node's own work alone; `kept` is what it keeps even where it is idle;
    `gone` what it takes from its parent's view, `below` the sum of that over its children.
    """

    def __init__(self, tree: QueueTree, cell: Cell, use: Mapping[str, int], rules: ShareRules = PLAIN_RULES) -> None:
        self.used = dict(use)
        self.kept = kept(tree, cell, rules)
        self.inside: dict[str, int] = {}
        self.below: dict[str, int] = {}
        self.gone: dict[str, int] = {}
        self._most = {
            name: quota.maximum
            for name, queue in tree.queues.items()
            if (quota := queue.cells.get(cell)) is not None and quota.maximum is not None
        }
        children: dict[str, int] = {}
        unknown = [name for name in use if name not in tree.queues and name != ROOT_QUEUE]
        for name in (*unknown, *reversed(tree.top_down)):
            used, parent = use.get(name, 0), tree.parent(name)
            self.inside[name] = max(0, used - children.get(name, 0))
            self.gone[name] = gone = self._gone(name, used, self.claimed(name))
            children[parent] = children.get(parent, 0) + used
            self.below[parent] = self.below.get(parent, 0) + gone
        self.used.setdefault(ROOT_QUEUE, children.get(ROOT_QUEUE, 0))
        self.inside[ROOT_QUEUE] = max(0, self.used[ROOT_QUEUE] - children.get(ROOT_QUEUE, 0))

    def _gone(self, name: str, used: int, claimed: int) -> int:
        gone = max(self.kept.get(name, 0), claimed)
        most = self._most.get(name)
        return max(used, gone if most is None else min(gone, most))

    def claimed(self, name: str) -> int:
        """What its own work uses, and what is gone of its children."""
        return self.inside.get(name, 0) + self.below.get(name, 0)

    def after(self, path: tuple[str, ...], amount: int) -> dict[str, Claim]:
        """Each node of the path but the root, as if the queue that the path begins with had so much more."""
        found: dict[str, Claim] = {}
        more = amount
        for name in path[:-1]:
            claimed = self.claimed(name) + more
            gone = self._gone(name, self.used.get(name, 0) + amount, claimed)
            found[name] = Claim(claimed, gone)
            more = gone - self.gone.get(name, 0)
        return found

    def charge(self, path: tuple[str, ...], amount: int) -> None:
        """Add to the queue that the path begins with, and to all above it."""
        used, inside, below = self.used, self.inside, self.below
        inside[path[0]] = inside.get(path[0], 0) + amount
        for at, name in enumerate(path):
            used[name] = now_used = used.get(name, 0) + amount
            if name != ROOT_QUEUE:
                before = self.gone.get(name, 0)
                now = self._gone(name, now_used, inside.get(name, 0) + below.get(name, 0))
                if now != before:
                    self.gone[name], parent = now, path[at + 1]
                    below[parent] = below.get(parent, 0) + now - before

    def reserved(self, parent: str, child: str) -> int:
        """What the child's siblings keep for themselves and do not use."""
        gone = self.below.get(parent, 0) + self.inside.get(parent, 0) - self.used.get(parent, 0)
        return gone - self.gone.get(child, 0) + self.used.get(child, 0)
