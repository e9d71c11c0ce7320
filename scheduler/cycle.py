"""One turn of the scheduler, as a recipe; the rules are in scheduler.core, the writes in scheduler.publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from model.placement import Placement
from model.queue import Queue
from model.workload import GangMode, GangSource, WorkloadId
from scheduler import facts
from scheduler.cache import ClusterCache
from scheduler.configuring import Configuring
from scheduler.core.gangs.assembly import Assembly, Candidate, Hold
from scheduler.core.gangs.groups import group_of
from scheduler.core.gangs.minimum import Part
from scheduler.core.gangs.phase import carry_over, gang_status, marks_due, noted
from scheduler.core.gangs.release import Release, Releases
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.residents import Residents
from scheduler.core.picture.podclass import PodClass
from scheduler.core.picture.snapshot import ClusterSnapshot
from scheduler.core.placement import explain
from scheduler.core.placement.place import Misfit, place
from scheduler.core.placement.working_snapshot import Assignment, Background, Nominated, WorkingSnapshot
from scheduler.core.preemption.explain import decision as preemption_decision
from scheduler.core.preemption.facts import GangFacts, NoPreemption, Plan
from scheduler.core.preemption.nominations import Kept
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.gang_timeouts import GangTimeouts
from scheduler.core.queueing.news import EVERYTHING, NOTHING, News, freed_by, need_of
from scheduler.core.queueing.order import Ranking, dominant_share, in_order
from scheduler.core.queueing.reservation import Reservations
from scheduler.gangbook import initially_scheduled, partially_bound
from scheduler.memo import Memo
from scheduler.ports import Named
from scheduler.preempting import UNDER_WAY, Preempting, text_of
from scheduler.refusals import described
from scheduler.settings import Settings
from scheduler.turn import Batch, Bind, Eviction, GangCondition, GangEvent, GangNote, Note, Turn

_ORDINARY = (404, 409)
"""Answers to a binding that say the pod is gone or bound already: its next change tells the rest."""


class _Placing(NamedTuple):
    """All that follows from a workload's assignments, made before any of it is taken in."""

    assignments: tuple[Assignment, ...]
    charges: tuple[Charge, ...]
    binds: tuple[Bind, ...]


