"""What is to be done for a job at this moment: a function of what it is, what is known of it and what exists.

The status is written before anything is deleted or made, and says by its run which pods count. So whoever is
interrupted after any write, and looks again, does what was left to do, and counts nothing twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from jobs.core import commands, conditions, elastic, restart, rules, world
from jobs.core.ending import ending
from jobs.core.group_body import pod_group
from jobs.core.members import Roster, counts, roster
from jobs.core.peers import Peers, peers
from jobs.core.pod_body import PodBodies, selector
from jobs.core.policy import JobFacts, JobPolicy
from jobs.core.priority import PriorityName, priority_class
from jobs.core.shared_objects import shared_objects
from jobs.core.transitions import Cause, following
from jobs.core.waiting import told_wait
from model.job.actions import CreatePod, DeleteJob, DeletePod, JobAction, JobPlan, TellEvent
from model.job.job import Job, RuleAction
from model.job.status import Allocation, JobPhase, JobPod, JobStatus
from model.resources import ResourceVector

_SHOWN = ("cpu", "memory", "nvidia.com/gpu")
_CAUSES = {
    RuleAction.ABORT_JOB: Cause.ABORTED,
    RuleAction.TERMINATE_JOB: Cause.TERMINATED,
    RuleAction.COMPLETE_JOB: Cause.COMPLETED,
}


def plan(
    job: Job, status: JobStatus, pods: Iterable[JobPod], facts: JobFacts, policy: JobPolicy, now: float
) -> JobPlan:
    """`now` is Unix time; the status has whole seconds."""
    if job.leaving:
        return JobPlan(status)
    job, pods, second = told_wait(job, facts), tuple(pods), float(math.floor(now))
    named = priority_class(job, facts)
    found = roster(job, status, pods)
    # A class that is gone keeps new pods from being made; those that run need none.
    blocked = named.problem if status.phase is JobPhase.PENDING and not found.pods else ""
    problem = job.problem or blocked
    # 1 which phase follows, and why
    order = None if problem else commands.due(job, status, facts)
    after = _ordered(order, second) if order else status if problem else _advanced(job, status, found, second)
    after = restart.paced(status, after, policy, second)
    # 2 how many pods it is to have
    after = elastic.resized(job, after, found, policy, second)
    # 3 what is told of it
    found = roster(job, after, pods)
    known = peers(job, found.wanted, after.floors.get("", 0))
    after = after if problem else world.followed(after, known, found)
    after = _told(job, status, after, found, problem, policy, second)
    events = [*conditions.events(job, status, after), *_ignored(order)]
    # 4 what is to be made and deleted
    actions = () if problem else tuple(_actions(job, after, (found, known), named, now))
    done = commands.obeyed(after, facts)
    return JobPlan(after, (*events, *actions, *done), _again(job, after, found, policy, now))


def _advanced(job: Job, status: JobStatus, found: Roster, now: float) -> JobStatus:
    phase = status.phase
    if phase.active:
        return _active(job, status, found, now)
    if phase in (JobPhase.RESTARTING, JobPhase.SUSPENDING) and not _left(job, status, found):
        return _entered(status, Cause.PODS_GONE, "", now)
    if phase is JobPhase.RESTARTING and job.suspend:
        return _entered(status, Cause.SUSPENDED, "spec.suspend is true", now)
    if phase in (JobPhase.COMPLETING, JobPhase.TERMINATING) and not found.live:
        return _entered(status, Cause.PODS_GONE, "", now)
    if phase is JobPhase.SUSPENDED and status.reason != Cause.ABORTED and not job.suspend:
        return _entered(status, Cause.RESUMED, "", now)
    return status


def _ordered(order: commands.Order, now: float) -> JobStatus:
    """As a command has it; one that changes nothing is noted all the same."""
    if order.cause is None:
        return order.status
    return _entered(order.status, order.cause, f"command {order.command.name}", now)


def _ignored(order: commands.Order | None) -> Iterator[TellEvent]:
    told = commands.told(order) if order is not None else None
    if told is not None:
        yield told


def _left(job: Job, status: JobStatus, found: Roster) -> bool:
    """Whether pods are left that must go first: of a job that was aborted those that ended stay."""
    return bool(found.live if status.reason == Cause.ABORTED else found.pods)


def _active(job: Job, status: JobStatus, found: Roster, now: float) -> JobStatus:
    if job.suspend:
        return _entered(restart.whole(status), Cause.SUSPENDED, "spec.suspend is true", now)
    told = rules.verdict(job, rules.happenings(job, status, found, now), now)
    if told is not None and told.action is not RuleAction.RESUME_JOB:
        return _judged(job, status, found, told, now)
    tally = counts(job, found)
    cause = ending(job, found, tally)
    if cause is not None:
        return _entered(status, cause, _how(cause, found), now)
    begun = sum(each.begun for each in tally.values())
    if begun >= min(job.group.minimum, len(found.wanted)) and found.wanted:
        return _entered(status, Cause.RUNNING, f"{begun} of {len(found.wanted)} pods run or ran", now)
    if found.missing or found.others or not found.wanted:
        return _entered(status, Cause.MAKING_PODS, "", now)
    return _entered(status, Cause.WAITING_FOR_NODES, _waiting(found), now)


def _judged(job: Job, status: JobStatus, found: Roster, told: rules.Verdict, now: float) -> JobStatus:
    """What a rule says, or the replacement of pods that were evicted, about which none does."""
    happening = told.happening
    if told.action is None:
        went = [member for member, pod in found.current.items() if pod.evicted]
        replaced = restart.of_members(restart.counted(job, status, happening), went)
        smaller = elastic.shrunk(job, replaced, found, now)
        if smaller is not None:
            return msgspec.structs.replace(smaller, message=happening.text)
        return _entered(replaced, Cause.MAKING_PODS, happening.text, now)
    if told.action in _CAUSES:
        return _entered(status, _CAUSES[told.action], happening.text, now)
    restarted, cause = restart.restarted(job, status, told.action, happening)
    return _entered(restarted, cause, happening.text, now)


def _entered(status: JobStatus, cause: Cause, message: str, now: float) -> JobStatus:
    """The status in the phase that follows; one that stays where it is keeps its time."""
    phase = following(status.phase, cause)
    if phase is status.phase and status.reason == cause.value:
        # Nothing is told anew of a job that goes on as before, but for why it waits.
        waits = cause is Cause.WAITING_FOR_NODES
        return msgspec.structs.replace(status, message=message) if waits else status
    ran = now - status.since_seconds if status.phase is JobPhase.RUNNING else 0.0
    # Why it was stopped is what counts of one that is.
    stopped = cause is Cause.PODS_GONE and phase is not JobPhase.PENDING
    queued = phase in (JobPhase.PENDING, JobPhase.QUEUED)
    waiting = status.phase in (JobPhase.PENDING, JobPhase.QUEUED) and status.queued_seconds > 0
    return msgspec.structs.replace(
        status,
        phase=phase,
        reason=status.reason if stopped else cause.value,
        message=status.message if stopped else message,
        since_seconds=now,
        running_seconds=status.running_seconds + max(0.0, ran),
        began_seconds=status.began_seconds or (now if phase is JobPhase.RUNNING else 0.0),
        ended_seconds=now if phase.ended else 0.0,
        queued_seconds=(status.queued_seconds if waiting else now) if queued else 0.0,
    )


def _waiting(found: Roster) -> str:
    """The scheduler's word on the first pod that has none of its nodes."""
    return next((pod.waits for pod in found.current.values() if pod.waits and not pod.node), "")


