"""The question that preemption answers, put into arrays once."""

from __future__ import annotations

import msgspec
import numpy as np

from scheduler.core.filters import fit
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.residents import Flag, Residents
from scheduler.core.load.limit import load_room
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.preemption.capacity import Capacity, RoomRequest, merged
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.demand import columns_of, needed_only, request_of
from scheduler.core.preemption.facts import PreemptionFacts, Preemptor
from scheduler.core.preemption.legal import UNNAMED, LegalVictims, legality, overdue
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.terminating import KinRelevance, vacate
from scheduler.core.preemption.trial import Trial
from scheduler.core.preemption.victims import Victims, victims_of
from scheduler.core.snapshot.podclass import NO_INTERPOD
from scheduler.core.snapshot.snapshot import Amounts

_MOST_ASKS = 16
"""More unlike members are packed in classes of about one size; the trial looks at each by itself."""


class PreemptionProblem(msgspec.Struct, frozen=True, eq=False):
    """`trial` is the last word; `capacity` is its arithmetic, which is exact where amounts alone decide (`plain`).

    `exact`: what it does not find there is not there. `coming` is whether terminating pods free something.
    """

    demand: Candidate
    legal: LegalVictims
    costs: VictimCosts
    capacity: Capacity
    trial: Trial
    plain: bool
    exact: bool
    coming: bool

    @property
    def merged(self) -> bool:
        """Whether the arithmetic takes unlike members for alike, and so may miss room that there is."""
        return len(self.capacity.asks) < len(self.demand.classes)


class Prospects(msgspec.Struct, frozen=True, eq=False):
    """Who may be evicted for a preemptor, and the slots of those who go by themselves in time, at Unix time `now`.

    `late` are those of others who do, too, but so much later that they are not counted on.
    """

    legal: LegalVictims
    terminating: Amounts
    now: float
    late: Amounts

    @property
    def with_late(self) -> Prospects:
        """The same, those who are late counted on as well."""
        return msgspec.structs.replace(
            self, terminating=np.sort(np.concatenate((self.terminating, self.late))), late=self.late[:0]
        )

    @property
    def none(self) -> bool:
        """Whether nobody goes."""
        return not len(self.terminating) and not self.legal.mask.any()


def prospects_of(
    residents: Residents,
    candidate: Candidate,
    facts: PreemptionFacts,
    limits: tuple[PreemptionPolicySettings, float],
    longest_wait_seconds: float = float("inf"),
) -> Prospects:
    """`limits` are settings and time; who goes by itself later than `longest_wait_seconds` counts as staying."""
    policy, now = limits
    legal = legality(residents, _preemptor(candidate, facts), facts, policy, now)
    deleting = (residents.rows >= 0) & ((residents.flags & Flag.DELETING) != 0)
    going = np.flatnonzero(deleting & ~overdue(residents, policy, now))
    late = np.array([remaining_seconds(residents, slot, now) > longest_wait_seconds for slot in going.tolist()], bool)
    return Prospects(legal, going[~late], now, going[late])


def remaining_seconds(residents: Residents, slot: int, now: float) -> float:
    """How long a pod that is being deleted may take yet; 0 where that is not known."""
    pod = residents.pods[slot]
    return pod.ends_seconds - now if pod is not None and pod.ends_seconds > 0 else 0.0


def problem_of(
    working: WorkingSnapshot,
    candidate: Candidate,
    residents: Residents,
    facts: PreemptionFacts,
    prospects: Prospects,
) -> PreemptionProblem:
    """With those that may go, or do so anyway."""
    legal, terminating, now = prospects.legal, prospects.terminating, prospects.now
    snapshot = working.snapshot
    demand = needed_only(snapshot, candidate)
    columns = columns_of(snapshot, demand)
    victims = victims_of(residents, legal.mask, columns, facts.gangs, len(snapshot.names))
    legal = _with_stuck(legal, int(np.count_nonzero(legal.mask)) - len(victims))
    later = working.what_if()
    relevant = KinRelevance(later, demand)
    vacate(later, residents, terminating, relevant)
    costs = VictimCosts(victims, residents, facts, now)
    capacity = _capacity(later, demand, columns, victims)
    trial = Trial(later, demand, residents, costs, relevant)
    plain = _plain(working, demand)
    exact = plain and len(capacity.asks) == 1 and not demand.workload.topology
    return PreemptionProblem(demand, legal, costs, capacity, trial, plain, exact, len(terminating) > 0)


def _with_stuck(legal: LegalVictims, number: int) -> LegalVictims:
    if not number:
        return legal
    excluded = (*legal.excluded, ("in a gang of which others stay", number))
    return msgspec.structs.replace(legal, excluded=excluded)


def _preemptor(candidate: Candidate, facts: PreemptionFacts) -> Preemptor:
    workload, pods = candidate.workload, facts.pods
    below_prod = any(pods[uid].colocation.below_prod for uid in candidate.uids if uid in pods)
    policy, created = workload.preemption_policy, workload.created_seconds
    queued, outer = candidate.governed_by not in UNNAMED, workload.outer_priority
    return Preemptor(candidate.subject, workload.priority, policy, created, below_prod, queued, outer)


def _capacity(working: WorkingSnapshot, demand: Candidate, columns: list[int], victims: Victims) -> Capacity:
    snapshot = working.snapshot
    free = working.free_for(demand.requester)
    emptied = free.copy()
    emptied[:, columns] += victims.freed(np.arange(len(victims)), len(free))
    asks = []
    for pod_class, pods in zip(demand.classes, demand.workload.pod_sets, strict=True):
        most = fit.counts(snapshot, emptied, pod_class)
        limit = load_room(working.background.load, snapshot, pod_class)
        if limit is not None:
            most = np.where(limit.reason_of < 0, np.minimum(most, limit.most), 0)
        asks.append(RoomRequest(request_of(snapshot, columns, pod_class), most, pods.count))
    totals = np.maximum(snapshot.allocatable[:, columns].sum(axis=0, dtype=np.float64), 1.0)
    asks.sort(key=lambda ask: float((ask.request / totals).max()), reverse=True)
    return Capacity(merged(asks, _MOST_ASKS), np.ascontiguousarray(free[:, columns]))


def _plain(working: WorkingSnapshot, demand: Candidate) -> bool:
    """Whether other pods matter to the members by the room they take alone."""
    if any(pod_class.cpus is not None for pod_class in demand.classes):
        return False
    for pod_class, member_traits in zip(demand.classes, demand.member_traits, strict=True):
        if working.outlook(pod_class, member_traits[0], demand.requester).obstacles is None:
            continue
        if pod_class.interpod != NO_INTERPOD or any(
            working.pod_index.objections(pod_traits) for pod_traits in set(member_traits)
        ):
            return False
    return True


def domains(working: WorkingSnapshot, problem: PreemptionProblem) -> list[Amounts]:
    """Rows of each domain that all members must be in together, by value of its label; one of all rows without any.

    Wider levels hold where the narrowest does; a domain that can never hold the members is left out.
    """
    required = [level for level in problem.demand.workload.topology if level.required]
    if not required:
        return [np.arange(len(working.snapshot.names))]
    rows_of: dict[str, list[int]] = {}
    for row, labels in enumerate(working.snapshot.traits.labels):
        if required[-1].key in labels:
            rows_of.setdefault(labels[required[-1].key], []).append(row)
    found = [np.array(rows_of[value], np.int64) for value in sorted(rows_of)]
    return [rows for rows in found if all(int(ask.most[rows].sum()) >= ask.want for ask in problem.capacity.asks)]
