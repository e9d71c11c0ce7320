"""Plans that make room, from the choice of victims until the room is taken: what is kept, who is told and evicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import msgspec

from model.placement import PlanState
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.gangs.minimum import GangPart
from scheduler.core.ledger.claim import Claim
from scheduler.core.ledger.residents import Residents
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, Nominated, WorkingSnapshot
from scheduler.core.preemption.facts import GangFacts, NoPreemption, PreemptionFacts, PreemptionPlan
from scheduler.core.preemption.gang_store import GangStore
from scheduler.core.preemption.nominations import Nominations
from scheduler.core.preemption.plan import message
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.preempt import preempt
from scheduler.core.preemption.progress import (
    Action,
    Evict,
    Notify,
    Progress,
    Unnotify,
    VictimStates,
    advance,
    notice_seconds,
)
from scheduler.core.preemption.queue_rules import QueueRules
from scheduler.core.snapshot.snapshot import ClusterSnapshot
from scheduler.steps.turn import Eviction, Notice, Turn

REASON = "PreemptionByScheduler"


class _Carried(msgspec.Struct):
    """A plan on its way; `notified` are uids of victims that know, `eviction_requested` of those to be evicted.

    `until_seconds` (Unix time) is how long victims that are told may take.
    """

    progress: Progress
    scheduler_name: str
    until_seconds: float
    notified: set[str] = msgspec.field(default_factory=set)
    eviction_requested: set[str] = msgspec.field(default_factory=set)


class Preempting:
    """By preemptor's subject; times are Unix seconds."""

    def __init__(self, cache: ClusterCache, policy: PreemptionPolicySettings) -> None:
        self.policy = policy
        self.gangs = GangStore()
        self._cache = cache
        self._nominations = Nominations(cache.ledger)
        self._carried: dict[WorkloadId, _Carried] = {}
        self._evicted: dict[WorkloadId, float] = {}
        self._in_vain: frozenset[WorkloadId] = frozenset()

    def as_nominated(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """The room that is kept."""
        return self._nominations.as_nominated(snapshot)

    def node_of(self, uid: str, subject: WorkloadId) -> str:
        """The node on which room is kept for a pod, empty without one."""
        kept = self._nominations.get(subject)
        return next((claimed.node for claimed in kept.pods if claimed.uid == uid), "") if kept else ""

    def keeps(self, subject: WorkloadId) -> bool:
        """Whether room is kept for a workload by nomination."""
        return self._nominations.get(subject) is not None

    def count(self, subject: WorkloadId, parts: tuple[GangPart, ...]) -> None:
        """What preemption must know of a gang that runs."""
        self.gangs.pop(subject, None)
        parts = tuple(part for part in parts if self._cache.gangs.index.subject(part.key) == subject)
        if any(part.members.placed for part in parts):
            self.gangs[subject] = GangFacts(
                min_member=sum(part.spec.min_member for part in parts),
                bound=sum(part.counted for part in parts),
                whole=any(part.spec.whole for part in parts),
            )

    @property
    def nominated(self) -> frozenset[WorkloadId]:
        """Subjects whose plans are on their way."""
        return frozenset(self._carried)

    def until(self, subject: WorkloadId) -> float:
        """Unix time until which victims that were told for a subject may take, 0 without any."""
        return self._carried[subject].until_seconds if subject in self._carried else 0.0

    def attempt(
        self,
        working: WorkingSnapshot,
        candidate: Candidate,
        residents: Residents,
        queues: QueueRules | None,
        now: float,
    ) -> PreemptionPlan | NoPreemption:
        """What it takes for a candidate that fits nowhere, or lacks quota; nothing is changed."""
        records = (self._cache.record(uid) for uid in candidate.uids)
        facts = PreemptionFacts(
            pods={record.pod.uid: record.pod for record in records if record is not None},
            budgets=self._cache.related.budgets,
            saved=self._cache.saved,
            gangs=self.gangs,
            in_flight=frozenset(self._carried),
            evicted=self._evicted,
            queues=queues,
            prompt=candidate.subject in self._in_vain,
        )
        outcome = preempt(working, candidate, residents, facts, self.policy, now)
        if facts.prompt and isinstance(outcome, NoPreemption):
            slow = msgspec.structs.replace(facts, prompt=False)
            return preempt(working, candidate, residents, slow, self.policy, now)
        return outcome

    def begin(
        self, plan: PreemptionPlan, candidate: Candidate, snapshot: ClusterSnapshot, now: float
    ) -> tuple[Claim, ...]:
        """Keep the plan's room and start to carry it out; returns what others lose by that."""
        until = now + notice_seconds(plan.eviction.victims, self.policy)
        expires = self._expires(candidate, until)
        kept = self._nominations.expires_seconds(candidate.subject)
        if kept and not plan.eviction.victims:
            expires = min(expires, kept)  # else it could be put off for ever
        dropped = self._nominations.add(plan, snapshot, expires, candidate.governed_by)
        if plan.eviction.victims:
            self._carried[candidate.subject] = _Carried(Progress(plan.eviction), candidate.profile, until)
        return dropped

    def assignments(self, working: WorkingSnapshot, candidate: Candidate) -> Placed | None:
        """The nominated assignments where all that is needed fits there by now; they are tried before any other.

        Reservations do not count: what is kept until others end is no reason to leave room that was made by eviction.
        """
        kept = self._nominations.get(candidate.subject)
        if kept is None or not _covers(kept, candidate):
            return None
        rows, waiting = working.snapshot.rows, set(candidate.uids)
        trial, assignments = working.what_if(), list[Assignment]()
        trial.nominate(self.as_nominated(working.snapshot))
        for claimed in kept.pods:
            row = rows.get(claimed.node, -1)
            if claimed.uid not in waiting or row < 0:
                return None
            if trial.room(claimed.pod_class, claimed.pod_traits, candidate.requester)[row] < 1:
                return None
            assignment = Assignment(claimed.uid, row, claimed.pod_class, claimed.pod_traits)
            trial.put((assignment,))
            assignments.append(assignment)
        first = assignments[0]
        return Placed(tuple(assignments), working.report(first.pod_class, first.pod_traits, candidate.requester))

    def sweep(
        self, waiting: Mapping[WorkloadId, Candidate], snapshot: ClusterSnapshot, now: float
    ) -> tuple[Claim, ...]:
        """What is kept for nobody, for too long, or where it does not help any more is given up."""
        self._in_vain = frozenset(self._in_vain | self._nominations.expired(now)).intersection(waiting)
        return self._nominations.sweep(waiting, snapshot, now)

    def drop(self, subject: WorkloadId) -> Claim | None:
        """The workload gives up what is kept for it."""
        return self._nominations.drop(subject)

    def restore(self, candidate: Candidate, snapshot: ClusterSnapshot, now: float) -> bool:
        """After a restart: what the pods' status names is kept for them again."""
        records = [record for uid in candidate.uids if (record := self._cache.record(uid)) is not None]
        if not any(record.pod.status.nominated_node for record in records):
            return False
        expires = self._expires(candidate, now)
        pods = {record.pod.uid: record.pod for record in records}
        return self._nominations.restore(candidate, pods, snapshot, expires)

    def advance(self, turn: Turn, waiting: Collection[WorkloadId], now: float) -> list[WorkloadId]:
        """One step of every plan on its way; returns the subjects of those that are over."""
        over: list[WorkloadId] = []
        for subject, carried in sorted(self._carried.items()):
            wanted = subject in waiting and self._nominations.get(subject) is not None
            step = advance(carried.progress, self._victim_states(carried, wanted), self.policy, now)
            carried.progress = step.progress
            for action in step.actions:
                self._act(turn, carried, action, now)
            if carried.progress.over:
                del self._carried[subject]
                turn.spared.extend(self._spared(carried))
                over.append(subject)
        return over

    def next_due(self) -> float | None:
        """Unix time at which victims that were told go in any case."""
        deadlines = (carried.progress.due_seconds for carried in self._carried.values())
        found = (*deadlines, self._nominations.next_due())
        return min((due for due in found if due is not None), default=None)

    def _expires(self, candidate: Candidate, ending: float) -> float:
        """Unix time until which room is kept whose pods are to end at `ending`."""
        return ending + min(candidate.timeout_seconds, self.policy.longest_wait_seconds)

    def _spared(self, carried: _Carried) -> list[str]:
        """Of a plan that is over, the victims (uids) whose eviction nobody needs any more."""
        if carried.progress.plan.state is not PlanState.ABORTED:
            return []
        return sorted(
            carried.eviction_requested.difference(*(other.eviction_requested for other in self._carried.values()))
        )

    def _victim_states(self, carried: _Carried, wanted: bool) -> VictimStates:
        victims = {victim.uid: self._cache.record(victim.uid) for victim in carried.progress.plan.victims}
        alive = {uid for uid, record in victims.items() if record is not None and not record.pod.terminal}
        deleting = {uid for uid, record in victims.items() if record is not None and record.pod.deleting}
        return VictimStates(
            frozenset(alive), frozenset(deleting), frozenset(carried.notified), self._cache.saved, wanted=wanted
        )

    def _act(self, turn: Turn, carried: _Carried, action: Action, now: float) -> None:
        victim, plan = action.victim, carried.progress.plan
        record = self._cache.record(victim.uid)
        if record is None:
            return
        match action:
            case Notify(_, deadline):
                carried.notified.add(victim.uid)
                turn.notices.append(Notice(victim.node, record.named, deadline, REASON))
            case Unnotify():
                carried.notified.discard(victim.uid)
                if not any(victim.uid in other.notified for other in self._carried.values()):
                    turn.notices.append(Notice(victim.node, record.named, None))
            case Evict() if victim.uid not in carried.eviction_requested:
                carried.eviction_requested.add(victim.uid)
                self._remember(victim.subject, now)
                note = f"Preempted by {plan.preemptor.name} on node {victim.node}"
                if victim.reclaimed:
                    note += f": queue {plan.queue} takes back what queue {victim.queue} borrowed"
                told = message(plan, victim, carried.scheduler_name)
                turn.evictions.append(Eviction(record.leaves_as, REASON, told, note))

    def _remember(self, subject: WorkloadId, now: float) -> None:
        """When a job lost a pod, for as long as that spares its others."""
        rest = self.policy.victim_cooldown_seconds
        self._evicted = {job: at for job, at in self._evicted.items() if now - at < rest}
        if rest:
            self._evicted[subject] = now


def _covers(kept: Claim, candidate: Candidate) -> bool:
    """Whether room is kept for all that is needed, of each gang of a group; its members may have changed since."""
    uids = set(kept.uids)
    if not candidate.workload.gangs:
        return len(uids) >= max(1, candidate.needed)
    found = Counter[str]()
    for pods in candidate.workload.pod_sets:
        found[pods.gang] += len(uids.intersection(pods.uids))
    return all(found[gang] >= needed for gang, needed in candidate.workload.gangs)


def text_of(outcome: PreemptionPlan | NoPreemption) -> str:
    """What a waiting pod's condition says of preemption; empty where that is nothing to the point.

    kube-scheduler appends the like to its FitError; the text on Never is its own.
    """
    if isinstance(outcome, PreemptionPlan):
        number = len(outcome.eviction.victims)
        reclaimed = sum(victim.reclaimed for victim in outcome.eviction.victims)
        whose = "of other queues" if reclaimed == number else "of lower priority"
        whose = f"{whose} or of other queues" if 0 < reclaimed < number else whose
        who = f"1 pod {whose} goes" if number == 1 else f"{number} pods {whose} go"
        return f"preemption: {who} to make room." if number else ""
    if outcome.reason is Reason.PREEMPTION_POLICY_NEVER:
        return "preemption: not eligible due to preemptionPolicy=Never."
    if outcome.reason in _TO_THE_POINT:
        return f"preemption: {outcome.detail}."
    return ""


UNDER_WAY = (Reason.PREEMPTION_IN_FLIGHT, Reason.VICTIMS_TERMINATING)
"""Refusals that concern the one workload alone: its room is being made."""

_TO_THE_POINT = (Reason.PREEMPTION_NOT_HELPFUL, Reason.PREEMPTION_TOO_MANY)
