"""The Job controller: carries out what `job_plan` decides."""

from __future__ import annotations

import asyncio

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery.generated_names import random_suffix
from embedded.apiserver.apimachinery.objects import Object, being_deleted, copy, ensure, uid_of
from embedded.apiserver.apimachinery.resource_types import JOBS, PODS
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.jobs.job_counts import EndedPods, remembered
from embedded.apiserver.jobs.job_plan import JobPlan, NewPod, is_ours, plan_job
from embedded.apiserver.jobs.job_pods import FAILURES_KEY, INDEX_KEY, JobPod, decode_job_pod
from embedded.apiserver.reconciling.adoption import owner_reference
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.reconciling.notices import Notice
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import DeleteOptions, Resources
from embedded.apiserver.storage.records import Change, Event, Record

COMPONENT = "job-controller"
_CREATED_AT_ONCE = 20  # pods; requests are answered between one portion and the next
_NAME_CHARACTERS = 57  # what a suffix leaves of a pod's name, so that it stays a valid host name


class JobController:
    """Remembers which jobs to look at, and the pods of each that are no longer there to be counted."""

    def __init__(self, resources: Resources, writes: AdmittedWrites) -> None:
        self._resources = resources
        self._writes = writes
        self._tallies: dict[str, EndedPods] = {}
        self._pods: dict[str, tuple[int, JobPod]] = {}  # uid → revision and what was decoded of it
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == PODS.id:
            if record.owners:
                self._pod_changed(record, gone)
            if gone:
                self._pods.pop(record.uid, None)
        elif type_id == JOBS.id and gone:
            self._tallies.pop(record.uid, None)
            self.waiting.forget(record.key)
        elif type_id == JOBS.id:
            self.waiting.now(record.key)

    def _pod_changed(self, record: Record, gone: bool) -> None:
        for owner in record.owners:
            place = self._resources.store.place_of(owner)
            if place is None or place[0] != JOBS.id:
                continue
            if gone:
                self._count_gone(place[1:], decode_job_pod(record.body))
            self.waiting.now(place[1:])

    def _count_gone(self, key: Key, pod: JobPod) -> None:
        job = self._resources.get(JOBS, *key)
        if pod.controller_uid == uid_of(job):
            self._tally(job, [*self._pods_of(job), pod]).add(job, pod, self._resources.clock())

    def _tally(self, job: Object, pods: list[JobPod]) -> EndedPods:
        uid = uid_of(job)
        if uid not in self._tallies:
            self._tallies[uid] = remembered(job, pods)
        return self._tallies[uid]

    def _pods_of(self, job: Object) -> list[JobPod]:
        store, uid = self._resources.store, uid_of(job)
        places = (place for place in store.children(uid) if place[0] == PODS.id)
        records = (record for place in places if (record := store.get(*place)) is not None)
        return [pod for record in records if (pod := self._seen(record)).controller_uid == uid]

    def _seen(self, record: Record) -> JobPod:
        held = self._pods.get(record.uid)
        if held is None or held[0] != record.revision:
            held = self._pods[record.uid] = (record.revision, decode_job_pod(record.body))
        return held[1]

    async def advance(self, key: Key) -> None:
        """Take one job a step further."""
        job = self._resources.find(JOBS, *key)
        if job is None or being_deleted(job) or not is_ours(job):
            return
        pods = self._pods_of(job)
        plan = plan_job(job, pods, self._tally(job, pods), self._resources.clock())
        if plan.look_again is not None:
            self.waiting.at(key, plan.look_again)
        if plan.expired:
            self._resources.delete(JOBS, *key, DeleteOptions(propagation="Foreground", uid=uid_of(job)))
            return
        self._send_away(job, plan)
        created = await self._create_pods(key, job, plan.create)
        if created == len(plan.create):
            self._write_status(job, plan.status)
        else:
            self._write_status(job, _with_fewer_active(plan.status, len(plan.create) - created))
        for notice in plan.notices:
            self._tell(job, notice)

    def _send_away(self, job: Object, plan: JobPlan) -> None:
        namespace, tally = job["metadata"]["namespace"], self._tallies[uid_of(job)]
        for name in plan.delete:
            if plan.dismiss:
                tally.dismissed.add(uid_of(self._resources.get(PODS, namespace, name)))
            self._resources.delete(PODS, namespace, name)
            self._tell(job, Notice("SuccessfulDelete", f"Deleted pod: {name}"))

    async def _create_pods(self, key: Key, job: Object, wanted: tuple[NewPod, ...]) -> int:
        """Create pods until one is refused, then wait a while; returns how many were created."""
        if not wanted or self.waiting.must_pause(key, self._resources.clock()):
            return 0
        for created, new in enumerate(wanted):
            if created % _CREATED_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not await self._create_pod(job, new):
                self.waiting.refused(key, self._resources.clock())
                return created
        self.waiting.accepted(key)
        return len(wanted)

    async def _create_pod(self, job: Object, new: NewPod) -> bool:
        pod = pod_of(job, new)
        try:
            await self._writes.create(PODS, job["metadata"]["namespace"], pod)
        except StatusError as error:
            self._tell(job, Notice("FailedCreate", f"Error creating: {error.message}", "Warning"))
            return False
        self._tell(job, Notice("SuccessfulCreate", f"Created pod: {pod['metadata']['name']}"))
        return True

    def _write_status(self, job: Object, fresh: Object) -> None:
        """While pods were created the job may have gone, or been replaced by another of its name."""
        meta = job["metadata"]
        held = self._resources.find(JOBS, meta["namespace"], meta["name"])
        if held is None or uid_of(held) != uid_of(job) or held.get("status") == fresh:
            return
        self._resources.update(
            JOBS, meta["namespace"], meta["name"], lambda now: {**now, "status": fresh}, subresource="status"
        )

    def _tell(self, job: Object, notice: Notice) -> None:
        record_event(self._resources, job, notice.reason, notice.message, COMPONENT, notice.kind)


def _with_fewer_active(status: Object, missing: int) -> Object:
    active = status.get("active", 0) - missing
    rest = {key: value for key, value in status.items() if key != "active"}
    return {**rest, "active": active} if active > 0 else rest


def pod_of(job: Object, new: NewPod) -> Object:
    """A pod from the job's template, owned by the job; with its completion index where there is one."""
    template, meta = copy(job["spec"]["template"]), job["metadata"]
    prefix = meta["name"] if new.index is None else f"{meta['name']}-{new.index}"
    found = template.get("metadata") or {}
    found |= {
        "name": f"{prefix[:_NAME_CHARACTERS]}-{random_suffix()}",
        "generateName": f"{prefix}-",
        "namespace": meta["namespace"],
        "ownerReferences": [owner_reference(JOBS, job)],
    }
    spec = template["spec"]
    if new.index is not None:
        ensure(found, "annotations")[INDEX_KEY] = str(new.index)
        ensure(found, "labels")[INDEX_KEY] = str(new.index)
        if new.failures is not None:
            found["annotations"][FAILURES_KEY] = str(new.failures)
        spec.setdefault("hostname", prefix[:63])
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            _tell_index(container)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": found, "spec": spec}


def _tell_index(container: Object) -> None:
    variables = container.setdefault("env", [])
    if all(variable.get("name") != "JOB_COMPLETION_INDEX" for variable in variables):
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX_KEY}']"}}
        variables.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
