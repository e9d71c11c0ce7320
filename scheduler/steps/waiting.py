"""Workloads that wait: parked after a failure, held, released or out of time, each with a verdict that says so."""

from __future__ import annotations

from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.refusals import described
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.gangs.release import Releases
from scheduler.core.placement import explain
from scheduler.core.placement.place import Misfit
from scheduler.core.preemption.explain import decision as preemption_decision
from scheduler.core.preemption.facts import NoPreemption, PreemptionPlan
from scheduler.core.queueing import queue_refusal
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.gang_timeouts import GangTimeouts
from scheduler.core.queueing.news import NOTHING, Need, need_of
from scheduler.core.queueing.queue_refusal import QueueRefusal
from scheduler.ports import NamedObject
from scheduler.settings import SchedulerSettings
from scheduler.steps.capacity_holds import CapacityHolds
from scheduler.steps.gang_status import GangStatuses
from scheduler.steps.preempting import UNDER_WAY, text_of
from scheduler.steps.queue_figures import ended
from scheduler.steps.turn import Eviction, Turn

_ORDINARY = (404, 409)
"""Answers to a binding that say the pod is gone or bound already: its next change tells the rest."""


class Waiting:
    """Parks workloads in the backlog; gives up the room of those released or out of time."""

    def __init__(
        self,
        cache: ClusterCache,
        backlog: Backlog,
        holds: CapacityHolds,
        statuses: GangStatuses,
        settings: SchedulerSettings,
    ) -> None:
        self.timeouts = GangTimeouts()
        self.releases = Releases(settings.release, holds.preempting.until)
        self._cache = cache
        self._backlog = backlog
        self._holds = holds
        self._statuses = statuses

    def released(self, now: float) -> Turn:
        """Gangs bound in part whose time is over: their bound members go, and they are tried again from nothing."""
        turn = Turn()
        for release in self.releases.take(now):
            # Pods that nobody replaces leave it bound in part, and room is not kept for it for ever.
            turn.add(self._holds.let_go(release.subject, out_of_time=now if release.stay else None))
            self._backlog.park(release.subject, now, woken=True)
            turn.add(self._said(explain.released(release, self._nodes, now)))
            turn.gang_events += self._statuses.announced(release)
            for pod in release.evict:
                named = NamedObject(pod.namespace, pod.name, pod.uid, pod.spec.scheduler_name)
                turn.evictions.append(Eviction(named, release.reason.value, release.detail, release.detail))
        return turn

    def timed_out(self, now: float) -> Turn:
        """Gangs that found no place in time give up what is kept for them, and wait again."""
        turn = Turn()
        for hold in self.timeouts.take_expired(now):
            candidate = self._backlog.by_subject.get(hold.subject)
            if candidate is not None:
                record = self._cache.pods.record(candidate.uids[0])
                turn.ended_waits.append(ended(candidate, record.pod if record else None, "timeout", now))
            turn.add(self._holds.let_go(hold.subject, out_of_time=now))
            self._backlog.park(hold.subject, now, woken=True)
            turn.add(self._said(explain.held(hold, self._nodes, now)))
            turn.timeouts += 1
            turn.gang_events += self._statuses.announced(hold)
        return turn

    def misfit(
        self, candidate: Candidate, misfit: Misfit, outcome: PreemptionPlan | NoPreemption, now: float
    ) -> tuple[Turn, str]:
        """It fits nowhere, whatever came of preemption; with what its pods are told."""
        self._backlog.park(candidate.subject, now, need=need_of(misfit.report, candidate.classes))
        self.timeouts.failed(candidate, now, self._holds.preempting.until(candidate.subject))
        quiet = isinstance(outcome, NoPreemption) and outcome.reason in UNDER_WAY
        verdict = explain.misfit(candidate, misfit, now, "" if quiet else text_of(outcome))
        turn = Turn(insights={candidate.subject: preemption_decision(candidate.subject, outcome, now)})
        for key, needed in candidate.workload.gangs:
            if needed:
                turn.conditions += self._statuses.unplaced(key, verdict.message, now)
        turn.add(self._said(verdict, quiet=quiet))
        return turn, verdict.message

    def refused(
        self, candidate: Candidate, refusal: QueueRefusal, outcome: PreemptionPlan | NoPreemption | None, now: float
    ) -> tuple[Turn, str]:
        """Its queue does not let it be placed now, whatever came of taking back what others have; with what its pods
        are told.
        """
        self._backlog.park(candidate.subject, now, need=refusal.need)
        self.timeouts.failed(candidate, now, self._holds.preempting.until(candidate.subject))
        turn, quiet, told = Turn(), False, ""
        if outcome is not None:
            quiet = isinstance(outcome, NoPreemption) and outcome.reason in UNDER_WAY
            turn.insights[candidate.subject] = preemption_decision(candidate.subject, outcome, now)
            told = "" if quiet else text_of(outcome)
        verdict = queue_refusal.verdict(candidate, refusal, now, told)
        for key, needed in candidate.workload.gangs:
            if needed:
                turn.conditions += self._statuses.unplaced(key, verdict.message, now)
        turn.add(self._said(verdict, quiet=quiet))
        return turn, verdict.message

    def as_before(self, candidate: Candidate, misfit: Misfit, now: float) -> None:
        """It fares as one like it in this turn, and says so already."""
        self._backlog.park(candidate.subject, now, need=need_of(misfit.report, candidate.classes))

    def lacking_as_before(self, candidate: Candidate, need: Need, now: float) -> None:
        """Its queue refuses it as one like it in this turn, and it says so already."""
        self._backlog.park(candidate.subject, now, need=need)

    def bind_failed(self, fact: facts.BindingReleased, now: float) -> Turn:
        """One back-off step a workload and turn, however many of its bindings failed."""
        self._backlog.park(fact.subject, now, woken=True)
        uids = tuple(pod.uid for part in self._cache.parts(fact.subject) for pod in part.members.pending)
        verdict = explain.bind_failed(fact.subject, uids or self.lone(fact.subject), fact.error, self._nodes, now)
        return Turn(decisions=[verdict.decision]) if fact.status in _ORDINARY else self._said(verdict)

    def set_aside(self, subject: WorkloadId, uids: tuple[str, ...], error: Exception, now: float) -> Turn:
        """An error of ours about one workload: nothing is kept for it, its pods are told, all others go on."""
        turn = self._holds.let_go(subject)
        self.timeouts.forget(subject)
        self._backlog.park(subject, now, need=NOTHING)
        turn.errors.append((subject, error))
        turn.add(self._said(explain.set_aside(subject, uids, described(error), self._nodes, now)))
        return turn

    def held(self, now: float) -> Turn:
        """Workloads that cannot be tried, each told once."""
        turn = Turn()
        for hold in self._backlog.take_holds(now):
            turn.add(self._said(explain.held(hold, self._nodes, now)))
        return turn

    def lone(self, subject: WorkloadId) -> tuple[str, ...]:
        """The uid of a lone pod that is still there."""
        record = None if subject.gangs else self._cache.pods.find(*subject.name.split("/"))
        return (record.pod.uid,) if record is not None else ()

    def next_due(self) -> float | None:
        """Unix time at which time alone releases a gang or ends its attempts."""
        found = (self.releases.next_due(), self.timeouts.next_due())
        return min((due for due in found if due is not None), default=None)

    @property
    def _nodes(self) -> int:
        return len(self._cache.nodes)

    def _said(self, verdict: explain.Verdict, *, quiet: bool = False) -> Turn:
        return Turn(decisions=[verdict.decision], pod_conditions=self._holds.conditions.tell(verdict, quiet=quiet))
