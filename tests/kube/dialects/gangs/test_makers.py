"""Gangs of pods that other controllers make, by what the pod says and what its maker says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kube import objects
from kube.dialects.gangs.maker_objects import AnyMaker, maker_object
from kube.dialects.gangs.makers import Maker, MakerId, gang_of_made, made_pod
from kube.dialects.gangs.membership import GangDefaults, gang_of
from kube.objects import Metadata, OwnerReference
from model.workload import GangMembership, GangSource, MatchPolicy, TopologyLevel

JOB_SET = "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
KUBEFLOW = "training.kubeflow.org/job-name"
GROUP = "pod-group.scheduling.sigs.k8s.io"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
OWNERS = {
    Maker.JOB: ("batch/v1", "Job", objects.Job),
    Maker.JOB_SET: ("jobset.x-k8s.io/v1alpha2", "JobSet", objects.JobSet),
    Maker.LEADER_WORKER_SET: ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", objects.LeaderWorkerSet),
    Maker.PYTORCH_JOB: ("kubeflow.org/v1", "PyTorchJob", objects.PyTorchJob),
}


def pod(owner: str = "batch/v1 Job train", labels: Mapping[str, str] = {}, **annotations: str) -> Metadata:
    """Of a controller, written as `apiVersion kind name`; keys of annotations are given by `key` below."""
    version, kind, name = owner.split()
    found = [OwnerReference(version, kind, name, "u", True)]
    return Metadata(
        name="p",
        namespace="ns",
        labels=dict(labels),
        annotations={key(name): text for name, text in annotations.items()},
        owner_references=found,
    )


KEYS = {
    "size": LWS + "size",
    "exclusive": EXCLUSIVE,
    "by_selector": "alpha.jobset.sigs.k8s.io/node-selector",
    "index": "batch.kubernetes.io/job-completion-index",
    "rack": "sublet.dev/required-topology",
    "match": "gang.scheduling.koordinator.sh/match-policy",
    "volcano": "scheduling.k8s.io/group-name",
    "gang": "gang.scheduling.koordinator.sh/name",
    "lws_exclusive": LWS + "exclusive-topology",
}


def key(name: str) -> str:
    return KEYS[name]


def maker(kind: Maker, spec: Mapping[str, Any] = {}, *, queued: bool = True, **more: Any) -> tuple[AnyMaker, bool]:
    """An object as the API server gives it."""
    told = {"metadata": {"name": "train", "namespace": "ns", **more.pop("metadata", {})}, "spec": spec, **more}
    return msgspec.convert(told, OWNERS[kind][2]), queued


def of_job_set(part: str = "workers", job: str = "0", **annotations: str) -> Metadata:
    labels = {JOB_SET + "jobset-name": "train", JOB_SET + "replicatedjob-name": part, JOB_SET + "job-index": job}
    return pod(f"batch/v1 Job train-{part}-{job}", labels, **annotations)


def of_set(worker: int, size: str = "4") -> Metadata:
    labels = {LWS + "name": "train", LWS + "group-index": "3", LWS + "worker-index": str(worker)}
    return pod("apps/v1 StatefulSet train", labels, size=size)


def of_pytorch(owner: str = "kubeflow.org/v1 PyTorchJob train") -> Metadata:
    return pod(owner, {KUBEFLOW: "train"})


def replicated(name: str, replicas: int = 1, parallelism: int = 1, **more: Any) -> dict[str, Any]:
    template = {"spec": {"parallelism": parallelism, "completions": parallelism}}
    return {"name": name, "replicas": replicas, "template": template, **more}


LAUNCHER, WORKERS = replicated("launcher"), replicated("workers", 2, 4)
AFTER = replicated("workers", 2, 4, dependsOn=[{"name": "launcher", "status": "Ready"}])
IN_ORDER = {"startupPolicyOrder": "InOrder"}
PARALLEL = {"parallelism": 4, "completions": 4}
REPLICAS = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}}

# pod, maker -> name and minimum of its gang, None for one that is placed by itself
GANGS: dict[str, tuple[Metadata, tuple[AnyMaker, bool] | None, tuple[str, int] | None]] = {
    "a Job with a queue": (pod(), maker(Maker.JOB, PARALLEL), ("job:train", 4)),
    "a Job without": (pod(), maker(Maker.JOB, PARALLEL, queued=False), None),
    "a Job that is not known": (pod(), None, None),
    "a Job of one pod at a time": (pod(), maker(Maker.JOB, {"completions": 9}), None),
    "a Job of fewer completions": (pod(), maker(Maker.JOB, {"parallelism": 8, "completions": 3}), ("job:train", 3)),
    "a Job of more completions": (pod(), maker(Maker.JOB, {"parallelism": 3, "completions": 8}), ("job:train", 3)),
    "a work queue": (pod(), maker(Maker.JOB, {"parallelism": 3}), ("job:train", 3)),
    "a work queue that ends": (pod(), maker(Maker.JOB, {"parallelism": 3}, status={"succeeded": 1}), ("job:train", 0)),
    "a Job with finished members": (pod(), maker(Maker.JOB, PARALLEL, status={"succeeded": 3}), ("job:train", 1)),
    "a Job with indexes given up": (
        pod(),
        maker(Maker.JOB, PARALLEL, status={"succeeded": 1, "failedIndexes": "0,2-3"}),
        ("job:train", 0),
    ),
    "another's Job": (pod("batch.volcano.sh/v1alpha1 Job train"), None, None),
    "a JobSet": (of_job_set(), maker(Maker.JOB_SET, {"replicatedJobs": [LAUNCHER, WORKERS]}), ("jobset:train", 9)),
    "a JobSet without a queue": (
        of_job_set(),
        maker(Maker.JOB_SET, {"replicatedJobs": [WORKERS]}, queued=False),
        ("jobset:train", 8),
    ),
    "a JobSet of one pod": (of_job_set("launcher"), maker(Maker.JOB_SET, {"replicatedJobs": [LAUNCHER]}), None),
    "a JobSet in order, first": (
        of_job_set("launcher"),
        maker(Maker.JOB_SET, {"replicatedJobs": [LAUNCHER, WORKERS], "startupPolicy": IN_ORDER}),
        None,
    ),
    "a JobSet in order, then": (
        of_job_set(),
        maker(Maker.JOB_SET, {"replicatedJobs": [LAUNCHER, WORKERS], "startupPolicy": IN_ORDER}),
        ("jobset:train:workers", 8),
    ),
    "a JobSet with dependencies": (
        of_job_set(),
        maker(Maker.JOB_SET, {"replicatedJobs": [LAUNCHER, AFTER]}),
        ("jobset:train:workers", 8),
    ),
    "exclusive placement, first of a Job": (
        of_job_set(exclusive="rack", index="0"),
        maker(Maker.JOB_SET, {"replicatedJobs": [LAUNCHER, WORKERS]}),
        None,
    ),
    "exclusive placement, others of a Job": (
        of_job_set(job="1", exclusive="rack", index="2"),
        maker(Maker.JOB_SET, {"replicatedJobs": [LAUNCHER, WORKERS]}),
        ("jobset:train:workers:1", 3),
    ),
    "exclusive placement by selectors": (
        of_job_set(exclusive="rack", by_selector="true", index="0"),
        maker(Maker.JOB_SET, {"replicatedJobs": [WORKERS]}),
        ("jobset:train", 8),
    ),
    "a leader": (of_set(0), maker(Maker.LEADER_WORKER_SET), ("lws:train-3", 4)),
    "a worker": (of_set(2), maker(Maker.LEADER_WORKER_SET), ("lws:train-3", 4)),
    "a leader alone": (of_set(0, "1"), maker(Maker.LEADER_WORKER_SET), None),
    "a leader that must be ready": (
        of_set(0),
        maker(Maker.LEADER_WORKER_SET, {"startupPolicy": "LeaderReady"}),
        None,
    ),
    "workers of one that must be ready": (
        of_set(1),
        maker(Maker.LEADER_WORKER_SET, {"startupPolicy": "LeaderReady"}),
        ("lws:train-3", 3),
    ),
    "a leader that must have a node": (
        of_set(0),
        maker(Maker.LEADER_WORKER_SET, metadata={"annotations": {LWS + "exclusive-topology": "rack"}}),
        None,
    ),
    "a PyTorchJob": (of_pytorch(), maker(Maker.PYTORCH_JOB, REPLICAS), ("pytorchjob:train", 4)),
    "a PyTorchJob with a minimum": (
        of_pytorch(),
        maker(Maker.PYTORCH_JOB, {**REPLICAS, "runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}),
        ("pytorchjob:train", 2),
    ),
    "another of Kubeflow's kinds": (of_pytorch("kubeflow.org/v1 MPIJob train"), None, None),
    "a Deployment's pod": (pod("apps/v1 ReplicaSet train"), None, None),
}


def gang(metadata: Metadata, told: tuple[AnyMaker, bool] | None) -> GangMembership | None:
    made = made_pod(metadata)
    return gang_of_made(made, maker_object(told[0], queued=told[1]) if told else None) if made else None


@pytest.mark.parametrize(("metadata", "told", "expected"), GANGS.values(), ids=GANGS)
def test_the_gang_of_a_made_pod(
    metadata: Metadata, told: tuple[AnyMaker, bool] | None, expected: tuple[str, int] | None
) -> None:
    """Its name, which no PodGroup can have, and how many go together."""
    found = gang(metadata, told)
    if expected is None:
        assert found is None
        return
    assert found is not None and found.spec is not None
    assert (found.namespace, found.name, found.spec.min_member) == ("ns", *expected)
    assert (found.source, found.spec.problem) == (GangSource.MAKER, "")


HELD: dict[str, tuple[Metadata, tuple[AnyMaker, bool] | None, str]] = {
    "a JobSet that is not known": (
        of_job_set(),
        None,
        "JobSet ns/train is not known: it is gone, or the scheduler may not list and watch jobsets.jobset.x-k8s.io",
    ),
    "a LeaderWorkerSet that is not known": (of_set(0), None, "LeaderWorkerSet ns/train is not known"),
    "a PyTorchJob that is not known": (of_pytorch(), None, "PyTorchJob ns/train is not known"),
    "a JobSet without that part": (
        of_job_set("lost"),
        maker(Maker.JOB_SET, {"replicatedJobs": [WORKERS]}),
        "JobSet ns/train: spec.replicatedJobs has no lost",
    ),
    "a group without a size": (
        of_set(1, "many"),
        maker(Maker.LEADER_WORKER_SET),
        f"annotation {LWS}size is 'many'; LeaderWorkerSet ns/train writes a whole number",
    ),
    "a number that is none": (
        of_pytorch(),
        maker(Maker.PYTORCH_JOB, {"pytorchReplicaSpecs": {"Worker": {"replicas": "3"}}}),
        "PyTorchJob ns/train: spec.pytorchReplicaSpecs.Worker.replicas is '3'; write a whole number of 0 or more",
    ),
}


@pytest.mark.parametrize(("metadata", "told", "problem"), HELD.values(), ids=HELD)
def test_what_holds_a_gang(metadata: Metadata, told: tuple[AnyMaker, bool] | None, problem: str) -> None:
    """A size that nobody can tell is no reason to place pods one by one; the sentence has object and field."""
    found = gang(metadata, told)
    assert found is not None and found.spec is not None
    assert found.spec.problem.startswith(problem)


# Everything at once, and less and less of it: which word counts.
WORDS: tuple[tuple[str, Metadata, GangSource | Maker], ...] = (
    ("a PodGroup's label", pod(labels={GROUP: "g", GROUP + "/name": "l"}, gang="a", volcano="v"), GangSource.POD_GROUP),
    ("the lightweight label", pod(labels={GROUP + "/name": "l"}, gang="a", volcano="v"), GangSource.ANNOTATION),
    ("the annotation", pod(gang="a", volcano="v"), GangSource.ANNOTATION),
    ("Volcano's annotation", pod(volcano="v"), GangSource.VOLCANO),
    (
        "a LeaderWorkerSet's labels",
        pod(labels={**(of_set(1).labels or {}), **(of_job_set().labels or {}), KUBEFLOW: "train"}),
        Maker.LEADER_WORKER_SET,
    ),
    ("a JobSet's labels", of_job_set(), Maker.JOB_SET),
    ("a PyTorchJob's label", of_pytorch(), Maker.PYTORCH_JOB),
    ("the Job that owns it", pod(), Maker.JOB),
)


@pytest.mark.parametrize(("metadata", "expected"), [row[1:] for row in WORDS], ids=[row[0] for row in WORDS])
def test_which_word_counts(metadata: Metadata, expected: GangSource | Maker) -> None:
    """A pod's own words on a gang come before those of its maker, and of makers the outermost counts."""
    own, made = gang_of(metadata), made_pod(metadata)
    assert (own.source if own else made.id.maker if made else None) == expected


def test_what_annotations_say() -> None:
    """Of a template: timeout, match policy and topology hold for the gang, which goes together again when made again."""
    found = gang(pod(rack="rack"), maker(Maker.JOB, PARALLEL))
    assert found is not None and found.spec is not None
    assert found.spec.topology == (TopologyLevel("rack", required=True),)
    assert (found.spec.match, found.spec.live) == (MatchPolicy.WAITING_AND_RUNNING, True)
    other = gang(pod(match="once-satisfied"), maker(Maker.JOB, PARALLEL))
    assert other is not None and other.spec is not None and other.spec.match is MatchPolicy.ONCE_SATISFIED
    made = made_pod(of_set(0), GangDefaults(timeout_seconds=9.0))
    assert made is not None and made.base.timeout_seconds == 9.0
    assert made.id == MakerId(Maker.LEADER_WORKER_SET, "ns/train")
