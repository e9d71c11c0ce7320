"""One turn of the scheduler, as a recipe: what decides is in scheduler.core and beside it, the writes in publish.

`capacity_holds` makes and keeps room, `waiting` says why workloads wait, `binding` assumes those that are placed,
`gang_status` tells PodGroups; each returns its part of the Turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

import msgspec

from model.flavor.resource_flavor import SubmissionStanding
from model.metrics import MetricSample
from model.queue import Loan, QueueStanding
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Assembly, Candidate
from scheduler.core.gangs.minimum import belongs
from scheduler.core.placement import explain
from scheduler.core.placement.place import Misfit, Placed, place
from scheduler.core.placement.working_snapshot import Background, WorkingSnapshot
from scheduler.core.preemption.facts import NoPreemption, PreemptionPlan
from scheduler.core.preemption.legal import decided_by_books
from scheduler.core.queueing.attempts import Attempts
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.begun_turns import BegunTurns
from scheduler.core.queueing.news import EVERYTHING, News, NewsKind
from scheduler.core.queueing.order import Ranking
from scheduler.core.queueing.queue_refusal import QueueRefusal, none_of_it
from scheduler.settings import SchedulerSettings
from scheduler.settings_in_force import SettingsInForce
from scheduler.steps import queue_standings
from scheduler.steps.binding import Binding, Placing
from scheduler.steps.capacity_holds import CapacityHolds
from scheduler.steps.draining import Draining
from scheduler.steps.flavor_choice import flavors_in
from scheduler.steps.gang_admission import GangAdmission
from scheduler.steps.gang_status import GangStatuses
from scheduler.steps.memo import Lacking, Memo
from scheduler.steps.pod_conditions import says_as_much
from scheduler.steps.preempting import Preempting
from scheduler.steps.queue_figures import ended, queue_figures
from scheduler.steps.queue_quotas import QueueQuotas
from scheduler.steps.submission_standings import submission_standings
from scheduler.steps.turn import Turn
from scheduler.steps.waiting import Waiting


class Cycle:
    """Owns the backlog and those who decide; reads and charges the cache."""

    def __init__(self, cache: ClusterCache, settings: SchedulerSettings) -> None:
        self.backlog = Backlog(settings.backoff, settings.hold_grace_seconds)
        self.working: WorkingSnapshot | None = None
        self.settings_in_force = SettingsInForce(settings)
        self._cache = cache
        cache.starts.policy = settings.estimates
        self.quotas = QueueQuotas(cache, self.backlog, settings.queues)
        self.backlog.stands = self.quotas.stands
        self._holds = CapacityHolds(cache, self.backlog, self.quotas, settings)
        self._admission = GangAdmission(cache, self.quotas)
        self._statuses = GangStatuses(cache, self._admission.admits, self._admission.in_turn)
        self._waiting = Waiting(cache, self.backlog, self._holds, self._statuses, settings)
        self._binding = Binding(cache, self.backlog)
        self._draining = Draining(cache, self._holds.preempting.under_way)
        self._aside: set[WorkloadId] = set()
        self._attempts = Attempts()
        self._begun_turns = BegunTurns()
        self._served: tuple[str, ...] = ()

    @property
    def settings(self) -> SchedulerSettings:
        """Those in force."""
        return self.settings_in_force.settings

    @property
    def preempting(self) -> Preempting:
        """Plans that make room, and what is kept by them."""
        return self._holds.preempting

    def turn(self, inbox: Iterable[facts.Fact], now: float) -> Turn:
        """Take in what happened, place what can be placed, and say what is to be written."""
        turn = Turn()
        self._wake(self._holds.suspended.lapse(now))
        self._cache.go_on(now)
        self._drain(turn, inbox, now)  # 1 events into the cache
        turn.add(self._waiting.released(now))
        turn.add(self._waiting.timed_out(now))
        working = self._look(turn, now)  # 2 one immutable snapshot, and the room that is kept in it
        self._admission.begin(now)
        turn.add(self._statuses.admitted())
        turn.add(self._draining.turn(self.quotas.tree, self.settings.preemption, now))
        self._hold_begun(turn, working, now)
        # Who is to get the room of those that were told is tried once more before they go.
        self.backlog.wake(self.preempting.ending(now), News(EVERYTHING))
        ready = self.backlog.ready(now)
        self._attempts.begin(ready, self.settings.turn_limits)
        heads = self.ordered(ready, now)  # 3 who is next
        self._place(turn, working, heads, now)  # 4 whole gangs, 5 or by preemption, or parked with a reason
        self.backlog.wake(self.preempting.advance(turn, self.backlog.by_subject, now))
        turn.add(self._waiting.held(now))
        return turn  # 6 is published by the loop

    def ordered(self, candidates: Iterable[Candidate], now: float) -> Iterable[Candidate]:
        """Candidates, next one first."""
        return self.quotas.ordered(candidates, self._ranking(now))

    def standings(self, parts: int = 1) -> tuple[QueueStanding, ...]:
        """The root, then all queues, each after its parent; amounts in so many parts of a base unit."""
        quota = self.quotas.picture(self._cache.snapshot())
        waiting = self.quotas.admissible(self.backlog.candidates)
        return queue_standings.standings(quota, self._cache.ledger, waiting, self._served, parts)

    def submission_standings(self) -> tuple[SubmissionStanding, ...]:
        """How LocalQueues stand."""
        return submission_standings(self._cache, self.backlog.candidates, self.quotas.consumed)

    def figures(self) -> Mapping[str, Sequence[MetricSample]]:
        """Of queues, for metrics."""
        return queue_figures(self.quotas.picture(self._cache.snapshot()), self.backlog.candidates)

    def loans(self, queue: str) -> tuple[Loan, ...]:
        """What the queue, or one below it, borrows and lends."""
        return queue_standings.loans(self.quotas.picture(self._cache.snapshot()), queue)

    def next_due(self) -> float | None:
        """Unix time at which time alone calls for a turn, None where nothing waits for it."""
        sources = (
            *(self.backlog, self._waiting, self._holds, self._admission, self._draining),
            self._cache,
        )
        return min((due for source in sources if (due := source.next_due()) is not None), default=None)

    def _ranking(self, now: float) -> Ranking:
        return Ranking(now, self.settings.ageing, self.preempting.nominated)

    # 1

    def _drain(self, turn: Turn, inbox: Iterable[facts.Fact], now: float) -> None:
        failures: list[facts.BindingReleased] = []
        done: list[WorkloadId] = []
        unheard: list[str] = []
        for fact in inbox:
            self._cache.apply(fact, now)
            if isinstance(fact, facts.Configured):
                self._configure(turn, fact, now)
            elif isinstance(fact, facts.BatchDone):
                done.append(fact.subject)
            elif isinstance(fact, facts.PodConditionFailed):
                unheard.append(fact.uid)
            elif isinstance(fact, facts.BindingReleased) and fact.error:
                failures.append(fact)
        touched = self._cache.take_touched()
        turn.refusals, turn.invalid_gangs, turn.unserved = touched.refusals, touched.invalid_gangs, touched.unserved
        for subject in sorted(touched.subjects):
            self._look_at(turn, subject, now)
        self._wake(touched.news)
        for record in map(self._cache.pods.record, unheard):
            if record is not None:
                self.backlog.retell(self._cache.gangs.subject_of(record.pod), now)
        for fact in failures:
            if all(decision.subject != fact.subject.text for decision in turn.decisions):
                turn.add(self._waiting.bind_failed(fact, now))
        for subject in done:
            self.backlog.binding_done(subject)

    def _configure(self, turn: Turn, fact: facts.Configured, now: float) -> None:
        """What the ConfigMap says holds from this turn on, for pods that wait and plans on their way as well."""
        before = self.settings
        told = self.settings_in_force.apply(fact.config_map)
        turn.config_events += told
        problem = self.settings_in_force.in_force.problem
        if told and problem and fact.config_map is not None:
            self._cache.refused_config(fact.config_map.metadata, problem)
        after = self.settings
        if after == before:
            return
        self.preempting.policy = after.preemption
        turn.reread |= self._cache.configure(after.load, after.gangs, now)
        self.working = None
        self._wake(News(EVERYTHING))
        if not after.preemption.enable:
            turn.add(self._holds.let_all_nominations_go())

    def _wake(self, news: News) -> None:
        if news.happened:
            self.backlog.wake(news=news)

    def _look_at(self, turn: Turn, subject: WorkloadId, now: float) -> None:
        """`_reassemble`; a workload that it fails on is not tried, and looked at again when it changes."""
        self._aside.discard(subject)
        try:
            self._reassemble(turn, subject, now)
        except Exception as error:
            self._set_aside(turn, subject, self._waiting.lone(subject), error, now)
            self.backlog.update(subject, Assembly(), now)

    def _reassemble(self, turn: Turn, subject: WorkloadId, now: float) -> None:
        parts = self._cache.parts(subject)
        waited = subject in self.backlog.by_subject
        self.backlog.update(subject, self._cache.assembly(subject, parts), now)
        if waited and subject not in self.backlog.by_subject:
            self._wake(News(NewsKind.JOBS))
        self._wake(self._holds.suspended.settle(subject))
        if not self._cache.pods.exists(subject):
            turn.gone.append(subject)
        if subject not in self.backlog.by_subject:
            self._waiting.timeouts.forget(subject)
        if not parts:
            return
        self._waiting.releases.update(subject, parts, now)
        self.preempting.count(subject, parts)
        since = self._waiting.releases.since(subject)
        for part in parts:
            if belongs(subject, part):
                turn.add(self._statuses.status(part, since, now))

    # 2

    def _look(self, turn: Turn, now: float) -> WorkingSnapshot:
        """The cluster with the room that is kept; what is given up is news to those who wait."""
        cache, snapshot = self._cache, self._cache.snapshot()
        turn.add(self._holds.settle(snapshot, now))
        if self.quotas.begin(cache.queues.seen(), snapshot, now):
            self._wake(News(NewsKind.QUEUES))
        background = Background(cache.live_index, cache.loads.arrays(snapshot.names, now), self.settings.profiles)
        self.working = WorkingSnapshot(snapshot, self._holds.kept(snapshot), background, following=self.working)
        return self.working

    def _hold_begun(self, turn: Turn, working: WorkingSnapshot, now: float) -> None:
        """Room for the rest of gangs bound in part is kept before anybody is placed."""
        begun = self._begun_turns.take(self.backlog.begun)
        for candidate in self.ordered(begun, now) if begun else ():
            if candidate.subject in self._aside:
                continue
            try:
                self._holds.hold(working, self.quotas.flavors.flavored(candidate), now)
            except Exception as error:
                self._set_aside(turn, candidate.subject, candidate.uids, error, now)
                working.nominate(self._holds.kept(working.snapshot))

    # 4 and 5

    def _place(self, turn: Turn, working: WorkingSnapshot, heads: Iterable[Candidate], now: float) -> None:
        memo, attempts = Memo(working), self._attempts
        served: dict[str, None] = {}
        for candidate in self._in_turn(heads, now):
            if not attempts.may(candidate) or self.backlog.trails(candidate.subject):
                continue
            served.setdefault(candidate.governed_by)
            try:
                waits_on = self._waits_on(turn, memo, candidate, now)
                placing = None if waits_on else self._try(turn, working, candidate, memo, now)
                attempts.looked_at(candidate, tried=not waits_on, questions=self.quotas.questions.take())
                self._aside.discard(candidate.subject)
            except Exception as error:
                attempts.looked_at(candidate, tried=True)
                self._set_aside(turn, candidate.subject, candidate.uids, error, now)
                memo.forget()
                working.nominate(self._holds.kept(working.snapshot))
                continue
            if placing is not None:
                # From here on nothing depends on the workload any more; an error ends the process, which starts again
                # from what the API server says.
                self._assume(turn, working, candidate, placing, now)
                self._look_at(turn, candidate.subject, now)
            self._in_line(memo, candidate, now)
        self._served = tuple(served) or self._served
        turn.more |= attempts.end()

    def _in_turn(self, heads: Iterable[Candidate], now: float) -> Iterator[Candidate]:
        """By the order while it has attempts left, then those passed over before, in the order among themselves: to ask
        for all that stands between them costs as much as to decide.
        """
        yield from takewhile(lambda candidate: self._attempts.by_order, heads)
        yield from self.ordered(self._attempts.due(), now)

    def _in_line(self, memo: Memo, candidate: Candidate, now: float) -> None:
        """Those behind it wait on where it was refused as they would be, or they are tried as well."""
        subject, line = candidate.subject, None
        if subject in self.backlog.by_subject and self.quotas.in_line(candidate.governed_by):
            line = memo.line(candidate, self._local_queue(candidate))
        if line is not None:
            self.backlog.line_up(subject, line, now)
        elif self.backlog.leads(subject):
            behind = self.backlog.release(subject)
            self._attempts.join(behind)
            self.quotas.join(behind, self._ranking(now))

    def _try(
        self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, memo: Memo, now: float
    ) -> Placing | None:
        """Where it goes; None where it waits on, with all that follows from that said and kept, or for a turn that
        makes more plans.
        """
        asking, candidate = candidate, self.quotas.flavors.flavored(candidate)
        refused = self._holds.suspended.blocked(candidate) or self.quotas.refusal(candidate)
        if refused is not None:
            lacking = self._refuse(turn, working, candidate, refused, memo, now)
            if lacking is not None:
                memo.remember_lacking(asking, self._local_queue(asking), lacking)
            return None
        within = self.quotas.within(candidate)
        if not within.uids:
            part, _ = self._waiting.refused(candidate, none_of_it(candidate.governed_by), None, now)
            turn.add(part)
            return None
        candidate = within
        if self.settings.queues.admit_by_quota_alone and self._holds.suspended.asks(candidate):
            self._admit(turn, working, candidate, self._holds.suspended.by_quota(working, candidate), now)
            return None
        outcome = self._holds.assignments(working, candidate) or memo.misfit(candidate) or place(working, candidate)
        if isinstance(outcome, Misfit) and flavors_in(candidate):
            candidate, outcome = self._on_other_flavors(working, asking, candidate, outcome)
        if isinstance(outcome, Misfit):
            memo.remember(candidate, outcome)
            preemption = self._make_room(turn, working, candidate, memo, now)
            if preemption is not None:
                part, message = self._waiting.misfit(candidate, outcome, preemption, now)
                turn.add(part)
                memo.remember_message(candidate, message)
            return None
        if self._holds.suspended.asks(candidate):
            self._admit(turn, working, candidate, outcome, now)
            return None
        placing = self._binding.prepared(candidate, outcome, working)
        self._end_wait(turn, candidate, now)
        if outcome.choice is not None:
            turn.choices[candidate.subject] = outcome.choice
        turn.decisions.append(explain.placed(candidate, outcome.report, outcome, working.snapshot, now))
        return placing

    def _on_other_flavors(
        self, working: WorkingSnapshot, asking: Candidate, candidate: Candidate, misfit: Misfit
    ) -> tuple[Candidate, Placed | Misfit]:
        """Where the nodes of its flavours have no room, those of the next ones that its quota has room for."""
        passed = frozenset(flavors_in(candidate))
        while not self.preempting.keeps(candidate.subject):
            other = self.quotas.flavors.flavored(asking, passed)
            more = frozenset(flavors_in(other))
            if more <= passed or self.quotas.refusal(other) is not None:
                break
            other = self.quotas.within(other)
            outcome = place(working, other)
            if not isinstance(outcome, Misfit):
                return other, outcome
            passed |= more
        return candidate, misfit

    def _admit(self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, outcome: Placed, now: float) -> None:
        """A job that waits whole has quota and seats: it is admitted, and its pods come then."""
        self._end_wait(turn, candidate, now)
        turn.add(self._holds.suspended.admit(candidate, outcome, working.snapshot, now))
        turn.add(self._holds.let_go(candidate.subject))
        self._waiting.timeouts.forget(candidate.subject)
        turn.decisions.append(explain.placed(candidate, outcome.report, outcome, working.snapshot, now))
        self._look_at(turn, candidate.subject, now)
        working.nominate(self._holds.kept(working.snapshot))

    def _end_wait(self, turn: Turn, candidate: Candidate, now: float) -> None:
        """Members above the minimum were not what it waited for."""
        if candidate.needed:
            record = self._cache.pods.record(candidate.uids[0])
            turn.ended_waits.append(ended(candidate, record.pod if record else None, "scheduled", now))

    def _refuse(
        self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, refusal: QueueRefusal, memo: Memo, now: float
    ) -> Lacking | None:
        """Its queue does not let it be placed; what others borrowed is taken back where that helps. What came of it,
        where others like it would fare as it did.
        """
        lacks_quota = refusal.reason is Reason.QUOTA_EXHAUSTED and self.quotas.flavors.may_evict(candidate)
        outcome = self._make_room(turn, working, candidate, memo, now, quota=True) if lacks_quota else None
        if outcome is None and lacks_quota:
            return None
        if not decided_by_books(outcome, self.settings.preemption):
            refusal = msgspec.structs.replace(refusal, version=None)
        part, message = self._waiting.refused(candidate, refusal, outcome, now)
        turn.add(part)
        settled = outcome is None or memo.refusal(candidate) is not None
        return Lacking(refusal, outcome, message, refusal.need) if settled else None

    def _local_queue(self, candidate: Candidate) -> str:
        record = self._cache.pods.record(candidate.uids[0])
        return record.pod.spec.local_queue if record is not None else ""

    def _make_room(
        self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, memo: Memo, now: float, *, quota: bool = False
    ) -> PreemptionPlan | NoPreemption | None:
        """What came of preemption, with its part of the turn added; None where it is for a turn that makes more plans.

        `quota`: its queue lacks that, not the nodes room.
        """
        if not self._attempts.may_plan(candidate.subject):
            self._attempts.postpone(candidate.subject)
            return None
        part, outcome = self._holds.make(working, candidate, memo, self._ranking(now), quota=quota)
        if any(plan.victims for plan in part.plans):
            self._attempts.planned(candidate.subject)
        turn.add(part)
        return outcome

    def _waits_on(self, turn: Turn, memo: Memo, candidate: Candidate, now: float) -> bool:
        """Whether it fares as one before it in this turn: thousands alike cost next to nothing where they say so
        already, and little where they are told what has changed.
        """
        record = self._cache.pods.record(candidate.uids[0])
        if record is None:
            return False
        lacking = memo.lacking(candidate, record.pod.spec.local_queue)
        if lacking is not None:
            if says_as_much(record, lacking.message, now):
                self._waiting.lacking_as_before(candidate, lacking.need, now)
            else:
                turn.add(self._waiting.refused(candidate, lacking.refusal, lacking.outcome, now)[0])
            return True
        if not record.condition_message:
            return False
        misfit = memo.misfit(candidate) if record.condition_message == memo.message_for(candidate) else None
        if misfit is not None:
            self._waiting.as_before(candidate, misfit, now)
        return misfit is not None

    def _assume(self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, placing: Placing, now: float) -> None:
        turn.add(self._binding.assume(working, candidate, placing, now))
        self._waiting.timeouts.forget(candidate.subject)
        names = working.snapshot.names
        node_by_pod = {assignment.uid: names[assignment.row] for assignment in placing.assignments}
        turn.add(self._holds.placed(working, candidate.subject, node_by_pod))

    def _set_aside(self, turn: Turn, subject: WorkloadId, uids: tuple[str, ...], error: Exception, now: float) -> None:
        self._aside.add(subject)
        turn.add(self._waiting.set_aside(subject, uids, error, now))
