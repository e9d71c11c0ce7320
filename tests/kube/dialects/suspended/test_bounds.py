"""Jobs that wait whole and are too large, or name their node themselves: refused in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from kube import objects
from kube.dialects.suspended.reading import suspended_job
from kube.dialects.suspended.workload import workload
from model.suspended.job import SuspendedKind

CONTAINERS = [{"name": "main"}]
CASES: dict[str, tuple[Any, str]] = {
    "two thousand million pods": ({"parallelism": (1 << 31) - 1}, "has 2147483647 pods at once (write at most 10000)"),
    "a node": (
        {"template": {"spec": {"nodeName": "n0", "containers": CONTAINERS}}},
        "pod set main names node n0 (leave nodeName out",
    ),
    "a large template": (
        {"template": {"metadata": {"annotations": {"a": "x" * (513 << 10)}}, "spec": {"containers": CONTAINERS}}},
        "has templates of 525",
    ),
    "many large pods": (
        {
            "parallelism": 5000,
            "template": {"metadata": {"annotations": {"a": "x" * 30_000}}, "spec": {"containers": CONTAINERS}},
        },
        "has 5000 pods of 150",
    ),
}


@pytest.mark.parametrize(("spec", "words"), CASES.values(), ids=CASES)
def test_refused(spec: dict[str, Any], words: str) -> None:
    """By the controller of jobs, and where a Workload says so."""
    whole = {"suspend": True, "template": {"spec": {"containers": CONTAINERS}}, **spec}
    metadata = objects.Metadata("big", "ns", "uid", labels={"kueue.x-k8s.io/queue-name": "a"})
    job = suspended_job(SuspendedKind.JOB, objects.UntypedObject(metadata, whole, None))
    assert words in job.problem and job.problem.startswith("Job ns/big")
    sets = [{"name": "main", "count": whole.get("parallelism", 1), "template": whole["template"]}]
    found = workload(objects.Workload(metadata, {"queueName": "a", "podSets": sets}, None))
    assert words in found.unreadable and not found.waiting


def test_taken() -> None:
    """Ten thousand pods of a template as large as most."""
    template = {"metadata": {"annotations": {"a": "x" * 12_000}}, "spec": {"containers": CONTAINERS}}
    whole = {"suspend": True, "parallelism": 10_000, "template": template}
    metadata = objects.Metadata("big", "ns", "uid", labels={"kueue.x-k8s.io/queue-name": "a"})
    job = suspended_job(SuspendedKind.JOB, objects.UntypedObject(metadata, whole, None))
    assert (job.problem, job.count) == ("", 10_000)
