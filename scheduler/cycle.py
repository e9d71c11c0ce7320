"""One turn of the scheduler, as a recipe; the rules are in scheduler.core, the writes in scheduler.publish."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from model.placement import Placement
from model.queue import Queue
from model.workload import GangMode
from scheduler import facts
from scheduler.cache import ClusterCache
from scheduler.core import explain, fit
from scheduler.core.backlog import Backlog
from scheduler.core.gang import Candidate, assemble
from scheduler.core.ledger import Charge
from scheduler.core.order import dominant_share, in_order
from scheduler.core.phase import gang_status
from scheduler.core.place import Misfit, Placed, place
from scheduler.core.podclass import PodClass
from scheduler.core.snapshot import ClusterSnapshot
from scheduler.ports import Named
from scheduler.settings import Settings
from scheduler.turn import Batch, Bind, GangNote, Note, Turn

_ORDINARY = (404, 409)
"""Answers to a binding that say the pod is gone or bound already: its next change tells the rest."""


class Cycle:
    """Owns the backlog; reads and charges the cache."""

    def __init__(self, cache: ClusterCache, settings: Settings, queue: Queue | None = None) -> None:
        self.backlog = Backlog(settings.backoff, settings.hold_grace_seconds)
        self.queue = queue or Queue()
        self._cache = cache
        self._budget = settings.workloads_per_cycle

    def turn(self, inbox: Iterable[facts.Fact], now: float) -> Turn:
        """Take in what happened, place what can be placed, and say what is to be written."""
        turn = Turn()
        self._drain(turn, inbox, now)  # 1 events into the cache
        snapshot = self._cache.snapshot()  # 2 one immutable picture
        heads = self.ordered(snapshot, self.backlog.ready(now), now)  # 3 who is next
        self._place(turn, snapshot, heads, now)  # 4 whole gangs, 5 or parked with a reason
        self._tell_holds(turn, snapshot, now)
        return turn  # 6 is published by the loop

    def ordered(self, snapshot: ClusterSnapshot, candidates: Iterable[Candidate], now: float) -> Iterable[Candidate]:
        """Candidates, next one first."""
        totals = snapshot.totals

        def share_of(queue: str) -> Fraction:
            return dominant_share(self._cache.ledger.used(queue), totals, self.queue.weight).value

        return in_order(candidates, share_of, now)

    def _drain(self, turn: Turn, inbox: Iterable[facts.Fact], now: float) -> None:
        failures: list[facts.BindingReleased] = []
        done: list[str] = []
        for fact in inbox:
            self._cache.apply(fact)
            if isinstance(fact, facts.BatchDone):
                done.append(fact.subject)
            elif isinstance(fact, facts.BindingReleased) and fact.error:
                failures.append(fact)
        touched = self._cache.take_touched()
        turn.refusals, turn.invalid_gangs = touched.refusals, touched.invalid_gangs
        for subject in sorted(touched.subjects):
            self._reassemble(turn, subject, now)
        if touched.roomier:
            self.backlog.wake()
        for fact in failures:
            self._bind_failed(turn, fact, now)
        for subject in done:
            self.backlog.binding_done(subject)

    def _reassemble(self, turn: Turn, subject: str, now: float) -> None:
        record = self._cache.gangs.get(subject.removeprefix("gang/")) if subject.startswith("gang/") else None
        members = self._cache.roster(subject)
        self.backlog.update(subject, assemble(subject, members, record.gang if record else None, self.queue.name), now)
        if not self._cache.exists(subject):
            turn.gone.append(subject)
        if record is not None:
            gang = record.gang
            bound = sum(bool(pod.node_name) for pod in members.placed)
            status = gang_status(record.told.phase, gang.spec.min_member, members, bound)
            if status != record.told:
                record.told = status
                turn.gang_notes.append(GangNote(Named(gang.namespace, gang.name, gang.uid), status))

    def _bind_failed(self, turn: Turn, fact: facts.BindingReleased, now: float) -> None:
        """One back-off step a workload and turn, however many of its bindings failed."""
        if any(decision.subject == fact.subject for decision in turn.decisions):
            return
        self.backlog.park(fact.subject, now, woken=True)
        uids = tuple(pod.uid for pod in self._cache.roster(fact.subject).pending)
        nodes = len(self._cache.nodes)
        verdict = explain.bind_failed(fact.subject, uids, fact.error, nodes, now)
        turn.decisions.append(verdict.decision)
        if fact.status not in _ORDINARY:
            self._tell(turn, verdict)

    def _place(self, turn: Turn, snapshot: ClusterSnapshot, heads: Iterable[Candidate], now: float) -> None:
        """Room only shrinks within a turn, so a lone pod whose class did not fit before it need not be tried."""
        free = snapshot.free
        unfit: dict[PodClass, Misfit] = {}
        for tried, candidate in enumerate(heads):
            if tried == self._budget:
                turn.more = True
                return
            lone = candidate.workload.gang is None
            outcome = (unfit.get(candidate.classes[0]) if lone else None) or place(snapshot, free, candidate)
            if isinstance(outcome, Misfit):
                if lone:
                    unfit[candidate.classes[0]] = outcome
                self._park(turn, candidate, outcome, now)
                continue
            before = fit.report(snapshot, free, candidate.classes[0])
            turn.decisions.append(explain.placed(candidate, before, outcome, snapshot, now))
            self._assume(turn, snapshot, candidate, outcome)
            self._reassemble(turn, candidate.subject, now)
            free = outcome.free

    def _assume(self, turn: Turn, snapshot: ClusterSnapshot, candidate: Candidate, outcome: Placed) -> None:
        workload = candidate.workload
        classes = {
            uid: pod_class
            for pods, pod_class in zip(workload.pod_sets, candidate.classes, strict=True)
            for uid in pods.uids
        }
        nodes = {item.uid: snapshot.names[item.row] for item in outcome.assignments}
        self._cache.ledger.assume(Charge(uid, node, classes[uid], workload.queue) for uid, node in nodes.items())
        strict = workload.gang is not None and workload.gang.mode is GangMode.STRICT and candidate.needed > 0
        turn.batches.append(
            Batch(candidate.subject, strict, tuple(self._bind(uid, node) for uid, node in nodes.items()))
        )
        self.backlog.binding_started(candidate.subject)

    def _bind(self, uid: str, node: str) -> Bind:
        record = self._cache.record(uid)
        if record is None:
            raise LookupError(f"pod {uid} was placed but is not in the cache")
        pod = record.pod
        return Bind(Named(pod.namespace, pod.name, uid), Placement(pod.key, uid, node), pod.created_seconds)

    def _park(self, turn: Turn, candidate: Candidate, outcome: Misfit, now: float) -> None:
        self.backlog.park(candidate.subject, now)
        verdict = explain.misfit(candidate, outcome, now)
        turn.decisions.append(verdict.decision)
        self._tell(turn, verdict)

    def _tell_holds(self, turn: Turn, snapshot: ClusterSnapshot, now: float) -> None:
        for hold in self.backlog.take_holds(now):
            verdict = explain.held(hold, len(snapshot.names), now)
            turn.decisions.append(verdict.decision)
            self._tell(turn, verdict)

    def _tell(self, turn: Turn, verdict: explain.Verdict) -> None:
        """Every pod of the verdict gets the same message, unless that is what it says already."""
        for uid in verdict.uids:
            record = self._cache.record(uid)
            if record is not None and record.told != verdict.message:
                named = Named(record.pod.namespace, record.pod.name, uid)
                turn.notes.append(Note(named, verdict.message, first=not record.told))
                record.told = verdict.message
