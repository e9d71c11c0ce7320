"""Room for workloads that fit nowhere: made by preemption, or reserved as it becomes free; kept, and given up again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import Claim, ClaimedPod
from scheduler.core.ledger.residents import Residents
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Nominated, WorkingSnapshot
from scheduler.core.preemption.facts import NoPreemption, PreemptionPlan
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.news import freed_by
from scheduler.core.queueing.order import Ranking
from scheduler.core.queueing.reservation import Reservations
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import ClusterSnapshot
from scheduler.settings import SchedulerSettings
from scheduler.steps.evicting import taken_back, told_pods
from scheduler.steps.memo import Memo
from scheduler.steps.pod_conditions import PodConditions
from scheduler.steps.preempting import UNDER_WAY, Preempting
from scheduler.steps.queue_quotas import QueueQuotas
from scheduler.steps.suspended_jobs import SuspendedJobs
from scheduler.steps.turn import Turn


class CapacityHolds:
    """Nominations and reservations. What is given up is news to those in the backlog who wait for such room."""

    def __init__(self, cache: ClusterCache, backlog: Backlog, quotas: QueueQuotas, settings: SchedulerSettings) -> None:
        self.preempting = Preempting(cache, settings.preemption)
        self.conditions = PodConditions(cache, self.preempting.node_of)
        self.suspended = SuspendedJobs(cache, settings.suspended_jobs)
        self._cache = cache
        self._backlog = backlog
        self._quotas = quotas
        self._reservations = Reservations(settings.reservation, cache.ledger)
        self._restored = False

    def kept(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """All that is kept."""
        nominated, reserved = self.preempting.as_nominated(snapshot), self._reservations.as_nominated(snapshot)
        return (*nominated, *reserved, *self.suspended.kept(snapshot))

    def assignments(self, working: WorkingSnapshot, candidate: Candidate) -> Placed | None:
        """What is kept for a workload, where it may have that by now."""
        return self.preempting.assignments(working, candidate) or self.suspended.seated(working, candidate)

    def settle(self, snapshot: ClusterSnapshot, now: float) -> Turn:
        """What is kept for nobody, for too long, or where it does not help any more is given up."""
        waiting, turn = self._backlog.by_subject, Turn()
        if not self._restored:
            self._restored = True
            self._cache.ledger.residents(snapshot)
            turn.add(self._restore(snapshot, now))
        turn.add(self._dropped(self.preempting.sweep(waiting, snapshot, now)))
        self._free(each.pod_class for each in self._reservations.settle(waiting, snapshot, now))
        return turn

    def _restore(self, snapshot: ClusterSnapshot, now: float) -> Turn:
        """What a scheduler before this one kept and began goes on; whom it told for nobody stays."""
        told, adopted = told_pods(self._cache), set[str]()
        for candidate in self._backlog.by_subject.values():
            adopted |= self.preempting.restore(self._quotas.flavors.flavored(candidate), told, snapshot, now)
        charges = (charge for each in told.values() for charge in each)
        return taken_back(self._cache, (charge for charge in charges if charge.uid not in adopted))

    def hold(self, working: WorkingSnapshot, candidate: Candidate, now: float) -> None:
        """Room for the rest of a gang that is bound in part is kept, also while it rests after a failure; not where its
        queue has no quota for it, since who names the node of one member has any gang bound in part.
        """
        if self.preempting.keeps(candidate.subject):
            return
        refused = self._quotas.refusal(candidate)
        if refused is not None and refused.reason is not Reason.QUEUE_ORDER:
            return
        residents = self._cache.ledger.residents(working.snapshot)
        if self._reservations.hold(working, candidate, residents, now):
            working.nominate(self.kept(working.snapshot))

    def make(
        self, working: WorkingSnapshot, candidate: Candidate, memo: Memo, ranking: Ranking, *, quota: bool = False
    ) -> tuple[Turn, PreemptionPlan | NoPreemption]:
        """By preemption, else by keeping what becomes free; with what came of preemption. `quota`: that is what its
        queue lacks, so that keeping room would not help.

        Pods count as told once their condition is made, so conditions are made last: nothing after them can fail.
        """
        residents, turn = self._cache.ledger.residents(working.snapshot), Turn()
        outcome = memo.refusal(candidate) or self._evictions(working, candidate, residents, ranking)
        if isinstance(outcome, PreemptionPlan):
            self._free(each.pod_class for each in self._reservations.drop(candidate.subject))
            turn.plans.append(outcome.eviction)
            dropped = self.preempting.begin(outcome, candidate, working.snapshot, ranking.now)
            memo.forget()
            working.nominate(self.kept(working.snapshot))
            turn.add(self._dropped(dropped))
            return turn, outcome
        memo.remember(candidate, outcome)
        if outcome.reason not in UNDER_WAY:
            # No pod is evicted: a nomination from before is of no use any more, and room may be reserved in its place.
            kept: Nominated | None = None
            given_up: tuple[ClaimedPod, ...] = ()
            if not quota and self._quotas.may_reserve(candidate):
                kept, given_up = self._reservations.reserve(working, candidate, residents, ranking)
            dropped = self._drop(candidate.subject)
            self._free(each.pod_class for each in given_up)
            if dropped or kept is not None or given_up:
                working.nominate(self.kept(working.snapshot))
                memo.forget()
            turn.add(self._dropped(dropped))
        return turn, outcome

    def _evictions(
        self, working: WorkingSnapshot, candidate: Candidate, residents: Residents, ranking: Ranking
    ) -> PreemptionPlan | NoPreemption:
        rules = self._quotas.preemption_rules(candidate)
        return self.preempting.attempt(working, candidate, residents, rules, ranking.now)

    def let_go(self, subject: WorkloadId, out_of_time: float | None = None) -> Turn:
        """Whatever is kept for a workload is given up; `out_of_time` (now) where it had its time."""
        self._free(each.pod_class for each in self._reservations.drop(subject, out_of_time))
        return self._dropped(self._drop(subject))

    def let_all_nominations_go(self) -> Turn:
        """Preemption was switched off: plans on their way end."""
        turn = Turn()
        for subject in sorted(self.preempting.nominated):
            turn.add(self._dropped(self._drop(subject)))
        return turn

    def placed(self, working: WorkingSnapshot, subject: WorkloadId, node_by_pod: Mapping[str, str]) -> Turn:
        """A workload is placed, by pod: what was kept for it is not any more; elsewhere that is news."""
        reserved, kept, turn = self._reservations.drop(subject), self.preempting.drop(subject), Turn()
        nodes = set(node_by_pod.values())
        self._free(each.pod_class for each in reserved if each.node not in nodes)
        pods = kept.pods if kept else ()
        self._free(pod.pod_class for pod in pods if pod.node not in nodes)
        for pod in pods:
            if pod.uid not in node_by_pod:
                turn.pod_conditions += self.conditions.renominate(pod.uid, subject)
        if reserved or kept:
            working.nominate(self.kept(working.snapshot))
        return turn

    def next_due(self) -> float | None:
        """Unix time at which time alone ends something that is kept."""
        found = (self._reservations.next_due(), self.preempting.next_due(), self.suspended.next_due())
        return min((due for due in found if due is not None), default=None)

    def _drop(self, subject: WorkloadId) -> tuple[Claim, ...]:
        kept = self.preempting.drop(subject)
        return (kept,) if kept else ()

    def _dropped(self, dropped: Iterable[Claim]) -> Turn:
        turn = Turn()
        for kept in dropped:
            self._free(pod.pod_class for pod in kept.pods)
            self._backlog.wake([kept.subject])
            for uid in kept.uids:
                turn.pod_conditions += self.conditions.renominate(uid, kept.subject)
        return turn

    def _free(self, classes: Iterable[PodClass]) -> None:
        """Room for pods of these classes is news, once a class."""
        for pod_class in dict.fromkeys(classes):
            self._backlog.wake(news=freed_by(pod_class))
