"""Bounds of jobs: what one object of a few hundred bytes, or of a megabyte, may have the scheduler make."""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec
import pytest
from job_objects import TEMPLATE, task, training, untyped, volcano

from kube.dialects.jobs import reading
from kube.dialects.jobs.bounds import MOST_SPEC_BYTES, decoded
from kube.dialects.jobs.reading import AnyJob
from kube.objects import TrainingJob
from model.fault import ConfigurationFault


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main"}], **spec}}


def container(**more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", **more}]}}


def affinity(terms: int) -> dict[str, Any]:
    each = {"matchExpressions": []}  # type: dict[str, Any]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [each] * terms}}}


def replicas(number: int, **more: Any) -> dict[str, Any]:
    return {"resources": {"minReplicas": number, **more}}


REFUSED: dict[str, tuple[AnyJob, str]] = {
    "a large spec": (training(template=pod(junk=[[]] * 200_000)), r"spec: has 6\d+ bytes \(write at most 524288"),
    "a large spec of Volcano": (volcano(tasks=[task("w", 1, junk="x" * 600_000)]), "spec: has 600... bytes"),
    "all name all in one variable": (
        training(jobType="TFJob", **replicas(5_000)),
        r"has 5000 pods, and TFJob names all in one variable of each: \d+ bytes \(have fewer pods",
    ),
    "all name all together": (
        training(
            jobType="XGBoostJob", **replicas(2_500), template=pod(containers=[{"name": f"c{i}"} for i in range(9)])
        ),
        r"has 2500 pods of \d+ bytes together \(write at most 134217728",
    ),
    "ten thousand pods of a large template": (
        training(**replicas(10_000), template=container(env=[{"name": f"v{i}"} for i in range(1_000)])),
        "has 10000 pods of 1[0-9]+ bytes together",
    ),
    "terms": (training(**replicas(1, gpuType="a"), template=pod(affinity=affinity(257))), "257 node selector terms"),
    "containers": (
        training(template=pod(initContainers=[{"name": f"c{i}"} for i in range(64)])),
        r"template.spec: has 65 containers \(write at most 64",
    ),
    "pod sets": (
        training(template=None, podSets=[{"name": f"s{i}", "template": TEMPLATE} for i in range(257)]),
        "spec: has 257 podSets",
    ),
    "tasks without pods": (volcano(tasks=[task(f"t{i}", 0) for i in range(257)]), "spec: has 257 tasks"),
    "volumes": (volcano(volumes=[{}] * 65), "spec: has 65 volumes"),
    "rules": (volcano(policies=[{"event": "*", "action": "AbortJob"}] * 65), "spec: has 65 policies"),
    "rules of a task": (volcano(tasks=[task("a", 1, policies=[{}] * 65)]), r"spec.tasks\[0\]: has 65 policies"),
    "names": (volcano(tasks=[task("a", 1, dependsOn={"name": ["b"] * 257})]), "has 257 names in dependsOn"),
    "arguments": (volcano(plugins={"svc": ["x"] * 65}), "spec.plugins: has 65 arguments"),
    "a large annotation that all pods get": (
        volcano(tasks=[task("a", 10_000)], annotations={"volcano.sh/cooldown-time": "5" * 200_000}),
        "has 10000 pods of 20[0-9]+ bytes together",
    ),
    "a large URL that all containers get": (
        training(**replicas(10_000), checkpoint={"url": "s3://" + "b" * 200_000}),
        "has 10000 pods of 20[0-9]+ bytes together",
    ),
    "a large argument that all containers get": (
        volcano(tasks=[task("a", 10_000)], plugins={"pytorch": ["--master=" + "a" * 200_000]}),
        "has 10000 pods of 20[0-9]+ bytes together",
    ),
    "a large kind of GPUs": (
        training(**replicas(10_000, gpuType="a" * 200_000)),
        "has 10000 pods of [0-9]+ bytes together",
    ),
    "hosts of many tasks": (
        volcano(tasks=[task(f"t{i}", 39) for i in range(256)], plugins={"svc": []}),
        "has 9984 pods of [0-9]+ bytes together",
    ),
}
TAKEN: dict[str, AnyJob] = {
    "ten thousand pods": training(**replicas(10_000)),
    "a thousand that name all": training(jobType="TFJob", **replicas(1_000)),
    "terms": training(**replicas(100, gpuType="a"), template=pod(affinity=affinity(256))),
    "a task of each index": volcano(tasks=[task(f"t{i}", 1) for i in range(256)], plugins={"svc": []}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_too_large_is_refused_in_one_sentence(name: str) -> None:
    source, told = REFUSED[name]
    found = reading.job(source)
    assert found.problem.startswith(f"{found.id.text}") and not found.tasks
    assert re.search(told, found.problem), found.problem


@pytest.mark.parametrize("name", TAKEN)
def test_what_people_write_is_taken(name: str) -> None:
    assert reading.job(TAKEN[name]).problem == ""


def test_a_spec_is_kept_as_it_came() -> None:
    """Not as a tree of values, and without the answer that it was a part of."""
    raw = b'{"metadata": {"name": "j"}, "spec": {"junk": [[], []]}}'
    source = TrainingJob(spec=untyped({"junk": [[]]}))
    assert bytes(source.spec) == b'{"junk":[[]]}' and decoded(source.spec, "spec") == {"junk": [[]]}
    before = sys.getrefcount(raw)
    answer = msgspec.json.decode(raw, type=TrainingJob)
    assert bytes(answer.spec) == b'{"junk": [[], []]}' and sys.getrefcount(raw) == before
    assert decoded(TrainingJob().spec, "spec") is None


def test_what_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(ConfigurationFault, match="nested more than"):
        decoded(msgspec.Raw(b"[" * (MOST_SPEC_BYTES - 1)), "spec")
