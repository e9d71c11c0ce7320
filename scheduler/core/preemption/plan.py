"""A choice of victims as a plan, with the words its victims carry."""

from __future__ import annotations

from collections.abc import Iterator

from model.placement import EvictionPlan, Placement, PlacementState, Victim
from model.pod.pod import Pod
from model.queue import ROOT_QUEUE
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, Nominated
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import PreemptionFacts, PreemptionPlan, Tally
from scheduler.core.preemption.problem import PreemptionProblem
from scheduler.core.preemption.queue_rules import QueueRules
from scheduler.core.snapshot.snapshot import ClusterSnapshot


def plan_of(
    snapshot: ClusterSnapshot,
    candidate: Candidate,
    facts: PreemptionFacts,
    problem: PreemptionProblem,
    outcome: tuple[Placed, frozenset[int]],
) -> PreemptionPlan:
    """`outcome`: where the needed members go, and which pods are evicted for them."""
    placed, chosen = outcome
    costs, wanted = problem.costs, {snapshot.names[assignment.row] for assignment in placed.assignments}
    victims = _victims(snapshot, costs, sorted(chosen), facts.queues)
    eviction = EvictionPlan(
        preemptor=candidate.subject,
        trigger=_trigger(candidate, facts),
        # Of a gang of thousands those go first whose room is wanted: the API server ends some hundreds a second.
        victims=tuple(sorted(victims, key=lambda victim: (victim.node not in wanted, victim.pod_key, victim.uid))),
        placements=tuple(_placement(snapshot, facts, assignment) for assignment in placed.assignments),
        queue=candidate.governed_by,
    )
    tally = Tally(
        problem.legal.considered,
        problem.legal.excluded,
        kept=len(costs.victims) - len(chosen),
        violations=len(costs.violating(chosen)),
    )
    return PreemptionPlan(
        eviction,
        Nominated(candidate.subject, candidate.workload.outer_priority, placed.assignments, not candidate.online),
        tally,
    )


def message(plan: EvictionPlan, victim: Victim, scheduler_name: str) -> str:
    """What a victim's condition DisruptionTarget says; Koordinator's words (coscheduling/core/preemption.go) where
    priority decides.
    """
    why = "preempting to accommodate higher priority pods"
    if victim.reclaimed:
        why = f"queue {plan.queue} takes back what queue {victim.queue} borrowed"
    return f"{scheduler_name}: {why}, preemptor: {plan.preemptor.name}, triggerPod: {plan.trigger}"


def _trigger(candidate: Candidate, facts: PreemptionFacts) -> str:
    """The first waiting member by rank, then by name."""
    pods = [facts.pods[uid] for uid in candidate.uids if uid in facts.pods]
    return min(pods, key=_rank).key if pods else candidate.workload.key


def _rank(pod: Pod) -> tuple[int, str, str]:
    return (pod.spec.rank, pod.name, pod.uid)


def _victims(
    snapshot: ClusterSnapshot, costs: VictimCosts, chosen: list[int], queues: QueueRules | None
) -> Iterator[Victim]:
    rows, charges = costs.victims.rows[chosen].tolist(), [costs.charge(index) for index in chosen]
    for row, charge, (pod, uid, subject) in zip(rows, charges, costs.named(chosen), strict=True):
        key, notice = (pod.key, pod.colocation.eviction.notice_seconds) if pod else (uid, 0.0)
        queue = charge.governed_by if charge is not None else ROOT_QUEUE
        reclaimed = queues is not None and queues.foreign(queue)
        if notice and queues is not None:
            notice = max(notice, queues.grace_seconds(queue))
        yield Victim(key, uid, snapshot.names[row], subject, notice, queue, reclaimed)


def _placement(snapshot: ClusterSnapshot, facts: PreemptionFacts, assignment: Assignment) -> Placement:
    pod = facts.pods.get(assignment.uid)
    return Placement(
        pod.key if pod else assignment.uid, assignment.uid, snapshot.names[assignment.row], PlacementState.NOMINATED
    )
