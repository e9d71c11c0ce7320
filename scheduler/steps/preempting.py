"""Plans that make room, from the choice of victims until the room is taken: what is kept, who is told and evicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from model.placement import EvictionPlan, Victim
from model.qos import LOWEST_PROD
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.gangs.minimum import GangPart
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.claim import Claim
from scheduler.core.ledger.residents import Residents
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, Nominated, WorkingSnapshot
from scheduler.core.preemption.facts import GangFacts, NoPreemption, PreemptionFacts, PreemptionPlan
from scheduler.core.preemption.gang_store import GangStore
from scheduler.core.preemption.legal import UNNAMED, may_stay_victim
from scheduler.core.preemption.nominations import Nominations
from scheduler.core.preemption.plan import message
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.preempt import preempt
from scheduler.core.preemption.progress import MOST_HAVE_ENDED, left_until, notice_seconds
from scheduler.core.preemption.queue_rules import QueueRules
from scheduler.core.snapshot.snapshot import ClusterSnapshot
from scheduler.steps.evicting import PREEMPTED, Evictions, EvictionWords, UnderWay
from scheduler.steps.turn import Turn

_MOST_NAME = 500
"""Characters of a preemptor's name in a notice: a group of gangs may have a very long one."""


class Preempting:
    """By preemptor's subject; times are Unix seconds."""

    def __init__(self, cache: ClusterCache, policy: PreemptionPolicySettings) -> None:
        self.policy = policy
        self.gangs = GangStore()
        self._cache = cache
        self._nominations = Nominations(cache.ledger)
        self._evictions = Evictions(cache)
        self._until: dict[WorkloadId, float] = {}
        self._evicted: dict[WorkloadId, float] = {}
        self._in_vain: frozenset[WorkloadId] = frozenset()
        self._nodes: tuple[Claim | None, dict[str, str]] = (None, {})

    @property
    def under_way(self) -> UnderWay:
        """What it has under way, for others who evict."""
        return self._evictions.under_way

    def as_nominated(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """The room that is kept."""
        return self._nominations.as_nominated(snapshot)

    def node_of(self, uid: str, subject: WorkloadId) -> str:
        """The node on which room is kept for a pod, empty without one."""
        kept = self._nominations.get(subject)
        if kept is None:
            return ""
        if self._nodes[0] is not kept:
            self._nodes = kept, {claimed.uid: claimed.node for claimed in kept.pods}
        return self._nodes[1].get(uid, "")

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
        return self._evictions.keys

    def until(self, subject: WorkloadId) -> float:
        """Unix time until which victims that were told for a subject may take, 0 without any."""
        return self._until.get(subject, 0.0)

    def ending(self, now: float) -> list[WorkloadId]:
        """Subjects whose victims would go at this moment, having been given time: whether that is still needed is to be
        seen first.
        """
        return self._evictions.ending(now)

    def attempt(
        self,
        working: WorkingSnapshot,
        candidate: Candidate,
        residents: Residents,
        queues: QueueRules | None,
        now: float,
    ) -> PreemptionPlan | NoPreemption:
        """What it takes for a candidate that fits nowhere, or lacks quota; nothing is changed."""
        records = (self._cache.pods.record(uid) for uid in candidate.uids)
        facts = PreemptionFacts(
            pods={record.pod.uid: record.pod for record in records if record is not None},
            budgets=self._cache.related.budgets,
            saved=self._cache.saved,
            gangs=self.gangs,
            in_flight=self.nominated,
            evicted=self._evicted,
            queues=queues,
            prompt=candidate.subject in self._in_vain,
        )
        outcome = preempt(working, candidate, residents, facts, self.policy, now)
        if facts.prompt and isinstance(outcome, NoPreemption):
            slow = msgspec.structs.replace(facts, prompt=False)
            outcome = preempt(working, candidate, residents, slow, self.policy, now)
        patient = self.policy.leave_ending and not _waits_for_nobody(candidate) and not facts.prompt
        return self._leaving(outcome, now) if patient and isinstance(outcome, PreemptionPlan) else outcome

    def _leaving(self, plan: PreemptionPlan, now: float) -> PreemptionPlan:
        """With victims left to end that are expected to."""
        victims = tuple(self._left_to_end(victim, now) for victim in plan.eviction.victims)
        return msgspec.structs.replace(plan, eviction=msgspec.structs.replace(plan.eviction, victims=victims))

    def begin(
        self, plan: PreemptionPlan, candidate: Candidate, snapshot: ClusterSnapshot, now: float
    ) -> tuple[Claim, ...]:
        """Keep the plan's room and start to carry it out; returns what others lose by that."""
        told = now + notice_seconds(plan.eviction.victims, self.policy)
        until = max((told, *(victim.left_until_seconds for victim in plan.eviction.victims)))
        expires = self._expires(candidate, until)
        kept = self._nominations.expires_seconds(candidate.subject)
        if kept and not plan.eviction.victims:
            expires = min(expires, kept)  # else it could be put off for ever
        dropped = self._nominations.add(plan, snapshot, expires, candidate.governed_by)
        if plan.eviction.victims:
            self._carry_out(plan.eviction, candidate.profile, until)
        return dropped

    def _left_to_end(self, victim: Victim, now: float) -> Victim:
        """With its grace period, where it is expected to end by itself within that. The pods of a job that leaves as a
        whole say nothing of that job's end.
        """
        record = self._cache.pods.record(victim.uid)
        if record is None or self._cache.leaves_as(record) != record.named:
            return victim
        pod, runs = record.pod, self._cache.runs
        started, ends = runs.started(victim.subject), runs.known_end(victim.subject, now, MOST_HAVE_ENDED)
        limits = [each for each in (pod.spec.deadline_seconds, self._cache.job_limit(pod)) if each is not None]
        known = [*([ends] if ends is not None else []), *(started + each for each in limits if started is not None)]
        grace = min(pod.spec.grace_seconds, self.policy.longest_wait_seconds)
        return msgspec.structs.replace(victim, left_until_seconds=left_until(known, grace, now))

    def _carry_out(self, plan: EvictionPlan, scheduler_name: str, until: float) -> None:
        self._until[plan.preemptor] = until
        self._evictions.begin(plan.preemptor, plan, _words(plan, scheduler_name))

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

    def restore(
        self, candidate: Candidate, told: Mapping[str, Sequence[Charge]], snapshot: ClusterSnapshot, now: float
    ) -> frozenset[str]:
        """After a restart: what the pods' status names is kept for them again, and the plan goes on whose victims were
        told, by the name in their notices; returns the uids of these. A notice is no more than a text that others may
        write, too: whom no rule lets go for the candidate stays.
        """
        records = [record for uid in candidate.uids if (record := self._cache.pods.record(uid)) is not None]
        if not any(record.pod.status.nominated_node for record in records):
            return frozenset()
        pods = {record.pod.uid: record.pod for record in records}
        below_prod = any(pod.colocation.below_prod for pod in pods.values())
        victims = tuple(
            self._victim(charge)
            for charge in told.get(_by(candidate.subject), ())
            if may_stay_victim(charge, candidate, below_prod)
        )
        until = now + notice_seconds(victims, self.policy)
        if not self._nominations.restore(candidate, pods, snapshot, self._expires(candidate, until)):
            return frozenset()
        if victims:
            trigger = min(pods.values(), key=lambda pod: pod.key).key
            plan = EvictionPlan(candidate.subject, trigger, victims, (), queue=candidate.governed_by)
            self._carry_out(plan, candidate.profile, until)
        return frozenset(victim.uid for victim in victims)

    def _victim(self, charge: Charge) -> Victim:
        """A pod that a scheduler before this one told to go: it has as long as it was told, within what is allowed."""
        pod = charge.pod
        if pod is None or (standing := pod.colocation.eviction.standing) is None:
            raise LookupError(f"pod {charge.uid} has no notice")
        asked = max(0.0, standing.deadline_seconds - standing.since_seconds)
        return Victim(pod.key, pod.uid, charge.node, self._cache.gangs.subject_of(pod), asked, charge.governed_by)

    def advance(self, turn: Turn, waiting: Collection[WorkloadId], now: float) -> list[WorkloadId]:
        """One step of every plan on its way; returns the subjects of those that are over."""
        over: list[WorkloadId] = []
        for subject in sorted(self._evictions):
            wanted = subject in waiting and self._nominations.get(subject) is not None
            part = Turn()
            if self._evictions.step(subject, wanted, self.policy, part, now):
                self._until.pop(subject, None)
                over.append(subject)
            self._remember({loss.subject for loss in part.lost}, now)
            turn.add(part)
        return over

    def next_due(self) -> float | None:
        """Unix time at which victims that were told go in any case."""
        found = (self._evictions.next_due(), self._nominations.next_due())
        return min((due for due in found if due is not None), default=None)

    def _expires(self, candidate: Candidate, ending: float) -> float:
        """Unix time until which room is kept whose pods are to end at `ending`."""
        return ending + min(candidate.timeout_seconds, self.policy.longest_wait_seconds)

    def _remember(self, subjects: Collection[WorkloadId], now: float) -> None:
        """When a job lost a pod, for as long as that spares its others."""
        rest = self.policy.victim_cooldown_seconds
        self._evicted = {job: at for job, at in self._evicted.items() if now - at < rest}
        if rest:
            self._evicted.update(dict.fromkeys(subjects, now))


def _waits_for_nobody(candidate: Candidate) -> bool:
    """Work of no queue, such as a service, and what is online and of class koord-prod, in a queue or not."""
    prod = candidate.online and candidate.workload.outer_priority >= LOWEST_PROD
    return prod or candidate.governed_by in UNNAMED


def _by(preemptor: WorkloadId) -> str:
    """Whom a notice names."""
    return preemptor.text[:_MOST_NAME]


def _words(plan: EvictionPlan, scheduler_name: str) -> EvictionWords:
    def note(victim: Victim) -> str:
        told = f"Preempted by {plan.preemptor.name} on node {victim.node}"
        if victim.reclaimed:
            told += f": queue {plan.queue} takes back what queue {victim.queue} borrowed"
        return told

    return EvictionWords(PREEMPTED, _by(plan.preemptor), lambda victim: message(plan, victim, scheduler_name), note)


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
        return f"preemption: {who} to make room{_unless(outcome.eviction)}." if number else ""
    if outcome.reason is Reason.PREEMPTION_POLICY_NEVER:
        return "preemption: not eligible due to preemptionPolicy=Never."
    if outcome.reason in _TO_THE_POINT:
        return f"preemption: {outcome.detail}."
    return ""


def _unless(plan: EvictionPlan) -> str:
    left = len(plan.victims) - len(plan.going)
    if not left:
        return ""
    some = "" if left == len(plan.victims) else f" {left} of them"
    return f",{some} unless {'it ends' if left == 1 else 'they end'} by {'itself' if left == 1 else 'themselves'} first"


UNDER_WAY = (Reason.PREEMPTION_IN_FLIGHT, Reason.VICTIMS_TERMINATING)
"""Refusals that concern the one workload alone: its room is being made."""

_TO_THE_POINT = (Reason.PREEMPTION_NOT_HELPFUL, Reason.PREEMPTION_TOO_MANY)
