"""The CronJob controller: carries out what `cron_job_plan` decides."""

from __future__ import annotations

from datetime import UTC, datetime

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery.objects import Object, controller_of, copy, ensure, name_of, rfc3339, uid_of
from embedded.apiserver.apimachinery.resource_types import CRON_JOBS, JOBS
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.jobs.cron_job_plan import job_name, plan_cron
from embedded.apiserver.reconciling.adoption import owner_reference
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.reconciling.notices import Notice
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import DeleteOptions, Resources
from embedded.apiserver.storage.records import Change, Event
from embedded.apiserver.validation.cron_schedule import time_zone

SCHEDULED_KEY = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_COMPONENT = "cronjob-controller"


class CronJobController:
    """Looks at a CronJob when it or a job of it changes, and when its next time has come."""

    def __init__(self, resources: Resources, writes: AdmittedWrites) -> None:
        self._resources = resources
        self._writes = writes
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        record = event.record
        if type_id == CRON_JOBS.id:
            if event.change is Change.DELETED:
                self.waiting.forget(record.key)
            else:
                self.waiting.now(record.key)
        elif type_id == JOBS.id:
            places = (self._resources.store.place_of(owner) for owner in record.owners)
            for place in places:
                if place is not None and place[0] == CRON_JOBS.id:
                    self.waiting.now(place[1:])

    async def advance(self, key: Key) -> None:
        """Take one CronJob a step further."""
        cronjob = self._resources.find(CRON_JOBS, *key)
        if cronjob is None:
            return
        plan = plan_cron(cronjob, self._jobs_of(cronjob), self._resources.clock())
        if plan.look_again is not None:
            self.waiting.at(key, plan.look_again)
        for notice in plan.notices:
            self._tell(cronjob, notice)
        for name in plan.delete:
            self._delete_job(cronjob, name)
        status = plan.status
        if plan.start is not None and not self.waiting.must_pause(key, self._resources.clock()):
            started = await self._start_job(key, cronjob, plan.start)
            if started is not None:
                active = [*(status.get("active") or ()), started]
                status = {**status, "active": active, "lastScheduleTime": rfc3339(plan.start)}
        self._write_status(cronjob, status)

    def _jobs_of(self, cronjob: Object) -> list[Object]:
        places = [place for place in self._resources.store.children(uid_of(cronjob)) if place[0] == JOBS.id]
        jobs = [self._resources.get(JOBS, namespace, name) for _, namespace, name in places]
        return [job for job in jobs if _controlled_by(job, cronjob)]

    def _delete_job(self, cronjob: Object, name: str) -> None:
        self._resources.delete(JOBS, cronjob["metadata"]["namespace"], name, DeleteOptions(propagation="Background"))
        self._tell(cronjob, Notice("SuccessfulDelete", f"Deleted job {name}"))

    async def _start_job(self, key: Key, cronjob: Object, scheduled: float) -> Object | None:
        """A reference to the job of that time, made now or before; None where it cannot be made."""
        wanted = job_of(cronjob, scheduled)
        try:
            job = await self._writes.create(JOBS, key[0], wanted)
        except StatusError as error:
            held = self._resources.find(JOBS, key[0], name_of(wanted))
            if error.reason == "AlreadyExists" and held is not None:
                return _reference(held) if _controlled_by(held, cronjob) else None
            self.waiting.refused(key, self._resources.clock())
            self._tell(cronjob, Notice("FailedCreate", f"Error creating job: {error.message}", "Warning"))
            return None
        self.waiting.accepted(key)
        self._tell(cronjob, Notice("SuccessfulCreate", f"Created job {name_of(job)}"))
        return _reference(job)

    def _write_status(self, cronjob: Object, fresh: Object) -> None:
        where = (cronjob["metadata"]["namespace"], name_of(cronjob))
        held = self._resources.find(CRON_JOBS, *where)
        if held is not None and uid_of(held) == uid_of(cronjob) and (held.get("status") or {}) != fresh:
            self._resources.update(CRON_JOBS, *where, lambda now: {**now, "status": fresh}, subresource="status")

    def _tell(self, cronjob: Object, notice: Notice) -> None:
        record_event(self._resources, cronjob, notice.reason, notice.message, _COMPONENT, notice.kind)


def _controlled_by(job: Object, cronjob: Object) -> bool:
    return (controller_of(job) or {}).get("uid") == uid_of(cronjob)


def _reference(job: Object) -> Object:
    meta = job["metadata"]
    found = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, **found}


def job_of(cronjob: Object, scheduled: float) -> Object:
    """The job of one scheduled time, from the CronJob's template."""
    template = copy(cronjob["spec"]["jobTemplate"])
    meta: Object = {"name": job_name(cronjob, scheduled), "namespace": cronjob["metadata"]["namespace"]}
    for key in ("labels", "annotations"):
        if found := (template.get("metadata") or {}).get(key):
            meta[key] = found
    moment = datetime.fromtimestamp(scheduled, time_zone(cronjob["spec"].get("timeZone")))
    shown = rfc3339(scheduled) if moment.tzinfo is UTC else moment.isoformat(timespec="seconds")
    ensure(meta, "annotations")[SCHEDULED_KEY] = shown
    meta["ownerReferences"] = [owner_reference(CRON_JOBS, cronjob)]
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": meta, "spec": template.get("spec") or {}}
