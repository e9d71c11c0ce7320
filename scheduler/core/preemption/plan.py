"""A choice of victims as a plan, with the words its victims carry."""

from __future__ import annotations

from model.placement import EvictionPlan, Placement, PlacementState, Victim
from model.pod import Pod
from scheduler.core.gang import Candidate
from scheduler.core.place import Placed
from scheduler.core.preemption.facts import Plan, PreemptionFacts, Tally
from scheduler.core.preemption.inquiry import Inquiry
from scheduler.core.scene import Nominated, Seat
from scheduler.core.snapshot import ClusterSnapshot


def plan_of(
    snapshot: ClusterSnapshot,
    candidate: Candidate,
    facts: PreemptionFacts,
    inquiry: Inquiry,
    outcome: tuple[Placed, frozenset[int]],
) -> Plan:
    """`outcome`: where the needed members go, and who goes for them."""
    placed, chosen = outcome
    stakes = inquiry.stakes
    eviction = EvictionPlan(
        preemptor=candidate.subject,
        trigger=_trigger(candidate, facts),
        victims=tuple(
            sorted((_victim(snapshot, inquiry, index) for index in chosen), key=lambda v: (v.pod_key, v.uid))
        ),
        placements=tuple(_placement(snapshot, facts, seat) for seat in placed.seats),
    )
    tally = Tally(
        inquiry.legal.considered,
        inquiry.legal.spared,
        kept=len(stakes.herd) - len(chosen),
        violations=len(stakes.violating(chosen)),
    )
    return Plan(eviction, Nominated(candidate.subject, candidate.workload.priority, placed.seats), tally)


def message(plan: EvictionPlan, scheduler_name: str) -> str:
    """What a victim's condition DisruptionTarget says; Koordinator's words (coscheduling/core/preemption.go)."""
    preemptor = plan.preemptor.removeprefix("gang/").removeprefix("pod/")
    return (
        f"{scheduler_name}: preempting to accommodate higher priority pods, "
        f"preemptor: {preemptor}, triggerPod: {plan.trigger}"
    )


def _trigger(candidate: Candidate, facts: PreemptionFacts) -> str:
    """The first waiting member by rank, then by name."""
    pods = [facts.pods[uid] for uid in candidate.uids if uid in facts.pods]
    return min(pods, key=_rank).key if pods else candidate.workload.key


def _rank(pod: Pod) -> tuple[int, str, str]:
    return (pod.rank, pod.name, pod.uid)


def _victim(snapshot: ClusterSnapshot, inquiry: Inquiry, index: int) -> Victim:
    stakes = inquiry.stakes
    pod, node = stakes.pod(index), snapshot.names[int(stakes.herd.rows[index])]
    notice = pod.eviction.notice_seconds if pod else 0.0
    return Victim(stakes.key(index), stakes.uid(index), node, stakes.subject(index), notice)


def _name(victim: Victim) -> tuple[str, str]:
    return (victim.pod_key, victim.uid)


def _placement(snapshot: ClusterSnapshot, facts: PreemptionFacts, seat: Seat) -> Placement:
    pod = facts.pods.get(seat.uid)
    return Placement(pod.key if pod else seat.uid, seat.uid, snapshot.names[seat.row], PlacementState.NOMINATED)