class Cycle:
    """Owns the backlog, plans and reservations; reads and charges the cache."""

    def __init__(self, cache: ClusterCache, settings: Settings, queue: Queue | None = None) -> None:
        self.backlog = Backlog(settings.backoff, settings.hold_grace_seconds)
        self.preempting = Preempting(cache, settings.preemption)
        self.queue = queue or Queue()
        self.working: WorkingSnapshot | None = None
        self._cache = cache
        self.configuring = Configuring(settings)
        self._reservations = Reservations(settings.reservation)
        self._releases = Releases(settings.release, self.preempting.until)
        self._trials = GangTimeouts()
        self._restored = False
        self._aside: set[WorkloadId] = set()

    @property
    def settings(self) -> Settings:
        """Those in force."""
        return self.configuring.settings

    def turn(self, inbox: Iterable[facts.Fact], now: float) -> Turn:
        """Take in what happened, place what can be placed, and say what is to be written."""
        turn = Turn()
        self._drain(turn, inbox, now)  # 1 events into the cache
        self._release(turn, now)
        self._time_out(turn, now)
        working = self._look(turn, now)  # 2 one immutable picture, and the room that is kept in it
        self._hold_begun(turn, working, now)
        heads = self.ordered(working.snapshot, self.backlog.ready(now), now)  # 3 who is next
        self._place(turn, working, heads, now)  # 4 whole gangs, 5 or by preemption, or parked with a reason
        self.backlog.wake(self.preempting.advance(turn, self.backlog.by_subject, now))
        self._tell_holds(turn, working.snapshot, now)
        return turn  # 6 is published by the loop

    def ordered(self, snapshot: ClusterSnapshot, candidates: Iterable[Candidate], now: float) -> Iterable[Candidate]:
        """Candidates, next one first."""
        totals = snapshot.totals

        def share_of(queue: str) -> Fraction:
            return dominant_share(self._cache.ledger.used(queue), totals, self.queue.weight).value

        return in_order(candidates, share_of, self._ranking(now))

    def next_due(self) -> float | None:
        """Unix time at which time alone calls for a turn, None where nothing waits for it."""
        sources = (self.backlog, self._releases, self._trials, self._reservations, self.preempting)
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
            elif isinstance(fact, facts.NoteFailed):
                unheard.append(fact.uid)
            elif isinstance(fact, facts.BindingReleased) and fact.error:
                failures.append(fact)
        touched = self._cache.take_touched()
        turn.refusals, turn.invalid_gangs, turn.unserved = touched.refusals, touched.invalid_gangs, touched.unserved
        for subject in sorted(touched.subjects):
            self._look_at(turn, subject, now)
        self._wake(touched.news)
        for record in map(self._cache.record, unheard):
            if record is not None:
                self.backlog.retell(self._cache.subject_of(record.pod), now)
        for fact in failures:
            self._bind_failed(turn, fact, now)
        for subject in done:
            self.backlog.binding_done(subject)

    def _configure(self, turn: Turn, fact: facts.Configured, now: float) -> None:
        """What the ConfigMap says holds from this turn on, for pods that wait and plans on their way as well."""
        before = self.settings
        told = self.configuring.take(fact.config_map)
        turn.config_events += told
        problem = self.configuring.in_force.problem
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
            for subject in sorted(self.preempting.nominated):
                dropped = self.preempting.drop(subject)
                self._given_up(turn, (dropped,) if dropped else ())

    def _wake(self, news: News) -> None:
        if news.happened:
            self.backlog.wake(news=news)

    def _look_at(self, turn: Turn, subject: WorkloadId, now: float) -> None:
        """`_reassemble`; a workload that it fails on is not tried, and looked at again when it changes."""
        self._aside.discard(subject)
        try:
            self._reassemble(turn, subject, now)
        except Exception as error:
            self._set_aside(turn, subject, tuple(self._lone(subject)), error, now)
            self.backlog.update(subject, Assembly(), now)

    def _reassemble(self, turn: Turn, subject: WorkloadId, now: float) -> None:
        parts = self._cache.parts(subject)
        self.backlog.update(subject, self._cache.assembly(subject, parts, self.queue.name), now)
        if not self._cache.exists(subject):
            turn.gone.append(subject)
        if subject not in self.backlog.by_subject:
            self._trials.forget(subject)
        if not parts:
            return
        self._releases.update(subject, parts, now)
        self._count(subject, parts)
        since = self._releases.since(subject)
        for part in parts:
            self._tell_gang(turn, part, since, now)

    def _count(self, subject: WorkloadId, parts: tuple[Part, ...]) -> None:
        """What preemption must know of a gang that runs."""
        self.preempting.gangs.pop(subject, None)
        parts = tuple(part for part in parts if self._cache.gangs.index.subject(part.key) == subject)
        if any(part.members.placed for part in parts):
            self.preempting.gangs[subject] = GangFacts(
                min_member=sum(part.spec.min_member for part in parts),
                bound=sum(part.members.satisfied for part in parts),
                whole=any(part.spec.whole for part in parts),
            )

    def _tell_gang(self, turn: Turn, part: Part, since: float, now: float) -> None:
        """What its PodGroup says; `since` is when it was found bound in part, 0 where it was not."""
        record = self._cache.gangs.get(part.key)
        if record is None:
            return
        if record.gang.source is GangSource.UPSTREAM:
            if part.met and len(part.members.bound) + len(part.members.succeeded) >= part.spec.min_member:
                self._tell_group(turn, part.key, "", placed=True, now=now)
            condition = partially_bound(record, noted(record.notes, part, since, now), now)
            if condition is not None:
                turn.conditions.append(GangCondition(record.named, condition))
            return
        counted = gang_status(record.told.phase, part.spec.min_member, part.members, len(part.members.bound))
        owners = (pod.owner for pod in part.members.counted if pod.owner)
        status = carry_over(counted, record.told, owners, now)
        marks = marks_due(record.marks, noted(record.notes, part, since, now), status.phase)
        if status != record.told or marks is not None:
            record.told, record.marks = status, marks or record.marks
            turn.gang_notes.append(GangNote(record.named, status, marks))

    def _tell_group(self, turn: Turn, key: str, message: str, *, placed: bool, now: float) -> None:
        """The condition of scheduling.k8s.io's PodGroup."""
        record = self._cache.gangs.get(key)
        if record is not None and record.gang.source is GangSource.UPSTREAM:
            condition = initially_scheduled(record, message, placed=placed, now=now)
            if condition is not None:
                turn.conditions.append(GangCondition(record.named, condition))

    def _bind_failed(self, turn: Turn, fact: facts.BindingReleased, now: float) -> None:
        """One back-off step a workload and turn, however many of its bindings failed."""
        if any(decision.subject == fact.subject.text for decision in turn.decisions):
            return
        self.backlog.park(fact.subject, now, woken=True)
        uids = tuple(pod.uid for part in self._cache.parts(fact.subject) for pod in part.members.pending)
        uids = uids or tuple(self._lone(fact.subject))
        nodes = len(self._cache.nodes)
        verdict = explain.bind_failed(fact.subject, uids, fact.error, nodes, now)
        turn.decisions.append(verdict.decision)
        if fact.status not in _ORDINARY:
            self._tell(turn, verdict)

    def _lone(self, subject: WorkloadId) -> Iterable[str]:
        record = None if subject.gangs else self._cache.find(*subject.name.split("/"))
        return (record.pod.uid,) if record is not None else ()

    def _release(self, turn: Turn, now: float) -> None:
        for release in self._releases.take(now):
            # Pods that nobody replaces leave it bound in part, and room is not kept for it for ever.
            self._let_go(turn, release.subject, out_of_time=now if release.stay else None)
            self.backlog.park(release.subject, now, woken=True)
            verdict = explain.released(release, len(self._cache.nodes), now)
            turn.decisions.append(verdict.decision)
            self._tell(turn, verdict)
            self._announce(turn, release)
            for pod in release.evict:
                named = Named(pod.namespace, pod.name, pod.uid, pod.scheduler_name)
                turn.evictions.append(Eviction(named, release.reason.value, release.detail, release.detail))

    def _time_out(self, turn: Turn, now: float) -> None:
        """Gangs that found no place in time give up what is kept for them, and wait again."""
        for hold in self._trials.take_expired(now):
            self._let_go(turn, hold.subject, out_of_time=now)
            self.backlog.park(hold.subject, now, woken=True)
            verdict = explain.held(hold, len(self._cache.nodes), now)
            turn.decisions.append(verdict.decision)
            turn.timeouts += 1
            self._tell(turn, verdict)
            self._announce(turn, hold)

    def _let_go(self, turn: Turn, subject: WorkloadId, out_of_time: float | None = None) -> None:
        """Whatever is kept for a workload is given up."""
        self._room_given_up(self._reservations.drop(subject, out_of_time))
        dropped = self.preempting.drop(subject)
        self._given_up(turn, (dropped,) if dropped else ())

    def _announce(self, turn: Turn, about: Release | Hold) -> None:
        for key in about.subject.gangs:
            record = self._cache.gangs.get(key)
            if record is not None:
                turn.gang_events.append(GangEvent(record.named, about.reason.value, about.detail))

    # 2

    def _look(self, turn: Turn, now: float) -> WorkingSnapshot:
        """The cluster with the room that is kept; what is given up is news to those who wait."""
        cache, snapshot = self._cache, self._cache.snapshot()
        waiting = self.backlog.by_subject
        if not self._restored:
            self._restored = True
            cache.ledger.residents(snapshot)
            for candidate in waiting.values():
                self.preempting.restore(candidate, snapshot, now)
        self._given_up(turn, self.preempting.sweep(waiting, snapshot, now))
        self._room_given_up(self._reservations.settle(waiting, snapshot, now))
        background = Background(cache.live_index, cache.loads.picture(snapshot.names, now), self.settings.profiles)
        self.working = WorkingSnapshot(snapshot, self._kept(snapshot), background, following=self.working)
        return self.working

    def _hold_begun(self, turn: Turn, working: WorkingSnapshot, now: float) -> None:
        """The remaining assignments of gangs bound in part are kept, also while those rest after a failure."""
        begun = self.backlog.begun
        for candidate in self.ordered(working.snapshot, begun, now) if begun else ():
            if self.preempting.keeps(candidate.subject):
                continue
            if candidate.subject in self._aside:
                continue
            try:
                news = self._reservations.hold(working, candidate, self._cache.ledger.residents(working.snapshot), now)
            except Exception as error:
                self._set_aside(turn, candidate.subject, candidate.uids, error, now)
                news = True
            if news:
                working.nominate(self._kept(working.snapshot))

    def _kept(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        return (*self.preempting.held(snapshot), *self._reservations.held(snapshot))

    def _given_up(self, turn: Turn, dropped: Iterable[Kept]) -> None:
        for kept in dropped:
            self._free(keeping.pod_class for keeping in kept.keepings)
            self.backlog.wake([kept.subject])
            for uid in kept.uids:
                self._nominate(turn, uid, kept.subject)

    def _room_given_up(self, assignments: Iterable[Assignment]) -> None:
        self._free(assignment.pod_class for assignment in assignments)

    def _free(self, classes: Iterable[PodClass]) -> None:
        """Room for pods of these classes is news, once a class."""
        for pod_class in dict.fromkeys(classes):
            self._wake(freed_by(pod_class))

    # 4 and 5

    def _place(self, turn: Turn, working: WorkingSnapshot, heads: Iterable[Candidate], now: float) -> None:
        memo, tried = Memo(working), 0
        for candidate in heads:
            if tried == self.settings.workloads_per_cycle or memo.plans >= self.settings.preemptions_per_cycle:
                turn.more = True
                return
            try:
                if self._waits_on(memo, candidate, now):
                    continue
                tried += 1
                placing = self._try(turn, working, candidate, memo, now)
                self._aside.discard(candidate.subject)
            except Exception as error:
                self._set_aside(turn, candidate.subject, candidate.uids, error, now)
                memo.forget()
                working.nominate(self._kept(working.snapshot))
                continue
            if placing is not None:
                # From here on nothing depends on the workload any more; an error ends the process, which starts anew
                # from what the API server says.
                self._assume(turn, working, candidate, placing, now)
                self._look_at(turn, candidate.subject, now)

    def _try(
        self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, memo: Memo, now: float
    ) -> _Placing | None:
        """Where it goes; None where it waits on, with all that follows from that said and kept."""
        outcome = self.preempting.assignments(working, candidate) or memo.misfit(candidate) or place(working, candidate)
        if isinstance(outcome, Misfit):
            memo.remember(candidate, outcome)
            self._make_room(turn, working, candidate, outcome, memo, now)
            return None
        names = working.snapshot.names
        placing = _Placing(
            outcome.assignments,
            tuple(self._charge(assignment, names[assignment.row], candidate) for assignment in outcome.assignments),
            tuple(self._bind(assignment.uid, names[assignment.row]) for assignment in outcome.assignments),
        )
        turn.decisions.append(explain.placed(candidate, outcome.report, outcome, working.snapshot, now))
        return placing

    def _set_aside(self, turn: Turn, subject: WorkloadId, uids: tuple[str, ...], error: Exception, now: float) -> None:
        """An error of ours about one workload: nothing is kept for it, its pods are told, all others go on."""
        self._aside.add(subject)
        self._let_go(turn, subject)
        self._trials.forget(subject)
        self.backlog.park(subject, now, need=NOTHING)
        verdict = explain.set_aside(subject, uids, described(error), len(self._cache.nodes), now)
        turn.errors.append((subject, error))
        turn.decisions.append(verdict.decision)
        self._tell(turn, verdict)

    def _waits_on(self, memo: Memo, candidate: Candidate, now: float) -> bool:
        """Whether it fares as one before it in this turn, and says so already: thousands alike cost next to nothing."""
        message = memo.told(candidate)
        record = self._cache.record(candidate.uids[0]) if message else None
        misfit = memo.misfit(candidate) if record is not None and record.told == message else None
        if misfit is None:
            return False
        self.backlog.park(candidate.subject, now, need=need_of(misfit.report))
        return True

    def _assume(
        self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, placing: _Placing, now: float
    ) -> None:
        workload, names = candidate.workload, working.snapshot.names
        self._cache.assume(placing.charges, now)
        working.put(placing.assignments)
        self._settled(
            turn,
            working,
            candidate.subject,
            {assignment.uid: names[assignment.row] for assignment in placing.assignments},
        )
        strict = workload.gang is not None and workload.gang.mode is GangMode.STRICT and candidate.needed > 0
        turn.batches.append(Batch(candidate.subject, strict, placing.binds))
        self.backlog.binding_started(candidate.subject)

    def _settled(self, turn: Turn, working: WorkingSnapshot, subject: WorkloadId, homes: Mapping[str, str]) -> None:
        """All that a workload needs is placed, by pod: what was kept for it is not any more; elsewhere that is news."""
        self._trials.forget(subject)
        reserved, kept = self._reservations.drop(subject), self.preempting.drop(subject)
        nodes = set(homes.values())
        self._room_given_up(
            assignment for assignment in reserved if working.snapshot.names[assignment.row] not in nodes
        )
        keepings = kept.keepings if kept else ()
        self._free(keeping.pod_class for keeping in keepings if keeping.node not in nodes)
        for keeping in keepings:
            if keeping.uid not in homes:
                self._nominate(turn, keeping.uid, subject)
        if reserved or kept:
            working.nominate(self._kept(working.snapshot))

    def _charge(self, assignment: Assignment, node: str, candidate: Candidate) -> Charge:
        record = self._cache.record(assignment.uid)
        pod = record.pod if record else None
        priority = self._cache.gangs.priority(pod.gang.key) if pod and pod.gang else None
        job, queue = group_of(candidate.subject), candidate.workload.queue
        return Charge(
            assignment.uid, node, assignment.pod_class, assignment.kin, pod, queue, subject=job, gang_priority=priority
        )

    def _bind(self, uid: str, node: str) -> Bind:
        record = self._cache.record(uid)
        if record is None:
            raise LookupError(f"pod {uid} was placed but is not in the cache")
        return Bind(record.named, Placement(record.pod.key, uid, node), record.pod.created_seconds)

    def _make_room(
        self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, misfit: Misfit, memo: Memo, now: float
    ) -> None:
        """By preemption, else by keeping what becomes free; in any case the workload waits."""
        residents = self._cache.ledger.residents(working.snapshot)
        outcome = memo.refusal(candidate) or self.preempting.attempt(working, candidate, residents, now)
        if isinstance(outcome, Plan):
            memo.plans += 1
            self._room_given_up(self._reservations.drop(candidate.subject))
            turn.plans.append(len(outcome.eviction.victims))
            self._given_up(turn, self.preempting.begin(outcome, candidate, working.snapshot, now))
            memo.forget()
            working.nominate(self._kept(working.snapshot))
        else:
            memo.remember(candidate, outcome)
            if outcome.reason not in UNDER_WAY:
                self._keep_otherwise(turn, working, candidate, residents, memo, now)
        memo.tell(candidate, self._park(turn, candidate, misfit, outcome, now))

    def _keep_otherwise(
        self, turn: Turn, working: WorkingSnapshot, candidate: Candidate, residents: Residents, memo: Memo, now: float
    ) -> None:
        """Nobody goes: a nomination from before is of no use any more, and room may be reserved in its place."""
        dropped = self.preempting.drop(candidate.subject)
        self._given_up(turn, (dropped,) if dropped else ())
        kept, given_up = self._reservations.reserve(working, candidate, residents, self._ranking(now))
        self._room_given_up(given_up)
        if dropped or kept is not None or given_up:
            working.nominate(self._kept(working.snapshot))
            memo.forget()

    def _park(self, turn: Turn, candidate: Candidate, misfit: Misfit, outcome: Plan | NoPreemption, now: float) -> str:
        """Returns what its pods are told."""
        self.backlog.park(candidate.subject, now, need=need_of(misfit.report))
        self._trials.failed(candidate, now, self.preempting.until(candidate.subject))
        turn.insights[candidate.subject] = preemption_decision(candidate.subject, outcome, now)
        quiet = isinstance(outcome, NoPreemption) and outcome.reason in UNDER_WAY
        verdict = explain.misfit(candidate, misfit, now, "" if quiet else text_of(outcome))
        turn.decisions.append(verdict.decision)
        self._tell(turn, verdict, quiet=quiet)
        for key, needed in candidate.workload.gangs:
            if needed:
                self._tell_group(turn, key, verdict.message, placed=False, now=now)
        return verdict.message

    def _tell_holds(self, turn: Turn, snapshot: ClusterSnapshot, now: float) -> None:
        for hold in self.backlog.take_holds(now):
            verdict = explain.held(hold, len(snapshot.names), now)
            turn.decisions.append(verdict.decision)
            self._tell(turn, verdict)

    def _tell(self, turn: Turn, verdict: explain.Verdict, *, quiet: bool = False) -> None:
        """Every pod of the verdict gets the same message and its nomination, unless that is what it says already."""
        for uid in verdict.uids:
            record = self._cache.record(uid)
            if record is None:
                continue
            node = self.preempting.node_of(uid, verdict.subject)
            moved = node != record.nominated
            news = record.told != verdict.message and not (quiet and record.told)
            if news or moved:
                said = verdict.message if news else record.told
                nominated = node if moved else None
                turn.notes.append(Note(record.named, said, first=not record.told, nominated=nominated, event=news))
                record.told, record.nominated = said, node

    def _nominate(self, turn: Turn, uid: str, subject: WorkloadId) -> None:
        """A pod whose nomination is over, and that is not told anything else."""
        record = self._cache.record(uid)
        node = self.preempting.node_of(uid, subject)
        if record is not None and not record.pod.node_name and record.told and node != record.nominated:
            record.nominated = node
            turn.notes.append(Note(record.named, record.told, first=False, nominated=node, event=False))
