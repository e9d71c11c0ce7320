"""Queues and jobs between messages of proto/wire/v1 and values of model, both ways.

An amount beyond 64 bits counts as the largest there is; a state or an order that only another version knows is a
PeerFault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model.decision import Decision
from model.estimates.start_estimate import EstimateBasis, ExpectedEnd, StartEstimate
from model.fault import PeerFault
from model.queue import (
    Cell,
    CellStanding,
    JobAccount,
    JobProgress,
    Loan,
    ProgressEvent,
    Queue,
    QueueAccount,
    QueueAdmission,
    QueuedJob,
    QueueOrder,
    QueuePreemption,
    QueueStanding,
    QueueState,
    QuotaCell,
    QuotaShortage,
)
from wire.codec import decision_from_wire, decision_to_wire
from wire.v1 import scheduler_pb2

_LARGEST = (1 << 63) - 1
_LIMITS = ("nominal", "maximum", "borrowing_limit", "lending_limit", "weight")


def standing_to_wire(standing: QueueStanding) -> scheduler_pb2.Queue:
    """The queue's own words, and how it stands."""
    queue = standing.queue
    return scheduler_pb2.Queue(
        name=queue.name,
        weight=_whole(queue.weight),
        pending_workloads=standing.pending_jobs,
        dominant_share=standing.weighted_share,
        dominant_resource=standing.dominant_resource,
        parent=queue.parent,
        state=queue.state.value,
        order=queue.order.value,
        children=standing.children,
        cells=[_cell_to_wire(cell, queue, standing.cells) for cell in sorted({*queue.cells, *standing.cells})],
        running_workloads=standing.running_jobs,
        position=standing.position,
        problem=standing.problem,
        source=queue.source,
        unweighted_share=standing.dominant_share,
        rules=_rules_to_wire(queue),
    )


def standing_from_wire(message: scheduler_pb2.Queue) -> QueueStanding:
    """Raises PeerFault for a state or an order that this version does not know."""
    try:
        state, order = QueueState(message.state), QueueOrder(message.order)
    except ValueError as error:
        raise PeerFault(f"Queue {message.name}", str(error), "run the same version on both sides") from error
    rules = message.rules
    quota = {(cell.flavor, cell.resource): _quota(cell) for cell in message.cells}
    queue = Queue(
        name=message.name,
        parent=message.parent,
        weight=message.weight,
        cells={cell: told for cell, told in quota.items() if told != QuotaCell()},
        state=state,
        order=order,
        lenders=tuple(rules.lenders),
        preemption=QueuePreemption(rules.reclaimable, tuple(rules.preemptors), _maybe(rules, "grace_seconds")),
        admission=QueueAdmission(
            _maybe(rules, "max_jobs"),
            _maybe(rules, "max_gpus_per_job"),
            _maybe(rules, "min_priority"),
            _maybe(rules, "max_priority"),
            tuple(rules.namespaces),
        ),
        source=message.source,
    )
    return QueueStanding(
        queue=queue,
        children=tuple(message.children),
        cells={(cell.flavor, cell.resource): _cell_standing(cell) for cell in message.cells},
        dominant_share=message.unweighted_share,
        dominant_resource=message.dominant_resource,
        weighted_share=message.dominant_share,
        pending_jobs=message.pending_workloads,
        running_jobs=message.running_workloads,
        position=message.position,
        problem=message.problem,
    )


def _cell_to_wire(cell: Cell, queue: Queue, cells: Mapping[Cell, CellStanding]) -> scheduler_pb2.QueueCell:
    told, found = queue.cells.get(cell, QuotaCell()), cells.get(cell, CellStanding())
    return scheduler_pb2.QueueCell(
        flavor=cell[0],
        resource=cell[1],
        guaranteed=_whole(told.guaranteed),
        nominal=_whole(told.nominal),
        maximum=_whole(told.maximum),
        fair_share=_whole(found.share),
        entitled=_whole(found.entitled),
        used=_whole(found.used),
        nominated=_whole(found.nominated),
        demand=_whole(found.demand),
        borrowed=_whole(found.borrowed),
        lent=_whole(found.lent),
        headroom=_whole(found.headroom),
        borrowing_limit=_whole(told.borrowing_limit),
        lending_limit=_whole(told.lending_limit),
        weight=_whole(told.weight),
    )


def _quota(cell: scheduler_pb2.QueueCell) -> QuotaCell:
    limits = (_maybe(cell, name) for name in _LIMITS)
    return QuotaCell(cell.guaranteed, *limits)


