"""The agent in a running cluster: what it publishes, how it explains itself, and what its end leaves behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import CGROUPS, RunningCluster, StartCluster, alive, until

# Whatever else this machine does, there is room: Koordinator allows a reclaim threshold above 100.
SETTINGS = "colocation:\n  cpu_reclaim_threshold_pct: 400\n  memory_reclaim_threshold_pct: 60\n"

WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {koordinator.sh/qosClass: LS}}
spec:
  schedulerName: koord-scheduler
  containers:
  - name: web
    image: python:3.9
    command: ["python", "-c", "import time\\nwhile True:\\n  t = time.time() + 0.02\\n  while time.time() < t: pass\\n  time.sleep(0.08)"]
    resources: {requests: {cpu: 500m, memory: 64Mi}}
"""
BATCH = """
apiVersion: v1
kind: Pod
metadata: {name: batch, labels: {koordinator.sh/qosClass: BE}}
spec:
  schedulerName: koord-scheduler
  priorityClassName: koord-batch
  terminationGracePeriodSeconds: 1
  containers:
  - name: batch
    image: python:3.9
    command: ["python", "-c", "while True: pass"]
    resources:
      requests: {kubernetes.io/batch-cpu: "1000", kubernetes.io/batch-memory: 64Mi}
      limits: {kubernetes.io/batch-cpu: "1000", kubernetes.io/batch-memory: 64Mi}
"""


@pytest.fixture(scope="module")
def busy(start_cluster: StartCluster) -> RunningCluster:
    """A cluster with an online and a batch pod that both work."""
    cluster = start_cluster(agent_settings=SETTINGS)
    cluster.apply(WEB + "---" + BATCH)
    assert until(lambda: running(cluster) == {"web", "batch"}), cluster.kubectl("get", "events")
    assert until(lambda: quota(cluster) > 0)
    return cluster