def _how(cause: Cause, found: Roster) -> str:
    if cause is Cause.PODS_FAILED:
        failed = sorted(pod.name for pod in found.current.values() if pod.phase.value == "Failed")
        return f"failed: {', '.join(failed[:8])}"
    return ""


def _told(
    job: Job, before: JobStatus, after: JobStatus, found: Roster, problem: str, policy: JobPolicy, now: float
) -> JobStatus:
    """With counts, what it has, conditions and events."""
    if problem and after.phase is JobPhase.PENDING:
        after = msgspec.structs.replace(
            after, reason="InvalidSpec", message=problem, since_seconds=after.since_seconds or now
        )
    told = msgspec.structs.replace(after, tasks=counts(job, found), allocation=_allocation(found))
    told = msgspec.structs.replace(told, conditions=conditions.conditions(job, told, problem, now))
    happened = conditions.events(job, before, told)
    return msgspec.structs.replace(told, events=conditions.remembered(told, happened, policy.kept_events, now))


def _allocation(found: Roster) -> Allocation:
    placed = [pod for pod in found.live if pod.node]
    total = sum((pod.requests for pod in placed), ResourceVector())
    amounts = {name: total[name] for name in _SHOWN if total[name]}
    return Allocation(ResourceVector(amounts), tuple(sorted({pod.node for pod in placed})))


def _actions(
    job: Job, status: JobStatus, who: tuple[Roster, Peers], named: PriorityName, now: float
) -> Iterator[JobAction]:
    found, known = who
    yield from (DeletePod(pod.name, pod.uid) for pod in _to_delete(status, found) if not pod.leaving)
    if status.phase.active and not named.problem:
        yield pod_group(job, found.wanted, named.name)
        yield from shared_objects(job, known, selector(job))
        if known.elastic is not None:
            yield world.config_map(job, known.elastic, status, found)
        if now >= status.rest_seconds:
            yield from _new_pods(job, status, found, known, named.name)
    if status.phase.ended and job.ttl_seconds is not None and now >= status.ended_seconds + job.ttl_seconds:
        yield DeleteJob()


def _to_delete(status: JobStatus, found: Roster) -> Iterable[JobPod]:
    """Those that are not wanted any more; what has ended stays after the end, for its logs."""
    if status.phase.active:
        return found.others
    if status.phase in (JobPhase.RESTARTING, JobPhase.SUSPENDING) and status.reason != Cause.ABORTED:
        return found.pods
    return found.live


def _new_pods(job: Job, status: JobStatus, found: Roster, known: Peers, priority: str) -> Iterator[CreatePod]:
    bodies = PodBodies(job, status, known, priority)
    for member in found.missing:
        yield CreatePod(member, bodies.body)


def _again(job: Job, status: JobStatus, found: Roster, policy: JobPolicy, now: float) -> float:
    """The next time at which something is due though nothing happens."""
    due = [elastic.next_seconds(job, status, found, policy, now)]
    if status.phase.active:
        due.append(status.rest_seconds - now)
        due.append(rules.next_rule_seconds(job, rules.happenings(job, status, found, now), now))
        due.append(rules.saving_until(found, now) - now)
        if job.group.wait_seconds and status.queued_seconds:
            due.append(status.queued_seconds + job.group.wait_seconds - now)
    if status.phase.ended and job.ttl_seconds is not None:
        due.append(max(status.ended_seconds + job.ttl_seconds - now, 0.001))
    return min((seconds for seconds in due if seconds > 0), default=0.0)
