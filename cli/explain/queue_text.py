"""Text of `sublet explain queue` and `sublet explain job`: an answer in, lines of text out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cli.explain.decision_text import dated
from cli.progress_text import progress_text
from cli.tables import aligned
from model.estimates.start_estimate import StartEstimate, basis_text, time_text, told_by, when_text
from model.queue import JobAccount, Loan, Queue, QueueAccount, QueuedJob, QueueStanding, QuotaShortage
from model.reason import Reason, Stage, words
from view.queue_rows import amounts_text, cell_name, shown, telling_cells

_UNSAID = "-"
_UNGOVERNED = "in no queue: online work that names none is governed by none"
_NOBODY = "what is nobody's own"
_HEAD = (
    "resource",
    "guaranteed",
    "nominal",
    "maximum",
    "fair share",
    "used",
    "nominated",
    "borrowed",
    "lent",
    "headroom",
)


def queue_text(answer: QueueAccount) -> str:
    """What the queue may have and has, its loans, its rules, and who waits in it and why."""
    standing = answer.standing
    blocks = (
        [_title(standing), *(f"  {line}" for line in _state(standing))],
        _cells(standing),
        [_loan(loan, standing.queue.name) for loan in answer.loans],
        [f"rule: {line}" for line in _rules(standing.queue)],
        [*_jobs(answer)],
    )
    return "\n\n".join("\n".join(block) for block in blocks if block)


def job_text(answer: JobAccount, now: float) -> str:
    """How the job goes, its queue and place, the stage it waits in with quantities, who is ahead, and the decisions."""
    progress = answer.progress
    if progress is not None and not answer.members:
        return "\n".join((progress_text(progress, answer.name, now), *work_lines(answer, now)))
    job = answer.job
    head = [
        f"{job.name}  {answer.scheduled} of {_number(answer.members, 'member')} have a node, "
        f"{answer.needed} needed at once",
        f"  queue {' below '.join(answer.path)}" if answer.path else f"  {_UNGOVERNED}",
        *([f"  number {job.position} in the order{_behind(answer.ahead_count)}"] if job.position else []),
        *([f"  asks {amounts_text(job.asked)}; holds {amounts_text(job.held)}"] if job.position else []),
        *_waiting(job),
        *(f"    {shortage_text(each)}" for each in answer.shortages),
        *([f"  {answer.message}"] if answer.message and answer.message != job.detail else []),
        *([f"  nearest fit: {answer.nearest}"] if answer.nearest else []),
        *(_start(answer.start) if answer.start is not None else []),
        *work_lines(answer, now),
    ]
    decisions = [dated(each, now) for each in (answer.decision, answer.preemption) if each is not None]
    how = progress_text(progress, answer.name, now) if progress is not None else ""
    blocks = (how, "\n".join(head), "\n".join(_ahead(answer)), *decisions)
    return "\n\n".join(block for block in blocks if block)


def work_lines(answer: JobAccount, now: float) -> Iterator[str]:
    """How old the saved state is, what evictions cost so far, how long pods that were told that they go may stay."""
    if answer.told_until_seconds > now:
        yield f"  told that it goes: within {answer.told_until_seconds - now:.0f} s, earlier once all have saved"
    if answer.saved_seconds:
        yield f"  saved: the state of {max(0.0, now - answer.saved_seconds):.0f} s ago"
    if answer.lost_seconds:
        yield f"  lost by evictions: {answer.lost_seconds:.0f} s of work, all pods together"


def waiting_text(queue: str, stage: str, shortages: Iterable[QuotaShortage]) -> Iterator[str]:
    """Of a pod or a gang: its queue, the stage it waits in, and what is short of the quota."""
    if queue:
        stage = f", waits in stage {stage}" if stage not in ("", Stage.PLACED) else ""
        yield f"queue {queue}{stage}"
    yield from map(shortage_text, shortages)


def shortage_text(shortage: QuotaShortage) -> str:
    """What is asked, and how much the queue may have more."""
    resource = shortage.cell[1]
    room = max(shortage.room, 0)
    over = f", {shown(resource, -shortage.room)} too much is in use" if shortage.room < 0 else ""
    where = f"queue {shortage.queue}" if shortage.queue else "the cluster"
    return (
        f"{cell_name(shortage.cell)}: asks {shown(resource, shortage.asked)}, {where} has room for "
        f"{shown(resource, room)} ({shortage.bound}){over}"
    )


def _title(standing: QueueStanding) -> str:
    queue = standing.queue
    below = f", below {queue.parent}" if queue.parent else ""
    source = f"  ({queue.source})" if queue.source else "  (nobody wrote it)"
    return f"queue {queue.name}  {queue.state.value}, weight {queue.weight}{below}{source}"


def _state(standing: QueueStanding) -> Iterator[str]:
    if standing.problem:
        yield standing.problem
    if standing.children:
        yield f"takes no work itself: above {', '.join(standing.children)}"
    if standing.position:
        yield f"number {standing.position} in the order in which queues were served last"
    if standing.dominant_resource:
        share = f"{standing.dominant_share:.1%} of the cluster's {standing.dominant_resource}"
        yield f"dominant share {share}, {standing.weighted_share:.1%} by weight"


def _cells(standing: QueueStanding) -> list[str]:
    rows = []
    for cell, found in telling_cells(standing):
        amounts = (
            found.guaranteed,
            found.nominal,
            found.maximum,
            found.share,
            found.used,
            found.nominated,
            found.borrowed,
            found.lent,
            found.headroom,
        )
        rows.append((cell_name(cell), *(_UNSAID if amount is None else shown(cell[1], amount) for amount in amounts)))
    return aligned([_HEAD, *rows], left=1) if rows else ["it has no quota and uses nothing"]


def _loan(loan: Loan, queue: str) -> str:
    amount = f"{shown(loan.cell[1], loan.amount)} {cell_name(loan.cell)}"
    if loan.borrower == queue:
        return f"borrows {amount} from {loan.lender or _NOBODY}"
    return f"lends {amount} to {loan.borrower}"


def _rules(queue: Queue) -> Iterator[str]:
    yield f"order {queue.order.value}"
    if queue.lenders:
        yield f"borrows from {', '.join(queue.lenders)} alone"
    if not queue.preemption.reclaimable:
        yield "what it borrowed is not taken back by eviction"
    elif queue.preemption.preemptors:
        yield f"only {', '.join(queue.preemption.preemptors)} may take back what it borrowed"
    if queue.preemption.grace_seconds is not None:
        yield f"its victims have {queue.preemption.grace_seconds:g} s to end"
    admission = queue.admission
    if admission.max_jobs is not None:
        yield f"at most {admission.max_jobs} jobs, waiting and running"
    if admission.max_gpus_per_job is not None:
        yield f"at most {admission.max_gpus_per_job} GPUs a job"
    lowest, highest = admission.min_priority, admission.max_priority
    if lowest is not None or highest is not None:
        yield f"priority {_UNSAID if lowest is None else lowest} to {_UNSAID if highest is None else highest}"
    if admission.namespaces:
        yield f"only for namespaces {', '.join(admission.namespaces)}"


def _jobs(answer: QueueAccount) -> Iterator[str]:
    running = answer.standing.running_jobs
    yield f"{_number(answer.waiting, 'job')} waiting, {running} running"
    for job in answer.jobs:
        yield f"  {_place(job)}asks {amounts_text(job.asked)}"
        yield from (f"    {line.strip()}" for line in _waiting(job))
    if answer.waiting > len(answer.jobs):
        yield f"  … and {answer.waiting - len(answer.jobs):,} more"


def _start(estimate: StartEstimate) -> Iterator[str]:
    """When it is expected to start, within which range, and after which ends."""
    if estimate.start_seconds is None:
        yield f"  start not known: {estimate.why}"
        return
    yield f"  expected to start about {when_text(estimate)}{basis_text(estimate)}"
    yield f"    between {time_text(estimate.earliest_seconds)} and {time_text(estimate.latest_seconds)}"
    for end in estimate.ends:
        yield f"    {end.name} ends about {time_text(end.end_seconds)}, {told_by(end)}"


def _ahead(answer: JobAccount) -> Iterator[str]:
    if not answer.ahead:
        return
    yield "ahead of it"
    for job in answer.ahead:
        where = f"in queue {job.queue}" if job.queue else "in no queue"
        yield f"  {_place(job)}{where}, asks {amounts_text(job.asked)}, holds {amounts_text(job.held)}"
    if answer.ahead_count > len(answer.ahead):
        yield f"  … and {answer.ahead_count - len(answer.ahead):,} more"


def _behind(count: int) -> str:
    return f", behind {_number(count, 'job')}" if count else ", next"


def _place(job: QueuedJob) -> str:
    return f"{job.position}. {job.name}  " if job.position else f"{job.name}  "


def _waiting(job: QueuedJob) -> Iterator[str]:
    """The stage and the reason, with its words; the detail where it says more."""
    if not job.reason:
        yield "  not decided on yet"
        return
    if job.stage != Stage.PLACED:
        yield f"  waits in stage {job.stage}: {job.reason}, {_words(job.reason)}"
    if job.detail:
        yield f"  {job.detail}"


def _words(reason: str) -> str:
    try:
        return words(Reason(reason))
    except ValueError:
        return words(Reason.REASON_OF_ANOTHER_VERSION)


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
