"""Whose pods are whose, whatever comes first."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jobs.controllers.job_cache import JobCache
from kube.dialects.jobs.job_pods import JobPodObject
from kube.informer import Change, ChangeKind
from kube.objects import Metadata, OwnerReference, PodSpec, TrainingJob, VolcanoCommand, VolcanoJob
from model.job.actions import EnsureObject, MadeKind

KEY = "TrainingJob ml/train"
LABELS = {"sublet.dev/job-uid": "u1", "sublet.dev/task": "w", "sublet.dev/task-index": "0", "sublet.dev/job-run": "0"}


def saw(kind: ChangeKind, item: Any) -> Change[Any]:
    return Change(kind, item)


def pod(name: str = "train-w-0", owner: str = "u1", namespace: str = "ml", label: str = "u1") -> JobPodObject:
    owners, labels = [{"uid": owner, "controller": True}], LABELS | {"sublet.dev/job-uid": label}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owners}}, JobPodObject
    )


def train(uid: str = "u1") -> TrainingJob:
    return TrainingJob(Metadata(name="train", namespace="ml", uid=uid))


def made_for(uid: str, name: str = "train", namespace: str = "ml") -> Metadata:
    owners = [OwnerReference(name="train", uid=uid, controller=True)]
    return Metadata(name=name, namespace=namespace, owner_references=owners)


def test_pods_before_their_job() -> None:
    told: list[str] = []
    cache = JobCache(told.append)
    cache.saw_pod(saw(ChangeKind.ADDED, pod()))
    assert told == [] and list(cache.pods("u1")) == []
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    assert [each.name for each in cache.pods("u1")] == ["train-w-0"]
    cache.saw_pod(saw(ChangeKind.DELETED, pod()))
    assert told == [KEY, KEY] and list(cache.pods("u1")) == []


def test_a_word_of_a_pod_that_says_nothing_new_is_none_to_its_job() -> None:
    """Whoever may label pods has a job of thousands of them looked at each time."""
    told: list[str] = []
    cache = JobCache(told.append)
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    cache.saw_pod(saw(ChangeKind.ADDED, pod()))
    labelled = msgspec.structs.replace(pod().metadata, labels={**LABELS, "word": "new"})
    cache.saw_pod(saw(ChangeKind.MODIFIED, msgspec.structs.replace(pod(), metadata=labelled)))
    assert told == [KEY, KEY] and cache.number("u1") == 1
    placed = msgspec.structs.replace(pod(), spec=PodSpec(node_name="n1"))
    cache.saw_pod(saw(ChangeKind.MODIFIED, placed))
    assert told == [KEY, KEY, KEY] and cache.number("u2") == 0


def test_a_pod_that_names_another_job_is_the_first_ones_no_more() -> None:
    """Whoever may change a pod names one job after the other: what was kept for each was memory for good."""
    told: list[str] = []
    cache = JobCache(told.append)
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    cache.saw_pod(saw(ChangeKind.ADDED, pod()))
    told.clear()
    cache.saw_pod(saw(ChangeKind.MODIFIED, pod(owner="u2", label="u2")))
    assert (told, list(cache.pods("u1")), cache.number("u1")) == ([KEY], [], 0)
    cache.saw_pod(saw(ChangeKind.MODIFIED, pod()))
    assert (told, cache.number("u1")) == ([KEY, KEY], 1)
    cache.saw_pod(saw(ChangeKind.MODIFIED, pod(owner="u2", label="u2")))
    cache.saw_pod(saw(ChangeKind.DELETED, pod(owner="u2", label="u2")))
    assert kept(cache) == 1


def kept(cache: JobCache) -> int:
    """Entries of all that it has, a job's two included, of which one is by its uid."""
    return sum(map(len, (value for value in vars(cache).values() if isinstance(value, dict)))) - 1


def test_a_label_alone_gives_no_job_a_pod() -> None:
    cache = JobCache(lambda key: None)
    cache.saw_pod(saw(ChangeKind.ADDED, pod(owner="u2")))
    assert list(cache.pods("u1")) == [] == list(cache.pods("u2"))


