"""Preemption as a Decision: how many pods go, out of how many, and why not others."""

from __future__ import annotations

from model.decision import Decision, TermSum, Unit
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.preemption.facts import NoPreemption, PreemptionPlan, Tally

NAME = "preemption victims"


def decision(subject: WorkloadId, outcome: PreemptionPlan | NoPreemption, now: float) -> Decision:
    """The value is the number of victims; a refusal's is 0."""
    terms = _terms(outcome.tally)
    if isinstance(outcome, NoPreemption):
        return _decision(subject, terms, outcome.reason, now, outcome.detail)
    victims = outcome.eviction.victims
    told = ", ".join(f"{victim.pod_key} on {victim.node}" for victim in victims[:5])
    more = f" and {len(victims) - 5} more" if len(victims) > 5 else ""
    broken = f"; {outcome.tally.violations} against a disruption budget" if outcome.tally.violations else ""
    detail = f"{told}{more}{broken}" if victims else "what terminates is enough"
    reason = Reason.PREEMPTING if victims else Reason.VICTIMS_TERMINATING
    if any(victim.reclaimed for victim in victims):
        reason = Reason.RECLAIMING
    return _decision(subject, terms, reason, now, detail)


def _terms(tally: Tally) -> TermSum:
    """None where the refusal came before anybody was counted."""
    if not tally.considered:
        return TermSum()
    terms = TermSum().add("pods on nodes", tally.considered)
    for name, number in tally.excluded:
        terms.add(name, -number)
    return terms.add("not needed", -tally.kept)


def _decision(subject: WorkloadId, terms: TermSum, reason: Reason, now: float, detail: str) -> Decision:
    return Decision(subject.text, NAME, terms.value, Unit.PODS, reason, terms.terms, at_seconds=now, detail=detail)
