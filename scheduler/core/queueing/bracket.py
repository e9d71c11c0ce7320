"""Bracket: the tournament down the tree of queues, step by step.

Every inner queue has a heap of those below it that have something to yield; the winner is found from the root down, and
compared with its siblings again from its leaf up. Two cases need no such descent for each workload. A queue that is
ahead of its siblings whatever the keys of its heads wins until something about it changes (`run`). Queues that are
level, on time, share and borrowing being equal from the root down, are ordered by the keys of their heads alone, so one
heap of them all serves until something changes (`merged`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from operator import itemgetter
from typing import TypeAlias

from model.queue import ROOT_QUEUE
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queues.shares import ShareKey
from scheduler.core.queues.tree import QueueTree

HeadKey: TypeAlias = tuple[bool, int, bool, float, str]
"""A workload's own key; smaller goes first."""
Head: TypeAlias = tuple[HeadKey, Candidate]
ShareOf: TypeAlias = Callable[[str], ShareKey]
Borrows: TypeAlias = Callable[[Candidate], bool]
BorrowsOf: TypeAlias = Mapping[str, Borrows]
"""By queue; one that is not in it borrows nothing."""
Joining: TypeAlias = dict[str, list[Head]]
"""By queue, what is to be yielded there as well."""
Revision: TypeAlias = Callable[[], int]
"""Another number after each change of what the others answer."""


class Node:
    """A queue in the tournament: a leaf with what waits there, last first, or an inner one with a heap of entries."""

    __slots__ = ("above", "below", "borrows", "borrows_for", "entries", "head", "heads", "name", "share")

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
        self.borrows_for: Borrows | None = None


_Entry: TypeAlias = tuple[bool, bool, ShareKey, HeadKey, str, Node]
"""On time, borrows, share, the head's key, name; smaller goes first."""
_Path: TypeAlias = Sequence[Node]
"""From a queue below the root down to a leaf."""
_Ticket: TypeAlias = tuple[HeadKey, tuple[str, ...], tuple[Borrows, ...], Node]
"""The head's key, the names of the path, which are nobody else's; then who of it may borrow, and the leaf. Smaller goes
first.
"""


