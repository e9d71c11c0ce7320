"""Preemption of one workload: a plan with which all its needed members fit, or the reason why there is none.

Differs from Koordinator's job preemption (coscheduling/core/preemption.go) where that may evict in vain or too many:
members count each other's room, budgets and gangs of victims are looked at, and every pending member's policy counts.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from model.priority import PreemptionPolicy
from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.residents import Flag, Residents
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.preemption.capacity import room
from scheduler.core.preemption.choose import cheapest
from scheduler.core.preemption.facts import NoPreemption, PreemptionFacts, PreemptionPlan, Tally
from scheduler.core.preemption.legal import LegalVictims
from scheduler.core.preemption.plan import plan_of
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.problem import (
    PreemptionProblem,
    Prospects,
    domains,
    problem_of,
    prospects_of,
    remaining_seconds,
)
from scheduler.core.preemption.progress import notice_seconds
from scheduler.core.preemption.quota_victims import QuotaVictims
from scheduler.core.snapshot.snapshot import Amounts

_DOMAINS = 8
"""Domains whose victims are worked out in full; they are those that look cheapest."""
_USUAL_GRACE_SECONDS = 30.0
"""Kubernetes' own. Online workloads wait no longer for what ends by itself, where evictions make room sooner: how long
a pod takes to end is the word of whoever made it.
"""
_ANY_TIME = float("inf")


class _Request(msgspec.Struct, frozen=True, eq=False):
    """What `preempt` is asked."""

    working: WorkingSnapshot
    candidate: Candidate
    residents: Residents
    facts: PreemptionFacts
    policy: PreemptionPolicySettings
    now: float

    def prospects(self, facts: PreemptionFacts, longest_wait_seconds: float) -> Prospects:
        return prospects_of(self.residents, self.candidate, facts, (self.policy, self.now), longest_wait_seconds)

    def plan(self, facts: PreemptionFacts, prospects: Prospects) -> PreemptionPlan | NoPreemption:
        problem = problem_of(self.working, self.candidate, self.residents, facts, prospects)
        return _plan(self.working, self.candidate, facts, problem, self.policy)


def preempt(
    working: WorkingSnapshot,
    candidate: Candidate,
    residents: Residents,
    facts: PreemptionFacts,
    policy: PreemptionPolicySettings,
    now: float,
) -> PreemptionPlan | NoPreemption:
    """For a candidate that `place` has just refused in this working snapshot, which is not changed."""
    refusal = _not_even_tried(working, candidate, residents, facts, policy)
    if refusal is not None:
        return refusal
    request = _Request(working, candidate, residents, facts, policy, now)
    prospects = request.prospects(facts, _USUAL_GRACE_SECONDS if candidate.online else _ANY_TIME)
    if not len(prospects.late):
        return _found(request, prospects, _ANY_TIME)
    return _sooner(request, prospects) or _found(request, prospects.with_late, _ANY_TIME)


def _sooner(request: _Request, prospects: Prospects) -> PreemptionPlan | None:
    """A plan that waits for nobody who takes long to end, where it makes room before they do."""
    residents, now = request.residents, request.now
    found = _found(request, prospects, _USUAL_GRACE_SECONDS)
    if not isinstance(found, PreemptionPlan):
        return None
    victims = found.eviction.victims
    pods = [residents.pods[residents.slot_of[victim.uid]] for victim in victims if victim.uid in residents.slot_of]
    longest = max((pod.spec.grace_seconds for pod in pods if pod is not None), default=0.0)
    last = max(remaining_seconds(residents, slot, now) for slot in prospects.late.tolist())
    return found if longest + notice_seconds(victims, request.policy) < last else None


def _found(request: _Request, prospects: Prospects, longest_wait_seconds: float) -> PreemptionPlan | NoPreemption:
    """With those who go by themselves, but later than that, as if they stayed."""
    if prospects.none:
        return _nobody(prospects.legal)
    facts = request.facts
    found = request.plan(facts, prospects)
    if isinstance(found, PreemptionPlan) or found.reason is Reason.PREEMPTION_NO_VICTIMS:
        return found
    if facts.queues is None or not facts.queues.governed or not prospects.legal.reclaims:
        return found
    trimmed = msgspec.structs.replace(facts, trimmed=True)
    return request.plan(trimmed, request.prospects(trimmed, longest_wait_seconds))


def _plan(
    working: WorkingSnapshot,
    candidate: Candidate,
    facts: PreemptionFacts,
    problem: PreemptionProblem,
    policy: PreemptionPolicySettings,
) -> PreemptionPlan | NoPreemption:
    quota = QuotaVictims(facts.queues, problem.costs) if facts.queues is not None else None
    has_quota = quota is None or quota.enough(())
    if problem.coming and has_quota and (placed := problem.trial.without(())):
        return plan_of(working.snapshot, candidate, facts, problem, (placed, frozenset()))
    if not len(problem.costs.victims):
        return _nobody(problem.legal)
    for_quota = frozenset() if quota is None or has_quota else quota.cheapest()
    if for_quota is None:
        return NoPreemption(Reason.PREEMPTION_NOT_HELPFUL, _quota_in_vain(problem), _tally(problem), lacks_quota=True)
    for chosen in _with_quota(_choices(working, problem), quota, for_quota):
        placed = problem.trial.without(chosen) if quota is None or quota.lawful(chosen) else None
        if placed is None:
            continue
        if policy.most_victims and len(chosen) > policy.most_victims:
            detail = f"{len(chosen)} pods would have to go, {policy.most_victims} may"
            return NoPreemption(Reason.PREEMPTION_TOO_MANY, detail, _tally(problem))
        return plan_of(working.snapshot, candidate, facts, problem, (placed, chosen))
    return NoPreemption(Reason.PREEMPTION_NOT_HELPFUL, _in_vain(problem), _tally(problem))


def _with_quota(
    choices: Iterator[frozenset[int]], quota: QuotaVictims | None, for_quota: frozenset[int]
) -> Iterator[frozenset[int]]:
    """Those whose going gives its queue the quota alone, where it lacks some; then each choice together with them."""
    if for_quota:
        yield for_quota
    for chosen in choices:
        yield chosen if quota is None or quota.enough(chosen) else chosen | for_quota


def _quota_in_vain(problem: PreemptionProblem) -> str:
    victims = len(problem.costs.victims)
    return (
        f"its queue would lack quota even without {f'all {victims} pods' if victims > 1 else 'the one pod'} that may go"
    )


def _in_vain(problem: PreemptionProblem) -> str:
    if problem.trial.spent:
        return "its many unlike members were tried without some of the pods that may be evicted, and did not fit"
    pending, victims = problem.demand.pending, len(problem.costs.victims)
    told = f"{pending} members would not fit together" if pending > 1 else "it would not fit"
    return f"{told} even without {f'all {victims} pods' if victims > 1 else 'the one pod'} that may be evicted"


def _not_even_tried(
    working: WorkingSnapshot,
    candidate: Candidate,
    residents: Residents,
    facts: PreemptionFacts,
    policy: PreemptionPolicySettings,
) -> NoPreemption | None:
    if not policy.enable:
        return NoPreemption(Reason.PREEMPTION_DISABLED)
    if candidate.workload.preemption_policy is PreemptionPolicy.NEVER:
        return NoPreemption(Reason.PREEMPTION_POLICY_NEVER)
    if not candidate.needed:
        return NoPreemption(Reason.PREEMPTION_NOT_NEEDED)
    if candidate.subject in facts.in_flight:
        return NoPreemption(Reason.PREEMPTION_IN_FLIGHT)
    if _victims_terminate(working, candidate, residents):
        return NoPreemption(Reason.VICTIMS_TERMINATING)
    return None


def _victims_terminate(working: WorkingSnapshot, candidate: Candidate, residents: Residents) -> bool:
    """Whether on a node it is nominated to somebody of lower priority still terminates because of a preemption."""
    if not working.keeps_for(candidate.subject):
        return False
    rows = [
        assignment.row
        for held in working.nominated
        if held.subject == candidate.subject
        for assignment in held.assignments
    ]
    if not rows:
        return False
    going = (residents.flags & (Flag.DELETING | Flag.DISRUPTED)) == (Flag.DELETING | Flag.DISRUPTED)
    lower = residents.priorities < candidate.workload.priority
    return bool(np.any(going & lower & np.isin(residents.rows, rows)))


def _choices(working: WorkingSnapshot, problem: PreemptionProblem) -> Iterator[frozenset[int]]:
    """Sets of victims to try, the most promising first."""
    if not problem.merged and any(int(ask.most.sum()) < ask.want for ask in problem.capacity.asks):
        return
    costs = problem.costs
    found = []
    for rows in _cheapest_first(domains(working, problem), problem):
        chosen = cheapest(problem.capacity.within(rows), costs)
        if chosen is not None:
            found.append(chosen)
    if len(found) > 1:
        found.sort(key=costs.cost)
    if problem.plain and len(problem.capacity.asks) == 1:
        yield from found
    else:
        yield from (chosen for chosen in map(problem.trial.reprieved, found) if chosen is not None)
    if not problem.exact:
        chosen = problem.trial.cheapest(problem.capacity)
        if chosen is not None:
            yield chosen


def _cheapest_first(domains: list[Amounts], problem: PreemptionProblem) -> list[Amounts]:
    """The domains with the most room already for what is wanted, those with the least to lose before others."""
    if len(domains) <= _DOMAINS:
        return domains
    victims, capacity = problem.costs.victims, problem.capacity
    every = np.arange(len(capacity.free))
    here = np.sum([room(ask, capacity.free, every) for ask in capacity.asks], axis=0)
    load = np.bincount(victims.rows, weights=victims.weights - victims.weights.min() + 1.0, minlength=len(every))
    ranked = sorted(range(len(domains)), key=lambda i: (-int(here[domains[i]].sum()), float(load[domains[i]].sum()), i))
    return [domains[i] for i in ranked[:_DOMAINS]]


def _tally(problem: PreemptionProblem) -> Tally:
    return Tally(problem.legal.considered, problem.legal.excluded, kept=len(problem.costs.victims))


def _nobody(legal: LegalVictims) -> NoPreemption:
    tally = Tally(legal.considered, legal.excluded)
    return NoPreemption(Reason.PREEMPTION_NO_VICTIMS, _excluded(legal), tally)


def _excluded(legal: LegalVictims) -> str:
    told = ", ".join(f"{number} {name}" for name, number in legal.excluded)
    return f"of {legal.considered} pods: {told}" if told else "no pod runs on any node"
