"""What a person may choose about `sublet up`: nodes, kernel, names of cgroups, state that outlives the API server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, alive, until

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: "python:3", command: COMMAND, resources: {requests: {cpu: CPU, memory: 32Mi}, limits: {memory: 64Mi}}}
"""
SLEEP = '["sleep", "1000"]'
HUNGRY = '["python3", "-c", "held = bytearray(300 << 20); held[::4096] = b\'x\' * len(held[::4096])"]'


def pod(name: str, command: str = SLEEP, cpu: str = "100m") -> str:
    return POD.replace("NAME", name).replace("COMMAND", command).replace("CPU", cpu)


def got(cluster: RunningCluster, what: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.kubectl("get", what, name, "-o", "json"))
    return found


def phase(cluster: RunningCluster, name: str) -> str:
    return str(got(cluster, "pod", name)["status"].get("phase"))


@pytest.fixture(scope="module")
def two(start_cluster: StartCluster) -> Iterator[RunningCluster]:
    """Two nodes that claim more than there is, on a simulated kernel, with systemd's names."""
    options = ["--process-nodes", "2", "--node-name", "here", "--node-cpu", "4", "--node-memory", "16Gi"]
    yield start_cluster(options=[*options, "--kernel", "simulated", "--cgroup-driver", "systemd"])


def test_each_node_says_what_it_was_told(two: RunningCluster) -> None:
    """Both Ready, and their agents find their own pods only."""
    for name in ("here-1", "here-2"):
        assert got(two, "node", name)["status"]["capacity"]["cpu"] == "4"
        assert got(two, "node", name)["status"]["capacity"]["memory"] == "16Gi"
        asked = until(lambda name=name: (d := two.sublet("explain", "node", name)).returncode == 0 and d)
        assert asked and f"node {name}" in asked.stdout and "driver systemd" in asked.stdout
    roots = {(node["cgroup_root"], node["cgroup_prefix"]) for node in two.endpoints["nodes"]}
    assert len(roots) == 2


def test_what_is_claimed_is_not_lent(two: RunningCluster) -> None:
    """Of 4 CPUs that a node says it has, the machine's part is all that it may lend."""
    asked = until(lambda: "batch-cpu" in (d := two.sublet("explain", "node", "here-1", "-o", "json")).stdout and d)
    lent = [d["value"] for d in json.loads(asked.stdout)["reclaimable"] if d["name"] == "kubernetes.io/batch-cpu"]
    assert lent and max(lent) <= 1000 * (os.cpu_count() or 1) / 2


def test_pods_that_name_no_scheduler_fill_both(two: RunningCluster) -> None:
    """Each of 3 CPUs: one a node, and the third waits."""
    for name in ("one", "two", "three"):
        two.apply(pod(name, cpu="3"))
    names = ("one", "two", "three")
    assert until(lambda: sorted(phase(two, name) for name in names) == ["Pending", "Running", "Running"])
    assert len({got(two, "pod", name)["spec"].get("nodeName") for name in names}) == 3
    two.kubectl("delete", "pod", *names, "--grace-period=1")


def test_out_of_memory_is_told_as_a_kernel_tells_it(two: RunningCluster) -> None:
    """OOMKilled."""
    two.apply(pod("hungry", HUNGRY))
    assert until(lambda: phase(two, "hungry") == "Failed")
    (status,) = got(two, "pod", "hungry")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["reason"] == "OOMKilled"


@pytest.mark.slow
def test_the_end_of_two_nodes_leaves_nothing(start_cluster: StartCluster) -> None:
    """No process, no file of the simulated kernel."""
    own = start_cluster(options=["--process-nodes", "2", "--kernel", "simulated"])
    own.apply(pod("sleeper"))
    assert until(lambda: phase(own, "sleeper") == "Running")
    programs = own.endpoints["programs"]
    assert own.stop() == 0
    assert [pid for pid in programs.values() if alive(pid)] == []
    assert not (own.directory / "up" / "kernel").exists()


@pytest.mark.slow
def test_state_outlives_the_api_server(start_cluster: StartCluster, tmp_path: Path) -> None:
    """kill -9: it serves again on its port, and the pod that ran still runs, never started again."""
    own = start_cluster(options=["--state-dir", str(tmp_path / "state")])
    own.apply(pod("sleeper"))
    assert until(lambda: phase(own, "sleeper") == "Running")
    before, server = got(own, "pod", "sleeper"), own.endpoints
    os.kill(server["programs"]["apiserver"], signal.SIGKILL)
    known = lambda: own.endpoints["programs"].get("apiserver", server["programs"]["apiserver"])  # noqa: E731
    assert until(lambda: known() != server["programs"]["apiserver"])
    assert own.endpoints["api"] == server["api"]
    after = got(own, "pod", "sleeper")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    own.apply(pod("another"))
    assert until(lambda: phase(own, "another") == "Running")
    (status,) = got(own, "pod", "sleeper")["status"]["containerStatuses"]
    assert status["containerID"] == before["status"]["containerStatuses"][0]["containerID"]
    assert status["restartCount"] == 0
