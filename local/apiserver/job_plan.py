"""What a Job needs next, decided from the job and its pods alone.

https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

from dataclasses import dataclass, field

from local.apiserver.objects import (
    Object,
    being_deleted,
    condition,
    copy,
    dig,
    ensure,
    parse_time,
    rfc3339,
    set_condition,
)

_FIRST_RETRY_SECONDS = 10.0
_LAST_RETRY_SECONDS = 600.0
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class Tally:
    """Pods of a job that ended and are no longer there to be counted."""

    succeeded: int = 0
    failed: int = 0
    indexes: set[int] = field(default_factory=set)
    last_failure: float = 0.0


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The new status, pods to create (by completion index, None without one) and to delete, when to look again."""

    status: Object
    create: tuple[int | None, ...] = ()
    delete: tuple[str, ...] = ()
    look_again: float | None = None
    expired: bool = False  # the job itself is past its time to live


def is_finished(job: Object) -> bool:
    return any((condition(job, kind) or {}).get("status") == "True" for kind in ("Complete", "Failed"))


def completion_index(pod: Object) -> int | None:
    text = dig(pod, "metadata.annotations", {}).get(INDEX_ANNOTATION)
    return int(text) if text is not None and text.isdecimal() else None


@dataclass(frozen=True, slots=True)
class _Count:
    active: list[Object]
    ready: int
    succeeded: int
    failed: int
    restarts: int
    terminating: int
    done_indexes: frozenset[int]
    last_failure: float


def plan_job(job: Object, pods: list[Object], tally: Tally, now: float) -> JobPlan:
    """One look at a job: finish it, fail it, suspend it, or bring its active pods to the wanted number."""
    if is_finished(job):
        return _after_the_end(job, now)
    fresh, count = copy(job), _count(job, pods, tally)
    spec, status = job["spec"], ensure(fresh, "status")
    if spec.get("suspend"):
        return _suspended(fresh, count, now)
    _started(fresh, now)
    if failure := _failure(job, status, count, now):
        _end(fresh, "Failed", *failure, now)
        return JobPlan(_written(status, count, 0), delete=_names(count.active))
    if _complete(spec, count):
        _end(fresh, "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now)
        _end(fresh, "Complete", "CompletionsReached", "Reached expected number of succeeded pods", now)
        status["completionTime"] = rfc3339(now)
        return JobPlan(_written(status, count, 0), delete=_names(count.active))
    return _scaled(spec, status, count, now)


def _count(job: Object, pods: list[Object], tally: Tally) -> _Count:
    def phase(pod: Object) -> str:
        return str(dig(pod, "status.phase") or "Pending")

    succeeded = [pod for pod in pods if phase(pod) == "Succeeded"]
    failed = [pod for pod in pods if phase(pod) == "Failed"]
    unfinished = [pod for pod in pods if phase(pod) not in ("Succeeded", "Failed")]
    active = [pod for pod in unfinished if not being_deleted(pod)]
    indexes = {index for pod in succeeded if (index := completion_index(pod)) is not None} | tally.indexes
    indexed = job["spec"].get("completionMode") == "Indexed"
    return _Count(
        active=active,
        ready=sum((condition(pod, "Ready") or {}).get("status") == "True" for pod in active),
        succeeded=len(indexes) if indexed else len(succeeded) + tally.succeeded,
        failed=len(failed) + tally.failed,
        restarts=sum(s.get("restartCount") or 0 for pod in active for s in dig(pod, "status.containerStatuses") or ()),
        terminating=len(unfinished) - len(active),
        done_indexes=frozenset(indexes),
        last_failure=max((_ended_at(pod) for pod in failed), default=tally.last_failure),
    )


def _ended_at(pod: Object) -> float:
    ends = [
        parse_time(dig(status, "state.terminated.finishedAt")) or 0.0
        for status in dig(pod, "status.containerStatuses") or ()
    ]
    return max(ends, default=0.0)


def _after_the_end(job: Object, now: float) -> JobPlan:
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None:
        return JobPlan(job["status"])
    end = condition(job, "Complete") or condition(job, "Failed") or {}
    due = (parse_time(end.get("lastTransitionTime")) or now) + ttl
    return JobPlan(job["status"], look_again=None if due <= now else due, expired=due <= now)


def _suspended(job: Object, count: _Count, now: float) -> JobPlan:
    status = job["status"]
    status.pop("startTime", None)
    wanted = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}
    set_condition(job, wanted, now)
    return JobPlan(_written(status, count, 0), delete=_names(count.active))


