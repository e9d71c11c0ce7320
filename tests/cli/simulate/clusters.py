"""Objects of small clusters, and what the simulated scheduler decides about them."""

from __future__ import annotations

from typing import Any

from cli.simulate.cluster_objects import CLUSTER_KINDS
from cli.simulate.cluster_run import Extent, decide
from cli.simulate.manifests import Manifests
from scheduler.settings import SchedulerSettings
from view.cluster_outcome import Outcome

Object = dict[str, Any]
NOW = 1_000_000.0


def given(*objects: Object) -> Manifests:
    """As if read from one file."""
    found = Manifests(CLUSTER_KINDS)
    for number, each in enumerate(objects, 1):
        found.add(each, f"file document {number}")
    return found


def decided(*objects: Object, settle: bool = False, cycles: int | None = None) -> Outcome:
    """With the scheduler's default settings."""
    return decide(given(*objects), NOW, SchedulerSettings(), Extent(settle, cycles))


def node(name: str = "n1", cpu: str = "4") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
    }


def pod(
    name: str = "p", cpu: str = "1", *, labels: Object | None = None, resources: Object | None = None, **spec: Any
) -> Object:
    container = {"name": "main", "resources": resources or {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def other(kind: str, version: str, name: str = "x", **fields: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}
