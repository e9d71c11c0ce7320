"""Whose pods are whose, whatever comes first."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.controllers.job_cache import JobCache
from kube.dialects.jobs.job_pods import JobPodObject
from kube.informer import Change, ChangeKind
from kube.objects import Metadata, TrainingJob, VolcanoJob
from model.job.actions import EnsureObject, MadeKind

KEY = "TrainingJob ml/train"
LABELS = {"sublet.dev/job-uid": "u1", "sublet.dev/task": "w", "sublet.dev/task-index": "0", "sublet.dev/job-run": "0"}


def saw(kind: ChangeKind, item: Any) -> Change[Any]:
    return Change(kind, item)


def pod(name: str = "train-w-0", owner: str = "u1") -> JobPodObject:
    owners = [{"uid": owner, "controller": True}]
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "ml", "labels": LABELS, "ownerReferences": owners}}, JobPodObject
    )


def train(uid: str = "u1") -> TrainingJob:
    return TrainingJob(Metadata(name="train", namespace="ml", uid=uid))


def test_pods_before_their_job() -> None:
    told: list[str] = []
    cache = JobCache(told.append)
    cache.saw_pod(saw(ChangeKind.ADDED, pod()))
    assert told == [] and [each.name for each in cache.pods("u1")] == ["train-w-0"]
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    cache.saw_pod(saw(ChangeKind.DELETED, pod()))
    assert told == [KEY, KEY] and list(cache.pods("u1")) == []


def test_a_label_alone_gives_no_job_a_pod() -> None:
    cache = JobCache(lambda key: None)
    cache.saw_pod(saw(ChangeKind.ADDED, pod(owner="u2")))
    assert list(cache.pods("u1")) == [] == list(cache.pods("u2"))


def test_a_job_that_was_made_anew() -> None:
    """Of its name, and another uid: what was made for the first counts no more."""
    cache = JobCache(lambda key: None)
    made = EnsureObject(MadeKind.SERVICE, "train", {})
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    cache.made("u1", made)
    assert cache.is_made("u1", made) and not cache.is_made("u2", made)
    cache.forget_made("u1")
    assert not cache.is_made("u1", made)
    cache.made("u1", made)
    cache.saw_job(saw(ChangeKind.DELETED, train()))
    cache.saw_job(saw(ChangeKind.ADDED, train("u2")))
    assert not cache.is_made("u1", made) and cache.source(KEY) == train("u2")


def test_kinds_of_one_name_are_two() -> None:
    told: list[str] = []
    cache = JobCache(told.append)
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    cache.saw_job(saw(ChangeKind.ADDED, VolcanoJob(Metadata(name="train", namespace="ml", uid="u3"))))
    told.clear()
    cache.look_at_all()
    assert told == [KEY, "Job.batch.volcano.sh ml/train"]
