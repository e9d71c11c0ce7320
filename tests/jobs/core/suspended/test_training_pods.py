"""Pods of a TrainingJob that waits whole, as its own controller would make them."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.core.suspended.training_pods import with_pods
from model.job.job import GroupTerms, Job, JobDialect, JobId
from model.priority import PreemptionPolicy
from model.suspended.job import PodTemplate, SuspendedJob, SuspendedKind

OWN: dict[str, Any] = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main"}]}}
WAITS = SuspendedJob(SuspendedKind.TRAINING, "ns", "bert", pod_sets=(PodTemplate("worker", 2, OWN),))


def made(**group: Any) -> SuspendedJob:
    job = Job(JobId(JobDialect.TRAINING, "ns", "bert"), group=GroupTerms(**group))
    return with_pods(WAITS, job, {"high": 100})


def test_what_decides_where_they_go() -> None:
    """Our scheduler, the kind of GPU, the class of its number, and that nobody goes for it; the rest is the user's."""
    (pods,) = made(priority=100, gpu_type="a100", preemption_policy=PreemptionPolicy.NEVER).pod_sets
    spec = pods.template["spec"]
    assert (spec["schedulerName"], spec["priorityClassName"], spec["preemptionPolicy"]) == (
        "sublet-scheduler",
        "high",
        "Never",
    )
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["a100"]} in terms[0]["matchExpressions"]
    assert pods.template["metadata"] == OWN["metadata"] and OWN["spec"] == {"containers": [{"name": "main"}]}


def test_a_class_that_does_not_exist() -> None:
    """It is not queued, and says what is missing."""
    assert "there is no PriorityClass low" in made(priority_class="low").problem
    assert made().problem == ""


def test_what_cannot_be_read_stays_so() -> None:
    """The first problem is told."""
    broken = msgspec.structs.replace(WAITS, problem="broken", pod_sets=())
    job = Job(JobId(JobDialect.TRAINING, "ns", "bert"))
    assert with_pods(broken, job, {}).problem == "broken"
