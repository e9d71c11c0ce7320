"""Rules about what happens to pods: what is to be done, and for which pod. Those of a task come before the job's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from jobs.core.members import Roster
from model.job.job import Job, LifecycleRule, Member, PodEvent, RuleAction
from model.job.status import JobPhase, JobPod, JobStatus, PodPhase, TaskCounts


class Happening(msgspec.Struct, frozen=True):
    """What happened to a member; `at_seconds` is when, 0 where that is not known."""

    event: PodEvent
    member: Member
    exit_code: int | None = None
    at_seconds: float = 0.0
    text: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """`action` follows from `happening`; None for one that no rule is about."""

    happening: Happening
    action: RuleAction | None = None


def happenings(job: Job, status: JobStatus, found: Roster, now: float) -> tuple[Happening, ...]:
    """Evictions first: what fails beside a pod that was evicted fails for the lack of it."""
    told = [*_pods(found, now), *_gone(job, status, found), *_completed(job, found)]
    return tuple(sorted(told, key=lambda each: (each.event is not PodEvent.EVICTED, each.member)))


def verdict(job: Job, told: Iterable[Happening], now: float) -> Verdict | None:
    """Of the first happening that a rule is about, whose time has come; else of the first eviction; else None."""
    told = tuple(told)
    for each in told:
        rule = _rule(job, each)
        # Without a timeout no clock is asked: that of the node may be ahead.
        if rule is not None and (not rule.timeout_seconds or now >= each.at_seconds + rule.timeout_seconds):
            return Verdict(each, rule.action)
    evicted = (each for each in told if each.event is PodEvent.EVICTED and _rule(job, each) is None)
    first = next(evicted, None)
    return Verdict(first) if first is not None else None


def next_rule_seconds(job: Job, told: Iterable[Happening], now: float) -> float:
    """After how long the time of a rule comes that waits; 0 for none."""
    rules = ((each, _rule(job, each)) for each in told)
    due = (each.at_seconds + rule.timeout_seconds for each, rule in rules if rule is not None and rule.timeout_seconds)
    return min((at - now for at in due if at > now), default=0.0)


def saving_until(found: Roster, now: float) -> float:
    """Unix time until which pods that were told that they go may still save; 0 where none does."""
    saving = (pod.told_until_seconds for pod in found.current.values() if not (pod.done or pod.leaving))
    return max((until for until in saving if until > now), default=0.0)


def needed(job: Job, member: Member) -> bool:
    """Whether the job does not go on as it is once this pod is evicted: a rule says more than to make it again."""
    rule = _rule(job, Happening(PodEvent.EVICTED, member))
    return rule is not None and rule.action not in (RuleAction.RESTART_POD, RuleAction.RESUME_JOB)


def _rule(job: Job, happening: Happening) -> LifecycleRule | None:
    if happening.event is PodEvent.EVICTED and _surplus(job, happening.member):
        return None
    task = job.task(happening.member.task)
    own = task.rules if task is not None else ()
    return next((rule for rule in (*own, *job.rules) if _about(rule, happening)), None)


def _about(rule: LifecycleRule, happening: Happening) -> bool:
    if rule.exit_code is not None:
        return happening.event is PodEvent.FAILED and rule.exit_code == happening.exit_code
    if happening.event in rule.events:
        return True
    # Any event is one that is bad: otherwise a rule about any would act on the first pod that runs.
    return PodEvent.ANY in rule.events and happening.event in (PodEvent.FAILED, PodEvent.EVICTED, PodEvent.UNKNOWN)


def _pods(found: Roster, now: float) -> Iterator[Happening]:
    """A pod that was told and is through already ends no other that was told and saves: members end together."""
    saving = saving_until(found, now) > 0
    for member, pod in found.current.items():
        event = _event(pod)
        through = pod.told_until_seconds > 0 and pod.done
        if event is not None and not (saving and through):
            yield Happening(event, member, pod.exit_code, pod.since_seconds, _text(pod, event))


def _event(pod: JobPod) -> PodEvent | None:
    if pod.evicted:
        return PodEvent.EVICTED
    return _EVENTS.get(pod.phase)


_EVENTS: Mapping[PodPhase, PodEvent] = {
    PodPhase.PENDING: PodEvent.PENDING,
    PodPhase.RUNNING: PodEvent.RUNNING,
    PodPhase.FAILED: PodEvent.FAILED,
    PodPhase.UNKNOWN: PodEvent.UNKNOWN,
}


def _text(pod: JobPod, event: PodEvent) -> str:
    if event is PodEvent.EVICTED:
        return f"pod {pod.name} was evicted" + (f": {pod.reason}" if pod.reason else "")
    if event is PodEvent.FAILED:
        return f"pod {pod.name} failed" + (f" with exit code {pod.exit_code}" if pod.exit_code else "")
    return f"pod {pod.name} is {pod.phase.value.lower()}"


def _gone(job: Job, status: JobStatus, found: Roster) -> Iterator[Happening]:
    """Members whose pod existed: all pods of their task did when the job was looked at last, and none of them went."""
    if status.phase not in (JobPhase.QUEUED, JobPhase.RUNNING):
        return
    wanted = _by_task(found.wanted)
    whole = {task.name for task in job.tasks if status.tasks.get(task.name, TaskCounts()).staying >= wanted[task.name]}
    for member in found.missing:
        if member.task in whole:
            yield Happening(PodEvent.EVICTED, member, text=f"the pod of {member.text} is gone")


def _surplus(job: Job, member: Member) -> bool:
    """One that an elastic job can do without."""
    return job.elastic is not None and job.elastic.spares(member)


def _completed(job: Job, found: Roster) -> Iterator[Happening]:
    """Tasks all of whose pods have succeeded."""
    wanted = _by_task(found.wanted)
    succeeded = _by_task(member for member, pod in found.current.items() if pod.phase is PodPhase.SUCCEEDED)
    for task in job.tasks:
        if 0 < succeeded[task.name] == wanted[task.name]:
            yield Happening(PodEvent.TASK_COMPLETED, Member(task.name, 0), text=f"task {task.name} is complete")


def _by_task(members: Iterable[Member]) -> Counter[str]:
    return Counter(member.task for member in members)
