"""What a CronJob needs next, decided from it and its jobs alone.

https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from embedded.apiserver.apimachinery.objects import (
    Object,
    being_deleted,
    copy,
    dig,
    name_of,
    parse_time,
    rfc3339,
    uid_of,
)
from embedded.apiserver.jobs.job_plan import is_finished, is_true
from embedded.apiserver.reconciling.notices import Notice
from embedded.apiserver.validation.cron_schedule import Next, ScheduleError, parse_schedule, time_zone

_MANY_MISSED = 100
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class CronPlan:
    """The new status, jobs to delete, the scheduled time to start a job for, what to tell, when to look again."""

    status: Object
    delete: tuple[str, ...] = ()
    start: float | None = None
    notices: tuple[Notice, ...] = ()
    look_again: float | None = None


def job_name(cronjob: Object, scheduled: float) -> str:
    """The same time always gives the same name, so that no time is served twice."""
    return f"{name_of(cronjob)}-{int(scheduled) // _MINUTE}"


def plan_cron(cronjob: Object, jobs: list[Object], now: float) -> CronPlan:
    """One look at a CronJob: what became of its jobs, what is due, which old jobs may go."""
    look = _Look(cronjob, jobs, now)
    look.follow_jobs()
    if being_deleted(cronjob):
        return look.plan()
    look.trim_history()
    if cronjob["spec"].get("suspend"):
        return look.plan()
    try:
        following = parse_schedule(cronjob["spec"]["schedule"], time_zone(cronjob["spec"].get("timeZone")))
    except ScheduleError as error:
        look.tell("UnparseableSchedule", f'unparseable schedule: "{cronjob["spec"]["schedule"]}" : {error}', "Warning")
        return look.plan()
    look.start_what_is_due(following)
    return look.plan()


@dataclass(frozen=True, slots=True)
class _Due:
    """The newest scheduled time that has come, how many came since the last one served, and the next."""

    newest: float | None
    missed: int
    following: float | None


def _due(following: Next, since: float, now: float) -> _Due:
    moment, newest, missed = following(since), None, 0
    while moment is not None and moment <= now and missed <= _MANY_MISSED:
        moment, newest, missed = following(moment), moment, missed + 1
    if moment is not None and moment <= now:
        newest, moment = _newest(following, now)
    return _Due(newest, missed, moment)


def _newest(following: Next, now: float) -> tuple[float, float | None]:
    """The last time up to now and the first after it, where there were many: sought backwards from now."""
    back, found = float(_MINUTE), None
    while found is None or found > now:
        found, back = following(now - back), back * 2
    while (after := following(found)) is not None and after <= now:
        found = after
    return found, after


class _Look:
    """One look at one CronJob; its status is a copy that the look may change."""

    def __init__(self, cronjob: Object, jobs: list[Object], now: float) -> None:
        self._cronjob, self._spec, self._now = cronjob, cronjob["spec"], now
        self._jobs = jobs
        self._status: Object = copy(cronjob.get("status") or {})
        self._active: list[Object] = self._status.pop("active", None) or []
        self._delete: list[str] = []
        self._start: float | None = None
        self._notices: list[Notice] = []
        self._look_again: float | None = None

    def tell(self, reason: str, message: str, kind: str = "Normal") -> None:
        self._notices.append(Notice(reason, message, kind))

    def plan(self) -> CronPlan:
        gone = set(self._delete)
        active = [reference for reference in self._active if reference["name"] not in gone]
        status = {**({"active": active} if active else {}), **self._status}
        return CronPlan(status, tuple(self._delete), self._start, tuple(self._notices), self._look_again)

    # -- its jobs ------------------------------------------------------------------------------------------

    def follow_jobs(self) -> None:
        """Jobs that finished, that went away, or that somebody else made."""
        known = {reference["uid"] for reference in self._active}
        for job in self._jobs:
            if is_finished(job):
                self._finished(job, uid_of(job) in known)
            elif uid_of(job) not in known:
                message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
                self.tell("UnexpectedJob", message, "Warning")
        held = {uid_of(job) for job in self._jobs}
        for reference in self._active:
            if reference["uid"] not in held:
                self.tell("MissingJob", f"Active job went missing: {reference['name']}")
        running = {uid_of(job) for job in self._jobs if not is_finished(job)}
        self._active = [reference for reference in self._active if reference["uid"] in running]

    def _finished(self, job: Object, was_active: bool) -> None:
        complete = is_true(job, "Complete")
        if was_active:
            condition = "Complete" if complete else "Failed"
            self.tell("SawCompletedJob", f"Saw completed job: {name_of(job)}, condition: {condition}")
        ended = dig(job, "status.completionTime")
        if complete and ended and ended > (self._status.get("lastSuccessfulTime") or ""):
            self._status["lastSuccessfulTime"] = ended

    def trim_history(self) -> None:
        for limit, kind in (("successfulJobsHistoryLimit", "Complete"), ("failedJobsHistoryLimit", "Failed")):
            most = self._spec.get(limit)
            if most is not None:
                ended = sorted((job for job in self._jobs if is_true(job, kind)), key=_started)
                self._delete += [name_of(job) for job in ended[: max(0, len(ended) - most)]]

    # -- the next job --------------------------------------------------------------------------------------

    def start_what_is_due(self, following: Next) -> None:
        due = _due(following, self._since(), self._now)
        self._look_again = due.following
        if due.newest is None:
            return
        if due.missed > _MANY_MISSED:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self.tell("TooManyMissedTimes", message, "Warning")
        if self._is_too_late(due.newest):
            shown = datetime.fromtimestamp(due.newest, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self.tell("MissSchedule", f"Missed scheduled time to start a job: {shown}", "Warning")
        elif self._was_served(due.newest):
            return
        elif self._active and self._spec["concurrencyPolicy"] == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.tell("JobAlreadyActive", message)
        else:
            if self._spec["concurrencyPolicy"] == "Replace":
                self._delete += [reference["name"] for reference in self._active]
            self._start = due.newest

    def _since(self) -> float:
        """From when on times count: the last one served, or else the birth; never before the deadline."""
        last = parse_time(self._status.get("lastScheduleTime"))
        since = parse_time(self._cronjob["metadata"]["creationTimestamp"]) or self._now if last is None else last
        deadline = self._spec.get("startingDeadlineSeconds")
        return since if deadline is None else max(since, self._now - deadline)

    def _is_too_late(self, scheduled: float) -> bool:
        deadline = self._spec.get("startingDeadlineSeconds")
        return deadline is not None and scheduled + deadline < self._now

    def _was_served(self, scheduled: float) -> bool:
        name = job_name(self._cronjob, scheduled)
        served = self._status.get("lastScheduleTime") == rfc3339(scheduled)
        return served or any(reference["name"] == name for reference in self._active)


def _started(job: Object) -> tuple[str, str]:
    return (dig(job, "status.startTime") or "", name_of(job))
