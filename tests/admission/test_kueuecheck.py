"""Kueue's objects as they are written: what is refused, what is told, and what may not go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admission_builders import Cluster

from admission.documents import check, check_deleted

GROUP = "kueue.x-k8s.io"
QUOTA = [
    {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "a", "resources": [{"name": "cpu", "nominalQuota": 1, "borrowingLimit": 1}]}],
    }
]


def found(kind: str, body: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    raw = msgspec.json.encode({"metadata": {"name": "x", "namespace": "ns"}, **body})
    result = check(GROUP, kind, raw, None, Cluster())
    assert result is not None
    return result.refusals, result.warnings


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a limit without a cohort": ("ClusterQueue", {"spec": {"resourceGroups": QUOTA}}, "ClusterQueue x: spec."),
    "a limit of a cohort without a parent": ("Cohort", {"spec": {"resourceGroups": QUOTA}}, "Cohort x: spec."),
    "no ClusterQueue": ("LocalQueue", {"spec": {}}, "LocalQueue ns/x: spec.clusterQueue"),
    "a topology without labels": ("ResourceFlavor", {"spec": {"topologyName": "t"}}, "ResourceFlavor x: spec."),
    "no value": ("WorkloadPriorityClass", {}, "WorkloadPriorityClass x: value"),
    "no levels": ("Topology", {"spec": {"levels": []}}, "Topology x: spec.levels"),
}


@pytest.mark.parametrize(("kind", "body", "begin"), REFUSED.values(), ids=REFUSED)
def test_refused(kind: str, body: dict[str, Any], begin: str) -> None:
    (told,), _ = found(kind, body)
    assert told.startswith(begin)


TAKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "a queue in a cohort": ("ClusterQueue", {"spec": {"cohort": "org", "resourceGroups": QUOTA}}),
    "a cohort below another": ("Cohort", {"spec": {"parentName": "top", "resourceGroups": QUOTA}}),
    "a local queue": ("LocalQueue", {"spec": {"clusterQueue": "x"}}),
    "a flavour": ("ResourceFlavor", {"spec": {}}),
    "a priority": ("WorkloadPriorityClass", {"value": 1}),
    "a topology": ("Topology", {"spec": {"levels": [{"nodeLabel": "rack"}]}}),
}


@pytest.mark.parametrize(("kind", "body"), TAKEN.values(), ids=TAKEN)
def test_taken(kind: str, body: dict[str, Any]) -> None:
    assert found(kind, body) == ((), ())


def test_what_nobody_acts_on_is_told() -> None:
    _, (told,) = found("ClusterQueue", {"spec": {"admissionChecks": ["a"]}})
    assert told == "ClusterQueue x: nothing acts on spec.admissionChecks: workloads are admitted without them"


@pytest.mark.parametrize(
    ("status", "stays"), [({}, False), ({"pendingWorkloads": 1}, True), ({"admittedWorkloads": 2}, True)]
)
def test_a_queue_with_jobs_stays(status: dict[str, int], stays: bool) -> None:
    raw = msgspec.json.encode({"metadata": {"name": "x"}, "spec": {}, "status": status})
    result = check_deleted(GROUP, "ClusterQueue", raw, Cluster())
    assert result is not None and bool(result.refusals) == stays
