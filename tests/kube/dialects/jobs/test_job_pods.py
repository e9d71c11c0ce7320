"""Pods of jobs: whose they are, and what happened to them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.jobs.job_pods import JobPodObject, job_pod, owner
from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE, notice_text
from model.job.job import Member
from model.job.labels import JOB_RUN, JOB_UID, TASK, TASK_INDEX
from model.job.status import PodPhase
from model.pod.colocation import StandingNotice

LABELS = {JOB_UID: "u1", TASK: "worker", TASK_INDEX: "2", JOB_RUN: "1"}
OWNER = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "name": "train", "uid": "u1", "controller": True}


def pod(labels: dict[str, str] = LABELS, leaving: bool = False, owners: Any = (OWNER,), **status: Any) -> JobPodObject:
    metadata = {
        "name": "train-worker-2",
        "namespace": "ml",
        "uid": "p1",
        "labels": labels,
        "ownerReferences": list(owners),
    }
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"nodeName": "n1", "containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Running", **status}}, JobPodObject)


def terminated(code: int) -> list[dict[str, Any]]:
    return [{"name": "main", "state": {"terminated": {"exitCode": code}}}]


def test_a_pod_that_runs() -> None:
    found = job_pod(pod(podIP="10.0.0.1"))
    assert found is not None and (found.member, found.run, found.node) == (Member("worker", 2), 1, "n1")
    assert (found.phase, found.address, found.evicted) == (PodPhase.RUNNING, "10.0.0.1", False)
    assert found.requests["cpu"] == 2000


TARGET = [{"type": "DisruptionTarget", "status": "True"}]
ENDS: dict[str, tuple[dict[str, Any], bool, bool, int | None]] = {
    "failed by itself": ({"phase": "Failed", "containerStatuses": terminated(3)}, False, False, 3),
    "failed, and is cleared up": ({"phase": "Failed", "containerStatuses": terminated(3)}, True, False, 3),
    "preempted": ({"phase": "Running", "conditions": TARGET}, False, True, None),
    "preempted, and ended for it": (
        {"phase": "Failed", "conditions": TARGET, "containerStatuses": terminated(143)}, True, True, 143,
    ),
    "deleted": ({"phase": "Running"}, True, True, None),
    "evicted by its node": ({"phase": "Failed", "reason": "Evicted"}, False, True, None),
    "refused by its node": ({"phase": "Failed", "reason": "OutOfcpu"}, False, True, None),
    "succeeded, and is cleared up": ({"phase": "Succeeded", "containerStatuses": terminated(0)}, True, False, 0),
}  # fmt: skip


@pytest.mark.parametrize(("status", "leaving", "evicted", "code"), ENDS.values(), ids=ENDS)
def test_evictions_are_no_failures(status: dict[str, Any], leaving: bool, evicted: bool, code: int | None) -> None:
    found = job_pod(pod(leaving=leaving, **status))
    assert found is not None and (found.evicted, found.exit_code) == (evicted, code)


def test_why_a_pod_waits() -> None:
    told = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]
    found = job_pod(pod(phase="Pending", conditions=told))
    assert found is not None and found.waits == "no room"


@pytest.mark.parametrize("key", [TASK, TASK_INDEX, JOB_RUN])
def test_a_pod_without_its_place_is_none(key: str) -> None:
    assert job_pod(pod({name: text for name, text in LABELS.items() if name != key})) is None


def test_a_pod_of_another_name_is_no_member() -> None:
    other = msgspec.structs.replace(pod().metadata, name="train-worker-12")
    assert job_pod(msgspec.structs.replace(pod(), metadata=other)) is None


def test_a_label_alone_makes_nobody_the_owner() -> None:
    """Whoever may label a pod must not make it a job's."""
    assert owner(pod()) == "u1" and owner(pod(owners=())) == "" and owner(pod(owners=({**OWNER, "uid": "u2"},))) == ""


@pytest.mark.parametrize(
    ("phase", "evicted"), [("Running", False), ("Failed", True), ("Succeeded", False)], ids=["runs", "ends", "is done"]
)
def test_who_ends_once_it_was_told_has_not_failed(phase: str, evicted: bool) -> None:
    """It has saved, as it was asked to; one that had all its work done is done."""
    notice = StandingNotice(100.0, 160.0, "PreemptionByScheduler", "gang/ml/big")
    made = pod(phase=phase)
    annotations = {ANNOTATION_STANDING_NOTICE: notice_text(notice)}
    told = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=annotations))
    found, before = job_pod(told), job_pod(made)
    assert found is not None and (found.evicted, found.told_until_seconds) == (evicted, 160.0)
    assert before is not None and (before.evicted, before.told_until_seconds) == (False, 0.0)
