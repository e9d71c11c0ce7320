"""Stand-ins are what pods of the template would be, and no more: a template may say what no pod may."""

from __future__ import annotations

from typing import Any

import pytest

from kube import objects
from kube.dialects.suspended.stand_ins import belongs, stand_ins
from model.priority import PreemptionPolicy, PriorityClass
from model.suspended.job import PodTemplate
from model.suspended.workload import WorkloadObject

CLASSES = {
    "": PriorityClass("usual", 7),
    "high": PriorityClass("high", 1000),
    "quiet": PriorityClass("quiet", 900, PreemptionPolicy.NEVER),
}


def workload(**spec: Any) -> WorkloadObject:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main"}], **spec}}
    sets = (PodTemplate("main", 2, template),)
    return WorkloadObject("ns", "job-train", "w", owner="job-uid", queue="a", pod_sets=sets)


@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        ({}, 7, None),
        ({"priority": 2_000_000_000}, 7, None),
        ({"priorityClassName": "high", "priority": 5}, 1000, None),
        ({"priorityClassName": "quiet"}, 900, "Never"),
        ({"priorityClassName": "quiet", "preemptionPolicy": "PreemptLowerPriority"}, 900, "Never"),
        ({"preemptionPolicy": "Never"}, 7, "Never"),
        ({"priorityClassName": "unknown"}, None, None),
    ],
)
def test_priority(spec: dict[str, Any], priority: int | None, policy: str | None) -> None:
    """As the API server has it for pods: by the class alone."""
    for pod in stand_ins(workload(**spec), CLASSES.get, 5.0):
        assert (pod.spec.priority, pod.spec.preemption_policy) == (priority, policy)


def test_no_node() -> None:
    """What stands in for a pod takes nothing of a node."""
    assert [pod.spec.node_name for pod in stand_ins(workload(nodeName="n0"), CLASSES.get, 5.0)] == ["", ""]


def test_alike() -> None:
    """They differ by name, and share what is large."""
    first, second = stand_ins(workload(), CLASSES.get, 5.0)
    assert (first.metadata.uid, second.metadata.uid) == ("w:main:0", "w:main:1")
    assert first.spec is second.spec and first.metadata.labels is second.metadata.labels


@pytest.mark.parametrize(
    ("owner", "controls", "belonging"),
    [("job-uid", True, True), ("job-uid", False, False), ("other", True, False), ("", True, False)],
)
def test_belongs(owner: str, controls: bool, belonging: bool) -> None:
    """A pod is of the job that controls it, whatever its annotations name."""
    owners = [objects.OwnerReference("batch/v1", "Job", "train", owner, controls)] if owner else None
    metadata = objects.Metadata("p", "ns", "u", owner_references=owners)
    assert belongs(metadata, workload()) is belonging
    assert not belongs(metadata, WorkloadObject("ns", "job-train", "w"))


@pytest.mark.parametrize(
    ("kind", "name", "belonging"), [("Job", "train", True), ("Job", "b", False), ("Pod", "train", False)]
)
def test_belongs_to_a_job_set(kind: str, name: str, belonging: bool) -> None:
    """Its Jobs control its pods, which bear its name."""
    owners = [objects.OwnerReference("batch/v1", kind, "train-0", "of-the-job", True)]
    labels = {"jobset.sigs.k8s.io/jobset-name": name}
    metadata = objects.Metadata("p", "ns", "u", labels=labels, owner_references=owners)
    found = WorkloadObject("ns", "jobset-train", "w", owner="s", owner_name="train", owner_kind="JobSet")
    assert belongs(metadata, found) is belonging
