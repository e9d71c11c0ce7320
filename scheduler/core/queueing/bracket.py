"""Bracket: the tournament down the tree of queues, step by step.

Every inner queue has a heap of those below it that have something to yield; the winner is found from the root down, and
compared with its siblings again from its leaf up. Two cases need no such descent for each workload. A queue that is
ahead of its siblings whatever the keys of its heads wins until something about it changes (`run`). Queues that are
level, on time, share and borrowing being equal from the root down, are ordered by the keys of their heads alone, so one
heap of them all serves until something changes (`merged`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from typing import TypeAlias

from model.queue import ROOT_QUEUE
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queues.shares import ShareKey
from scheduler.core.queues.tree import QueueTree

HeadKey: TypeAlias = tuple[bool, int, bool, float, str]
"""A workload's own key; smaller goes first."""
Head: TypeAlias = tuple[HeadKey, Candidate]
ShareOf: TypeAlias = Callable[[str], ShareKey]
BorrowsOf: TypeAlias = Callable[[str, Candidate], bool]
Revision: TypeAlias = Callable[[], int]
"""Another number after each change of what the others answer."""


class Node:
    """A queue in the tournament: a leaf with what waits there, last first, or an inner one with a heap of entries."""

    __slots__ = ("above", "below", "borrows", "entries", "head", "heads", "name", "share")

    def __init__(self, name: str, heads: list[Head] | None = None) -> None:
        self.name = name
        self.heads = heads or []
        self.head: Head  # that of an inner one comes with its heap
        if heads:
            self.head = heads[-1]
        self.above: Node | None = None
        self.below: list[Node] = []
        self.entries: list[_Entry] = []
        self.share: ShareKey = 0
        self.borrows = False


_Entry: TypeAlias = tuple[bool, bool, ShareKey, int, bool, float, str, str, Node]
"""On time, borrows, share, the rest of the head's key, name; smaller goes first. Flat, since it is compared often."""
_Path: TypeAlias = tuple[Node, ...]
"""From a queue below the root down to a leaf."""
_Ticket: TypeAlias = tuple[int, bool, float, str, tuple[str, ...], Node]
"""The rest of the head's key, the names of the path; smaller goes first."""


