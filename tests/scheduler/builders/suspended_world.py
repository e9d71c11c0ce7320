"""Suspended jobs from end to end without a network: objects that are kept, the scheduler's loop, the controller that
holds jobs, and Kubernetes' own controller of Jobs. Whoever writes may be killed at any write, and is started again from
the objects alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

import msgspec
from kueue_world import GPU, cluster_queue, flavor, gpu_node, local_queue, named, namespace
from scheduler_builders import SCHEDULER
from scheduler_fakes import World

from jobs.controllers.suspended_cache import SuspendedCache
from jobs.controllers.suspended_writes import SuspendedWrites
from jobs.controllers.troubles import Troubles
from jobs.core.suspended.plan import plan
from jobs.core.suspended.policy import SuspendedPolicy
from kube import objects
from kube.dialects.suspended.reading import suspended_job
from kube.dialects.suspended.workload import status_patch, workload
from kube.informer import Change, ChangeKind
from model.fault import KubernetesFault
from model.placement import Placement
from model.suspended import transitions
from model.suspended.job import QUEUE_NAME, PodTemplate, SuspendedJob, SuspendedKind
from model.suspended.workload import EvictionReason, WorkloadAdmission, WorkloadObject, WorkloadStatus
from scheduler.ports import NamedObject
from scheduler.settings import SchedulerSettings

_TYPES = {"Job": objects.Job, "JobSet": objects.JobSet, "Workload": objects.Workload, "Pod": objects.Pod}
_KINDS = tuple(kind.value for kind in SuspendedKind)


NOTHING: Mapping[str, str] = {}


class Killed(BaseException):
    """The process ends here."""


class Api:
    """Objects by kind and name, as the API server keeps them; port of the scheduler and of the controller.

    Each write has a name, such as `admit one`. `kill` ends who makes the write of that name, `before` it is made or
    after that.
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        self.changed: list[tuple[ChangeKind, str, dict[str, Any]]] = []
        self.writes: list[str] = []
        self.kill: tuple[str, bool] | None = None
        self.checks: list[Callable[[], None]] = []
        self.now: Callable[[], float] = lambda: 0.0
        self.version = 0
        self.pods_refused = ""

    def put(self, kind: str, body: Mapping[str, Any]) -> None:
        name = body["metadata"]["name"]
        self.version += 1
        found = deepcopy(dict(body))
        found["metadata"] |= {"resourceVersion": str(self.version), "namespace": "default"}
        found["metadata"].setdefault("uid", f"uid-{kind}-{name}-{self.version}")
        found["metadata"].setdefault("creationTimestamp", f"2026-01-01T00:00:{self.version % 60:02}Z")
        known = (kind, name) in self.kept
        self.kept[kind, name] = found
        self.changed.append((ChangeKind.MODIFIED if known else ChangeKind.ADDED, kind, found))

    def drop(self, kind: str, name: str) -> None:
        found = self.kept.pop((kind, name), None)
        if found is not None:
            self.changed.append((ChangeKind.DELETED, kind, found))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [body for (of, _), body in self.kept.items() if of == kind]

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.kept[kind, name]

    def write(self, name: str, make: Callable[[], None]) -> None:
        """Make it, unless whoever does is killed before."""
        at, before = self.kill or ("", False)
        if at == name and before:
            self.kill = None
            raise Killed(name)
        make()
        self.writes.append(name)
        for check in self.checks:
            check()
        if at == name:
            self.kill = None
            raise Killed(name)

    # scheduler.ports.Binder

    async def bind(self, placement: Placement) -> None:
        name = placement.pod_key.partition("/")[2]
        pod = self.kept.get(("Pod", name))
        if pod is None or pod["metadata"]["uid"] != placement.pod_uid or pod["spec"].get("nodeName"):
            raise KubernetesFault(name, "409", status=409)
        after = deepcopy(pod)
        after["spec"]["nodeName"] = placement.node
        after["metadata"]["annotations"] = {
            **(after["metadata"].get("annotations") or {}),
            **dict(placement.annotations),
        }
        after["status"] = {"phase": "Running"}
        self.write(f"bind {name}", lambda: self.put("Pod", after))

    async def bound(self, placement: Placement) -> bool:
        pod = self.kept.get(("Pod", placement.pod_key.partition("/")[2]))
        return pod is not None and pod["spec"].get("nodeName") == placement.node

    # scheduler.ports.StatusWriter

    async def admit(self, named: NamedObject, admission: WorkloadAdmission) -> None:
        def change(found: WorkloadObject) -> WorkloadStatus:
            if not found.waiting:
                raise KubernetesFault(named.key, "waits no more", status=409)
            return transitions.admitted(found.status, admission, self.now())

        self._status("admit", named, change)

    async def unscheduled(self, pod: NamedObject, message: str, *, first: bool, nominated: str | None = None) -> None:
        if pod.group:
            self._status("pending", pod, lambda found: transitions.pending(found.status, message, self.now()))

    async def gang_status(self, gang: NamedObject, status: Any) -> None: ...

    async def gang_times(self, gang: NamedObject, times: Any) -> None: ...

    async def group_condition(self, gang: NamedObject, condition: Any) -> None: ...

    # scheduler.ports.PodDeleter

    async def evict(self, pod: NamedObject, reason: str, message: str, *, require_condition: bool = True) -> None:
        if not pod.group:
            self.write(f"delete {pod.name}", lambda: self.drop("Pod", pod.name))
            return

        def change(found: WorkloadObject) -> WorkloadStatus | None:
            known = EvictionReason(reason) if reason in list(EvictionReason) else EvictionReason.PREEMPTED
            return transitions.evicted(found.status, known, message, self.now()) if found.status.admitted else None

        self._status("evict", pod, change)

    def _status(self, name: str, named: NamedObject, change: Callable[[WorkloadObject], WorkloadStatus | None]) -> None:
        raw = self.kept.get(("Workload", named.name))
        if raw is None or raw["metadata"]["uid"] != named.uid:
            raise KubernetesFault(named.key, "404", status=404)
        found = workload(msgspec.json.decode(msgspec.json.encode(raw), type=objects.Workload))
        status = change(found)
        patch = status_patch(raw.get("status"), status) if status is not None else {}
        if patch:
            self.write(f"{name} {found.owner_name}", lambda: self._patch("Workload", named.name, {"status": patch}))

    # jobs.ports.SuspendedWriter

    async def try_pod(self, job: SuspendedJob, body: Mapping[str, Any]) -> None:
        """As the API server judges pods of this namespace now."""
        if self.pods_refused:
            raise KubernetesFault("POST pods", self.pods_refused, status=403)

    async def make_workload(self, job: SuspendedJob, body: Mapping[str, Any]) -> None:
        self.write(f"make {job.name}", lambda: self.put("Workload", body))

    async def delete_workload(self, workload: WorkloadObject) -> None:
        self.write(f"delete {workload.name}", lambda: self.drop("Workload", workload.name))

    async def workload_spec(self, workload: WorkloadObject, spec: Mapping[str, Any]) -> bool:
        return self._read("Workload", workload, "respecify", {"spec": spec}, workload.owner_name)

    async def workload_status(self, workload: WorkloadObject, status: Mapping[str, Any]) -> bool:
        return self._read("Workload", workload, _named(status), {"status": status}, workload.owner_name)

    async def job_spec(self, job: SuspendedJob, spec: Mapping[str, Any]) -> bool:
        word = {True: "stop", False: "start", None: "restore"}[spec.get("suspend")]
        return self._read(job.kind.value, job, word, {"spec": spec}, job.name)

    def _read(self, kind: str, item: Any, word: str, patch: dict[str, Any], about: str) -> bool:
        raw = self.kept.get((kind, item.name))
        if (
            raw is None
            or raw["metadata"]["uid"] != item.uid
            or item.version not in ("", raw["metadata"]["resourceVersion"])
        ):
            return False
        self.write(f"{word} {about}", lambda: self._patch(kind, item.name, patch))
        return True

    def _patch(self, kind: str, name: str, patch: Mapping[str, Any]) -> None:
        self.put(kind, merged(self.kept[kind, name], patch))


