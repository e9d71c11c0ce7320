"""An LSE pod on a running cluster: the scheduler chooses its CPU, the agent puts it there and best effort elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model.topology import parse_cpus
from tests.e2e.conftest import RunningCluster, StartCluster, until

CPUSET = Path("/sys/fs/cgroup/cpuset")
STATUS = "scheduling.koordinator.sh/resource-status"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "exclusive", "namespace": "default", "labels": {"koordinator.sh/qosClass": "LSE"}},
    "spec": {
        "schedulerName": "koord-scheduler",
        "priorityClassName": "koord-prod",
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "main",
                "image": "local",
                "command": ["sleep", "600"],
                "resources": {"requests": {"cpu": "1", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "32Mi"}},
            }
        ],
    },
}

needs_v1_cpuset = pytest.mark.skipif(
    not (CPUSET / "cpuset.cpus").exists(), reason="needs cgroup v1 with cpuset; run on a v1 host"
)


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster) -> RunningCluster:
    return start_cluster(agent_settings="{topology_seconds: 1}")


def found(cluster: RunningCluster) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(cluster.kubectl("get", "pod", "exclusive", "-o", "json"))
    return read


def lists(cluster: RunningCluster, pattern: str) -> set[str]:
    """CPU lists of the cgroups below the node's that the pattern names."""
    (root,) = [path for path in cluster.cgroups() if path.parent == CPUSET]
    return {file.read_text().strip() for file in root.glob(f"{pattern}/cpuset.cpus")}


def best_effort(cluster: RunningCluster) -> set[str]:
    """Those of the best-effort root and all below it, where no pod comes or goes in this test."""
    return lists(cluster, "kubepods/besteffort/**")


@needs_v1_cpuset
def test_an_lse_pod(cluster: RunningCluster) -> None:
    """One CPU, which its status names; its container runs on that one alone, and best effort keeps off it."""
    assert until(lambda: "cpu-topology" in cluster.kubectl("get", "noderesourcetopologies", "-o", "yaml"), 60)
    cluster.apply(json.dumps(POD))
    assert until(lambda: found(cluster)["status"].get("phase") == "Running", 60), cluster.kubectl("describe", "pod")
    metadata = found(cluster)["metadata"]
    status = json.loads(metadata["annotations"][STATUS])
    (cpu,) = parse_cpus(status["cpuset"])
    assert [item["resources"] for item in status["numaNodeResources"]] == [{"cpu": "1"}]
    own = f"kubepods/**/pod{metadata['uid']}/*"
    assert until(lambda: lists(cluster, own) == {str(cpu)}), lists(cluster, own)
    assert until(lambda: all(cpu not in parse_cpus(text) for text in best_effort(cluster)))
    cluster.kubectl("delete", "pod", "exclusive", "--wait=true")
    assert until(lambda: any(cpu in parse_cpus(text) for text in best_effort(cluster)), 60)
