"""Gangs of pods that other controllers make: those of Jobs, JobSets, LeaderWorkerSets and PyTorchJobs.

A pod says by its labels or its owner which object its controller made it for, its maker; how many pods belong together
is in that object. No gang waits for pods that nobody makes before others run: those others are placed first.
Source: kubernetes pkg/controller/job; jobset api/jobset/v1alpha2/jobset_types.go,
pkg/webhooks/pod_admission_webhook.go; lws api/leaderworkerset/v1/leaderworkerset_types.go,
pkg/controllers/pod_controller.go; kubeflow training-operator pkg/apis/kubeflow.org/v1/common_types.go,
pkg/controller.v1/common/job.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from kube.dialects.documents.duration import go_duration_seconds
from kube.dialects.gangs.membership import (
    ANNOTATION_MATCH,
    ANNOTATION_MATCH_ALIAS,
    ANNOTATION_WAIT,
    USUAL,
    GangDefaults,
    spec_of,
    whole,
)
from kube.objects import Metadata, OwnerReference
from model.workload import GangMembership, GangSource, GangSpec, MatchPolicy

_JOB_SET = "jobset.sigs.k8s.io/"
JOB_SET_NAME, REPLICATED_JOB, JOB_INDEX = (
    _JOB_SET + name for name in ("jobset-name", "replicatedjob-name", "job-index")
)
JOB_SET_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
JOB_SET_BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_LEADER_WORKER = "leaderworkerset.sigs.k8s.io/"
SET_NAME, GROUP_INDEX, WORKER_INDEX = (_LEADER_WORKER + name for name in ("name", "group-index", "worker-index"))
GROUP_SIZE = _LEADER_WORKER + "size"
SET_EXCLUSIVE = _LEADER_WORKER + "exclusive-topology"
KUBEFLOW_JOB = "training.kubeflow.org/job-name"
_SEPARATOR = ":"
"""In no name of an object, so that no PodGroup is called like such a gang."""


class Maker(StrEnum):
    """Kinds whose controllers make pods that belong together."""

    JOB = "Job"
    JOB_SET = "JobSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    PYTORCH_JOB = "PyTorchJob"


ALL = tuple(Maker)
RESOURCES: Mapping[Maker, str] = {
    Maker.JOB: "jobs.batch",
    Maker.JOB_SET: "jobsets.jobset.x-k8s.io",
    Maker.LEADER_WORKER_SET: "leaderworkersets.leaderworkerset.x-k8s.io",
    Maker.PYTORCH_JOB: "pytorchjobs.kubeflow.org",
}


class MakerId(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """One object: its kind, and `namespace/name`."""

    maker: Maker
    key: str

    @property
    def where(self) -> str:
        return f"{self.maker} {self.key}"


class MadePod(msgspec.Struct, frozen=True):
    """What a pod says of its maker.

    `part` is its ReplicatedJob, or its group in a LeaderWorkerSet, `index` its Job in a ReplicatedJob.
    `first`: others are made after it where `apart` or the object says so. `size` is how many its group has, as text.
    `base` is what its annotations say of the gang that it is in, whichever that is.
    """

    id: MakerId
    base: GangSpec
    part: str = ""
    index: str = ""
    first: bool = False
    apart: bool = False
    size: str = ""


class MakerObject(msgspec.Struct, frozen=True):
    """What such an object says of its pods.

    `sizes` are how many belong together, by part; `each` how many one Job of a part has; `queue` the one that its spec
    names. `queued`: its labels name a queue. `joint`: all its parts are made at once. `first_alone`: the first pod of a
    group is placed before the others are made. `left`: the size is of those that are left, so that finished ones do not
    count. `alone`: there is never more than one at once. `limit_seconds` is how long it may run at most, None without
    end.
    """

    id: MakerId
    sizes: Mapping[str, int] = {}
    each: Mapping[str, int] = {}
    queue: str = ""
    queued: bool = False
    joint: bool = True
    first_alone: bool = False
    left: bool = False
    alone: bool = False
    problem: str = ""
    limit_seconds: float | None = None


def made_pod(metadata: Metadata, defaults: GangDefaults = USUAL) -> MadePod | None:
    """What the labels say first, from the outermost object to the innermost: a JobSet's pods are also those of Jobs."""
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    owner = next((each for each in metadata.owner_references or () if each.controller), None)
    if owner is None and SET_NAME not in labels and JOB_SET_NAME not in labels:
        return None
    for says in (_in_leader_worker_set, _in_job_set, _in_pytorch_job, _in_job):
        found = says(labels, annotations, owner)
        if found is not None:
            maker, name, part = found
            id_ = MakerId(maker, f"{metadata.namespace}/{name}")
            return _made(id_, part, labels, annotations, defaults)
    return None


def gang_of_made(made: MadePod, found: MakerObject | None) -> GangMembership | None:
    """The gang of such a pod, None for one that is placed by itself; `found` is its maker as far as it is known.

    A maker that is not known, or says nothing of use, makes a gang that is held and says why; but for a Job, of which
    nothing on the pod says that it has a queue.
    """
    if found is None and made.id.maker is Maker.JOB:
        return None
    if found is None:
        told = f"{made.id.where} is not known: it is gone, or the scheduler may not list and watch"
        return _held(made, f"{told} {RESOURCES[made.id.maker]}")
    if found.problem:
        return _held(made, found.problem)
    return _RULES[made.id.maker](made, found)


