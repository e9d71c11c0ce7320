"""The order of what waits: a tournament down the tree of queues, with exact arithmetic.

At each queue that has others below it these are compared by the workload that would go next from each, its head; the
first difference decides: the head is past its deadline · the queue would borrow for it, later · weighted dominant share
of the queue (used + nominated) · the head's own key · the queue's name. A workload's own key: priority with the points
for its age, higher first · bound in part, or its room is being freed · time eligible · uid. A gang that is bound in
part has the most points at once: until it is whole it holds room that nobody uses. A queue of order StrictFIFO goes by
time eligible alone. With a single queue there is nothing to compare, which leaves priority, then first come first
served. The share is DRF's (Ghodsi et al., NSDI 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from operator import itemgetter
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from model.queue import ROOT_QUEUE, QueueOrder
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queues.shares import Share, dominant_share
from scheduler.core.queues.tree import QueueTree, tree_of

__all__ = ["NO_AGEING", "AgeingPolicy", "HeadKey", "Ranking", "Share", "Tournament", "dominant_share", "in_order"]

HeadKey: TypeAlias = tuple[bool, int, bool, float, str]
"""A workload's own key; smaller goes first."""


class AgeingPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Points of priority that waiting earns: for the order alone, never for preemption."""

    points_per_minute: Annotated[
        float,
        Meta(
            ge=0,
            le=1_000_000,
            description="Points of priority a workload gains in the order for each minute it waits. kube-scheduler has "
            "no ageing: there, a steady stream of slightly higher priority starves what is below for ever.",
        ),
    ] = 1.0
    most_points: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="Most points; Koordinator's bands are 1000 wide and 2000 apart, so age alone changes no band.",
        ),
    ] = 100

    @property
    def most(self) -> int:
        """What waiting can earn at all."""
        return self.most_points if self.points_per_minute else 0

    def points(self, waited_seconds: float) -> int:
        """Whole points for so long a wait."""
        return min(self.most_points, int(self.points_per_minute * max(0.0, waited_seconds) / 60.0))


NO_AGEING = AgeingPolicy(points_per_minute=0.0)


class Ranking(msgspec.Struct, frozen=True):
    """What the order depends on besides the workloads; `nominated` are subjects whose room is being freed."""

    now: float
    ageing: AgeingPolicy = NO_AGEING
    nominated: Collection[WorkloadId] = frozenset()

    def within_queue(self, candidate: Candidate) -> HeadKey:
        """The key without the share, which all workloads of a queue have in common; smaller goes first."""
        workload = candidate.workload
        eligible, deadline, now = workload.eligible_seconds, workload.deadline_seconds, self.now
        on_time = deadline is None or deadline > now
        if workload.gang is not None and candidate.begun:
            return (on_time, -workload.priority - self.ageing.most, False, eligible, workload.uid)
        points = self.ageing.points(now - eligible)
        nominated = bool(self.nominated) and candidate.subject in self.nominated
        return (on_time, -workload.priority - points, not nominated, eligible, workload.uid)


def _never(queue: str, candidate: Candidate) -> bool:
    return False


class Tournament(msgspec.Struct):
    """What the order depends on besides the workloads and their ranking.

    `share_of`: a queue's weighted dominant share, inner queues included. `borrows_of`: whether a queue, leaf or inner,
    would borrow for this workload. Both are read again for the queues on the path of each workload that was yielded,
    since placing it changes them; those of others only rise within a turn, and are read again when their turn comes.
    `stopped`: queues that yield no more in this turn; whoever takes the workloads adds to it, as to a queue of order
    StrictFIFO whose head does not fit.
    """

    share_of: Callable[[str], Fraction]
    tree: QueueTree = msgspec.field(default_factory=lambda: tree_of(()))
    borrows_of: Callable[[str, Candidate], bool] = _never
    stopped: set[str] = msgspec.field(default_factory=set)

    def strict(self, queue: str) -> bool:
        """Whether the queue goes by time alone."""
        known = self.tree.queues.get(queue)
        return known is not None and known.order is QueueOrder.STRICT_FIFO


def in_order(
    candidates: Iterable[Candidate],
    tournament: Tournament | Callable[[str], Fraction],
    ranking: Ranking | float,
) -> Iterator[Candidate]:
    """Yield the next workload again and again; shares are read again after each, since placing it raises them.

    A bare function for `tournament` gives the shares of queues without a tree. A bare number for `ranking` is the time
    (Unix seconds), without ageing.
    """
    ranking = ranking if isinstance(ranking, Ranking) else Ranking(ranking)
    tournament = tournament if isinstance(tournament, Tournament) else Tournament(tournament)
    leaves = _leaves(candidates, tournament, ranking)
    if len(leaves) == 1:
        yield from _alone(leaves[0], tournament.stopped)
    elif leaves:
        yield from _Bracket(tournament, leaves).run()


_Head: TypeAlias = tuple[HeadKey, Candidate]


class _Node:
    """A queue in the tournament: a leaf with what waits there, last first, or an inner one with a heap of entries."""

    __slots__ = ("about", "above", "below", "borrows", "entries", "given", "head", "heads", "name", "share")

    def __init__(self, name: str, heads: list[_Head] | None = None) -> None:
        self.name = name
        self.heads = heads
        self.head: _Head  # that of an inner one comes with its heap
        if heads:
            self.head = heads[-1]
        self.above: _Node | None = None
        self.below: list[_Node] = []
        self.entries: list[_Entry] = []
        self.given: Fraction | None = None
        self.share = Fraction(0)
        self.about = 0.0
        self.borrows = False


_Entry: TypeAlias = tuple[bool, bool, float, Fraction, HeadKey, str, _Node]
"""On time, borrows, share, head's key, name; smaller goes first. The share's nearest float stands before it: it
compares fast, and where it differs it orders as the share does. Equal shares are one object, which compares fast too.
"""


def _leaves(candidates: Iterable[Candidate], tournament: Tournament, ranking: Ranking) -> list[_Node]:
    """Queues with what waits in each, without those that are stopped."""
    waiting: dict[str, list[_Head]] = {}
    for candidate in candidates:
        head = (ranking.within_queue(candidate), candidate)
        heads = waiting.get(candidate.workload.queue)
        if heads is None:
            waiting[candidate.workload.queue] = [head]
        else:
            heads.append(head)
    for queue, heads in waiting.items():
        heads.sort(key=_by_time if tournament.strict(queue) else itemgetter(0), reverse=True)
    return [_Node(queue, heads) for queue, heads in waiting.items() if queue not in tournament.stopped]


def _by_time(head: _Head) -> tuple[float, str]:
    return head[0][3:]


def _alone(leaf: _Node, stopped: Collection[str]) -> Iterator[Candidate]:
    heads = leaf.heads or []
    while heads and leaf.name not in stopped:
        yield heads.pop()[1]


class _Bracket:
    """The tournament at one moment: every inner queue has a heap of those below it that have something to yield."""

    def __init__(self, tournament: Tournament, leaves: list[_Node]) -> None:
        self._share_of = tournament.share_of
        self._borrows_of = tournament.borrows_of
        self._stopped = tournament.stopped
        self._alike: dict[float, Fraction] = {}
        self._root = _linked(tournament.tree, leaves)
        self._settle(self._root)

    def run(self) -> Iterator[Candidate]:
        """One descent serves as long as the same queue is certain to win."""
        while self._root.entries:
            path, certain = self._winner()
            leaf = path[-1]
            heads = leaf.heads or []
            on_time = leaf.head[0][0]
            while True:
                yield heads.pop()[1]
                if not heads or leaf.name in self._stopped:
                    self._leave(leaf)
                    break
                leaf.head = heads[-1]
                if not certain or leaf.head[0][0] is not on_time or self._changed(path, leaf.head[1]):
                    self._rise(leaf)
                    break

    def _settle(self, node: _Node) -> None:
        """Order the heaps from the leaves up."""
        for child in node.below:
            self._settle(child)
            node.entries.append(self._entry(child))
        if node.entries:
            heapify(node.entries)
            node.head = node.entries[0][-1].head

    def _entry(self, node: _Node) -> _Entry:
        share = self._share_of(node.name)
        if share is not node.given:
            node.given, node.about = share, float(share)
            node.share = self._alike.setdefault(node.about, share)
            if node.share != share:
                node.share = share
        node.borrows = borrows = self._borrows_of(node.name, node.head[1])
        key = node.head[0]
        return (key[0], borrows, node.about, node.share, key, node.name, node)

    def _winner(self) -> tuple[list[_Node], bool]:
        """The path down to the leaf whose head is next, and whether those beside it are behind whatever its key."""
        node, path, certain = self._root, list[_Node](), True
        while node.heads is None:
            entries = node.entries
            top = entries[0]
            child = top[-1]
            share = self._share_of(child.name)
            if share is not child.given and share != child.share:
                self._rise(child)
                node, path, certain = self._root, [], True
                continue
            if certain and len(entries) > 1:
                certain = _ahead(top, entries[1]) and (len(entries) == 2 or _ahead(top, entries[2]))
            path.append(child)
            node = child
        return path, certain

    def _changed(self, path: list[_Node], head: Candidate) -> bool:
        """Whether a queue of the path has another share now, or borrows otherwise for the next head."""
        for node in path:
            share = self._share_of(node.name)
            if share is not node.given and share != node.share:
                return True
            if self._borrows_of(node.name, head) is not node.borrows:
                return True
        return False

    def _rise(self, node: _Node) -> None:
        """Compare a queue that won until now, as all above it, with its siblings again, and so on upwards."""
        above = node.above
        while above is not None:
            heapreplace(above.entries, self._entry(node))
            above.head = above.entries[0][-1].head
            node, above = above, above.above

    def _leave(self, node: _Node) -> None:
        """Take the queue, which won until now, out, and those above it that have nothing else."""
        while node.above is not None:
            node = node.above
            heappop(node.entries)
            if node.entries:
                node.head = node.entries[0][-1].head
                self._rise(node)
                return


def _ahead(one: _Entry, other: _Entry) -> bool:
    """Whether the one goes first whatever the keys of their heads, which is surely so where the floats differ."""
    return one[2] != other[2] or one[1] is not other[1] or one[0] is not other[0]


def _linked(tree: QueueTree, leaves: list[_Node]) -> _Node:
    """The root of the queues above the leaves, each with those below it that have something to yield."""
    inner = {ROOT_QUEUE: _Node(ROOT_QUEUE)}
    for leaf in leaves:
        path = tree.path(leaf.name)
        child = leaf
        for name in path[1:] if tree.leaf(leaf.name) else path:
            known = inner.get(name)
            child.above = inner.setdefault(name, known or _Node(name))
            child.above.below.append(child)
            if known is not None:
                break
            child = child.above
    return inner[ROOT_QUEUE]