def running(cluster: RunningCluster) -> set[str]:
    pods = json.loads(cluster.kubectl("get", "pods", "-o", "json"))["items"]
    return {pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"}


def best_effort(cluster: RunningCluster, file: str) -> Path:
    prefix = cluster.endpoints["cgroup_prefix"].strip("/")
    return CGROUPS / "cpu" / prefix / "kubepods" / "besteffort" / file


def quota(cluster: RunningCluster) -> int:
    return int(best_effort(cluster, "cpu.cfs_quota_us").read_text())


def containers(cluster: RunningCluster) -> dict[str, Any]:
    """What must not change when the agent does: container ids, restarts and the processes themselves."""
    pods = json.loads(cluster.kubectl("get", "pods", "-o", "json"))["items"]
    prefix = cluster.endpoints["cgroup_prefix"].strip("/")
    processes = sorted(
        line for path in (CGROUPS / "cpu" / prefix).rglob("cgroup.procs") for line in path.read_text().split()
    )
    statuses = [(s["containerID"], s["restartCount"]) for pod in pods for s in pod["status"]["containerStatuses"]]
    return {"statuses": sorted(statuses), "processes": processes}


@contextmanager
def unsupervised(cluster: RunningCluster) -> Iterator[None]:
    """`up` sleeps, so that what is stopped stays stopped until the block ends."""
    cluster.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.process.send_signal(signal.SIGCONT)


def end(pid: int, number: signal.Signals) -> None:
    os.kill(pid, number)
    assert until(lambda: not alive(pid))


def test_kubectl_shows_what_is_lent(busy: RunningCluster) -> None:
    """batch-cpu under Allocatable and under Allocated resources, ColocationReady, and a NodeMetric with usage."""
    node = busy.endpoints["node"]
    shown = busy.kubectl("describe", "node", node)
    allocatable, allocated = shown.split("Allocatable:")[1].split("Allocated resources:")
    assert "kubernetes.io/batch-cpu:" in allocatable.split("System Info")[0]
    assert any(line.split()[:2] == ["kubernetes.io/batch-cpu", "1k"] for line in allocated.splitlines())
    assert "ColocationReady   True" in shown and "LendingActive" in shown
    metric = json.loads(busy.kubectl("get", "nodemetric", node, "-o", "json"))
    assert metric["status"]["nodeMetric"]["nodeUsage"]["resources"]["cpu"].endswith("m")
    assert metric["metadata"]["ownerReferences"][0]["kind"] == "Node"


@pytest.mark.slow
def test_the_explained_limit_is_the_kernels(busy: RunningCluster) -> None:
    """Terms of `sublet explain limit` sum to the BE quota read from the cgroup file at that moment."""

    def agrees() -> bool:
        before = quota(busy)
        answer = busy.sublet("explain", "limit", "cpu.cfs_quota_us", "-o", "json")
        found = json.loads(answer.stdout)[0]
        total = sum(term["value"] for term in found["decision"]["terms"])
        assert total == found["decision"]["value"] and found["matches"], found
        return bool(before == total == quota(busy) == int(found["kernel_value"]))

    # The ceiling moves about once a second: a few tries find a moment in which it stands still.
    assert until(agrees)
    words = busy.sublet("explain", "limit").stdout
    assert "capacity" in words and "online used" in words and "as decided" in words


def test_killed_agent_goes_on_from_the_real_knobs(busy: RunningCluster) -> None:
    """kill -9: no running pod changes, limits stay in force, the next agent continues with them."""
    before, pid = containers(busy), busy.endpoints["programs"]["agent"]
    with unsupervised(busy):
        end(pid, signal.SIGKILL)
        held = quota(busy)
        time.sleep(1.5)
        assert quota(busy) == held > 0
    assert until(lambda: busy.endpoints["programs"].get("agent", pid) != pid)
    assert best_effort(busy, "cpu.shares").read_text() == "2\n"
    assert quota(busy) <= held
    assert containers(busy) == before


@pytest.mark.slow
def test_a_rolled_agent_never_raises_the_ceiling(busy: RunningCluster) -> None:
    """SIGTERM under load: from the end of the old agent until the new one has ticked for a while, no value is higher."""
    pid, seen = busy.endpoints["programs"]["agent"], []
    with unsupervised(busy):
        end(pid, signal.SIGTERM)
        seen.append(quota(busy))
    deadline, ready_at = time.monotonic() + 40, 0.0
    while time.monotonic() < deadline and (not ready_at or time.monotonic() < ready_at + 4):
        seen.append(quota(busy))
        if not ready_at and busy.endpoints["programs"].get("agent", pid) != pid:
            ready_at = time.monotonic()
        time.sleep(0.005)
    assert ready_at, "the agent did not come back"
    assert seen[0] > 0 and all(later <= earlier for earlier, later in itertools.pairwise(seen)), seen


def test_restore_puts_the_originals_back(busy: RunningCluster) -> None:
    """Only on purpose, and refused while an agent runs; the next agent takes over again."""
    state = busy.directory / "up" / "agent.state"
    assert state.exists()
    command = [sys.executable, "-m", "agent", "--restore", "--state-file", str(state)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert refused.returncode == 2 and "another agent uses this state file" in refused.stderr
    pid = busy.endpoints["programs"]["agent"]
    with unsupervised(busy):
        end(pid, signal.SIGTERM)
        assert quota(busy) > 0
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0 and "restored" in done.stdout, done.stderr
        assert quota(busy) == -1
    assert until(lambda: busy.endpoints["programs"].get("agent", pid) != pid and quota(busy) > 0)


def test_a_broken_node_slo_is_told_and_survived(busy: RunningCluster) -> None:
    """One message in condition, Event and metric; the last good settings stay; the mended document clears it."""
    node = busy.endpoints["node"]
    document = """
apiVersion: slo.koordinator.sh/v1alpha1
kind: NodeSLO
metadata: {name: %s, labels: {app.kubernetes.io/managed-by: somebody}}
spec: {resourceUsedThresholdWithBE: {enable: true, cpuSuppressThresholdPercent: 90, cpuSuppressPolicy: %s}}
"""

    def reason() -> str:
        conditions = json.loads(busy.kubectl("get", "node", node, "-o", "json"))["status"]["conditions"]
        return str(next(c["reason"] for c in conditions if c["type"] == "ColocationReady"))

    with busy.unchecked():
        busy.apply(document % (node, "turbo"))
    try:
        assert until(lambda: reason() == "ConfigurationInvalid")
        events = busy.kubectl("get", "events", "-A")
        assert "cpuSuppressPolicy: is 'turbo' (write one of adaptive, cfsQuota, cpuset)" in events
        assert quota(busy) > 0
        busy.apply(document % (node, "adaptive"))
        assert until(lambda: reason() == "LendingActive")
        assert until(lambda: "10 % of capacity" in busy.sublet("explain", "limit").stdout)
    finally:
        busy.kubectl("delete", "nodeslo", node, check=False)


@pytest.mark.slow
def test_the_link_comes_back_after_the_scheduler(busy: RunningCluster) -> None:
    """Scheduler killed with -9: the agent works on, links to the next one, and what was pending is bound."""

    def linked() -> bool:
        return "link to the scheduler up" in busy.sublet("explain", "node").stdout

    assert until(linked)
    pid = busy.endpoints["programs"]["scheduler"]
    with unsupervised(busy):
        end(pid, signal.SIGKILL)
        assert until(lambda: not linked())
        busy.apply(BATCH.replace("name: batch,", "name: later,"))
        assert "later" not in running(busy) and quota(busy) > 0
    try:
        assert until(lambda: "later" in running(busy))
        assert until(linked)
    finally:
        busy.kubectl("delete", "pod", "later")
