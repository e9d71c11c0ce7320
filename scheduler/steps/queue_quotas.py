"""Quotas of queues in a turn: whether a workload's queue lets it be placed, how much of it, and what it may take back.

All of it is off while there is no queue but the default one: then nothing is looked at, and nothing costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from kube.dialects.queues.membership import LOCAL_PREFIX
from model.flavor.resource_flavor import ResourceFlavor, SubmissionQueue
from model.queue import NO_FLAVOR, ROOT_QUEUE, Cell, Queue, QueueOrder, QueueState
from model.reason import Reason
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import ClaimKind
from scheduler.core.ledger.queue_book import QueueBook, add, cells_of
from scheduler.core.preemption.demand import cut
from scheduler.core.preemption.queue_rules import Questions, QueueRules, joined
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.order import Ranking, in_order
from scheduler.core.queueing.queue_refusal import QueueRefusal, lacking, never_enough
from scheduler.core.queues.headroom import LENDERS, BookVersion, Shortage
from scheduler.core.queues.policy import QueuePolicy
from scheduler.core.queues.shares import Shares, fair_shares, known_cells
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.core.queues.usage_history import UsageHistory
from scheduler.core.snapshot.snapshot import ClusterSnapshot
from scheduler.steps.asked_amounts import AskedAmounts, by_resource, kept_for
from scheduler.steps.flavor_assignments import FlavorAssignments
from scheduler.steps.job_rules import MOST_RESOURCES, JobRules, never_taken, ruleless, too_many_resources
from scheduler.steps.queue_standings import own_demand
from scheduler.steps.queue_tournament import QueueTournament
from scheduler.steps.strict_lines import StrictLines


class QueueQuotas:
    """By the queues of the cache; `quota` is None while there is but the default one, and where queues are off.

    `asked` says what workloads ask of their queue, `flavors` which ones those have that count by them. `questions`
    counts those about what queues may lose.
    """

    def __init__(self, cache: ClusterCache, backlog: Backlog, policy: QueuePolicy) -> None:
        self.policy = policy
        self.tree = tree_of(())
        self.quota: TurnQuota | None = None
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
        self._history: UsageHistory | None = None
        self._plain: frozenset[str] = frozenset()
        self._opened = 0
        self._flavors: Mapping[str, ResourceFlavor] = {}
        self._submissions: Mapping[str, SubmissionQueue] = {}
        self.asked = AskedAmounts(self._snapshot)
        self.flavors = FlavorAssignments(cache, self.asked, policy)
        self._strict = StrictLines(self._snapshot, backlog, self.asked, self.flavors, self._never_taken)
        self._tournament = QueueTournament(cache, policy, self.asked, self.flavors, self._never_taken)

    def begin(self, queues: tuple[Queue, ...], snapshot: ClusterSnapshot, now: float) -> bool:
        """A turn begins; whether queues are others than in the turn before. The cluster may be larger or smaller."""
        flavors, submissions = self._cache.queues.kueue.flavors, self._cache.queues.kueue.submissions
        changed = (queues, flavors, submissions) != (self._known, self._flavors, self._submissions)
        ledger, self._snapshot = self._cache.ledger, snapshot
        self.asked.begin(snapshot)
        if changed:
            self._known, self.tree = queues, tree_of(queues)
            self._flavors, self._submissions = dict(flavors), dict(submissions)
            self._ruleless = ruleless(self.tree)
            self._plain = self._asking_quota_alone()
            self.quota = None
            ledger.open_book(None)
        if queues and self.policy.enable:
            self._capacity = self._available(snapshot)
            if self.quota is None or not self._capacity.keys() <= self._cells:
                self._opened += 1
                self.quota = quota = self._books()
                quota.number = self._opened
                self._tournament.open(self.tree, quota)
                ledger.open_book(QueueBook(quota))
        if self.quota is not None:
            self.quota.begin(self._capacity, self._shares, self._shared)
            self._strict.begin(snapshot)
            self._observe(now)
            self._tournament.begin(self._shared, now)
            self._rules = JobRules(self.tree, ledger.book, self._backlog.candidates) if ledger.book else None
        self.flavors.begin(self.tree, self._flavors, self.quota)
        return changed

    def ordered(self, candidates: Iterable[Candidate], ranking: Ranking) -> Iterator[Candidate]:
        """Candidates, next one first."""
        if self.quota is None:
            return in_order(candidates, lambda queue: 0, ranking)
        return self._tournament.ordered(candidates, ranking, self.quota)

    def join(self, candidates: Iterable[Candidate], ranking: Ranking) -> None:
        """As `QueueTournament.join` has it."""
        self._tournament.join(candidates, ranking)

    def in_line(self, queue: str) -> bool:
        """As `QueueTournament.in_line` has it."""
        return self._tournament.in_line(queue)

    def consumed(self, submission: SubmissionQueue) -> Mapping[str, int] | None:
        """What a LocalQueue used over time, where its queue serves by that."""
        known = self.tree.queues.get(submission.queue)
        return self._tournament.consumed(submission) if known is not None and known.by_submission else None

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

    def _asking_quota_alone(self) -> frozenset[str]:
        """Queues whose work may be placed wherever their quota has room: without rules, flavours or a strict order."""
        if any(each.state is not QueueState.OPEN for each in self._submissions.values()):
            return frozenset()
        queues = self.tree.queues
        return frozenset(
            name
            for name in self._ruleless
            if not queues[name].flavor_groups and queues[name].order is not QueueOrder.STRICT_FIFO
        )

    def _observe(self, now: float) -> None:
        """What queues use is remembered where shares are of use over time."""
        quota, half_life = self.quota, self.policy.usage_half_life_seconds
        if quota is None or half_life is None:
            self._history = None
            return
        if self._history is None:
            self._history = UsageHistory(half_life)
        quota.dominance.by(self._share_over_time)
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

    def refusal(self, candidate: Candidate) -> QueueRefusal | None:
        """Why the queue does not let it be placed now; None where it does, for as much as `within` says."""
        quota, queue = self.quota, candidate.governed_by
        if queue == ROOT_QUEUE or not self.policy.enable:
            return None
        if quota is None:
            return None if queue in self.tree.queues else self._unknown(queue)
        ledger, plain, classes = self._cache.ledger, queue in self._plain, candidate.classes
        keeping = ledger.keeping
        few = len(classes) == 1 and len(classes[0].request) <= MOST_RESOURCES
        if plain and few and not keeping and quota.fits(queue, self.asked.at_once(candidate)):  # as most work does
            return None
        if keeping and self._admitted(candidate):
            return None
        if endless := too_many_resources(candidate):
            return QueueRefusal(Reason.QUEUE_REFUSES_JOB, endless)
        if not plain and (against := self._against(candidate)):
            return against
        asked = self.asked.at_once(candidate)
        short = quota.short(queue, asked, kept_for(ledger, candidate) if keeping else None)
        if short and (ever := never_enough(quota, queue, asked)):
            return lacking(queue, ever, ever=True)
        behind = None if plain else self._strict.behind(quota, candidate)
        if behind is not None or not short:
            return behind
        return msgspec.structs.replace(lacking(queue, short), version=self._version(quota, queue, short))

    def stands(self, version: BookVersion) -> bool:
        """Whether what the top queue and those below it use is what it was."""
        return self.quota is not None and self.quota.version(version.top) == version

    def _version(self, quota: TurnQuota, queue: str, short: Iterable[Shortage]) -> BookVersion | None:
        """Where nothing but what relatives use decides: of a flavour there is what queues say, whatever nodes have."""
        if any(each.cell[0] == NO_FLAVOR or each.bound == LENDERS for each in short):
            return None
        return quota.version(queue)

    def _admitted(self, candidate: Candidate) -> bool:
        """Its job was admitted with all these pods; of more, as when it grew, or of larger ones, quota is asked."""
        claim = self._cache.ledger.claim(ClaimKind.ADMITTED, candidate.subject)
        if claim is None:
            return False
        kept = by_resource(cells_of(pod.pod_class) for pod in claim.pods)
        return all(amount <= kept[name] for name, amount in by_resource([self.asked.in_all(candidate)]).items())

    def _against(self, candidate: Candidate) -> QueueRefusal | None:
        """Rules of its queue, a LocalQueue on hold, or no flavour for it."""
        queue = candidate.governed_by
        against = self._rules.refused(candidate) if self._rules is not None and queue not in self._ruleless else None
        if against is not None:
            missing = against.reason is Reason.QUEUE_NOT_FOUND
            return self._unknown(queue) if missing else QueueRefusal(against.reason, against.message)
        if held := self._held(candidate):
            return held
        if self.flavors.fits_none(candidate):
            told = f"queue {queue}: {self.flavors.assignment(candidate).reason}"
            return QueueRefusal(Reason.QUOTA_TOO_SMALL, told)
        return None

    def _held(self, candidate: Candidate) -> QueueRefusal | None:
        """The LocalQueue that it names is on hold."""
        queues = self._cache.queues
        record = self._cache.pods.record(candidate.uids[0]) if queues.kueue.submissions else None
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
        quota = self.quota
        if quota is None or candidate.needed >= candidate.pending or (queue := candidate.governed_by) == ROOT_QUEUE:
            return candidate
        if self._admitted(candidate):
            return candidate  # whatever others were promised since
        own = kept_for(self._cache.ledger, candidate)
        if not quota.short(queue, self.asked.in_all(candidate), own):
            return candidate
        sets = candidate.workload.pod_sets
        kept = self.asked.needed(candidate)
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
        before = joined(kept_for(self._cache.ledger, candidate), going)
        own, asked = candidate.governed_by, self.asked.at_once(candidate)
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
        plain = (each for each in waiting if not self.flavors.by_flavor(each.governed_by))
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

    def _never_taken(self, candidate: Candidate) -> bool:
        if candidate.governed_by in self._ruleless:
            return too_many_resources(candidate) != ""
        return never_taken(self.tree, candidate)


def _less(totals: Mapping[str, int], taken: Sequence[Mapping[str, int]]) -> dict[Cell, int]:
    return {
        (NO_FLAVOR, name): max(0, total - sum(amounts.get(name, 0) for amounts in taken))
        for name, total in totals.items()
    }


def _sum(candidate: Candidate, numbers: list[int]) -> dict[Cell, int]:
    """What so many pods of each set ask for."""
    total: dict[Cell, int] = {}
    for pod_class, number in zip(candidate.classes, numbers, strict=True):
        add(total, cells_of(pod_class, number))
    return total
