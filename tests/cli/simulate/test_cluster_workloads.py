"""Kueue's kinds in both of its versions, and jobs that wait whole, each by what it changes in a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cli.simulate.cluster_workloads import KINDS
from model.fault import ConfigurationFault
from tests.cli.simulate.clusters import Object, decided, node, other, pod
from view.cluster_outcome import Outcome

VERSIONS = ("v1beta1", "v1beta2")
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
LEVEL = "example.com/block"


def kueue(version: str, kind: str, name: str, spec: Object | None = None, **fields: Any) -> Object:
    found = other(kind, f"kueue.x-k8s.io/{version}", name, **fields)
    return found if spec is None else found | {"spec": spec}


def flavor(version: str, name: str = "fast", labels: Object | None = None, **spec: Any) -> Object:
    return kueue(version, "ResourceFlavor", name, {"nodeLabels": labels or {}, **spec})


def cluster_queue(
    version: str, name: str = "team", cpu: int = 4, flavors: tuple[str, ...] = ("fast",), **spec: Any
) -> Object:
    quotas = [{"name": each, "resources": [{"name": "cpu", "nominalQuota": cpu}]} for each in flavors]
    group = {"coveredResources": ["cpu"], "flavors": quotas}
    return kueue(version, "ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group], **spec})


def local_queue(version: str, name: str = "team", queue: str = "team", **spec: Any) -> Object:
    return kueue(version, "LocalQueue", name, {"clusterQueue": queue, **spec})


def in_cohort(version: str, cohort: str) -> Object:
    """The field that names it was renamed."""
    return {"cohort" if version == "v1beta1" else "cohortName": cohort}


def below(version: str, parent: str) -> Object:
    return {"parent" if version == "v1beta1" else "parentName": parent}


def workload(version: str, name: str = "w", count: int = 2, cpu: str = "1", **spec: Any) -> Object:
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    sets = [{"name": "main", "count": count, "template": template}]
    return kueue(version, "Workload", name, {"queueName": "team", "podSets": sets, **spec})


def queues(version: str, **spec: Any) -> list[Object]:
    return [flavor(version), cluster_queue(version, **spec), local_queue(version), node("n1", "16")]


def labelled(name: str, labels: Object, cpu: str = "16") -> Object:
    found = node(name, cpu)
    found["metadata"]["labels"] = labels
    return found


def fates(outcome: Outcome) -> dict[str, tuple[str, int, dict[str, str], str]]:
    """By job."""
    return {row.name: (row.outcome, row.count, dict(row.flavors), row.reason) for row in outcome.workloads}


# each kind: the cluster with it, and what is another without it


def resource_flavor(version: str) -> tuple[list[Object], str, str]:
    """Its labels lead a pod to its nodes."""
    nodes = [labelled("a", {}), labelled("b", {"pool": "fast"})]
    rest = [cluster_queue(version), local_queue(version), *nodes, pod("p", labels=QUEUE)]
    return [flavor(version, labels={"pool": "fast"}), *rest], "default/p on b", "default/p waits: QuotaTooSmall"


def the_cluster_queue(version: str) -> tuple[list[Object], str, str]:
    """Its quota has room for one of two."""
    pods = [pod(name, "3", labels=QUEUE) for name in ("p", "q")]
    rest = [flavor(version), local_queue(version), node("n1", "16"), *pods]
    found = [cluster_queue(version), *rest]
    return (
        found,
        "default/p on n1, default/q waits: QuotaExhausted",
        "default/p waits: QueueNotFound, default/q waits: QueueNotFound",
    )


def cohort(version: str) -> tuple[list[Object], str, str]:
    """Two cohorts below one lend to each other."""
    lender = cluster_queue(version, "lender", 8, **in_cohort(version, "b"))
    borrower = cluster_queue(version, cpu=2, **in_cohort(version, "a"))
    rest = [flavor(version), borrower, lender, local_queue(version), node("n1", "16"), pod("p", "4", labels=QUEUE)]
    tree = [kueue(version, "Cohort", name, below(version, "top")) for name in ("a", "b")]
    return [*tree, *rest], "default/p on n1", "default/p waits: QuotaTooSmall"


def the_local_queue(version: str) -> tuple[list[Object], str, str]:
    """The name by which a pod gets into the queue."""
    rest = [flavor(version), cluster_queue(version), node("n1", "16"), pod("p", labels=QUEUE)]
    return [local_queue(version), *rest], "default/p on n1", "default/p waits: QueueNotFound"


def topology(version: str, levels: list[Object]) -> list[Object]:
    """A gang that must be in one block; the first node is alone in its."""
    labels = [{LEVEL: block, "pool": "fast"} for block in ("x", "y", "y")]
    nodes = [labelled(name, each, "2") for name, each in zip("abc", labels, strict=True)]
    annotations = {
        "gang.scheduling.koordinator.sh/name": "g",
        "gang.scheduling.koordinator.sh/min-available": "2",
        "kueue.x-k8s.io/podset-required-topology": LEVEL,
    }
    pods = [pod(name, "2", labels=QUEUE) for name in ("p", "q")]
    for each in pods:
        each["metadata"]["annotations"] = annotations
    found = [flavor(version, labels={"pool": "fast"}, topologyName="blocks"), cluster_queue(version)]
    return [*found, kueue(version, "Topology", "blocks", {"levels": levels}), local_queue(version), *nodes, *pods]


KIND_CASES: dict[str, Callable[[str], tuple[list[Object], str, str]]] = {
    "ResourceFlavor": resource_flavor,
    "ClusterQueue": the_cluster_queue,
    "Cohort": cohort,
    "LocalQueue": the_local_queue,
}


def told(outcome: Outcome) -> str:
    """Every pod and where it is, or why not."""
    placed = [f"{each.pod} on {each.node}" for each in outcome.placements]
    return ", ".join(sorted([*placed, *(f"{each.pod} waits: {each.reason}" for each in outcome.pending)]))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KIND_CASES)
def test_a_kind_of_queues_counts(kind: str, version: str) -> None:
    """What is decided with objects of the kind, and what without them."""
    found, with_it, without = KIND_CASES[kind](version)
    assert told(decided(*found)) == with_it
    assert told(decided(*(each for each in found if each["kind"] != kind))) == without


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topology(version: str) -> None:
    """A gang that must be in one block gets one, though another node comes first; levels are read."""
    assert told(decided(*topology(version, [{"nodeLabel": LEVEL}]))) == "default/p on b, default/q on c"
    with pytest.raises(ConfigurationFault, match=r"document 3: Topology blocks: spec\.levels"):
        decided(*topology(version, []))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_workload_is_admitted_whole(version: str) -> None:
    """With its flavours and seats; a second one waits, with none of its pods."""
    outcome = decided(*queues(version), workload(version, count=3), workload(version, "x", count=2))
    assert fates(outcome) == {
        "default/w": ("admitted", 3, {"cpu": "fast"}, "Scheduled"),
        "default/x": ("pending", 2, {}, "QuotaExhausted"),
    }
    assert [each.pod for each in outcome.placements] == [f"default/w:main:{index}" for index in range(3)]
    (waits,) = outcome.pending
    assert waits.pod == "default/x" and "cpu" in waits.message
    assert {each.name: each.pending["cpu"] for each in outcome.queues}["team"] == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_priority_and_state_of_workloads(version: str) -> None:
    """One of higher priority goes first; one that is not active is not queued; the class is named in either way."""
    named = {"priorityClassName": "urgent"} if version == "v1beta1" else {"priorityClassRef": {"name": "urgent"}}
    late = workload(version, "late", count=4, priority=10, **named)
    off = workload(version, "off", count=1, priority=99, active=False)
    found = fates(decided(*queues(version), workload(version, "early", count=4), late, off))
    assert {name: each[0] for name, each in found.items()} == {
        "default/early": "pending",
        "default/late": "admitted",
        "default/off": "pending",
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_local_queue_on_hold(version: str) -> None:
    found = [flavor(version), cluster_queue(version), local_queue(version, stopPolicy="Hold"), node("n1")]
    assert fates(decided(*found, workload(version)))["default/w"][3] == "QueueHeld"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_admitted_workload_keeps_its_quota(version: str) -> None:
    """Its status says what it has, without a pod of it."""
    assignment = {"name": "main", "count": 3, "flavors": {"cpu": "fast"}, "resourceUsage": {"cpu": "3"}}
    conditions = [{"type": kind, "status": "True"} for kind in ("QuotaReserved", "Admitted")]
    status = {"conditions": conditions, "admission": {"clusterQueue": "team", "podSetAssignments": [assignment]}}
    held = workload(version, "held", count=3) | {"status": status}
    outcome = decided(*queues(version), held, workload(version, count=2))
    assert fates(outcome)["default/w"] == ("pending", 2, {}, "QuotaExhausted")
    assert {each.name: each.used["fast/cpu"] for each in outcome.queues}["team"] == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_by_quota_alone(version: str) -> None:
    """Without a Node quota decides, of Workloads as well."""
    found = [flavor(version), cluster_queue(version), local_queue(version)]
    outcome = decided(*found, workload(version, count=3), workload(version, "x", count=2))
    assert {name: each[0] for name, each in fates(outcome).items()} == {"default/w": "admitted", "default/x": "pending"}


# jobs


def template(cpu: str = "1") -> Object:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def batch_job(name: str, labels: Object) -> Object:
    spec = {"suspend": True, "parallelism": 3, "completions": 3, "template": template()}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


def job_set(name: str, labels: Object) -> Object:
    inner = {"parallelism": 1, "completions": 1, "template": template()}
    spec = {"suspend": True, "replicatedJobs": [{"name": "workers", "replicas": 3, "template": {"spec": inner}}]}
    told = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return told | {"metadata": {"name": name, "labels": labels}, "spec": spec}


def training_job(name: str, labels: Object) -> Object:
    resources = {"minReplicas": 3, "maxReplicas": 3, "replicaResources": {"cpu": "1"}}
    spec = {"jobType": "PyTorchJob", "resources": resources, "template": template(), "suspend": True}
    told = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob"}
    return told | {"metadata": {"name": name, "labels": labels}, "spec": spec}


JOBS = {"Job": batch_job, "JobSet": job_set, "TrainingJob": training_job}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_in_a_local_queue_waits_whole(kind: str, version: str) -> None:
    """The first is admitted with all its pods, the second waits; one without a queue has no Workload."""
    jobs = [JOBS[kind](name, QUEUE) for name in ("a", "b")]
    outcome = decided(*queues(version), *jobs, JOBS[kind]("c", {}))
    assert {name: each[:3] for name, each in fates(outcome).items()} == {
        "default/a": ("admitted", 3, {"cpu": "fast"}),
        "default/b": ("pending", 3, {}),
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_workload_priority_class(kind: str, version: str) -> None:
    """A job that names one goes before an older name; a class that is not given is said."""
    urgent = QUEUE | {"kueue.x-k8s.io/priority-class": "urgent"}
    found = [*queues(version), JOBS[kind]("a", QUEUE), JOBS[kind]("b", urgent)]
    outcome = decided(*found, kueue(version, "WorkloadPriorityClass", "urgent", value=100))
    assert {name: each[0] for name, each in fates(outcome).items()} == {"default/a": "pending", "default/b": "admitted"}
    with pytest.raises(ConfigurationFault, match="WorkloadPriorityClass urgent, which does not exist"):
        decided(*found)


def test_a_training_job_as_its_own_controller_reads_it() -> None:
    """Its PriorityClass is of its schedulingConfig: it goes before an older name; one that is not given is said."""
    urgent = training_job("b", QUEUE)
    urgent["spec"]["schedulingConfig"] = {"priorityClassName": "urgent"}
    found = [*queues("v1beta1"), training_job("a", QUEUE), urgent]
    outcome = decided(*found, other("PriorityClass", "scheduling.k8s.io/v1", "urgent", value=100))
    assert {name: each[0] for name, each in fates(outcome).items()} == {"default/a": "pending", "default/b": "admitted"}
    with pytest.raises(ConfigurationFault, match=r"default/b: there is no PriorityClass urgent"):
        decided(*found)


def test_a_job_whose_workload_is_given() -> None:
    """It is that one."""
    given = workload("v1beta1", "job-a-12345", count=3)
    given["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": True}
    ]
    outcome = decided(*queues("v1beta1"), batch_job("a", QUEUE), given)
    assert fates(outcome) == {"default/a": ("admitted", 3, {"cpu": "fast"}, "Scheduled")}


def test_a_job_that_cannot_be_read() -> None:
    """File, object and field."""
    broken = batch_job("a", QUEUE | {"kueue.x-k8s.io/max-exec-time-seconds": "soon"})
    with pytest.raises(ConfigurationFault, match=r"file document 5: Job default/a: metadata.labels.* is 'soon'"):
        decided(*queues("v1beta1"), broken)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("group", "fields", "label"),
    [
        ("scheduling.sigs.k8s.io/v1alpha1", {"spec": {"minMember": 2}}, "pod-group.scheduling.sigs.k8s.io"),
        ("scheduling.volcano.sh/v1beta1", {"spec": {"minMember": 2}}, "scheduling.k8s.io/group-name"),
    ],
)
def test_pod_groups_in_a_local_queue(version: str, group: str, fields: Object, label: str) -> None:
    """Both pods or none: the quota has room for one of the two."""
    pods = [pod(name, "3", labels=QUEUE) for name in ("p", "q")]
    for each in pods:
        where = "labels" if label.startswith("pod-group") else "annotations"
        each["metadata"][where] = each["metadata"].get(where, {}) | {label: "x"}
    found = [*queues(version), other("PodGroup", group, "x", **fields), *pods]
    assert told(decided(*found)) == "default/p waits: QuotaTooSmall, default/q waits: QuotaTooSmall"
    wider = [flavor(version), cluster_queue(version, cpu=6), *found[2:]]
    assert told(decided(*wider)) == "default/p on n1, default/q on n1"