def _started(job: Object, now: float) -> None:
    job["status"].setdefault("startTime", rfc3339(now))
    if (condition(job, "Suspended") or {}).get("status") == "True":
        set_condition(
            job, {"type": "Suspended", "status": "False", "reason": "JobResumed", "message": "Job resumed"}, now
        )


def _failure(job: Object, status: Object, count: _Count, now: float) -> tuple[str, str] | None:
    """Reason and message of a job that has failed; None for one that may go on."""
    spec = job["spec"]
    limit = spec["backoffLimit"]
    restarting = spec["template"]["spec"]["restartPolicy"] == "OnFailure"
    if count.failed > limit or (restarting and count.restarts > 0 and count.restarts >= limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if (due := _deadline(spec, status)) is not None and now >= due:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _deadline(spec: Object, status: Object) -> float | None:
    seconds, start = spec.get("activeDeadlineSeconds"), parse_time(status.get("startTime"))
    return None if seconds is None or start is None else start + seconds


def _complete(spec: Object, count: _Count) -> bool:
    completions = spec.get("completions")
    if completions is not None:
        return bool(count.succeeded >= completions)
    return count.succeeded > 0 and not count.active and not count.terminating


def _end(job: Object, kind: str, reason: str, message: str, now: float) -> None:
    wanted = {"type": kind, "status": "True", "lastProbeTime": rfc3339(now), "reason": reason, "message": message}
    set_condition(job, wanted, now)


def _written(status: Object, count: _Count, active: int) -> Object:
    numbers = {
        "active": active,
        "ready": min(count.ready, active),
        "terminating": count.terminating + len(count.active) - min(active, len(count.active)),
        "succeeded": count.succeeded,
        "failed": count.failed,
    }
    status.update(numbers)
    for key in ("active", "succeeded", "failed"):
        if not numbers[key]:
            del status[key]
    if count.done_indexes:
        status["completedIndexes"] = _ranges(sorted(count.done_indexes))
    status["uncountedTerminatedPods"] = {}
    return status


def _ranges(numbers: list[int]) -> str:
    """`1,3-5,7`, as Kubernetes writes completed indexes."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{r[0]}" if len(r) == 1 else f"{r[0]},{r[1]}" if len(r) == 2 else f"{r[0]}-{r[-1]}" for r in runs]
    return ",".join(parts)


def _scaled(spec: Object, status: Object, count: _Count, now: float) -> JobPlan:
    """Bring the active pods to the wanted number, after a growing pause when pods have been failing."""
    active, wanted = len(count.active), _wanted_active(spec, count)
    due = _deadline(spec, status)
    if active > wanted:
        surplus = sorted(count.active, key=_least_worth_keeping)[: active - wanted]
        return JobPlan(_written(status, count, wanted), delete=_names(surplus), look_again=due)
    retry = _retry_time(count)
    if active < wanted and retry > now:
        return JobPlan(_written(status, count, active), look_again=min(retry, due or retry))
    return JobPlan(_written(status, count, wanted), create=_missing(spec, count, wanted - active), look_again=due)


def _wanted_active(spec: Object, count: _Count) -> int:
    parallelism, completions = spec["parallelism"], spec.get("completions")
    if completions is not None:
        return int(min(parallelism, completions - count.succeeded))
    return int(min(parallelism, len(count.active))) if count.succeeded else int(parallelism)


def _least_worth_keeping(pod: Object) -> tuple[bool, str, str]:
    """Pods that run go last, the younger of equals first."""
    running = dig(pod, "status.phase") == "Running"
    newest_first = "".join(chr(255 - ord(c)) for c in pod["metadata"]["creationTimestamp"])
    return (running, newest_first, pod["metadata"]["name"])


def _retry_time(count: _Count) -> float:
    if not count.failed or not count.last_failure:
        return 0.0
    pause: float = min(_FIRST_RETRY_SECONDS * 2 ** min(count.failed - 1, 10), _LAST_RETRY_SECONDS)
    return count.last_failure + pause


def _missing(spec: Object, count: _Count, number: int) -> tuple[int | None, ...]:
    if spec.get("completionMode") != "Indexed":
        return (None,) * number
    taken = {completion_index(pod) for pod in count.active} | count.done_indexes
    return tuple(index for index in range(spec["completions"]) if index not in taken)[:number]


def _names(pods: list[Object]) -> tuple[str, ...]:
    return tuple(sorted(pod["metadata"]["name"] for pod in pods))