def _cell_standing(cell: scheduler_pb2.QueueCell) -> CellStanding:
    return CellStanding(
        guaranteed=cell.guaranteed,
        nominal=_maybe(cell, "nominal"),
        maximum=_maybe(cell, "maximum"),
        share=cell.fair_share,
        entitled=cell.entitled,
        used=cell.used,
        nominated=cell.nominated,
        demand=cell.demand,
        borrowed=cell.borrowed,
        lent=cell.lent,
        headroom=_maybe(cell, "headroom"),
    )


def _rules_to_wire(queue: Queue) -> scheduler_pb2.QueueRules:
    rules, admission = queue.preemption, queue.admission
    return scheduler_pb2.QueueRules(
        lenders=queue.lenders,
        reclaimable=rules.reclaimable,
        preemptors=rules.preemptors,
        grace_seconds=rules.grace_seconds,
        max_jobs=_whole(admission.max_jobs),
        max_gpus_per_job=_whole(admission.max_gpus_per_job),
        min_priority=admission.min_priority,
        max_priority=admission.max_priority,
        namespaces=admission.namespaces,
    )


def queue_to_wire(account: QueueAccount) -> scheduler_pb2.ExplainQueueResponse:
    return scheduler_pb2.ExplainQueueResponse(
        queue=standing_to_wire(account.standing),
        loans=[
            scheduler_pb2.Loan(
                lender=loan.lender,
                borrower=loan.borrower,
                flavor=loan.cell[0],
                resource=loan.cell[1],
                amount=_whole(loan.amount),
            )
            for loan in account.loans
        ],
        jobs=[_job_to_wire(job) for job in account.jobs],
        waiting=account.waiting,
    )


def queue_from_wire(message: scheduler_pb2.ExplainQueueResponse) -> QueueAccount:
    """Raises PeerFault as `standing_from_wire` does."""
    return QueueAccount(
        standing_from_wire(message.queue),
        tuple(Loan(loan.lender, loan.borrower, (loan.flavor, loan.resource), loan.amount) for loan in message.loans),
        tuple(_job_from_wire(job) for job in message.jobs),
        message.waiting,
    )


def _job_to_wire(job: QueuedJob) -> scheduler_pb2.QueuedJob:
    return scheduler_pb2.QueuedJob(
        name=job.name,
        queue=job.queue,
        position=job.position,
        stage=job.stage,
        reason=job.reason,
        detail=job.detail,
        asked=_amounts(job.asked),
        held=_amounts(job.held),
    )


def _job_from_wire(message: scheduler_pb2.QueuedJob) -> QueuedJob:
    return QueuedJob(
        message.name,
        message.queue,
        message.position,
        message.stage,
        message.reason,
        message.detail,
        dict(message.asked),
        dict(message.held),
    )


def shortage_to_wire(shortage: QuotaShortage) -> scheduler_pb2.QuotaShortage:
    return scheduler_pb2.QuotaShortage(
        flavor=shortage.cell[0],
        resource=shortage.cell[1],
        queue=shortage.queue,
        bound=shortage.bound,
        asked=_whole(shortage.asked),
        room=_whole(shortage.room),
    )


def shortage_from_wire(message: scheduler_pb2.QuotaShortage) -> QuotaShortage:
    cell = (message.flavor, message.resource)
    return QuotaShortage(cell, message.queue, message.bound, message.asked, message.room)


def job_to_wire(account: JobAccount) -> scheduler_pb2.ExplainJobResponse:
    return scheduler_pb2.ExplainJobResponse(
        namespace=account.namespace,
        name=account.name,
        job=_job_to_wire(account.job),
        path=account.path,
        members=account.members,
        scheduled=account.scheduled,
        needed=_small(account.needed),
        message=account.message,
        nearest=account.nearest,
        decision=None if account.decision is None else decision_to_wire(account.decision),
        preemption=None if account.preemption is None else decision_to_wire(account.preemption),
        shortages=[shortage_to_wire(shortage) for shortage in account.shortages],
        ahead=[_job_to_wire(job) for job in account.ahead],
        ahead_count=account.ahead_count,
        progress=None if account.progress is None else progress_to_wire(account.progress),
        start=None if account.start is None else start_to_wire(account.start),
        lost_seconds=account.lost_seconds,
        saved_seconds=account.saved_seconds,
        told_until_seconds=account.told_until_seconds,
    )


