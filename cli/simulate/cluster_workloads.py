"""Jobs that wait whole, from files: Kueue's Workloads as they are given, and those that jobs in a LocalQueue get.

A job whose Workload or whose pods are given is one of these already. One that names no LocalQueue makes pods at once,
and what waits of it are these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from cli.simulate.cluster_jobs import ADMITTED, PENDING, JobPod, PodFate
from cli.simulate.cluster_objects import DEFAULT_SCHEDULER, Admission
from cli.simulate.manifests import GivenObject, Manifests
from jobs.core.suspended.plan import priority_of
from jobs.core.suspended.policy import SuspendedFacts
from jobs.core.suspended.training_pods import with_pods
from kube import objects
from kube.dialects.documents.document import checked
from kube.dialects.suspended import reading, training_job
from kube.dialects.suspended import workload as words
from kube.dialects.suspended.packed import unpacked
from kube.dialects.suspended.stand_ins import stand_in_uid
from model.decision import Decision
from model.fault import ConfigurationFault
from model.reason import Reason
from model.suspended.job import QUEUE_NAME, SuspendedKind
from model.suspended.workload import WorkloadObject
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.pod_record import PodRecord
from scheduler.cache.suspended_cache import gang_key, is_workload, workload_key
from scheduler.core.ledger.claim import ClaimKind
from view.cluster_outcome import Pending, SimulatedPlacement

WORKLOAD = "Workload"
KINDS = tuple(kind.value for kind in SuspendedKind)
"""Of jobs that wait whole where they name a LocalQueue."""


def workloads(found: Manifests, admission: Admission, pods: Iterable[objects.Pod]) -> Iterator[objects.Workload]:
    """Named and dated. Raises ConfigurationFault naming file, document and object."""
    given = [item.object for item in found.of(WORKLOAD)]
    known = {_owner(each.metadata) for each in (*given, *pods)}
    for each in given:
        yield _scheduled(msgspec.structs.replace(each, metadata=_owned(admission.named(each.metadata))))
    facts = _facts(found)
    for kind in SuspendedKind:
        for item in found.of(kind.value):
            metadata = item.object.metadata
            waits = QUEUE_NAME in (metadata.labels or {})
            if waits and (metadata.namespace, kind.value, metadata.name) not in known:
                yield from _made(kind, item, admission, facts)


def _made(
    kind: SuspendedKind, item: GivenObject, admission: Admission, facts: SuspendedFacts
) -> Iterator[objects.Workload]:
    """The Workload of a job; none where it has ended."""
    where = f"{item.where}: {item.label}"
    source = checked({key: item.document.get(key) for key in ("spec", "status")}, objects.UntypedObject, where)
    metadata = admission.named(item.object.metadata)
    source = msgspec.structs.replace(source, metadata=metadata)
    job = reading.suspended_job(kind, source)
    if kind is SuspendedKind.TRAINING:
        job = with_pods(job, training_job.read(source), facts.pod_classes)
    if job.problem:
        raise ConfigurationFault(item.where, job.problem)
    priority = priority_of(job, facts)
    if priority.problem:
        raise ConfigurationFault(where, priority.problem, "give the class too")
    if job.end is not None:
        return
    source_of_class = words.CLASS_SOURCE if priority.of_workloads else words.POD_CLASS_SOURCE
    spec = words.spec_of(job, priority.value, priority.name, source_of_class)
    owner = objects.OwnerReference(reading.SHAPES[kind].api_version, kind.value, job.name, job.uid, controller=True)
    named = objects.Metadata(
        name=words.workload_name(job),
        namespace=job.namespace,
        uid=f"{job.uid}/workload",
        owner_references=[owner],
        creation_timestamp=metadata.creation_timestamp,
    )
    yield _scheduled(objects.Workload(named, msgspec.Raw(msgspec.json.encode(spec))))


def _scheduled(workload: objects.Workload) -> objects.Workload:
    """Pods that name no scheduler are ours, as such pods of a file are."""
    spec: Any = unpacked(workload.spec, "spec")
    for pods in spec.get("podSets") or () if isinstance(spec, dict) else ():
        template = pods.get("template") if isinstance(pods, dict) else None
        told = template.setdefault("spec", {}) if isinstance(template, dict) else None
        if isinstance(told, dict) and not told.get("schedulerName"):
            told["schedulerName"] = DEFAULT_SCHEDULER
    return msgspec.structs.replace(workload, spec=msgspec.Raw(msgspec.json.encode(spec)))


def _owned(metadata: objects.Metadata) -> objects.Metadata:
    """Where no job is named it is taken to have one: a Workload without one is admitted by nobody."""
    if any(each.controller for each in metadata.owner_references or ()):
        return metadata
    job = objects.OwnerReference("batch/v1", "Job", metadata.name, f"{metadata.uid}/job", controller=True)
    return msgspec.structs.replace(metadata, owner_references=[*(metadata.owner_references or ()), job])


def _facts(found: Manifests) -> SuspendedFacts:
    own = {item.object.metadata.name: item.object.value for item in found.of("WorkloadPriorityClass")}
    classes = {item.object.metadata.name: item.object for item in found.of("PriorityClass")}
    usual = min((name for name, each in classes.items() if each.global_default), default="")
    return SuspendedFacts(own, {name: each.value for name, each in classes.items()}, usual)


def _owner(metadata: Any) -> tuple[str, str, str]:
    """The object that made a Workload or a pod."""
    metadata = getattr(metadata, "metadata", metadata)
    owner = next((each for each in metadata.owner_references or () if each.controller), None)
    return (metadata.namespace, owner.kind, owner.name) if owner is not None else ("", "", "")


class SimulatedWorkloads:
    """What becomes of Workloads in a simulated cluster; `given` is as `workloads` has them."""

    def __init__(self, cache: ClusterCache, given: Iterable[objects.Workload]) -> None:
        self._cache = cache
        self._given = tuple(words.workload(each) for each in given)

    def pods(self) -> Iterator[tuple[str, JobPod]]:
        """A row a pod that one would have, of those that wait at first."""
        for each in self._given:
            submission = self._cache.queues.submission(each.namespace, each.queue)
            queue = submission.queue if submission is not None else each.queue
            for uid in _uids(each) if each.waiting or not each.status.reserving else ():
                yield uid, JobPod(_name(each), queue, waited=True)

    def fates(self, decisions: Mapping[str, Decision]) -> dict[str, PodFate]:
        """By the uid of each such pod."""
        found: dict[str, PodFate] = {}
        for each in self._given:
            admission, uids = self._cache.suspended.admission(each.key), list(_uids(each))
            admitted = admission.assignments if admission is not None else ()
            for pods in admitted:
                fate = PodFate(ADMITTED, Reason.SCHEDULED.value, tuple(sorted(pods.flavors.items())))
                own = [uid for uid in uids if uid.startswith(stand_in_uid(each, pods.name, ""))]
                found |= dict.fromkeys(own[: pods.count], fate)
            told = decisions.get(_subject(each).text)
            waits = PodFate(PENDING, told.reason.value if told is not None else "")
            found |= {uid: waits for uid in uids if uid not in found and not each.status.finished}
        return found

    def seats(self) -> Iterator[SimulatedPlacement]:
        """The nodes that are kept for pods of admitted jobs."""
        for claim in self._cache.ledger.claims(ClaimKind.ADMITTED):
            workload = self._cache.suspended.get(workload_key(claim.subject.gangs[0]))
            if workload is None:
                continue
            for pod in claim.pods:
                _, name, which = pod.uid.rsplit(":", 2)
                yield SimulatedPlacement(f"{_name(workload)}:{name}:{which}", pod.node)

    def pending(self, decisions: Mapping[str, Decision]) -> Iterator[Pending]:
        """Those that wait, each by the newest decision about it."""
        for each in self._given:
            told = decisions.get(_subject(each).text)
            if not each.status.finished and self._cache.suspended.admission(each.key) is None:
                if told is not None:
                    yield Pending(_name(each), told.reason.value, told.detail)
                else:
                    yield Pending(_name(each), "", "" if each.active else "spec.active is false: it is not queued")

    def waiting(self) -> Iterator[PodRecord]:
        """What stands for the pods of those that wait."""
        for each in self._given:
            for uid in _uids(each) if self._cache.suspended.waits(each.key) else ():
                record = self._cache.pods.record(uid)
                if record is not None:
                    yield record

    def named(self, subject: WorkloadId) -> tuple[str, str] | None:
        """The job and its queue, of a subject that is a Workload; None of any other."""
        if len(subject.gangs) != 1 or not is_workload(subject.gangs[0]):
            return None
        found = self._cache.suspended.get(workload_key(subject.gangs[0]))
        if found is None:
            return subject.name, ""
        submission = self._cache.queues.submission(found.namespace, found.queue)
        return _name(found), submission.queue if submission is not None else ""


def _subject(workload: WorkloadObject) -> WorkloadId:
    return WorkloadId.gang(gang_key(workload.key))


def _name(workload: WorkloadObject) -> str:
    """Of its job, else its own."""
    return f"{workload.namespace}/{workload.owner_name or workload.name}"


def _uids(workload: WorkloadObject) -> Iterator[str]:
    for pods in workload.pod_sets:
        yield from (stand_in_uid(workload, pods.name, str(index)) for index in range(pods.count))
