"""Objects whose controllers make pods, as they are read; the gangs that follow are in test_makers.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from kube import objects
from kube.dialects.gangs.maker_objects import maker_id, maker_object
from kube.dialects.gangs.makers import Maker, MakerId

WRONG: dict[str, tuple[type, Mapping[str, Any], str]] = {
    "parallelism": (objects.Job, {"parallelism": "2"}, "Job ns/train: spec.parallelism is '2'"),
    "completions": (objects.Job, {"completions": -1}, "Job ns/train: spec.completions is -1"),
    "replicas": (
        objects.JobSet,
        {"replicatedJobs": [{"name": "w", "replicas": 1.5}]},
        "JobSet ns/train: spec.replicatedJobs[w].replicas is 1.5",
    ),
    "parallelism of a template": (
        objects.JobSet,
        {"replicatedJobs": [{"name": "w", "template": {"spec": {"parallelism": True}}}]},
        "JobSet ns/train: spec.replicatedJobs[w].template.spec.parallelism is True",
    ),
    "a minimum": (
        objects.PyTorchJob,
        {"runPolicy": {"schedulingPolicy": {"minAvailable": "all"}}},
        "PyTorchJob ns/train: spec.runPolicy.schedulingPolicy.minAvailable is 'all'",
    ),
}


def read(kind: type, spec: Mapping[str, Any], **more: Any) -> Any:
    return msgspec.convert({"metadata": {"name": "train", "namespace": "ns"}, "spec": spec, **more}, kind)


@pytest.mark.parametrize(("kind", "spec", "problem"), WRONG.values(), ids=WRONG)
def test_a_number_that_is_none(kind: type, spec: Mapping[str, Any], problem: str) -> None:
    """It is named with its object, and nothing is guessed."""
    found = maker_object(read(kind, spec))
    assert found.problem == f"{problem}; write a whole number of 0 or more" and found.sizes == {}


_MOST = (1 << 31) - 1
TOO_MANY: dict[str, tuple[type, Mapping[str, Any], int]] = {
    "of a JobSet": (
        objects.JobSet,
        {"replicatedJobs": [{"name": "w", "replicas": _MOST, "template": {"spec": {"parallelism": _MOST}}}]},
        _MOST * _MOST,
    ),
    "of a PyTorchJob": (
        objects.PyTorchJob,
        {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": _MOST}}},
        _MOST + 1,
    ),
}


@pytest.mark.parametrize(("kind", "spec", "total"), TOO_MANY.values(), ids=TOO_MANY)
def test_more_pods_than_anybody_counts(kind: type, spec: Mapping[str, Any], total: int) -> None:
    """Each number by itself is one that an API server admits; the answers about all gangs have 32 bits for a sum."""
    found = maker_object(read(kind, spec))
    assert found.problem == f"{found.id.where}: has {total} pods together; write fewer than 2147483648"


INDEXES = {"": 4, "0": 3, "1,3": 2, "0-2": 1, "0-1,3": 1, "0-9": 0, "soon": 4, "1-x": 4}


@pytest.mark.parametrize(("failed", "left"), INDEXES.items(), ids=INDEXES)
def test_indexes_that_were_given_up(failed: str, left: int) -> None:
    """Nobody makes pods for them any more; what is no list of indexes says nothing."""
    found = maker_object(read(objects.Job, {"parallelism": 4, "completions": 4}, status={"failedIndexes": failed}))
    assert (found.sizes[""], found.left) == (left, True)


def test_whose_it_is() -> None:
    assert maker_id(read(objects.JobSet, {})) == MakerId(Maker.JOB_SET, "ns/train")
    assert MakerId(Maker.JOB_SET, "ns/train").where == "JobSet ns/train"


def test_the_queue_of_a_scheduling_policy() -> None:
    """As Kubeflow hands it to Volcano."""
    assert maker_object(read(objects.PyTorchJob, {"runPolicy": {"schedulingPolicy": {"queue": "q"}}})).queue == "q"
