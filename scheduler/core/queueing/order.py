"""The order of what waits: a tournament down the tree of queues, with exact arithmetic.

At each queue that has others below it these are compared by the workload that would go next from each, its head; the
first difference decides: the head is past its deadline, and has waited for as long as any must · the queue would borrow
for it, later · weighted dominant share of the queue (used + nominated) · the head's own key · the queue's name. A
workload's own key: past its deadline · priority with the points for its age, higher first · bound in part, or its room
is being freed · time eligible · uid. A gang that is bound in part has the most points at once: until it is whole it
holds room that nobody uses. A queue of order StrictFIFO goes by time eligible alone. With a single queue there is
nothing to compare, which leaves the deadline, priority, then first come first served. The share is DRF's (Ghodsi et
al., NSDI 2011).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Annotated

import msgspec
from msgspec import Meta

from model.queue import QueueOrder
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.bracket import BorrowsOf, Bracket, Head, HeadKey, Joining, Node, Revision, ShareOf, join
from scheduler.core.queues.tree import QueueTree, tree_of

__all__ = ["NO_AGEING", "AgeingPolicy", "HeadKey", "Ranking", "Tournament", "in_order"]


class AgeingPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What waiting earns, for the order alone, never for preemption: points of priority, and the deadline's right."""

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

    shortest_wait_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=31_536_000,
            description="A deadline that a gang or a job names (maxWaitTime, volcano.sh/sla-waiting-time) counts as at "
            "least so long: past it the work goes before that of any queue and priority, and whoever may make pods may "
            "name one of a second.",
        ),
    ] = 600.0

    @property
    def most(self) -> int:
        """What waiting can earn at all."""
        return self.most_points if self.points_per_minute else 0

    def points(self, waited_seconds: float) -> int:
        """Whole points for so long a wait."""
        if waited_seconds <= 0:
            return 0
        earned = int(self.points_per_minute * waited_seconds / 60.0)
        return earned if earned < self.most_points else self.most_points


NO_AGEING = AgeingPolicy(points_per_minute=0.0, shortest_wait_seconds=0.0)


class Ranking(msgspec.Struct, frozen=True):
    """What the order depends on besides the workloads; `nominated` are subjects whose room is being freed."""

    now: float
    ageing: AgeingPolicy = NO_AGEING
    nominated: Collection[WorkloadId] = frozenset()

    def within_queue(self, candidate: Candidate) -> HeadKey:
        """The key without the share, which all workloads of a queue have in common; smaller goes first."""
        workload = candidate.workload
        eligible, deadline, now = workload.eligible_seconds, workload.deadline_seconds, self.now
        on_time = deadline is None or max(deadline, eligible + self.ageing.shortest_wait_seconds) > now
        if workload.gang is not None and candidate.begun:
            return (on_time, -workload.priority - self.ageing.most, False, eligible, workload.uid)
        points = self.ageing.points(now - eligible)
        nominated = bool(self.nominated) and candidate.subject in self.nominated
        return (on_time, -workload.priority - points, not nominated, eligible, workload.uid)


class Tournament(msgspec.Struct):
    """What the order depends on besides the workloads and their ranking.

    `share_of`: a queue's weighted dominant share, inner queues included. `borrows_of`: of each queue, leaf or inner,
    that may borrow, whether it would for this workload. Both are read again for the queues on the path of each workload
    that was yielded, since placing it changes them; those of others only rise within a turn, and are read again when
    their turn comes.
    `stopped`: queues that yield no more in this turn; whoever takes the workloads adds to it, as to a queue of order
    StrictFIFO whose head does not fit. `revision` tells whether either has changed at all, where that is known.
    Whoever takes the workloads adds to `joining` what waits in the queue of the one taken, as well.
    `arranged` gives what waits in a queue, the next one last, in another order, where it is not by its key alone.
    """

    share_of: ShareOf
    tree: QueueTree = msgspec.field(default_factory=lambda: tree_of(()))
    borrows_of: BorrowsOf = {}
    stopped: set[str] = msgspec.field(default_factory=set)
    revision: Revision | None = None
    arranged: Callable[[str, list[Head]], list[Head]] | None = None
    joining: Joining = msgspec.field(default_factory=dict)

    def strict(self, queue: str) -> bool:
        """Whether the queue goes by time alone; one that counts by flavours, Kueue's, goes by priority first."""
        known = self.tree.queues.get(queue)
        return known is not None and known.order is QueueOrder.STRICT_FIFO and not known.flavor_groups

    def bracket(self, leaves: Sequence[Node]) -> Bracket:
        """It begins at this moment, with those that have something to yield."""
        return Bracket(self.tree, leaves, self.share_of, self.borrows_of, self.stopped, self.revision, self.joining)


def in_order(
    candidates: Iterable[Candidate],
    tournament: Tournament | ShareOf,
    ranking: Ranking | float,
) -> Iterator[Candidate]:
    """Yield the next workload again and again; shares are read again after each, since placing it raises them.

    A bare function for `tournament` gives the shares of queues without a tree. A bare number for `ranking` is the time
    (Unix seconds), without ageing.
    """
    ranking = ranking if isinstance(ranking, Ranking) else Ranking(ranking)
    tournament = tournament if isinstance(tournament, Tournament) else Tournament(tournament)
    leaves, merge = _leaves(candidates, tournament, ranking), False
    while len(leaves) > 1:
        bracket = tournament.bracket(leaves)
        yield from bracket.merged() if merge else bracket.run()
        leaves, merge = [leaf for leaf in leaves if leaf.heads and leaf.name not in tournament.stopped], not merge
    for leaf in leaves:
        yield from _alone(leaf, tournament)


def _leaves(candidates: Iterable[Candidate], tournament: Tournament, ranking: Ranking) -> list[Node]:
    """Queues with what waits in each, without those that are stopped."""
    waiting: defaultdict[str, list[Head]] = defaultdict(list)
    key_of = ranking.within_queue
    for candidate in candidates:
        waiting[candidate.workload.queue].append((key_of(candidate), candidate))
    for queue, heads in waiting.items():
        heads.sort(key=_by_time if tournament.strict(queue) else itemgetter(0), reverse=True)
        if tournament.arranged is not None:
            waiting[queue] = tournament.arranged(queue, heads)
    return [Node(queue, heads) for queue, heads in waiting.items() if queue not in tournament.stopped]


def _by_time(head: Head) -> tuple[float, str]:
    return head[0][3:]


def _alone(leaf: Node, tournament: Tournament) -> Iterator[Candidate]:
    heads = leaf.heads
    while heads and leaf.name not in tournament.stopped:
        yield heads.pop()[1]
        join(leaf, tournament.joining)
