"""Quotas of queues in a turn: whether a workload's queue lets it be placed, how much of it, and what it may take back.

All of it is off while there is no queue but the default one: then nothing is looked at, and nothing costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import msgspec

from kube.dialects.queues.membership import LOCAL_PREFIX
from model.flavor.assignment import FlavorAssignment, FlavorMode
from model.flavor.resource_flavor import ResourceFlavor, SubmissionQueue
from model.queue import NO_FLAVOR, ROOT_QUEUE, Cell, Queue, QueueOrder, QueueState
from model.reason import Reason
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import ClaimKind
from scheduler.core.ledger.queue_book import QueueBook, add, cells_of
from scheduler.core.preemption.demand import cut, needed_only
from scheduler.core.preemption.queue_rules import Questions, QueueRules, joined
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.bracket import Head
from scheduler.core.queueing.never_fits import most_of, never_fits
from scheduler.core.queueing.order import Ranking, Tournament, in_order
from scheduler.core.queueing.queue_refusal import QueueRefusal, amounts_of, lacking
from scheduler.core.queues.book import Balance
from scheduler.core.queues.flavors import FlavorQuestion
from scheduler.core.queues.headroom import CAPACITY, Shortage
from scheduler.core.queues.policy import QueuePolicy
from scheduler.core.queues.shares import Shares, fair_shares, known_cells
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.core.queues.usage_history import UsageHistory
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot
from scheduler.steps.flavor_choice import as_bound, as_kept, chosen, flavors_in, with_flavors
from scheduler.steps.job_rules import JobRules, never_taken, ruleless, too_many_resources
from scheduler.steps.queue_standings import own_demand
from scheduler.steps.submission_shares import SubmissionShares

_OWN = (ClaimKind.NOMINATED, ClaimKind.ADMITTED)
"""What is kept for a workload by these counts to its queue."""
_Own: TypeAlias = tuple[Cell, int, Balance]
"""A cell, what a queue says is its own of it, and how the queue stands there."""


class QueueQuotas:
    """By the queues of the cache; `quota` is None while there is but the default one, and where queues are off.

    `questions` counts those about what queues may lose.
    """

    def __init__(self, cache: ClusterCache, backlog: Backlog, policy: QueuePolicy) -> None:
        self.policy = policy
        self.tree = tree_of(())
        self.questions = Questions()
        self._cache = cache
        self._backlog = backlog
        self._known: tuple[Queue, ...] = ()
        self._capacity: Mapping[Cell, int] = {}
        self._shared: Mapping[Cell, int] = {}
        self._cells: frozenset[Cell] = frozenset()
        self._snapshot = cache.snapshot()
        self._rules: JobRules | None = None
        self._ruleless: frozenset[str] = frozenset()
        self._lines: dict[str, list[Candidate]] = {}
        self._firsts: dict[str, Candidate] = {}
        self._most: Amounts | None = None
        self._history: UsageHistory | None = None
        self._nominal: dict[str, tuple[_Own, ...]] = {}
        self._alike: dict[tuple[PodClass, int], dict[Cell, int]] = {}
        self._flavors: Mapping[str, ResourceFlavor] = {}
        self._submissions: Mapping[str, SubmissionQueue] = {}
        self._chosen: dict[tuple[object, ...], FlavorAssignment] = {}
        self._by_submission = False
        self._submission_shares = SubmissionShares(cache, policy.submission_half_life_seconds, self._amounts)

    @property
    def quota(self) -> TurnQuota | None:
        book = self._cache.ledger.book
        return book.quota if book is not None else None

    def begin(self, queues: tuple[Queue, ...], snapshot: ClusterSnapshot, now: float) -> bool:
        """A turn begins; whether queues are others than in the turn before. The cluster may be larger or smaller."""
        flavors, submissions = self._cache.queues.kueue.flavors, self._cache.queues.kueue.submissions
        changed = (queues, flavors, submissions) != (self._known, self._flavors, self._submissions)
        ledger, self._snapshot = self._cache.ledger, snapshot
        if changed:
            self._known, self.tree = queues, tree_of(queues)
            self._flavors, self._submissions = dict(flavors), dict(submissions)
            self._by_submission = any(queue.by_submission for queue in queues)
            self._ruleless = ruleless(self.tree)
            ledger.open_book(None)
        if queues and self.policy.enable:
            self._capacity = self._available(snapshot)
            if self.quota is None or not self._capacity.keys() <= self._cells:
                quota = self._books()
                self._nominal = _nominal(quota)
                ledger.open_book(QueueBook(quota))
        if self.quota is not None:
            self.quota.begin(self._capacity, self._shares, self._shared)
            self._lines.clear()
            self._alike.clear()
            self._chosen.clear()
            self._firsts.clear()
            self._most = None
            self._observe(now)
            if self._by_submission:
                self._submission_shares.observe(now)
            self._rules = JobRules(self.tree, ledger.book, self._backlog.candidates) if ledger.book else None
        return changed

    def ordered(self, candidates: Iterable[Candidate], ranking: Ranking) -> Iterator[Candidate]:
        """Candidates, next one first: work that no queue governs, then that of queues by their shares, then what its
        queue refuses for ever, which is told so.
        """
        quota = self.quota
        if quota is None:
            yield from in_order(candidates, lambda queue: 0, ranking)
            return
        outside, governed, refused = list[Candidate](), list[Candidate](), list[Candidate]()
        for candidate in candidates:
            if candidate.governed_by == ROOT_QUEUE:
                outside.append(candidate)
            else:
                (refused if self._never_taken(candidate) else governed).append(candidate)
        yield from in_order(outside, lambda queue: 0, ranking)
        share_of = quota.dominance.key if self.policy.fair_sharing else lambda queue: 0
        borrows_of = self._borrows if self._nominal else None
        arranged = self._arranged if self._by_submission else None
        tournament = Tournament(share_of, self.tree, borrows_of, revision=lambda: quota.revision, arranged=arranged)
        yield from in_order(governed, tournament, ranking)
        yield from in_order(refused, lambda queue: 0, ranking)

    def _arranged(self, queue: str, heads: list[Head]) -> list[Head]:
        """Where a queue serves its LocalQueues by what they used over time, in that order."""
        known = self.tree.queues.get(queue)
        if known is None or not known.by_submission:
            return heads
        return self._submission_shares.arranged(heads, self._shared)

    def _books(self) -> TurnQuota:
        """Of the cells that nodes or queues have: a book is opened again where a node comes with another."""
        self._cells = frozenset(known_cells(self.tree, self._capacity, ()))
        return TurnQuota(self.tree, self.policy.rules, self.policy.reclaim_ancestor_levels, self._cells)

    def _share_over_time(self, queue: str) -> Fraction:
        """Its weighted dominant share with what it used before."""
        quota, history = self.quota, self._history
        if quota is None or history is None:
            return Fraction(0)
        used = {cell: quota.used(queue, cell) for cell in self._capacity}
        return history.share(queue, used, self._capacity, max(1, self.tree.weight(queue))).value

    def _borrows(self, queue: str, candidate: Candidate) -> bool:
        """Whether the queue would have more than it says is its own; one whose own is its share never does so."""
        if self.by_flavor(queue):
            return self._assignment(candidate, frozenset()).borrowing > 0
        own = self._nominal.get(queue)
        if own is None:
            return False
        asked = self._amounts(candidate)
        return any(cell in asked and balance.used + asked[cell] > amount for cell, amount, balance in own)

    def _amounts(self, candidate: Candidate) -> Mapping[Cell, int]:
        """`amounts_of`, worked out once a turn for pods that are alike."""
        sets = candidate.workload.pod_sets
        if len(sets) != 1:
            return amounts_of(candidate)
        alike = (candidate.classes[0], sets[0].count)
        found = self._alike.get(alike)
        if found is None:
            self._alike[alike] = found = amounts_of(candidate)
        return found

    def _observe(self, now: float) -> None:
        """What queues use is remembered where shares are of use over time."""
        quota, half_life = self.quota, self.policy.usage_half_life_seconds
        if quota is None or half_life is None:
            self._history = None
            return
        if self._history is None:
            self._history = UsageHistory(half_life)
        quota.dominance.measure = self._share_over_time
        used = {
            queue: {cell: amount for cell in self._capacity if (amount := quota.used(queue, cell))}
            for queue in self.tree.top_down
        }
        self._history.observe(used, now)

    def picture(self, snapshot: ClusterSnapshot) -> TurnQuota:
        """The books for those who ask, where there is but the default queue, too."""
        if self.quota is not None:
            return self.quota
        self._capacity = self._available(snapshot)
        quota = self._books()
        self._cache.ledger.write_into(QueueBook(quota))
        quota.begin(self._capacity, self._shares, self._shared)
        return quota

    def by_flavor(self, queue: str) -> bool:
        """Whether work of the queue counts by flavour."""
        known = self.tree.queues.get(queue)
        return known is not None and bool(known.flavor_groups)

    def flavored(self, candidate: Candidate, passed: frozenset[str] = frozenset()) -> Candidate:
        """With the flavours that its queue gives it, of those that were not `passed`; as it is where its queue counts
        none, or has none for it.
        """
        if self.quota is None or not self.by_flavor(candidate.governed_by) or flavors_in(candidate):
            return candidate
        for kind in _OWN:
            claim = self._cache.ledger.claim(kind, candidate.subject)
            if claim is not None and any(pod.pod_class.flavors for pod in claim.pods):
                return as_kept(candidate, claim, self._flavors)
        if candidate.workload.bound and flavors_in(rest := as_bound(candidate, self._bound(candidate), self._flavors)):
            return rest
        assignment = self._assignment(candidate, passed)
        if assignment.mode is FlavorMode.NO_FIT or (passed and assignment.mode is not FlavorMode.FIT):
            return candidate
        return with_flavors(candidate, assignment, self._flavors)

    def _bound(self, candidate: Candidate) -> dict[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]:
        """What its members with nodes request, and the flavours that they have."""
        placed = (pod for part in self._cache.parts(candidate.subject) for pod in part.members.placed)
        charges = (self._cache.ledger.charge(pod.uid) for pod in placed)
        return {each.pod_class.request: each.pod_class.flavors for each in charges if each is not None}

    def may_evict(self, candidate: Candidate) -> bool:
        """Whether its queue's rules let it take the flavours that it was given by evictions."""
        return not self.by_flavor(candidate.governed_by) or self._assignment(candidate, frozenset()).mode.evicts

    def _assignment(self, candidate: Candidate, passed: frozenset[str]) -> FlavorAssignment:
        """Worked out once for those alike while the books stay as they are."""
        quota, queue = self.quota, candidate.governed_by
        if quota is None:
            return FlavorAssignment(())
        kept = self._own_claim(candidate)
        plain = tuple(msgspec.structs.replace(own, flavors=()) if own.flavors else own for own in candidate.classes)
        counts = tuple(pods.count for pods in candidate.workload.pod_sets)
        alike = (queue, plain, counts, candidate.needed, candidate.workload.gangs, passed, quota.revision)
        found = None if kept else self._chosen.get(alike)
        if found is None:
            fair = self.policy.fair_sharing and bool(self.policy.fair_preemption_strategies)
            question = FlavorQuestion(quota, queue, self._flavors, passed, fair)
            with quota.as_if_gone(kept):
                found = chosen(question, candidate, self._needed(candidate))
            if not kept:
                self._chosen[alike] = found
        return found

    def refusal(self, candidate: Candidate) -> QueueRefusal | None:
        """Why the queue does not let it be placed now; None where it does, for as much as `within` says."""
        quota, queue = self.quota, candidate.governed_by
        if queue == ROOT_QUEUE or not self.policy.enable:
            return None
        if quota is None:
            return None if queue in self.tree.queues else self._unknown(queue)
        if self._cache.ledger.claim(ClaimKind.ADMITTED, candidate.subject) is not None:
            return None  # its job was admitted with all its pods
        if endless := too_many_resources(candidate):
            return QueueRefusal(Reason.QUEUE_REFUSES_JOB, endless)
        against = self._rules.refused(candidate) if self._rules is not None and queue not in self._ruleless else None
        if against is not None:
            missing = against.reason is Reason.QUEUE_NOT_FOUND
            return self._unknown(queue) if missing else QueueRefusal(against.reason, against.message)
        if held := self._held(candidate):
            return held
        if self.by_flavor(queue) and not flavors_in(candidate):
            told = f"queue {queue}: {self._assignment(candidate, frozenset()).reason}"
            return QueueRefusal(Reason.QUOTA_TOO_SMALL, told)
        asked = self._asked(candidate)
        short = quota.short(queue, asked, self._own_claim(candidate))
        if short and (ever := _never(quota, queue, asked)):
            return lacking(queue, ever, ever=True)
        return self._behind(quota, candidate) or (lacking(queue, short) if short else None)

    def _held(self, candidate: Candidate) -> QueueRefusal | None:
        """The LocalQueue that it names is on hold."""
        queues = self._cache.queues
        record = self._cache.record(candidate.uids[0]) if queues.kueue.submissions else None
        found = queues.submission(record.pod.namespace, record.pod.spec.local_queue) if record is not None else None
        if found is None or found.state is QueueState.OPEN:
            return None
        told = f"LocalQueue {found.namespace}/{found.name} is on hold: what waits there is not placed"
        return QueueRefusal(Reason.QUEUE_HELD, told)

    def admissible(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Without those that their queue refuses for ever: whoever names a queue is no job of it by that alone."""
        return (each for each in candidates if not self._never_taken(each))

    def within(self, candidate: Candidate) -> Candidate:
        """As many of its waiting pods as there is quota for, those it needs among them."""
        quota, queue = self.quota, candidate.governed_by
        if quota is None or queue == ROOT_QUEUE or candidate.needed >= candidate.pending:
            return candidate
        own = self._own_claim(candidate)
        if not quota.short(queue, self._amounts(candidate), own):
            return candidate
        sets = candidate.workload.pod_sets
        kept = self._needed(candidate)
        taken = _sum(candidate, kept)
        for index, pod_class in enumerate(candidate.classes):
            low, high = kept[index], sets[index].count
            while low < high:
                middle = (low + high + 1) // 2
                asked = dict(taken)
                add(asked, cells_of(pod_class, middle - kept[index]))
                low, high = (low, middle - 1) if quota.short(queue, asked, own) else (middle, high)
            add(taken, cells_of(pod_class, low - kept[index]))
            kept[index] = low
        return cut(candidate, kept)

    def preemption_rules(self, candidate: Candidate) -> QueueRules | None:
        """The rules between queues for an eviction on its behalf; None where there is but one."""
        quota, evicting = self.quota, self._cache.ledger.evicting
        if quota is None:
            return None
        going = {queue: evicting.cells(queue) for queue in evicting.queues if queue != ROOT_QUEUE}
        before = joined(self._own_claim(candidate), going)
        own, asked = candidate.governed_by, self._asked(candidate)
        short = quota.short(own, asked, before) if own != ROOT_QUEUE else ()
        contested = tuple(each.cell for each in short) or tuple(quota.counted(asked))
        strategies = self.policy.fair_preemption_strategies if self.policy.fair_sharing else ()
        prod, first = self.policy.reclaim_prod, self.tree.queues.get(own)
        words = first.preemption if first is not None and first.preemption.within is not None else None
        return QueueRules(quota, own, asked, before, contested, strategies, prod, words, self.questions)

    def may_reserve(self, candidate: Candidate) -> bool:
        """Whether room may be kept for it while it is the head of its queue."""
        queue = self.tree.queues.get(candidate.governed_by)
        return queue is None or queue.order is not QueueOrder.BEST_EFFORT_FIFO

    def _available(self, snapshot: ClusterSnapshot) -> dict[Cell, int]:
        """What queues without flavours share: the nodes' amounts less what work takes that no queue governs, and what
        work of flavours takes. All queues share the latter, too (`_shared`).
        """
        ledger = self._cache.ledger
        outside = (ledger.used(ROOT_QUEUE), ledger.claimed(ClaimKind.NOMINATED).of(ROOT_QUEUE))
        self._shared = _less(snapshot.totals, outside)
        flavored = ledger.flavored
        return _less(snapshot.totals, (*outside, *flavored)) if any(flavored) else self._shared

    def _shares(self) -> Shares:
        """Fair shares by what is used, nominated and waited for at this moment."""
        waiting = self.admissible(self._backlog.candidates)
        plain = (each for each in waiting if not self.by_flavor(each.governed_by))
        demand = own_demand(self.tree.queues, self._cache.ledger, plain, self._cells)
        return fair_shares(self.tree, self._capacity, demand, self.policy.rules)

    def _unknown(self, queue: str) -> QueueRefusal:
        """Nobody wrote the queue, or nobody can read what they wrote."""
        problem = self._cache.queues.problems.get(queue)
        if problem is not None:
            return QueueRefusal(Reason.QUEUE_INVALID, problem)
        if queue.startswith(LOCAL_PREFIX):
            told = f"LocalQueue {queue.removeprefix(LOCAL_PREFIX)} does not exist; create it, or name another"
            return QueueRefusal(Reason.QUEUE_NOT_FOUND, told)
        return QueueRefusal(Reason.QUEUE_NOT_FOUND, f'queue "{queue}" does not exist; create it, or name another')

    def _behind(self, quota: TurnQuota, candidate: Candidate) -> QueueRefusal | None:
        """In a queue that goes strictly one after the other: who is before it."""
        queue = self.tree.queues.get(candidate.governed_by)
        if queue is None or queue.order is not QueueOrder.STRICT_FIFO:
            return None
        head = self._head(quota, queue.name)
        key = _by_priority if queue.flavor_groups else _by_time
        if head is None or key(candidate) <= key(head):
            return None
        detail = f"queue {queue.name} goes strictly one after the other, and {head.subject.text} is before it"
        return QueueRefusal(Reason.QUEUE_ORDER, detail)

    def _head(self, quota: TurnQuota, queue: str) -> Candidate | None:
        """The first of a queue that waits still; one that can never run holds up nobody."""
        first, waiting = self._firsts.get(queue), self._backlog.by_subject
        if first is not None and first.subject in waiting:
            return first
        line = self._lines.get(queue)
        if line is None:
            own = [each for each in self._backlog.candidates if each.governed_by == queue]
            key = _by_priority if self.by_flavor(queue) else _by_time
            line = self._lines[queue] = sorted(own, key=key, reverse=True)
        while line:
            first = line.pop()
            if first.subject in waiting and not self._can_never_run(quota, first):
                self._firsts[queue] = first
                return first
        return None

    def _can_never_run(self, quota: TurnQuota, candidate: Candidate) -> bool:
        """Whether its queue refuses it for ever, may never have so much, or no node holds it even where it is empty."""
        candidate = self.flavored(candidate)
        if self.by_flavor(candidate.governed_by) and not flavors_in(candidate):
            return True
        if self._never_taken(candidate) or _never(quota, candidate.governed_by, self._asked(candidate)):
            return True
        members = zip(candidate.classes, self._needed(candidate), strict=True)
        if self._most is None:
            self._most = most_of(self._snapshot)
        return never_fits(self._snapshot, self._most, members)

    def _never_taken(self, candidate: Candidate) -> bool:
        if candidate.governed_by in self._ruleless:
            return too_many_resources(candidate) != ""
        return never_taken(self.tree, candidate)

    def _asked(self, candidate: Candidate) -> Mapping[Cell, int]:
        """What it must have at once: all members it needs, or one of those above its minimum."""
        needed = candidate.needed
        if not needed:
            return cells_of(candidate.classes[0])
        return self._amounts(candidate if needed >= candidate.pending else needed_only(self._snapshot, candidate))

    def _needed(self, candidate: Candidate) -> list[int]:
        """How many pods of each set it needs."""
        if not candidate.needed:
            return [0] * len(candidate.classes)
        uids = set(needed_only(self._snapshot, candidate).uids)
        return [len(uids.intersection(pods.uids)) for pods in candidate.workload.pod_sets]

    def _own_claim(self, candidate: Candidate) -> dict[str, dict[Cell, int]]:
        """What is kept for it already, which it does not need twice."""
        found: dict[str, dict[Cell, int]] = {}
        for claim in (self._cache.ledger.claim(kind, candidate.subject) for kind in _OWN):
            for pod in claim.pods if claim is not None else ():
                add(found.setdefault(claim.queue if claim is not None else "", {}), cells_of(pod.pod_class))
        return found


def _less(totals: Mapping[str, int], taken: Sequence[Mapping[str, int]]) -> dict[Cell, int]:
    return {
        (NO_FLAVOR, name): max(0, total - sum(amounts.get(name, 0) for amounts in taken))
        for name, total in totals.items()
    }


def _never(quota: TurnQuota, queue: str, asked: Mapping[Cell, int]) -> tuple[Shortage, ...]:
    """What the queue may never have as queues are written; a cluster may grow."""
    return tuple(each for each in quota.potential_short(queue, asked) if each.bound != CAPACITY)


def _nominal(quota: TurnQuota) -> dict[str, tuple[_Own, ...]]:
    """What queues say is their own, without those that say nothing."""
    found = {}
    for name, queue in quota.tree.queues.items():
        said = ((cell, quota.rules.nominal(of)) for cell, of in queue.cells.items())
        own = tuple((cell, amount, quota.balance(name, cell)) for cell, amount in said if amount is not None)
        if own:
            found[name] = own
    return found


def _by_time(candidate: Candidate) -> tuple[float, float, str]:
    return (0, candidate.workload.eligible_seconds, candidate.workload.uid)


def _by_priority(candidate: Candidate) -> tuple[float, float, str]:
    """In Kueue those of higher priority stand before older ones, in a StrictFIFO queue as well."""
    return (-candidate.workload.priority, candidate.workload.eligible_seconds, candidate.workload.uid)


def _sum(candidate: Candidate, numbers: list[int]) -> dict[Cell, int]:
    """What so many pods of each set ask for."""
    total: dict[Cell, int] = {}
    for pod_class, number in zip(candidate.classes, numbers, strict=True):
        add(total, cells_of(pod_class, number))
    return total