FORGED = {
    "another namespace, its name": pod(namespace="evil"),
    "another namespace, another name": pod("other-w-0", namespace="evil"),
    "its namespace, another name": pod("other-w-0"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_pod_of_another_namespace_or_name_is_none_of_the_jobs(name: str) -> None:
    """Whoever may make pods anywhere may write the uid of any job: its own pods were deleted for it."""
    told: list[str] = []
    cache = JobCache(told.append)
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    cache.saw_pod(saw(ChangeKind.ADDED, pod()))
    told.clear()
    cache.saw_pod(saw(ChangeKind.ADDED, FORGED[name]))
    assert [each.name for each in cache.pods("u1")] == ["train-w-0"]
    cache.saw_pod(saw(ChangeKind.DELETED, FORGED[name]))
    assert [each.name for each in cache.pods("u1")] == ["train-w-0"]
    assert "evil" not in FORGED[name].metadata.namespace or told == []


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


GONE: dict[str, tuple[MadeKind, Metadata, bool]] = {
    "what was made for it": (MadeKind.SERVICE, made_for("u1"), True),
    "another kind of that name": (MadeKind.POD_GROUP, made_for("u1"), False),
    "another name": (MadeKind.SERVICE, made_for("u1", "other"), False),
    "another job's": (MadeKind.SERVICE, made_for("u2"), False),
    "one of another namespace that claims to be": (MadeKind.SERVICE, made_for("u1", namespace="elsewhere"), False),
}


@pytest.mark.parametrize(("kind", "metadata", "again"), GONE.values(), ids=GONE)
def test_what_is_deleted_is_made_again(kind: MadeKind, metadata: Metadata, again: bool) -> None:
    """The job is looked at, and its object counts as missing; another's object is no matter."""
    told: list[str] = []
    cache = JobCache(told.append)
    service = EnsureObject(MadeKind.SERVICE, "train", {})
    cache.saw_job(saw(ChangeKind.ADDED, train()))
    cache.made("u1", service)
    told.clear()
    cache.saw_gone(kind, metadata)
    assert (told == [KEY], not cache.is_made("u1", service)) == (again, again)


def test_what_could_not_be_made() -> None:
    cache = JobCache(lambda key: None)
    service = EnsureObject(MadeKind.SERVICE, "train", {})
    cache.made("u1", service)
    cache.not_made("u1", service)
    assert not cache.is_made("u1", service)


def command(uid: str = "c1", target: str = "u3", namespace: str = "ml") -> VolcanoCommand:
    about = OwnerReference("batch.volcano.sh/v1alpha1", "Job", "train", target)
    return VolcanoCommand(Metadata(name=uid, namespace=namespace, uid=uid), "AbortJob", about)


def test_commands_are_of_their_job() -> None:
    """By its uid, in its namespace; whoever may write in another one says nothing to it."""
    told: list[str] = []
    cache, source = JobCache(told.append), VolcanoJob(Metadata(name="train", namespace="ml", uid="u3"))
    cache.saw_command(saw(ChangeKind.ADDED, command()))
    cache.saw_command(saw(ChangeKind.ADDED, command("c2", target="u4")))
    cache.saw_command(saw(ChangeKind.ADDED, command("c3", namespace="elsewhere")))
    cache.saw_job(saw(ChangeKind.ADDED, source))
    assert [each.uid for each in cache.commands(source)] == ["c1"]
    told.clear()
    cache.saw_command(saw(ChangeKind.DELETED, command()))
    assert (told, cache.commands(source)) == (["Job.batch.volcano.sh ml/train"], ())


def test_a_command_about_another_job_is_the_first_ones_no_more() -> None:
    """It was obeyed again and again, and whoever may change it had each name that it ever had kept for good."""
    told: list[str] = []
    cache, source = JobCache(told.append), VolcanoJob(Metadata(name="train", namespace="ml", uid="u3"))
    cache.saw_job(saw(ChangeKind.ADDED, source))
    for target in ("u3", "u4", "u5"):
        cache.saw_command(saw(ChangeKind.MODIFIED, command(target=target)))
    assert (len(told), cache.commands(source), cache.number("u3")) == (3, (), 0)
    cache.saw_command(saw(ChangeKind.MODIFIED, command()))
    assert [each.uid for each in cache.commands(source)] == ["c1"] and cache.number("u3") == 1
    cache.saw_command(saw(ChangeKind.DELETED, command()))
    assert kept(cache) == 1
