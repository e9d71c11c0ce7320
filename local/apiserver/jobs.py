"""The Job controller: carries out what `job_plan` decides."""

from __future__ import annotations

from local.apiserver.job_plan import INDEX_ANNOTATION, JobPlan, Tally, completion_index, is_finished, plan_job
from local.apiserver.objects import Object, being_deleted, condition, controller_of, copy, decode_object, ensure, uid_of
from local.apiserver.recorder import record_event
from local.apiserver.registry import JOBS, PODS
from local.apiserver.resources import DeleteOptions, Resources, random_suffix
from local.apiserver.status import StatusError
from local.apiserver.store import Change, Event

_RETRY_SECONDS = 10.0  # after the API refused a pod
_NAME_CHARACTERS = 57  # what a suffix leaves of a pod's name, so that it stays a valid host name


class JobController:
    """Remembers which jobs to look at, and the pods of each that are no longer there to be counted."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._dirty: set[tuple[str, str]] = set()
        self._due: dict[tuple[str, str], float] = {}
        self._tallies: dict[str, Tally] = {}
        self._refused_until: dict[tuple[str, str], float] = {}
        self._dismissed: set[str] = set()  # uids of pods we deleted ourselves: their end is nobody's failure

    def react(self, type_id: str, event: Event) -> None:
        record = event.record
        if type_id == JOBS.id:
            if event.change is Change.DELETED:
                self._tallies.pop(record.uid, None)
                self._due.pop(record.key, None)
                self._refused_until.pop(record.key, None)
            else:
                self._dirty.add(record.key)
        elif type_id == PODS.id:
            gone = event.change is Change.DELETED
            if record.owners:
                self._pod_changed(decode_object(record.body), gone)
            if gone:
                self._dismissed.discard(record.uid)

    def _pod_changed(self, pod: Object, gone: bool) -> None:
        owner = controller_of(pod)
        if owner is None or (owner["apiVersion"], owner["kind"]) != (JOBS.api_version, JOBS.kind):
            return
        if gone:
            self._count_gone(owner["uid"], pod)
        self._dirty.add((pod["metadata"]["namespace"], owner["name"]))

    def _count_gone(self, job_uid: str, pod: Object) -> None:
        if self._resources.store.place_of(job_uid) is None:
            return
        tally, index = self._tallies.setdefault(job_uid, Tally()), completion_index(pod)
        if pod["status"].get("phase") == "Succeeded":
            tally.succeeded += 1
            if index is not None:
                tally.indexes.add(index)
        elif uid_of(pod) not in self._dismissed:
            tally.failed += 1
            tally.last_failure = self._resources.clock()

    def next_due(self) -> float | None:
        return min(self._due.values(), default=None)

    def work(self) -> None:
        """Look at every job that changed or whose time has come."""
        now = self._resources.clock()
        keys = self._dirty | {key for key, due in self._due.items() if due <= now}
        self._dirty = set()
        for key in sorted(keys):
            self._due.pop(key, None)
            job = self._resources.find(JOBS, *key)
            if job is not None and not being_deleted(job):
                self._carry_out(job, plan_job(job, self._pods_of(job), self._tally(job), now))

    def _tally(self, job: Object) -> Tally:
        return self._tallies.get(uid_of(job)) or Tally()

    def _pods_of(self, job: Object) -> list[Object]:
        store, uid = self._resources.store, uid_of(job)
        places = [place for place in store.children(uid) if place[0] == PODS.id]
        pods = [self._resources.get(PODS, namespace, name) for _, namespace, name in places]
        return [pod for pod in pods if (controller_of(pod) or {}).get("uid") == uid]

    def _carry_out(self, job: Object, plan: JobPlan) -> None:
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        if plan.look_again is not None:
            self._due[(namespace, name)] = plan.look_again
        if plan.expired:
            self._resources.delete(JOBS, namespace, name, DeleteOptions(propagation="Background"))
            return
        for pod_name in plan.delete:
            self._dismiss(job, pod_name)
        missing = len(plan.create) - self._create_pods(job, plan.create)
        fresh = {**plan.status, "active": plan.status["active"] - missing} if missing else plan.status
        if missing and not fresh["active"]:
            del fresh["active"]
        if fresh != job.get("status"):
            stored = self._resources.update(
                JOBS, namespace, name, lambda held: {**held, "status": fresh}, subresource="status"
            )
            self._announce_end(job, stored)

    def _dismiss(self, job: Object, pod_name: str) -> None:
        namespace = job["metadata"]["namespace"]
        self._dismissed.add(uid_of(self._resources.get(PODS, namespace, pod_name)))
        self._resources.delete(PODS, namespace, pod_name)
        record_event(self._resources, job, "SuccessfulDelete", f"Deleted pod: {pod_name}", "job-controller")

    def _create_pods(self, job: Object, indexes: tuple[int | None, ...]) -> int:
        """Create pods until one is refused, then wait a while; returns how many were created."""
        key, now = (job["metadata"]["namespace"], job["metadata"]["name"]), self._resources.clock()
        if not indexes:
            return 0
        if self._refused_until.get(key, 0.0) > now:
            self._due[key] = self._refused_until[key]
            return 0
        self._refused_until.pop(key, None)
        for created, index in enumerate(indexes):
            if not self._create_pod(job, index):
                self._refused_until[key] = self._due[key] = now + _RETRY_SECONDS
                return created
        return len(indexes)

    def _create_pod(self, job: Object, index: int | None) -> bool:
        pod = pod_of(job, index)
        namespace = job["metadata"]["namespace"]
        try:
            self._resources.create(PODS, namespace, pod)
        except StatusError as error:
            message = f"Error creating: {error.message}"
            record_event(self._resources, job, "FailedCreate", message, "job-controller", "Warning")
            return False
        message = f"Created pod: {pod['metadata']['name']}"
        record_event(self._resources, job, "SuccessfulCreate", message, "job-controller")
        return True

    def _announce_end(self, before: Object, after: Object) -> None:
        if is_finished(before) or not is_finished(after):
            return
        if condition(after, "Complete"):
            record_event(self._resources, after, "Completed", "Job completed", "job-controller")
        elif failed := condition(after, "Failed"):
            record_event(self._resources, after, failed["reason"], failed["message"], "job-controller", "Warning")


def pod_of(job: Object, index: int | None) -> Object:
    """A pod from the job's template, owned by the job; with its completion index where there is one."""
    template, meta = copy(job["spec"]["template"]), job["metadata"]
    prefix = meta["name"] if index is None else f"{meta['name']}-{index}"
    found = template.get("metadata") or {}
    found |= {
        "name": f"{prefix[:_NAME_CHARACTERS]}-{random_suffix()}",
        "generateName": f"{prefix}-",
        "namespace": meta["namespace"],
        "ownerReferences": [
            {
                "apiVersion": JOBS.api_version,
                "kind": JOBS.kind,
                "name": meta["name"],
                "uid": meta["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    spec = template["spec"]
    if index is not None:
        ensure(found, "annotations")[INDEX_ANNOTATION] = str(index)
        ensure(found, "labels")[INDEX_ANNOTATION] = str(index)
        spec.setdefault("hostname", prefix[:63])
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": found, "spec": spec}