def job_from_wire(message: scheduler_pb2.ExplainJobResponse) -> JobAccount:
    """Raises PeerFault for a decision that is none."""
    return JobAccount(
        namespace=message.namespace,
        name=message.name,
        job=_job_from_wire(message.job),
        path=tuple(message.path),
        members=message.members,
        scheduled=message.scheduled,
        needed=message.needed,
        message=message.message,
        nearest=message.nearest,
        decision=_decision(message, "decision"),
        preemption=_decision(message, "preemption"),
        shortages=tuple(shortage_from_wire(shortage) for shortage in message.shortages),
        ahead=tuple(_job_from_wire(job) for job in message.ahead),
        ahead_count=message.ahead_count,
        progress=progress_from_wire(message.progress) if message.HasField("progress") else None,
        start=start_from_wire(message.start) if message.HasField("start") else None,
        lost_seconds=message.lost_seconds,
        saved_seconds=message.saved_seconds,
        told_until_seconds=message.told_until_seconds,
    )


def start_to_wire(estimate: StartEstimate) -> scheduler_pb2.StartEstimate:
    return scheduler_pb2.StartEstimate(
        start_seconds=estimate.start_seconds,
        earliest_seconds=estimate.earliest_seconds,
        latest_seconds=estimate.latest_seconds,
        basis=estimate.basis.value,
        ends=[
            scheduler_pb2.ExpectedEnd(
                name=each.name,
                end_seconds=each.end_seconds,
                basis=each.basis.value,
                runs=_small(each.runs),
                of=each.of,
            )
            for each in estimate.ends
        ],
        why=estimate.why,
        made_seconds=estimate.made_seconds,
    )


def start_from_wire(message: scheduler_pb2.StartEstimate) -> StartEstimate:
    """Raises PeerFault for a basis that this version does not know."""
    return StartEstimate(
        _maybe(message, "start_seconds"),
        message.earliest_seconds,
        message.latest_seconds,
        _basis(message.basis),
        tuple(
            ExpectedEnd(each.name, each.end_seconds, _basis(each.basis), each.runs, each.of) for each in message.ends
        ),
        message.why,
        message.made_seconds,
    )


def _basis(text: str) -> EstimateBasis:
    try:
        return EstimateBasis(text)
    except ValueError as error:
        raise PeerFault("StartEstimate", str(error), "run the same version on both sides") from error


def progress_to_wire(progress: JobProgress) -> scheduler_pb2.JobProgress:
    return scheduler_pb2.JobProgress(
        kind=progress.kind,
        phase=progress.phase,
        reason=progress.reason,
        message=progress.message,
        since_seconds=progress.since_seconds,
        created_seconds=progress.created_seconds,
        began_seconds=progress.began_seconds,
        ended_seconds=progress.ended_seconds,
        failures=_small(progress.failures),
        most_failures=_small(progress.most_failures),
        evictions=_small(progress.evictions),
        tasks=[
            scheduler_pb2.TaskProgress(name=name, pods={word: _small(count) for word, count in pods.items()})
            for name, pods in progress.tasks.items()
        ],
        nodes=progress.nodes,
        events=[
            scheduler_pb2.ProgressEvent(
                reason=each.reason, message=each.message, at_seconds=each.at_seconds, warning=each.warning
            )
            for each in progress.events
        ],
    )


def progress_from_wire(message: scheduler_pb2.JobProgress) -> JobProgress:
    return JobProgress(
        kind=message.kind,
        phase=message.phase,
        reason=message.reason,
        message=message.message,
        since_seconds=message.since_seconds,
        created_seconds=message.created_seconds,
        began_seconds=message.began_seconds,
        ended_seconds=message.ended_seconds,
        failures=message.failures,
        most_failures=message.most_failures,
        evictions=message.evictions,
        tasks={each.name: dict(each.pods) for each in message.tasks},
        nodes=tuple(message.nodes),
        events=tuple(
            ProgressEvent(each.reason, each.message, each.at_seconds, each.warning) for each in message.events
        ),
    )


def _decision(message: scheduler_pb2.ExplainJobResponse, field: str) -> Decision | None:
    return decision_from_wire(getattr(message, field)) if message.HasField(field) else None


def _amounts(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: _bounded(amount) for name, amount in amounts.items()}


def _small(count: int) -> int:
    """As an int32 takes it."""
    return min(count, (1 << 31) - 1)


def _whole(amount: int | None) -> Any:
    return None if amount is None else _bounded(amount)


def _bounded(amount: int) -> int:
    return max(-_LARGEST, min(amount, _LARGEST))


def _maybe(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None
