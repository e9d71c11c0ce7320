"""Decisions of the scheduler: how many nodes could take the next pod of a workload, and why not more."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.decision import Decision, TermSum, Unit
from model.explain import amount as shown
from model.reason import Reason, words
from model.resources import CPU
from model.workload import WorkloadId
from scheduler.core.filters.cause import CAUSES
from scheduler.core.filters.fit import FitReport, fit_error
from scheduler.core.filters.nearest import nearest
from scheduler.core.gangs.assembly import Candidate, Hold
from scheduler.core.gangs.release import Release
from scheduler.core.placement.place import Misfit, Placed
from scheduler.core.placement.topology import unlabelled
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import ClusterSnapshot

NAME = "feasible nodes"
NO_DOUBTS: Mapping[str, str] = {}
MISFITS = frozenset({Reason.GANG_DOES_NOT_FIT, *CAUSES})


class Verdict(msgspec.Struct, frozen=True):
    """What is decided on the workload `subject`, the pods it leaves without a node, and the message they all carry."""

    subject: WorkloadId
    decision: Decision
    uids: tuple[str, ...]
    message: str


def placed(candidate: Candidate, fit: FitReport, outcome: Placed, snapshot: ClusterSnapshot, now: float) -> Decision:
    """`fit` is the report before placing."""
    used = sorted({snapshot.names[assignment.row] for assignment in outcome.assignments if assignment.row >= 0})
    where = ", ".join(used[:5]) + (f" and {len(used) - 5} more" if len(used) > 5 else "")
    told = f"to {where}" if used else "by quota alone"
    detail = f"{len(outcome.assignments)} of {candidate.pending} waiting pods {told}"
    return _decision(candidate.subject, _terms(fit), Reason.SCHEDULED, now, detail)


def misfit(candidate: Candidate, outcome: Misfit, now: float, preemption: str = "") -> Verdict:
    """A lone pod carries kube-scheduler's text; a gang's says first how many members fit. `preemption` comes last."""
    workload, text = candidate.workload, fit_error(outcome.report)
    reason = outcome.cause
    if workload.gang is not None and candidate.needed:
        reason = Reason.GANG_DOES_NOT_FIT
        fitting = f"{workload.bound + outcome.fits} of {workload.min_total} members fit"
        already = f" ({workload.bound} placed before)" if workload.bound else ""
        text = f"gang {workload.key}: {fitting}{already}; {text}"
    elif workload.gang is not None:
        text = f"gang {workload.key}: its minimum of {workload.min_total} is met, no more members fit; {text}"
    text = f"{text} {preemption}".rstrip()
    decision = _decision(candidate.subject, _terms(outcome.report), reason, now, text)
    return Verdict(candidate.subject, decision, candidate.uids, text)


def released(release: Release, nodes: int, now: float) -> Verdict:
    """A gang that is tried again from nothing."""
    terms = TermSum().add("total nodes", nodes).add("not tried again yet", -nodes)
    decision = _decision(release.subject, terms, release.reason, now, release.detail)
    return Verdict(release.subject, decision, release.waiting, release.detail)


def held(hold: Hold, nodes: int, now: float) -> Verdict:
    """A workload that is not tried on any of `nodes`."""
    terms = TermSum().add("total nodes", nodes).add("not tried", -nodes)
    return Verdict(hold.subject, _decision(hold.subject, terms, hold.reason, now, hold.detail), hold.uids, hold.detail)


def bind_failed(subject: WorkloadId, uids: tuple[str, ...], error: str, nodes: int, now: float) -> Verdict:
    """The API server refused a binding; the pods still unbound wait for the next attempt."""
    text = f"binding rejected: {error}"
    terms = TermSum().add("total nodes", nodes).add("not tried again yet", -nodes)
    return Verdict(subject, _decision(subject, terms, Reason.BIND_FAILED, now, text), uids, text)


def set_aside(subject: WorkloadId, uids: tuple[str, ...], error: str, nodes: int, now: float) -> Verdict:
    """A workload that cannot be decided on by an error of ours; the others go on."""
    text = f"{words(Reason.SCHEDULER_ERROR)}, and tried again when it changes or after a while: {error}"
    terms = TermSum().add("total nodes", nodes).add("not tried", -nodes)
    return Verdict(subject, _decision(subject, terms, Reason.SCHEDULER_ERROR, now, text), uids, text)


def nearest_text(
    working: WorkingSnapshot, candidate: Candidate, uid: str = "", doubts: Mapping[str, str] = NO_DOUBTS
) -> str:
    """The node that comes nearest to taking the pod (any where none is named), and what it lacks; empty: none can.

    `doubts` is what of a node's offer does not count, by node.
    """
    pod_class, pod_traits = _member(candidate, uid)
    outlook = working.outlook(pod_class, pod_traits, candidate.requester)
    free = working.free_for(candidate.requester)
    refused = (*outlook.refused, *unlabelled(working, candidate.workload.topology))
    found = nearest(working.snapshot, free, pod_class, outlook.obstacles, refused)
    if found is None or outlook.room.any():
        return ""
    lacking = [f"{_amount(name, amount)} {name} more" for name, amount in found.missing]
    others = [reason for reason in found.reasons if not reason.startswith(("Insufficient ", "Too many pods"))]
    doubt = [doubts[found.node]] if found.node in doubts else []
    return f"node {found.node}: " + ", ".join([*lacking, *others, *doubt])


def _member(candidate: Candidate, uid: str) -> tuple[PodClass, PodTraits]:
    sets = zip(candidate.workload.pod_sets, candidate.classes, candidate.member_traits, strict=True)
    members = [
        (own, pod_class, pod_traits)
        for pods, pod_class, member_traits in sets
        for own, pod_traits in zip(pods.uids, member_traits, strict=True)
    ]
    return next((found[1:] for found in members if found[0] == uid), members[0][1:])


def _amount(resource: str, amount: int) -> str:
    """As a manifest has it: batch-cpu counts thousandths, so that 2 of it is not 2 CPUs."""
    unit = Unit.MILLI_CPU if resource == CPU else Unit.BYTES if _is_bytes(resource) else None
    return shown(amount, unit) if unit else str(amount)


def _is_bytes(resource: str) -> bool:
    return resource.endswith(("memory", "storage")) or resource.startswith("hugepages-")


def _terms(fit: FitReport) -> TermSum:
    """A node with several reasons is one term, so that the terms still sum to what is left."""
    terms = TermSum().add("total nodes", fit.nodes)
    for reasons, number in fit.refused:
        terms.add(" and ".join(reasons), -number)
    return terms


def _decision(subject: WorkloadId, terms: TermSum, reason: Reason, now: float, detail: str) -> Decision:
    return Decision(subject.text, NAME, terms.value, Unit.NODES, reason, terms.terms, at_seconds=now, detail=detail)
