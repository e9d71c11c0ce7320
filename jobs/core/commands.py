"""Commands about a job: what somebody orders once, besides what its object and its pods say.

The status says which command was obeyed last, and is written first, as ever; so whoever is interrupted obeys none
twice. None is looked at before the last one is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jobs.core import restart
from jobs.core.policy import JobFacts
from jobs.core.transitions import Cause, following
from model.job.actions import DeleteCommand, TellEvent
from model.job.job import Job, JobCommand, RuleAction
from model.job.status import JobPhase, JobStatus

_CAUSES: Mapping[RuleAction, Cause] = {
    RuleAction.ABORT_JOB: Cause.ABORTED,
    RuleAction.RESUME_JOB: Cause.RESUMED,
    RuleAction.RESTART_JOB: Cause.RESTARTED,
    RuleAction.COMPLETE_JOB: Cause.COMPLETED,
    RuleAction.TERMINATE_JOB: Cause.TERMINATED,
}
_ANEW = (RuleAction.RESUME_JOB, RuleAction.RESTART_JOB)


class Order(msgspec.Struct, frozen=True):
    """A command that is due. `status` is the one in which it is obeyed, but for the phase that follows by `cause`; no
    cause where it changes nothing, which may be since the job's own field holds it.
    """

    command: JobCommand
    status: JobStatus
    cause: Cause | None = None
    held: bool = False


def due(job: Job, status: JobStatus, facts: JobFacts) -> Order | None:
    """The oldest command; None while there is none, or it has to wait: a job is resumed once it is suspended."""
    command = min(facts.commands, key=lambda each: (each.given_seconds, each.uid), default=None)
    if command is None or status.command in {each.uid for each in facts.commands}:
        return None
    if command.action is RuleAction.RESUME_JOB and status.phase is JobPhase.SUSPENDING:
        return None
    noted = msgspec.structs.replace(status, command=command.uid)
    cause = _CAUSES[command.action] if command.action is not None else None
    held = command.action is RuleAction.RESUME_JOB and job.suspend
    if cause is None or held or following(status.phase, cause) is status.phase:
        return Order(command, noted, held=held)
    return Order(command, restart.whole(noted) if command.action in _ANEW else noted, cause)


def told(order: Order) -> TellEvent | None:
    """Of one that changes nothing."""
    if order.cause is not None:
        return None
    why = f"changes nothing of a job that is {order.status.phase.value.lower()}"
    if order.held:
        why = "resumes no job that its own object suspends"
    elif order.command.action is None:
        why = "is no action that is known"
    return TellEvent("CommandIgnored", f"command {order.command.name}: {order.command.text} {why}", True)


def obeyed(status: JobStatus, facts: JobFacts) -> tuple[DeleteCommand, ...]:
    """Those that are to go, since the status says so."""
    return tuple(DeleteCommand(each.name, each.uid) for each in facts.commands if each.uid == status.command)
