"""Volcano's Job, field by field, and what makes no job."""

from __future__ import annotations

from typing import Any

import pytest
from job_objects import POLICIES, TEMPLATE, task, volcano

from kube.dialects.jobs.volcano_job import SUSPEND, volcano_job
from model.job.job import LifecycleRule, PodEvent, RuleAction, TaskDependency


def test_volcanos_defaults() -> None:
    """All pods together, queue default, three runs."""
    job = volcano_job(volcano())
    assert job.problem == "" and job.unmet == ()
    assert [(task.name, task.replicas, task.minimum) for task in job.tasks] == [("master", 1, 1), ("worker", 3, 3)]
    assert (job.group.minimum, job.group.queue, job.group.scheduler, job.most_failures) == (4, "default", "volcano", 3)


def test_the_published_manifest() -> None:
    job = volcano_job(
        volcano(
            schedulerName="volcano", minAvailable=4, queue="training-queue", policies=POLICIES,
            plugins={"ssh": [], "svc": [], "env": []}, maxRetry=3, ttlSecondsAfterFinished=3600,
        )
    )  # fmt: skip
    assert job.problem == "" and job.group.queue == "training-queue" and job.ttl_seconds == 3600
    assert job.plugins == {"ssh": (), "svc": (), "env": ()}
    assert job.rules == (
        LifecycleRule(RuleAction.RESTART_JOB, (PodEvent.EVICTED,)),
        LifecycleRule(RuleAction.RESTART_JOB, (PodEvent.FAILED,)),
    )


def test_rules_of_tasks() -> None:
    rules = [
        {"exitCode": 3, "action": "AbortJob"},
        {"events": ["PodPending"], "action": "RestartTask", "timeout": "5m"},
    ]
    (one,) = volcano_job(volcano(tasks=[task("w", 1, policies=rules)])).tasks
    assert one.rules == (
        LifecycleRule(RuleAction.ABORT_JOB, exit_code=3),
        LifecycleRule(RuleAction.RESTART_TASK, (PodEvent.PENDING,), timeout_seconds=300.0),
    )


def test_a_task_that_waits_for_others() -> None:
    job = volcano_job(volcano(tasks=[task("a", 1), task("b", 1, dependsOn={"name": ["a"], "iteration": "any"})]))
    assert job.tasks[1].after == TaskDependency(("a",), every=False)


def test_volumes_reach_every_container() -> None:
    volumes = [{"mountPath": "/data", "volumeClaimName": "claim"}, {"mountPath": "/tmp"}]
    (one,) = volcano_job(volcano(tasks=[task("w", 1)], volumes=volumes)).tasks
    spec = one.template["spec"]
    assert [each["mountPath"] for each in spec["containers"][0]["volumeMounts"]] == ["/data", "/tmp"]
    assert [sorted(each) for each in spec["volumes"]] == [["name", "persistentVolumeClaim"], ["emptyDir", "name"]]


def test_words_of_its_annotations() -> None:
    job = volcano_job(
        volcano({SUSPEND: "true", "volcano.sh/preemptable": "false", "volcano.sh/sla-waiting-time": "30m"})
    )
    assert job.suspend and job.inherited == {"volcano.sh/preemptable": "false"} and job.group.wait_seconds == 1800.0


UNMET: dict[str, tuple[dict[str, Any], str]] = {
    "a plugin that is not served": ({"plugins": {"ray": []}}, "spec.plugins.ray: pods get nothing of it"),
    "hyper nodes": ({"networkTopology": {"mode": "hard"}}, "spec.networkTopology"),
    "an estimate": ({"runningEstimate": "1h"}, "spec.runningEstimate"),
    "partitions": ({"tasks": [task("w", 1, partitionPolicy={"totalPartitions": 1})]}, "spec.tasks[0].partitionPolicy"),
    "a budget of a task": ({"tasks": [task("w", 1, maxRetry=1)]}, "spec.tasks[0].maxRetry"),
    "a restart of a partition": (
        {"policies": [{"event": "PodFailed", "action": "RestartPartition"}]}, "action RestartPartition: it restarts",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "told"), UNMET.values(), ids=UNMET)
def test_what_is_accepted_and_not_acted_on_is_said(spec: dict[str, Any], told: str) -> None:
    job = volcano_job(volcano(**spec))
    assert job.problem == "" and len(job.unmet) == 1 and job.unmet[0].startswith(told)


def test_a_rule_that_changes_nothing_is_none() -> None:
    """Whoever asks for what is done in any case, or for what happens to no pod."""
    rules = [{"event": "PodFailed", "action": "SyncJob"}, {"event": "OutOfSync", "action": "RestartJob"}]
    assert volcano_job(volcano(policies=rules)).rules == ()


PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "no tasks": ({"tasks": []}, "spec.tasks: is empty"),
    "an empty template": ({"tasks": [{"name": "w", "template": {}}]}, "spec.tasks[0].template: is empty"),
    "more needed than there are": ({"minAvailable": 5}, "spec.minAvailable: is 5, and its tasks have 4 pods"),
    "more of a task than there are": ({"tasks": [task("w", 1, minAvailable=2)]}, "minAvailable: is 2, more than its 1"),
    "a circle": (
        {"tasks": [task("a", 1, dependsOn={"name": ["b"]}), task("b", 1, dependsOn={"name": ["a"]})]}, "a circle of a, b",
    ),
    "a task that is not there": ({"tasks": [task("a", 1, dependsOn={"name": ["b"]})]}, "no task of that name"),
    "an unknown action": ({"policies": [{"event": "*", "action": "Dance"}]}, "policies[0].action: is 'Dance'"),
    "both event and code": (
        {"policies": [{"event": "*", "exitCode": 1, "action": "AbortJob"}]}, "policies[0]: has both events and exitCode",
    ),
    "pending for no time": ({"policies": [{"event": "PodPending", "action": "AbortJob"}]}, "has no timeout"),
    "a claim to make": ({"volumes": [{"mountPath": "/d", "volumeClaim": {"a": 1}}]}, "spec.volumes[0].volumeClaim"),
    "a name that is none": ({"tasks": [task("A_b", 1)]}, "name of a task: is 'A_b'"),
    "a name that is too long": ({"tasks": [task("w" * 60, 1)]}, "63 is the most"),
    "negative": ({"maxRetry": -1}, "spec.maxRetry"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "told"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_makes_no_job(spec: dict[str, Any], told: str) -> None:
    job = volcano_job(volcano(**spec))
    assert told in job.problem and job.problem.startswith("Job.batch.volcano.sh ml/train: "), job.problem


def test_a_wait_that_is_no_time() -> None:
    job = volcano_job(volcano({"volcano.sh/sla-waiting-time": "soon"}))
    assert "annotation volcano.sh/sla-waiting-time: is 'soon'" in job.problem


def test_a_template_is_kept_as_it_was_written() -> None:
    (one,) = volcano_job(volcano(tasks=[task("w", 1)])).tasks
    assert one.template == TEMPLATE
