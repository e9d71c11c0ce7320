"""One cluster of simulated nodes for all tests of scheduling; each file has nodes of its own, chosen by label `pool`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, until

NODES = 20
CLASSES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: patient}
value: 1000000
preemptionPolicy: Never
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 1000
"""
POOLS = {
    "filters": range(8),
    "gangs": range(8, 16),
    "preemption": range(16, 20),
}
RACKS = {"r1": range(8, 12), "r2": range(12, 14), "r3": range(14, 16)}


_UPSTREAM = "podgroups.scheduling.k8s.io"


class Scene:
    """What tests ask of the cluster, by pod names of the default namespace."""

    def __init__(self, cluster: RunningCluster) -> None:
        self.cluster = cluster

    @cached_property
    def upstream(self) -> bool:
        """Whether the API server has Kubernetes' own pod groups, which came with 1.35."""
        return _UPSTREAM in self.cluster.kubectl("api-resources", "-o", "name").split()

    def apply(self, manifest: str) -> None:
        self.cluster.apply(manifest)

    def pods(self) -> dict[str, Any]:
        """Every pod by name."""
        found = json.loads(self.cluster.kubectl("get", "pods", "-o", "json"))["items"]
        return {each["metadata"]["name"]: each for each in found}

    def places(self, prefix: str) -> dict[str, str]:
        """Name to node of pods with that prefix that have one and are not terminating."""
        return {
            name: each["spec"]["nodeName"]
            for name, each in self.pods().items()
            if name.startswith(prefix) and each["spec"].get("nodeName") and not _leaving(each)
        }

    def placed(self, prefix: str, count: int) -> dict[str, str]:
        """The same once there are so many, or what there is at the bound."""
        until(lambda: len(self.places(prefix)) == count)
        return self.places(prefix)

    def message(self, name: str) -> str:
        """Why a pod waits, by its PodScheduled condition; empty before it was tried."""
        told = self.pods()[name]["status"].get("conditions", [])
        return next((each.get("message", "") for each in told if each["type"] == "PodScheduled"), "")

    def waits(self, name: str, fragment: str) -> str:
        """The message once it has the fragment; fails with the last one."""
        until(lambda: fragment in self.message(name))
        assert fragment in self.message(name), self.message(name)
        return self.message(name)

    def events(self, reason: str) -> Mapping[str, str]:
        """Message by `Kind/name`."""
        arguments = ("get", "events", "--field-selector", f"reason={reason}", "-o", "json")
        items = json.loads(self.cluster.kubectl(*arguments))["items"]
        return {f"{each['involvedObject']['kind']}/{each['involvedObject']['name']}": each["message"] for each in items}

    def clean(self) -> None:
        """No pod, gang, budget and volume is left."""
        kinds = ["pods", "podgroups.scheduling.sigs.k8s.io", "pdb", "pvc", *([_UPSTREAM] if self.upstream else [])]
        self.cluster.kubectl("delete", ",".join(kinds), "--all", "--wait=false")
        assert until(lambda: not self.pods())


def _leaving(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@pytest.fixture(scope="session")
def many_nodes(start_shared_cluster: StartCluster) -> RunningCluster:
    """Nodes of 32 CPUs, with labels for the files' pools and for racks."""
    cluster = start_shared_cluster(options=["--no-process-node", "--simulated-nodes", str(NODES)])
    cluster.apply(CLASSES)
    for key, groups in (("pool", POOLS), ("rack", RACKS)):
        for name, numbers in groups.items():
            cluster.kubectl("label", "node", *(f"sim-{number}" for number in numbers), f"{key}={name}")
    return cluster


@pytest.fixture
def scene(many_nodes: RunningCluster) -> Iterator[Scene]:
    """Empty before and after each test."""
    scene = Scene(many_nodes)
    yield scene
    scene.clean()