class Bracket:
    """The tournament from one moment on, in which these leaves have something to yield.

    `revision` is another number once any share may be another, None where nobody knows.
    """

    def __init__(
        self,
        tree: QueueTree,
        leaves: Sequence[Node],
        share_of: ShareOf,
        borrows_of: BorrowsOf,
        stopped: Collection[str],
        revision: Revision | None = None,
        joining: Joining | None = None,
    ) -> None:
        self._joining: Joining = {} if joining is None else joining
        self._share_of = share_of
        self._borrows_of = borrows_of
        self._stopped = stopped
        self._revision = revision
        self._number = len(leaves)
        self._root = _linked(tree, leaves)
        self._settle(self._root)

    def run(self) -> Iterator[Candidate]:
        """Until nothing is left, or where changes are told until a new bracket and `merged` are worth their cost."""
        level, revision = 0, self._revision
        while self._root.entries and (revision is None or level <= self._number):
            path = self._winner()
            leaf, certain = path[-1], False
            heads, on_time = leaf.heads, leaf.head[0][0]
            while True:
                before = revision() if revision is not None else 0
                yield heads.pop()[1]
                join(leaf, self._joining)
                if not heads or leaf.name in self._stopped:
                    self._leave(leaf)
                    break
                leaf.head = heads[-1]
                told = revision is not None and revision() != before
                changed = told or leaf.head[0][0] is not on_time or self._changed(path, leaf.head[1])
                certain = certain or (not changed and _certain(path))
                if changed or not certain:
                    level = 0 if changed or any(node.borrows for node in path) else level + 1
                    self._rise(leaf, again=changed)
                    break

    def merged(self) -> Iterator[Candidate]:
        """What those yield that are level, until one of them is so no more; after it the bracket is of no use.

        Nothing where changes are not told, and where one of them would borrow: with another head it may be ahead of the
        others.
        """
        revision = self._revision
        level = [_ticket(path) for path in self._level(self._root, [])]
        if revision is None or any(asks(leaf.head[1]) for *_, tests, leaf in level for asks in tests):
            return
        tickets = list(level)
        heapify(tickets)
        on_time, begun = self._root.head[0][0], revision()
        while tickets and revision() == begun:
            _, names, tests, leaf = tickets[0]
            heads = leaf.heads
            yield heads.pop()[1]
            join(leaf, self._joining)
            if heads and leaf.name not in self._stopped:
                leaf.head = heads[-1]
                if leaf.head[0][0] is not on_time:
                    return
                for asks in tests:
                    if asks(leaf.head[1]):
                        return
                heapreplace(tickets, (leaf.head[0], names, tests, leaf))
            elif len(level) == self._number:
                heappop(tickets)
            else:  # who was behind it may be level now with those beside their parent
                return

    def _settle(self, node: Node) -> None:
        """Order the heaps from the leaves up."""
        for child in node.below:
            self._settle(child)
            child.borrows_for = self._borrows_of.get(child.name)
            node.entries.append(self._entry(child))
        if node.entries:
            heapify(node.entries)
            node.head = node.entries[0][-1].head

    def _entry(self, node: Node) -> _Entry:
        key, candidate = node.head
        name, borrows_for = node.name, node.borrows_for
        node.share = share = self._share_of(name)
        if borrows_for is not None:
            node.borrows = borrows_for(candidate)
        return (key[0], node.borrows, share, key, name, node)

    def _winner(self) -> _Path:
        """The path down to the leaf whose head is next."""
        node, path, share_of = self._root, list[Node](), self._share_of
        while not node.heads:
            child = node.entries[0][5]
            share = share_of(child.name)
            if share is not child.share and share != child.share:
                self._rise(child)
                node, path = self._root, []
                continue
            path.append(child)
            node = child
        return path

    def _level(self, node: Node, path: _Path) -> list[_Path]:
        """The paths to all leaves below the node that only the keys of their heads tell apart from the winner."""
        if node.heads:
            return [path]
        first = node.entries[0]
        level = [entry[-1] for entry in node.entries if not _ahead(first, entry)]
        return [found for child in level for found in self._level(child, [*path, child])]

    def _changed(self, path: _Path, head: Candidate) -> bool:
        """Whether a queue of the path borrows otherwise for the next head, or has another share that nobody told."""
        share_of = self._share_of
        for node in path:
            if self._revision is None:
                share = share_of(node.name)
                if share is not node.share and share != node.share:
                    return True
            if node.borrows_for is not None and node.borrows_for(head) is not node.borrows:
                return True
        return False

    def _rise(self, node: Node, *, again: bool = True) -> None:
        """Compare a queue that won until now, as all above it, with its siblings again, and so on upwards. Without
        `again` nothing has changed but its head, of which it is known whether the queue borrows for it.
        """
        above = node.above
        share_of = self._share_of
        while above is not None:
            name, (key, candidate), borrows_for = node.name, node.head, node.borrows_for
            if again:  # what follows is `_entry`, at the cost of no call
                node.share = share_of(name)
            if borrows_for is not None and (again or not node.heads):
                node.borrows = borrows_for(candidate)
            entries = above.entries
            heapreplace(entries, (key[0], node.borrows, node.share, key, name, node))
            above.head = entries[0][5].head
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


def join(leaf: Node, joining: Joining) -> None:
    """Take in what is to be yielded in the queue as well."""
    if joining and (more := joining.pop(leaf.name, None)) is not None:
        leaf.heads.extend(more)
        leaf.heads.sort(key=itemgetter(0), reverse=True)


def _ahead(one: _Entry, other: _Entry) -> bool:
    """Whether the one, which is not behind the other, goes first whatever the keys of their heads."""
    return one[2] != other[2] or one[1] is not other[1] or one[0] is not other[0]


def _certain(path: _Path) -> bool:
    """Whether those beside the winner, and beside each queue above it, are behind it whatever the keys of its heads."""
    for node in path:
        entries = node.above.entries if node.above is not None else []
        if any(not _ahead(entries[0], entry) for entry in entries[1:3]):
            return False
    return True


def _ticket(path: _Path) -> _Ticket:
    leaf, tests = path[-1], [node.borrows_for for node in path if node.borrows_for is not None]
    return (leaf.head[0], tuple([node.name for node in path]), tuple(tests), leaf)


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
