"""TrainingJob, field by field, and what makes no job."""

from __future__ import annotations

from typing import Any

import pytest
from job_objects import TEMPLATE, training

from kube.dialects.jobs.training_job import training_job
from model.job.job import CheckpointPolicy, ElasticPolicy, Framework, PodEvent, RuleAction
from model.priority import PreemptionPolicy

ELASTIC = {
    "enabled": True,
    "minWorkers": 2,
    "maxWorkers": 6,
    "scalePolicy": {"scaleUpCooldown": "30s", "scaleUpStep": 2},
}
SETS = [{"name": "master", "template": TEMPLATE}, {"name": "worker", "replicas": 3, "template": TEMPLATE}]


def test_pods_that_are_alike() -> None:
    """All start together, any loss restarts all, three failures end it."""
    job = training_job(training())
    assert job.problem == "" and job.unmet == ()
    assert [(task.name, task.replicas, task.minimum) for task in job.tasks] == [("worker", 2, 2)]
    assert (job.group.minimum, job.most_failures, job.framework) == (2, 3, Framework.PYTORCH)
    assert [(rule.action, rule.events) for rule in job.rules] == [
        (RuleAction.RESTART_JOB, (PodEvent.EVICTED,)),
        (RuleAction.RESTART_JOB, (PodEvent.FAILED,)),
    ]


def test_named_sets() -> None:
    """The master leads; the minimum is all of them."""
    job = training_job(training(template=None, resources=None, podSets=SETS))
    assert [(task.name, task.replicas) for task in job.tasks] == [("master", 1), ("worker", 3)]
    assert job.leader == "master" and job.group.minimum == 4


def test_the_first_pod_of_an_mpi_job_leads() -> None:
    assert training_job(training(jobType="MPIJob")).leader == "worker-0"


def test_scheduling_terms() -> None:
    told = {
        "queue": "research",
        "priority": 7,
        "priorityClassName": "high",
        "maxWaitTime": "1h30m",
        "preemptionPolicy": "PreemptAlways",
        "schedulerName": "koord-scheduler",
        "gangScheduling": False,
    }
    resources = {"minReplicas": 2, "gpuType": "A100", "topologyConstraint": "rack"}
    group = training_job(training(schedulingConfig=told, resources=resources)).group
    assert (group.queue, group.priority, group.priority_class, group.wait_seconds) == ("research", 7, "high", 5400.0)
    assert (group.preemption_policy, group.scheduler) == (PreemptionPolicy.ALWAYS, "koord-scheduler")
    assert (group.minimum, group.gpu_type, group.required_topology) == (1, "A100", "rack")


@pytest.mark.parametrize(
    ("word", "policy"), [("Never", PreemptionPolicy.NEVER), ("PreemptLower", None)], ids=["never", "as the class says"]
)
def test_preemption_policies(word: str, policy: PreemptionPolicy | None) -> None:
    assert training_job(training(schedulingConfig={"preemptionPolicy": word})).group.preemption_policy is policy


def test_an_elastic_job() -> None:
    """It has all its pods at the most, and needs the least together."""
    job = training_job(training(elasticConfig=ELASTIC))
    assert job.elastic == ElasticPolicy("worker", 2, 6, up_step=2, up_cooldown_seconds=30.0)
    assert [(task.replicas, task.minimum) for task in job.tasks] == [(6, 2)] and job.group.minimum == 2


def test_what_ends_and_suspends_it() -> None:
    job = training_job(training(suspend=True, maxRetry=0, ttlSecondsAfterFinished=60))
    assert (job.suspend, job.most_failures, job.ttl_seconds) == (True, 0, 60)


def test_resources_that_the_container_does_not_name() -> None:
    """Requests and limits alike; its own word stays."""
    own = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
    asked = {"minReplicas": 1, "replicaResources": {"cpu": "2", "memory": "4Gi", "gpu": 8}}
    (task,) = training_job(training(template=own, resources=asked)).tasks
    assert task.template["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "4Gi", "nvidia.com/gpu": "8"},
        "limits": {"memory": "4Gi", "nvidia.com/gpu": "8"},
    }


UNMET: dict[str, tuple[dict[str, Any], str]] = {
    "a ceiling without growth": ({"resources": {"minReplicas": 1, "maxReplicas": 2}}, "spec.resources.maxReplicas"),
    "growth that is off": ({"elasticConfig": {"enabled": False}}, "spec.elasticConfig: enabled is not true"),
}


@pytest.mark.parametrize(("spec", "told"), UNMET.values(), ids=UNMET)
def test_what_is_accepted_and_not_acted_on_is_said(spec: dict[str, Any], told: str) -> None:
    job = training_job(training(**spec))
    assert job.problem == "" and len(job.unmet) == 1 and job.unmet[0].startswith(told)


def test_a_checkpoint_is_kept() -> None:
    job = training_job(training(checkpoint={"url": "file:///c", "interval": "5m", "maxCheckpoints": 2}))
    assert job.checkpoint == CheckpointPolicy("file:///c", 300.0, 2)


PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "no framework": ({"jobType": "AbacusJob"}, "spec.jobType: is 'AbacusJob' (write one of PyTorchJob, TFJob"),
    "no template": ({"template": None}, "has neither template nor podSets"),
    "template and sets": ({"podSets": SETS}, "has both template and podSets"),
    "an empty template": ({"template": {}}, "spec.template: is empty"),
    "no container": ({"template": {"spec": {"containers": []}}}, "spec.template.spec.containers: is empty"),
    "no containers at all": ({"template": {"spec": {}}}, "spec.template.spec"),
    "no sets": ({"template": None, "podSets": []}, "spec.podSets: is empty"),
    "sets of one name": ({"template": None, "podSets": [SETS[0], SETS[0]]}, "task master: is written twice"),
    "no number of pods": ({"resources": {}}, "spec.resources.minReplicas: is not given"),
    "more at least than at most": ({"resources": {"minReplicas": 3, "maxReplicas": 2}}, "minReplicas 3 is more than maxRe"),
    "less than nothing": ({"resources": {"minReplicas": -1}}, "spec.resources.minReplicas"),
    "elastic upside down": ({"elasticConfig": {**ELASTIC, "maxWorkers": 1}}, "minWorkers 2 is more than maxWorkers 1"),
    "elastic without bounds": ({"elasticConfig": {"enabled": True}}, "write minWorkers and maxWorkers"),
    "elastic beyond its replicas": (
        {"resources": {"minReplicas": 3}, "elasticConfig": ELASTIC}, "2 to 6 workers are beyond spec.resources",
    ),
    "elastic without workers": (
        {"template": None, "resources": None, "podSets": SETS[:1], "elasticConfig": ELASTIC}, "has no set called worker",
    ),
    "a wait that is no time": ({"schedulingConfig": {"maxWaitTime": "soon"}}, "spec.schedulingConfig.maxWaitTime: is 'soon'"),
    "too many pods": ({"resources": {"minReplicas": 10_001}}, "has 10001 pods (write at most 10000)"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "told"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_makes_no_job(spec: dict[str, Any], told: str) -> None:
    """One sentence that names the object and the field; nothing of it is made."""
    job = training_job(training(**spec))
    assert told in job.problem and job.problem.startswith("TrainingJob ml/train: ") and job.tasks == ()
