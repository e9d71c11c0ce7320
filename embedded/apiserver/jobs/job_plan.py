"""What a Job needs next, decided from the job and its pods alone.

https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object, condition, copy, parse_time, rfc3339, set_condition
from embedded.apiserver.jobs.job_counts import Count, EndedPods, count, is_indexed
from embedded.apiserver.jobs.job_pods import JobPod
from embedded.apiserver.jobs.job_policies import success_rule
from embedded.apiserver.reconciling.notices import Notice
from embedded.apiserver.validation.completion_indexes import index_text

_FIRST_RETRY_SECONDS = 10.0
_LAST_RETRY_SECONDS = 360.0
_CREATED_AT_ONCE = 500
_OURS = (None, "", "kubernetes.io/job-controller")


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod to create; `failures` is how often its index failed before, None where nobody counts by index."""

    index: int | None = None
    failures: int | None = None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The new status, pods to create and to delete, what to tell, when to look again.

    `dismiss` says that the deleted pods are no failures.
    """

    status: Object
    create: tuple[NewPod, ...] = ()
    delete: tuple[str, ...] = ()
    dismiss: bool = True
    notices: tuple[Notice, ...] = ()
    look_again: float | None = None
    expired: bool = False  # the job itself is past its time to live


def is_ours(job: Object) -> bool:
    """Whether spec.managedBy leaves the job to this controller."""
    return job["spec"].get("managedBy") in _OURS


def is_true(obj: Object, kind: str) -> bool:
    return (condition(obj, kind) or {}).get("status") == "True"


def is_finished(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def plan_job(job: Object, pods: list[JobPod], tally: EndedPods, now: float) -> JobPlan:
    """One look at a job: finish it, fail it, suspend it, or bring its active pods to the wanted number."""
    if is_finished(job):
        return _after_the_end(job, now)
    look = _Look({**job, "status": copy(job.get("status") or {})}, count(job, pods, tally), now)
    if is_true(look.job, "FailureTarget"):
        return look.failing()
    if is_true(look.job, "SuccessCriteriaMet"):
        return look.succeeding()
    if look.spec.get("suspend"):
        return look.suspended()
    look.start()
    if failure := look.failure():
        look.set("FailureTarget", *failure)
        return look.failing()
    if success := look.success():
        look.set("SuccessCriteriaMet", *success)
        return look.succeeding()
    return look.scaled()


def _after_the_end(job: Object, now: float) -> JobPlan:
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None:
        return JobPlan(job["status"])
    end = condition(job, "Complete") or condition(job, "Failed") or {}
    due = (parse_time(end.get("lastTransitionTime")) or now) + ttl
    return JobPlan(job["status"], look_again=None if due <= now else due, expired=due <= now)


class _Look:
    """One look at one unfinished job; its status is a copy that the look may change."""

    def __init__(self, job: Object, found: Count, now: float) -> None:
        self.job, self.spec, self.status = job, job["spec"], job["status"]
        self._count, self._now = found, now
        self._notices: list[Notice] = []

    def set(self, kind: str, reason: str, message: str, status: str = "True") -> None:
        wanted = {"type": kind, "status": status, "reason": reason, "message": message}
        set_condition(self.job, {**wanted, "lastProbeTime": rfc3339(self._now)}, self._now)

    # -- the end -------------------------------------------------------------------------------------------

    def failing(self) -> JobPlan:
        """Pods first: the job has Failed when the last of them has ended. Each of them is a failure by then."""
        target = condition(self.job, "FailureTarget") or {}
        if self._all_ended():
            self.set("Failed", target["reason"], target["message"])
            self._tell(target["reason"], target["message"], "Warning")
        failed = self._count.failed_if_ended
        return self._plan(0, failed=failed, delete=self._count.active, dismiss=False)

    def succeeding(self) -> JobPlan:
        met = condition(self.job, "SuccessCriteriaMet") or {}
        if self._all_ended():
            self.set("Complete", met["reason"], met["message"])
            self.status["completionTime"] = rfc3339(self._now)
            self._tell("Completed", "Job completed")
        return self._plan(0, delete=self._count.active)

    def _all_ended(self) -> bool:
        return not self._count.active and not self._count.terminating

    def failure(self) -> tuple[str, str] | None:
        """Reason and message of a job that has failed; None for one that may go on."""
        found, spec = self._count, self.spec
        if found.fails_job:
            return "PodFailurePolicy", found.fails_job
        if found.failed > spec["backoffLimit"] or self._restarted_too_often():
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if (due := self._deadline()) is not None and self._now >= due:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        if (most := spec.get("maxFailedIndexes")) is not None and len(found.failed_indexes) > most:
            return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if found.failed_indexes and len(found.failed_indexes) + found.succeeded >= spec["completions"]:
            return "FailedIndexes", "Job has failed indexes"
        return None

    def _restarted_too_often(self) -> bool:
        restarts = self._count.restarts
        in_place = self.spec["template"]["spec"]["restartPolicy"] == "OnFailure"
        return bool(in_place and restarts > 0 and restarts >= self.spec["backoffLimit"])

    def _deadline(self) -> float | None:
        seconds, start = self.spec.get("activeDeadlineSeconds"), parse_time(self.status.get("startTime"))
        return None if seconds is None or start is None else start + seconds

    def success(self) -> tuple[str, str] | None:
        found, completions = self._count, self.spec.get("completions")
        if (rule := success_rule(self.spec, found.done_indexes)) is not None:
            return "SuccessPolicy", f"Matched rules at index {rule}"
        one_is_enough = found.succeeded > 0 and self._all_ended()  # of a work queue
        reached = one_is_enough if completions is None else found.succeeded >= completions
        return ("CompletionsReached", "Reached expected number of succeeded pods") if reached else None

    # -- on the way ----------------------------------------------------------------------------------------

    def suspended(self) -> JobPlan:
        self.status.pop("startTime", None)
        if not is_true(self.job, "Suspended"):
            self.set("Suspended", "JobSuspended", "Job suspended")
            self._tell("Suspended", "Job suspended")
        return self._plan(0, delete=self._count.active)

    def start(self) -> None:
        self.status.setdefault("startTime", rfc3339(self._now))
        if is_true(self.job, "Suspended"):
            self.set("Suspended", "JobResumed", "Job resumed", "False")
            self._tell("Resumed", "Job resumed")

    def scaled(self) -> JobPlan:
        """Bring the active pods to the wanted number, after a growing pause when pods have been failing."""
        active, wanted = len(self._count.active), self._wanted_active()
        if active > wanted:
            surplus = sorted(self._count.active, key=_least_worth_keeping)[: active - wanted]
            return self._plan(wanted, delete=surplus, look_again=self._deadline())
        create, retry = self._missing(wanted - active)
        times = [moment for moment in (retry, self._deadline()) if moment is not None]
        return self._plan(active + len(create), create=create, look_again=min(times, default=None))

    def _wanted_active(self) -> int:
        parallelism, completions = self.spec["parallelism"], self.spec.get("completions")
        if completions is not None:
            return int(max(0, min(parallelism, completions - self._count.succeeded)))
        return int(min(parallelism, len(self._count.active))) if self._count.succeeded else int(parallelism)

    def _missing(self, number: int) -> tuple[tuple[NewPod, ...], float | None]:
        """Pods to create now, and when more may be."""
        if self.spec.get("podReplacementPolicy") == "Failed":
            number -= self._count.terminating
        if number <= 0:
            return (), None
        if self.spec.get("backoffLimitPerIndex") is not None:
            return self._missing_by_index(number)
        retry = _retry_time(self._count.failures_in_a_row, self._count.last_failure)
        if retry > self._now:
            return (), retry
        indexes = self._free_indexes()[:number] if is_indexed(self.job) else [None] * number
        return tuple(NewPod(index) for index in indexes[:_CREATED_AT_ONCE]), None

    def _missing_by_index(self, number: int) -> tuple[tuple[NewPod, ...], float | None]:
        """Each index waits for itself alone."""
        failures, last = self._count.index_failures, self._count.index_last_failure
        free = [i for i in self._free_indexes() if i is not None]
        times = {index: _retry_time(failures[index], last.get(index, 0.0)) for index in free}
        due = [NewPod(index, failures[index]) for index in free if times[index] <= self._now]
        later = [moment for moment in times.values() if moment > self._now]
        return tuple(due[: min(number, _CREATED_AT_ONCE)]), min(later, default=None)

    def _free_indexes(self) -> list[int | None]:
        taken = self._count.taken_indexes | self._count.done_indexes | self._count.failed_indexes
        return [index for index in range(self.spec["completions"]) if index not in taken]

    # -- what comes of it ----------------------------------------------------------------------------------

    def _tell(self, reason: str, message: str, kind: str = "Normal") -> None:
        self._notices.append(Notice(reason, message, kind))

    def _plan(
        self,
        active: int,
        *,
        create: tuple[NewPod, ...] = (),
        delete: list[JobPod] | None = None,
        dismiss: bool = True,
        failed: int | None = None,
        look_again: float | None = None,
    ) -> JobPlan:
        self._write_numbers(active, len(delete or ()), self._count.failed if failed is None else failed)
        names = tuple(sorted(pod.name for pod in delete or ()))
        return JobPlan(self.status, create, names, dismiss, tuple(self._notices), look_again)

    def _write_numbers(self, active: int, leaving: int, failed: int) -> None:
        found, status = self._count, self.status
        numbers = {"active": active, "succeeded": found.succeeded, "failed": failed}
        status.update({key: number for key, number in numbers.items() if number})
        for key in [key for key, number in numbers.items() if not number]:
            status.pop(key, None)
        status["ready"] = min(found.ready, active)
        status["terminating"] = found.terminating + leaving
        status["uncountedTerminatedPods"] = {}
        if is_indexed(self.job) and found.done_indexes:
            status["completedIndexes"] = index_text(found.done_indexes)
        if self.spec.get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = index_text(found.failed_indexes)


def _least_worth_keeping(pod: JobPod) -> tuple[bool, bool, float, str]:
    """Pods that run go last, those ready after those that are not, the younger of equals first."""
    return (pod.phase == "Running", pod.ready, -(parse_time(pod.metadata.creation_timestamp) or 0.0), pod.name)


def _retry_time(failures: int, last_failure: float) -> float:
    """When to try again, in seconds: 10 s after the first failure in a row, twice as long after each further one."""
    if not failures:
        return 0.0
    return last_failure + min(_FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 10), _LAST_RETRY_SECONDS)