def _in_leader_worker_set(
    labels: Mapping[str, str], annotations: Mapping[str, str], owner: OwnerReference | None
) -> tuple[Maker, str, str] | None:
    name, group = labels.get(SET_NAME), labels.get(GROUP_INDEX)
    return (Maker.LEADER_WORKER_SET, name, group) if name and group else None


def _in_job_set(
    labels: Mapping[str, str], annotations: Mapping[str, str], owner: OwnerReference | None
) -> tuple[Maker, str, str] | None:
    name, part = labels.get(JOB_SET_NAME), labels.get(REPLICATED_JOB)
    return (Maker.JOB_SET, name, part) if name and part else None


def _in_pytorch_job(
    labels: Mapping[str, str], annotations: Mapping[str, str], owner: OwnerReference | None
) -> tuple[Maker, str, str] | None:
    """Others of Kubeflow's kinds have the same label, and rules of their own."""
    known = owner is not None and _is(owner, "kubeflow.org", Maker.PYTORCH_JOB)
    name = labels.get(KUBEFLOW_JOB) if known else None
    return (Maker.PYTORCH_JOB, name, "") if name else None


def _in_job(
    labels: Mapping[str, str], annotations: Mapping[str, str], owner: OwnerReference | None
) -> tuple[Maker, str, str] | None:
    return (Maker.JOB, owner.name, "") if owner is not None and _is(owner, "batch", Maker.JOB) else None


def _is(owner: OwnerReference, group: str, kind: Maker) -> bool:
    return owner.kind == kind and owner.api_version.partition("/")[0] == group


def _made(
    id_: MakerId, part: str, labels: Mapping[str, str], annotations: Mapping[str, str], defaults: GangDefaults
) -> MadePod:
    base = spec_of(1, id_.key, annotations, defaults, go_duration_seconds(annotations.get(ANNOTATION_WAIT, "")))
    told = annotations.get(ANNOTATION_MATCH) or annotations.get(ANNOTATION_MATCH_ALIAS)
    # Pods that are made again after all of them were evicted go together again.
    match = base.match if told else MatchPolicy.WAITING_AND_RUNNING
    base = msgspec.structs.replace(base, match=match, groups=())
    if id_.maker is Maker.LEADER_WORKER_SET:
        first = labels.get(WORKER_INDEX) == "0"
        return MadePod(id_, base, part, first=first, size=annotations.get(GROUP_SIZE, ""))
    if id_.maker is Maker.JOB_SET:
        first = (annotations.get(COMPLETION_INDEX) or labels.get(COMPLETION_INDEX)) == "0"
        apart = JOB_SET_EXCLUSIVE in annotations and JOB_SET_BY_SELECTOR not in annotations
        return MadePod(id_, base, part, labels.get(JOB_INDEX, ""), first=first, apart=apart)
    return MadePod(id_, base, part)


def _job(made: MadePod, found: MakerObject) -> GangMembership | None:
    """As in Kueue, a Job that names a queue itself starts whole; one whose template names it is many pods."""
    return _gang(made, found, found.sizes[""]) if found.queued and not found.alone else None


def _job_set(made: MadePod, found: MakerObject) -> GangMembership | None:
    """With exclusive placement JobSet makes no second pod of a Job before the first has a node."""
    if made.part not in found.sizes:
        return _held(made, f"{made.id.where}: spec.replicatedJobs has no {made.part}")
    if made.apart:
        size = found.each[made.part] - 1
        return None if made.first else _gang(made, found, size, made.part, made.index)
    if found.joint:
        return _gang(made, found, sum(found.sizes.values()))
    return _gang(made, found, found.sizes[made.part], made.part)


def _leader_worker_set(made: MadePod, found: MakerObject) -> GangMembership | None:
    """A group is a gang. Where its workers come after the leader, it is placed alone, and then they together."""
    size = whole(made.size)
    if size is None or size < 1:
        return _held(made, f"annotation {GROUP_SIZE} is {made.size[:60]!r}; {made.id.where} writes a whole number")
    if not found.first_alone:
        return _gang(made, found, size)
    return None if made.first else _gang(made, found, size - 1)


def _pytorch_job(made: MadePod, found: MakerObject) -> GangMembership | None:
    return _gang(made, found, found.sizes[""])


_RULES: Mapping[Maker, Callable[[MadePod, MakerObject], GangMembership | None]] = {
    Maker.JOB: _job,
    Maker.JOB_SET: _job_set,
    Maker.LEADER_WORKER_SET: _leader_worker_set,
    Maker.PYTORCH_JOB: _pytorch_job,
}


def _gang(made: MadePod, found: MakerObject, size: int, *parts: str) -> GangMembership | None:
    """None where that is one pod. What is left of a Job may be one, too, of a gang that was larger."""
    if size <= 1 and not found.left:
        return None
    spec = msgspec.structs.replace(made.base, min_member=size, live=found.left)
    return _member(made, spec if not made.base.problem else made.base, *parts)


def _held(made: MadePod, problem: str) -> GangMembership:
    return _member(made, GangSpec(0, problem=problem))


def _member(made: MadePod, spec: GangSpec, *parts: str) -> GangMembership:
    namespace, _, name = made.id.key.partition("/")
    own = f"{name}-{made.part}" if made.id.maker is Maker.LEADER_WORKER_SET else name
    prefix = "lws" if made.id.maker is Maker.LEADER_WORKER_SET else made.id.maker.lower()
    return GangMembership(namespace, _SEPARATOR.join((prefix, own, *parts)), GangSource.MAKER, spec)
