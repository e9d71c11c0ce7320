"""The controller of jobs that wait whole: what of a job it fails on stays with that job."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from jobs.controllers.suspended_jobs import SuspendedJobs
from jobs.core.suspended.actions import SuspendedPlan
from kube import objects
from kube.informer import Change, ChangeKind
from model.suspended.job import SuspendedKind
from model.suspended.workload import WorkloadObject

SPEC = {"suspend": True, "template": {"spec": {"containers": [{"name": "main"}]}}}


class Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def record(self, about: Any, reason: str, message: str, *, warning: bool = False) -> None:
        self.told.append((about.name, reason))


async def yes(_: str) -> bool:
    return True


def fails(*_: object) -> Any:
    raise ValueError("too many digits")


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "in the plan": ({}, fails),
    # What no API server gives: as good as anything that reading fails on.
    "as it is read": ({"kueue.x-k8s.io/max-exec-time-seconds": 5}, lambda *_: SuspendedPlan()),
}


@pytest.mark.parametrize(("labels", "decide"), CASES.values(), ids=CASES)
def test_an_error_about_a_job_ends_nobody(labels: dict[str, Any], decide: Any) -> None:
    """Whatever its author found to write: it is set aside, told once, and the next one is looked at."""
    recorder = Recorder()
    jobs = SuspendedJobs(None, None, recorder, lambda: True, yes, lambda: 1.0, decide=decide)  # type: ignore[arg-type]
    metadata = objects.Metadata("train", "ns", "u", labels={"kueue.x-k8s.io/queue-name": "a", **labels})
    source = objects.UnreadJob(metadata, msgspec.Raw(msgspec.json.encode(SPEC)))
    jobs._cache.saw_job(SuspendedKind.JOB, Change(ChangeKind.ADDED, source))
    with capture_logs() as logs:
        for _ in range(2):
            asyncio.run(jobs._reconcile("Job ns/train"))
    assert recorder.told == [("train", "ControllerError")]
    assert len(logs) == 1


def test_a_long_job_that_is_changed_all_the_time() -> None:
    """Eight such jobs held up all that the scheduler does. What its Workload says is heard at once: others wait for it."""
    looked: list[float] = []

    def plan(*_: object) -> SuspendedPlan:
        looked.append(asyncio.get_running_loop().time())
        return SuspendedPlan()

    jobs = SuspendedJobs(None, None, Recorder(), lambda: True, yes, lambda: 1.0, decide=plan)  # type: ignore[arg-type]
    metadata = objects.Metadata("train", "ns", "u", labels={"kueue.x-k8s.io/queue-name": "a"})
    spec = msgspec.json.encode(SPEC | {"note": "x" * 400_000})
    owner = objects.OwnerReference("batch/v1", "Job", "train", "u", True)
    workload = objects.Workload(objects.Metadata("job-train", "ns", "w", owner_references=[owner]))

    async def body() -> None:
        for _ in range(100):
            source = objects.UnreadJob(metadata, msgspec.Raw(spec))
            jobs._cache.saw_job(SuspendedKind.JOB, Change(ChangeKind.MODIFIED, source))
            await jobs._reconcile("Job ns/train")
        assert 1 <= len(looked) <= 6
        before = len(looked)
        jobs._cache.saw_workload(Change(ChangeKind.MODIFIED, workload))
        for _ in range(2):
            await jobs._reconcile("Job ns/train")
        assert len(looked) == before + 1

    asyncio.run(body())


class Deleting:
    """A writer that keeps which Workloads were deleted."""

    def __init__(self) -> None:
        self.deleted: list[tuple[str, str]] = []

    async def delete_workload(self, workload: WorkloadObject) -> None:
        self.deleted.append((workload.name, workload.uid))


@pytest.mark.parametrize("order", ["the job first", "the Workload first", "it was there before"])
def test_the_workload_of_a_job_that_is_gone_is_deleted(order: str) -> None:
    """Whoever deletes jobs and keeps what they own would fill etcd and the scheduler: he may not delete Workloads, and no
    quota of jobs counts them.
    """
    writer = Deleting()
    jobs = SuspendedJobs(None, writer, Recorder(), lambda: True, yes, lambda: 1.0)  # type: ignore[arg-type]
    cache = jobs._cache
    job = objects.UnreadJob(
        objects.Metadata("train", "ns", "u", labels={"kueue.x-k8s.io/queue-name": "a"}),
        msgspec.Raw(msgspec.json.encode(SPEC)),
    )
    owner = objects.OwnerReference("batch/v1", "Job", "train", "u", True)
    own = objects.Metadata("w", "ns", "uid-w", labels={"kueue.x-k8s.io/job-uid": "u"}, owner_references=[owner])
    orphan = objects.Workload(msgspec.structs.replace(own, owner_references=None))

    def looked() -> list[tuple[str, str]]:
        asyncio.run(jobs._reconcile("Workload ns/w"))
        return writer.deleted

    if order != "it was there before":
        cache.saw_job(SuspendedKind.JOB, Change(ChangeKind.ADDED, job))
        cache.saw_workload(Change(ChangeKind.ADDED, objects.Workload(own)))
        assert looked() == []
    if order == "the Workload first":
        cache.saw_workload(Change(ChangeKind.MODIFIED, orphan))
        assert looked() == [], "its job is there, and may run"
    if order != "it was there before":
        cache.saw_job(SuspendedKind.JOB, Change(ChangeKind.DELETED, job))
    cache.saw_workload(Change(ChangeKind.MODIFIED, orphan))
    assert looked() == [("w", "uid-w")]
    cache.saw_workload(Change(ChangeKind.DELETED, orphan))
    assert looked() == [("w", "uid-w")] and cache.workload("u") is None
    stranger = objects.Workload(objects.Metadata("w", "ns", "uid-x"))
    cache.saw_workload(Change(ChangeKind.ADDED, stranger))
    assert looked() == [("w", "uid-w")], "nobody of us made it"
