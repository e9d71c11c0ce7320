"""Queue tournament: whose turn it is, by the shares of their queues, whether these would borrow, and their own keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from model.flavor.resource_flavor import SubmissionQueue
from model.queue import ROOT_QUEUE, Cell, QueueOrder
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.bracket import Borrows, Head, Joining
from scheduler.core.queueing.order import Ranking, Tournament, in_order
from scheduler.core.queues.book import Balance
from scheduler.core.queues.policy import QueuePolicy
from scheduler.core.queues.tree import QueueTree, tree_of
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.steps.asked_amounts import AskedAmounts
from scheduler.steps.flavor_assignments import FlavorAssignments
from scheduler.steps.submission_shares import SubmissionShares

_Own: TypeAlias = tuple[Cell, int, Balance]
"""A cell, what a queue says is its own of it, and how the queue stands there."""


class QueueTournament:
    """`never_taken`: whether its queue refuses a workload for ever."""

    def __init__(
        self,
        cache: ClusterCache,
        policy: QueuePolicy,
        asked: AskedAmounts,
        flavors: FlavorAssignments,
        never_taken: Callable[[Candidate], bool],
    ) -> None:
        self._fair_sharing = policy.fair_sharing
        self._asked = asked
        self._flavors = flavors
        self._never_taken = never_taken
        self._tree = tree_of(())
        self._by_submission = False
        self._totals: Mapping[Cell, int] = {}
        self._borrowing: dict[str, Borrows] = {}
        self._joining: Joining = {}
        self._submission_shares = SubmissionShares(cache, policy.submission_half_life_seconds, asked.in_all)

    def open(self, tree: QueueTree, quota: TurnQuota) -> None:
        """Other queues, or books of them that were begun anew."""
        self._tree = tree
        self._by_submission = any(queue.by_submission for queue in tree.queues.values())
        self._borrowing = self._tests_of_borrowing(quota)

    def begin(self, totals: Mapping[Cell, int], now: float) -> None:
        """Another turn; `totals` is what all queues share."""
        self._totals = totals
        if self._by_submission:
            self._submission_shares.observe(now)

    def ordered(self, candidates: Iterable[Candidate], ranking: Ranking, quota: TurnQuota) -> Iterator[Candidate]:
        """Candidates, next one first: work that no queue governs, then that of queues by their shares, then what its
        queue refuses for ever, which is told so.
        """
        outside, governed, refused = list[Candidate](), list[Candidate](), list[Candidate]()
        for candidate in candidates:
            if candidate.governed_by == ROOT_QUEUE:
                outside.append(candidate)
            elif self._never_taken(candidate):
                refused.append(candidate)
            else:
                governed.append(candidate)
        yield from in_order(outside, lambda queue: 0, ranking)
        share_of = quota.dominance.key if self._fair_sharing else lambda queue: 0
        self._joining = {}
        arranged = self._arranged if self._by_submission else None
        tournament = Tournament(
            share_of,
            self._tree,
            self._borrowing,
            revision=partial(getattr, quota, "revision"),
            arranged=arranged,
            joining=self._joining,
        )
        yield from in_order(governed, tournament, ranking)
        yield from in_order(refused, lambda queue: 0, ranking)

    def join(self, candidates: Iterable[Candidate], ranking: Ranking) -> None:
        """These are in the order as well from now on: they wait in the queue of the one that it yielded last."""
        for candidate in candidates:
            self._joining.setdefault(candidate.workload.queue, []).append((ranking.within_queue(candidate), candidate))

    def in_line(self, queue: str) -> bool:
        """Whether those of a queue that are alike but for their age go one after the other."""
        known = self._tree.queues.get(queue)
        return known is not None and known.order is QueueOrder.BEST_EFFORT_FIFO and not known.by_submission

    def consumed(self, submission: SubmissionQueue) -> Mapping[str, int]:
        """What a LocalQueue used over time."""
        return self._submission_shares.consumed(f"{submission.namespace}/{submission.name}")

    def _arranged(self, queue: str, heads: list[Head]) -> list[Head]:
        """Where a queue serves its LocalQueues by what they used over time, in that order."""
        known = self._tree.queues.get(queue)
        if known is None or not known.by_submission:
            return heads
        return self._submission_shares.arranged(heads, self._totals)

    def _tests_of_borrowing(self, quota: TurnQuota) -> dict[str, Borrows]:
        """For each queue that may borrow, whether it does for a workload; one whose own is its share never does so."""
        found: dict[str, Borrows] = {}
        for name, queue in self._tree.queues.items():
            said = ((cell, quota.rules.nominal(of)) for cell, of in queue.cells.items())
            own = tuple((cell, amount, quota.balance(name, cell)) for cell, amount in said if amount is not None)
            if queue.flavor_groups:
                found[name] = self._flavors.borrows
            elif own:
                found[name] = partial(self._exceeds, own)
        return found

    def _exceeds(self, own: tuple[_Own, ...], candidate: Candidate) -> bool:
        """Whether a queue would have more with the workload than it says is its own."""
        asked = self._asked.in_all(candidate)
        for cell, amount, balance in own:
            more = asked.get(cell)
            if more is not None and balance.used + more > amount:
                return True
        return False