def merged(before: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(before) if isinstance(before, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def _named(status: Mapping[str, Any]) -> str:
    """What a status of a Workload says that is new."""
    told = {each["type"]: each for each in status.get("conditions") or ()}
    if told.get("Finished", {}).get("status") == "True":
        return "finish"
    if status.get("admission", "") is None:
        return "release"
    return "tell"


class _Recorder:
    """Events, as (reason, message)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def record(self, about: Any, reason: str, message: str, *, warning: bool = False) -> None:
        self.events.append((reason, message))


class SuspendedWorld:
    """A queue `team` of 8 GPUs in the LocalQueue `a`, on nodes of 4 GPUs; `start` is a scheduler and a controller."""

    def __init__(
        self,
        *around: Any,
        nodes: int = 2,
        settings: SchedulerSettings | None = None,
        policy: SuspendedPolicy | None = None,
    ) -> None:
        self.api = Api()
        self.around = [
            namespace(),
            flavor(),
            *(gpu_node(f"a{number}", gpus=4) for number in range(nodes)),
            cluster_queue("team", preemption={"withinClusterQueue": "LowerPriority"}),
            local_queue("a", "team"),
            *around,
        ]
        self.settings = settings or SchedulerSettings()
        self.policy = policy or self.settings.suspended_jobs
        self.now = 1000.0
        self.kills = 0
        self.made = Counter[str]()
        self.api.now = lambda: self.now
        self.start()

    def start(self) -> None:
        """What was known before is forgotten; all that is kept is read."""
        self.world = World(self.settings, api=self.api)
        self.looks: dict[str, None] = {}
        self.cache = SuspendedCache(lambda key: self.looks.update({key: None}))
        self.recorder = _Recorder()
        self.writes = SuspendedWrites(self.api, self.recorder, Troubles(self.recorder))
        self.api.changed.clear()
        self.world.see(*self.around)
        for item in self.around:
            self._related(item)
        for kind in ("Pod", *_KINDS, "Workload"):
            for body in self.api.of(kind):
                self._seen(ChangeKind.ADDED, kind, body)

    def _related(self, item: Any) -> None:
        if isinstance(item, objects.ResourceFlavor):
            untyped = objects.UntypedObject(item.metadata, item.spec)
            self.cache.saw_flavor(Change(ChangeKind.ADDED, untyped))
        elif isinstance(item, objects.WorkloadPriorityClass):
            found = objects.PriorityClass(item.metadata, value=item.value)
            self.cache.saw_workload_class(Change(ChangeKind.ADDED, found))

    def change(self, item: Any) -> None:
        """An object beside the jobs is another now."""
        self.around = [each for each in self.around if each.metadata.uid != item.metadata.uid] + [item]
        self.world.see(item)
        self._related(item)

    def pod(self, name: str, gpus: int = 4, priority: int = 0, annotations: Mapping[str, str] = NOTHING) -> None:
        """One that no queue governs."""
        request = {GPU: gpus}
        container = {"name": "main", "image": "serve", "resources": {"requests": request, "limits": request}}
        tolerations = [{"key": GPU, "operator": "Exists"}]
        spec = {"schedulerName": SCHEDULER, "priority": priority, "containers": [container], "tolerations": tolerations}
        metadata = {"name": name, "labels": {"job-name": name}, "annotations": dict(annotations)}
        self.api.put("Pod", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def job(self, name: str, pods: int = 2, gpus: int = 4, priority: str = "", **spec: Any) -> None:
        annotations = spec.pop("annotations", {})
        body = {"parallelism": pods, "completions": pods, "template": template(gpus), **spec}
        self._add("Job", name, body, priority, annotations)

    def job_set(self, name: str, **sets: tuple[int, int]) -> None:
        """Each a ReplicatedJob of so many Jobs of one pod, and so many GPUs."""
        jobs = [
            {"name": each, "replicas": replicas, "template": {"spec": {"template": template(gpus)}}}
            for each, (replicas, gpus) in sets.items()
        ]
        self._add("JobSet", name, {"replicatedJobs": jobs})

    def training_job(self, name: str, pods: int = 2, gpus: int = 4, **spec: Any) -> None:
        resources = {"minReplicas": pods, "replicaResources": {"gpu": gpus}}
        own = {"spec": {"containers": [{"name": "main", "image": "train"}]}}
        self._add("TrainingJob", name, {"jobType": "PyTorchJob", "resources": resources, "template": own, **spec})

    def _add(
        self, kind: str, name: str, spec: dict[str, Any], priority: str = "", annotations: Mapping[str, str] = NOTHING
    ) -> None:
        labels = {QUEUE_NAME: "a"} | ({"kueue.x-k8s.io/priority-class": priority} if priority else {})
        metadata = {"name": name, "labels": labels, "annotations": dict(annotations)}
        self.api.put(kind, {"metadata": metadata, "spec": {"suspend": True, **spec}})

    def status(self, name: str) -> WorkloadStatus:
        return self.workload(name).status

    def workload(self, name: str) -> WorkloadObject:
        found = (
            workload(msgspec.json.decode(msgspec.json.encode(each), type=objects.Workload))
            for each in self.api.of("Workload")
        )
        return next(each for each in found if each.owner_name == name)

    def pods(self, job: str) -> list[dict[str, Any]]:
        return [each for each in self.api.of("Pod") if each["metadata"]["labels"]["job-name"] == job]

    def nodes(self, job: str) -> list[str]:
        """Of its pods with a node that have not ended."""
        found = (each["spec"].get("nodeName") for each in self.pods(job) if each["status"]["phase"] == "Running")
        return sorted(filter(None, found))

    def end(self, name: str, number: int | None = None) -> None:
        """So many of its pods have succeeded, or all: then the Job has."""
        running = [each for each in self.pods(name) if each["status"]["phase"] == "Running"]
        for each in running[:number]:
            self.api.put("Pod", {**each, "status": {"phase": "Succeeded"}})

    def resume(self, name: str) -> None:
        """Somebody lets a Job go on; its pods are made before anybody sees that."""
        job = self.api.get("Job", name)
        self.api.put("Job", {**job, "spec": {**job["spec"], "suspend": False}})
        self._job_controller()
        self._tell()
        self.world.clock.now = self.now
        self.world.turn()

    def unlabel(self, kind: str, name: str) -> None:
        """Its author takes the name of its queue from a job."""
        job = self.api.get(kind, name)
        self.api.put(kind, {**job, "metadata": {**job["metadata"], "labels": {}}})

    def deactivate(self, name: str) -> None:
        found = self._raw(name)
        self.api.put("Workload", {**found, "spec": {**found["spec"], "active": False}})

    def annotate(self, name: str, key: str, text: str) -> None:
        """The Workload of that job."""
        found = self._raw(name)
        self.api.put("Workload", {**found, "metadata": {**found["metadata"], "annotations": {key: text}}})

    def _raw(self, name: str) -> dict[str, Any]:
        found = self.api.of("Workload")
        return next(each for each in found if each["metadata"]["ownerReferences"][0]["name"] == name)

    def lost(self, name: str) -> None:
        """Its first running pod failed."""
        each = next(each for each in self.pods(name) if each["status"]["phase"] == "Running")
        self.api.put("Pod", {**each, "status": {"phase": "Failed"}})

    def settle(self, rounds: int = 40) -> SuspendedWorld:
        """Everybody acts, in turns, until nothing changes any more; whoever is killed starts again."""
        quiet = 0
        for _ in range(rounds):
            before = len(self.api.writes), self.api.version
            if quiet == 3:
                break
            try:
                self._round()
            except BaseException as error:
                if not _killed(error):
                    raise
                self.kills += 1
                self.start()
                continue
            quiet = quiet + 1 if before == (len(self.api.writes), self.api.version) else 0
        return self

    def _round(self) -> None:
        self.now += 1.0
        self._tell()
        asyncio.run(self._look())
        self._tell()
        self.world.clock.now = self.now
        self.world.turn()
        self._job_controller()
        self._tell()

    def _tell(self) -> None:
        changed, self.api.changed[:] = list(self.api.changed), []
        for kind, name, body in changed:
            self._seen(kind, name, body)

    def _seen(self, change: ChangeKind, kind: str, body: dict[str, Any]) -> None:
        if kind in _KINDS:
            unread = msgspec.json.decode(msgspec.json.encode(body), type=objects.UnreadJob)
            # Jobs are followed by this label.
            gone = QUEUE_NAME not in body["metadata"]["labels"]
            self.cache.saw_job(SuspendedKind(kind), Change(ChangeKind.DELETED if gone else change, unread))
        if kind in _TYPES:
            item = msgspec.json.decode(msgspec.json.encode(body), type=_TYPES[kind], strict=False)
            if kind == "Workload":
                self.cache.saw_workload(Change(change, item))
            self.world.see(item, kind=change)

    async def _look(self) -> None:
        """Every job: time alone may call for something."""
        self.looks.clear()
        for kind, body in [(each, body) for each in _KINDS for body in self.api.of(each)]:
            key = f"{kind} default/{body['metadata']['name']}"
            found = self.cache.job(key)
            if found is None:
                if stray := self.cache.stray(key):
                    await self.writes.stop_stray(stray)
                continue
            job, source = found
            known = self.cache.workload(job.uid)
            action = plan(job, known[0] if known else None, self.cache.facts, self.policy, self.now).action
            if action is not None:
                with suppress(KubernetesFault):  # it is tried again
                    await self.writes.carry_out(key, job, source, known, action)

    def _job_controller(self) -> None:
        """Of each kind: pods as its templates say, ended where it is suspended, and a status that counts them."""
        for kind, body in [(each, body) for each in _KINDS for body in self.api.of(each)]:
            status = body.get("status") or {}
            if status.get("conditions") or status.get("run", {}).get("stage") == "Succeeded":
                continue
            job = suspended_job(SuspendedKind(kind), msgspec.convert(body, objects.UntypedObject, strict=False))
            assert not job.problem, job.problem
            for pods in job.pod_sets:
                self._keep_pods(body, pods)
            after = {"Job": self._of_job, "JobSet": self._of_set, "TrainingJob": self._of_training}[kind](body, job)
            if after != body.get("status"):
                self.api.put(kind, {**body, "status": after})

    def _keep_pods(self, body: dict[str, Any], pods: PodTemplate) -> None:
        name = body["metadata"]["name"]
        active, succeeded = self._counts(name, pods.name)
        if body["spec"]["suspend"]:
            for each in active:
                self.api.drop("Pod", each["metadata"]["name"])
            return
        left = body["spec"].get("completions", pods.count) - succeeded
        for _ in range(min(pods.count, left) - len(active)):
            self._make_pod(body, pods)

    def _counts(self, name: str, pod_set: str = "") -> tuple[list[dict[str, Any]], int]:
        """Its pods that wait or run, and how many succeeded."""
        own = [each for each in self.pods(name) if pod_set in ("", each["metadata"]["labels"]["set"])]
        phases = [each["status"]["phase"] for each in own]
        active = [each for each, phase in zip(own, phases, strict=True) if phase in ("Pending", "Running")]
        return active, phases.count("Succeeded")

    def _of_job(self, body: dict[str, Any], job: SuspendedJob) -> dict[str, Any]:
        active, succeeded = self._counts(job.name)
        status: dict[str, Any] = {"succeeded": succeeded}
        if not job.suspended:
            status["startTime"] = "2026-01-01T00:00:00Z"
            ready = sum(each["status"]["phase"] == "Running" for each in active)
            status |= {"active": len(active), "ready": ready}
        if succeeded >= body["spec"]["completions"]:
            status["conditions"] = [{"type": "Complete", "status": "True", "message": "well"}]
        return status

    def _of_set(self, body: dict[str, Any], job: SuspendedJob) -> dict[str, Any]:
        """Each Job of it has one pod."""
        told, through = [], 0
        for pods in job.pod_sets:
            active, succeeded = self._counts(job.name, pods.name)
            ready = sum(each["status"]["phase"] == "Running" for each in active)
            told.append({"name": pods.name, "active": len(active), "ready": ready, "succeeded": succeeded})
            through += succeeded
        ended = [{"type": "Completed", "status": "True", "message": "well"}] if through >= job.count else []
        return {"replicatedJobsStatus": told, **({"conditions": ended} if ended else {})}

    def _of_training(self, body: dict[str, Any], job: SuspendedJob) -> dict[str, Any]:
        active, succeeded = self._counts(job.name)
        running = sum(each["status"]["phase"] == "Running" for each in active)
        stage = "Suspended" if job.suspended and not active else "Running" if running else "Pending"
        stage = "Succeeded" if succeeded >= job.count else stage
        counts = {"running": running, "pending": len(active) - running, "succeeded": succeeded}
        return {"run": {"stage": stage}, "replicaStatuses": {"worker": counts}}

    def _make_pod(self, body: dict[str, Any], pods: PodTemplate) -> None:
        name, template = body["metadata"]["name"], pods.template
        number = self.made[name]
        self.made[name] += 1
        told = template.get("metadata") or {}
        owner = {"apiVersion": "v1", "kind": "Job", "name": name, "uid": body["metadata"]["uid"], "controller": True}
        metadata = {
            "name": f"{name}-{number}",
            "labels": {**(told.get("labels") or {}), "job-name": name, "set": pods.name},
            "annotations": dict(told.get("annotations") or {}),
            "ownerReferences": [owner | {"apiVersion": "batch/v1"}],
        }
        spec = {"schedulerName": SCHEDULER, **deepcopy(template["spec"])}
        self.api.put("Pod", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def template(gpus: int) -> dict[str, Any]:
    request = {GPU: gpus}
    container = {"name": "main", "image": "train", "resources": {"requests": request, "limits": request}}
    return {"spec": {"schedulerName": SCHEDULER, "restartPolicy": "Never", "containers": [container]}}


def priority_class(name: str, value: int) -> objects.WorkloadPriorityClass:
    found = named(objects.WorkloadPriorityClass, name, {})
    return msgspec.structs.replace(found, value=value)


def _killed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_killed, error.exceptions))
    return isinstance(error, Killed)