class Bracket:
    """The tournament from one moment on, in which these leaves have something to yield."""

    def __init__(
        self,
        tree: QueueTree,
        leaves: Sequence[Node],
        share_of: ShareOf,
        borrows_of: BorrowsOf | None,
        stopped: Collection[str],
    ) -> None:
        self._share_of = share_of
        self._borrows_of = borrows_of
        self._stopped = stopped
        self._number = len(leaves)
        self._root = _linked(tree, leaves)
        self._settle(self._root)

    def run(self, *, patient: bool = True) -> Iterator[Candidate]:
        """Until nothing is left, or without patience until a new bracket and `merged` are worth what they cost."""
        level = 0
        while self._root.entries and (patient or level <= self._number):
            path, certain = self._winner()
            leaf = path[-1]
            heads, on_time = leaf.heads, leaf.head[0][0]
            while True:
                yield heads.pop()[1]
                if not heads or leaf.name in self._stopped:
                    self._leave(leaf)
                    break
                leaf.head = heads[-1]
                changed = leaf.head[0][0] is not on_time or self._changed(path, leaf.head[1])
                if changed or not certain:
                    level = 0 if changed or any(node.borrows for node in path) else level + 1
                    self._rise(leaf)
                    break

    def merged(self, revision: Revision) -> Iterator[Candidate]:
        """What those yield that are level, until one of them is so no more; after it the bracket is of no use.

        Nothing where one of them would borrow: with another head it may be ahead of the others.
        """
        level = {path[-1]: tuple([node.name for node in path]) for path in self._level(self._root, ())}
        if any(self._borrows(names, leaf.head[1]) for leaf, names in level.items()):
            return
        tickets = [_ticket(leaf, names) for leaf, names in level.items()]
        heapify(tickets)
        on_time, begun = self._root.head[0][0], revision()
        while tickets and revision() == begun:
            names, leaf = tickets[0][4:]
            heads = leaf.heads
            yield heads.pop()[1]
            if heads and leaf.name not in self._stopped:
                leaf.head = heads[-1]
                if leaf.head[0][0] is not on_time or self._borrows(names, leaf.head[1]):
                    return
                heapreplace(tickets, _ticket(leaf, names))
            elif len(level) == self._number:
                heappop(tickets)
            else:  # who was behind it may be level now with those beside their parent
                return

    def _borrows(self, names: tuple[str, ...], head: Candidate) -> bool:
        borrows_of = self._borrows_of
        return borrows_of is not None and any(borrows_of(name, head) for name in names)

    def _settle(self, node: Node) -> None:
        """Order the heaps from the leaves up."""
        for child in node.below:
            self._settle(child)
            node.entries.append(self._entry(child))
        if node.entries:
            heapify(node.entries)
            node.head = node.entries[0][-1].head

    def _entry(self, node: Node) -> _Entry:
        (on_time, points, nominated, eligible, uid), candidate = node.head
        name = node.name
        node.share = share = self._share_of(name)
        if self._borrows_of is not None:
            node.borrows = self._borrows_of(name, candidate)
        return (on_time, node.borrows, share, points, nominated, eligible, uid, name, node)

    def _winner(self) -> tuple[_Path, bool]:
        """The path down to the leaf whose head is next, and whether those beside it are behind whatever its key."""
        node, path, certain, share_of = self._root, list[Node](), True, self._share_of
        while not node.heads:
            entries = node.entries
            top = entries[0]
            child = top[-1]
            share = share_of(child.name)
            if share is not child.share and share != child.share:
                self._rise(child)
                node, path, certain = self._root, [], True
                continue
            if certain and len(entries) > 1:
                certain = _ahead(top, entries[1]) and (len(entries) == 2 or _ahead(top, entries[2]))
            path.append(child)
            node = child
        return tuple(path), certain

    def _level(self, node: Node, path: _Path) -> list[_Path]:
        """The paths to all leaves below the node that only the keys of their heads tell apart from the winner."""
        if node.heads:
            return [path]
        first = node.entries[0]
        level = [entry[-1] for entry in node.entries if not _ahead(first, entry)]
        return [found for child in level for found in self._level(child, (*path, child))]

    def _changed(self, path: _Path, head: Candidate) -> bool:
        """Whether a queue of the path has another share now, or borrows otherwise for the next head."""
        share_of, borrows_of = self._share_of, self._borrows_of
        for node in path:
            share = share_of(node.name)
            if share is not node.share and share != node.share:
                return True
            if borrows_of is not None and borrows_of(node.name, head) is not node.borrows:
                return True
        return False

    def _rise(self, node: Node) -> None:
        """Compare a queue that won until now, as all above it, with its siblings again, and so on upwards."""
        above = node.above
        while above is not None:
            entries = above.entries
            heapreplace(entries, self._entry(node))
            above.head = entries[0][-1].head
            node, above = above, above.above

    def _leave(self, node: Node) -> None:
        """Take the queue, which won until now, out, and those above it that have nothing else."""
        while node.above is not None:
            node = node.above
            heappop(node.entries)
            if node.entries:
                node.head = node.entries[0][-1].head
                self._rise(node)
                return


def _ahead(one: _Entry, other: _Entry) -> bool:
    """Whether the one, which is not behind the other, goes first whatever the keys of their heads."""
    return one[2] != other[2] or one[1] is not other[1] or one[0] is not other[0]


def _ticket(leaf: Node, names: tuple[str, ...]) -> _Ticket:
    _, points, nominated, eligible, uid = leaf.head[0]
    return (points, nominated, eligible, uid, names, leaf)


def _linked(tree: QueueTree, leaves: Sequence[Node]) -> Node:
    """The root of the queues above the leaves, each with those below it that have something to yield."""
    inner = {ROOT_QUEUE: Node(ROOT_QUEUE)}
    for leaf in leaves:
        path = tree.path(leaf.name)
        child = leaf
        for name in path[1:] if tree.leaf(leaf.name) else path:
            known = inner.get(name)
            child.above = inner.setdefault(name, known or Node(name))
            child.above.below.append(child)
            if known is not None:
                break
            child = child.above
    return inner[ROOT_QUEUE]
