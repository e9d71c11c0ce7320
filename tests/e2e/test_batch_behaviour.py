"""How batch work fares on a node: only what is offered is placed, the important first, and the service is served first."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from model.quantity import parse_units
from tests.e2e.conftest import CGROUPS, RunningCluster, StartCluster, until

pytestmark = pytest.mark.slow
# A steady offer of 3.5 CPUs and more on any machine: what is asked for is what counts here.
SETTINGS = (
    "colocation: {cpu_reclaim_threshold_pct: 400, batch_cpu_threshold_pct: 175, aggregate_seconds: 10}\n"
    # So small that the bomb below costs this machine nothing.
    "suppress: {threshold_pct: 99, pids_pct: 1, pod_pids_pct: 10}\n"
)
SPIN = "while True: pass"
BOMB = """
import os, time
end = time.monotonic() + 60
while time.monotonic() < end:
    if time.monotonic() > end - 50:
        try:
            os.fork()
        except OSError:
            pass
    time.sleep(0.2)
"""
"""Ten seconds of rest, in which its limit comes into force, then a fork of each process five times a second."""
REST = "import time; time.sleep(600)"
BATCH_CPU = "kubernetes.io/batch-cpu"


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster) -> RunningCluster:
    found = start_cluster(agent_settings=SETTINGS)
    assert until(lambda: offered(found) > 0)
    return found


def offered(cluster: RunningCluster) -> int:
    node: dict[str, Any] = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"][0]
    return parse_units(node["status"]["allocatable"].get(BATCH_CPU, "0"))


def pods(cluster: RunningCluster, app: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("get", "pods", "-l", f"app={app}", "-o", "json"))["items"]
    return found


def running(cluster: RunningCluster, name: str) -> bool:
    found = json.loads(cluster.kubectl("get", "pod", name, "-o", "json"))
    return bool(found["status"].get("phase") == "Running")


def settled(quota: Path, seconds: float = 5.0, bound_seconds: float = 60.0) -> int:
    """The ceiling once it has not risen for some seconds: what ran before this test no longer counts as use."""
    highest, since, deadline = 0, time.monotonic(), time.monotonic() + bound_seconds
    while time.monotonic() < min(since + seconds, deadline) or highest == 0:
        assert time.monotonic() < deadline, quota.read_text()
        if (value := int(quota.read_text())) > highest:
            highest, since = value, time.monotonic()
        time.sleep(0.2)
    return highest


def pod(name: str, app: str, millis: int, code: str = REST, priority: str = "koord-batch", memory: str = "16Mi") -> str:
    amounts = {BATCH_CPU: str(millis), "kubernetes.io/batch-memory": memory}
    container = {
        "name": "c",
        "image": "python:3.9",
        "command": ["python", "-c", code],
        "resources": {"requests": amounts, "limits": amounts},
    }
    spec = {"schedulerName": "koord-scheduler", "priorityClassName": priority, "containers": [container]}
    spec["terminationGracePeriodSeconds"] = 0
    metadata = {"name": name, "labels": {"koordinator.sh/qosClass": "BE", "app": app}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def test_more_asked_for_than_offered(cluster: RunningCluster) -> None:
    """Twice the offer is asked for: what is placed is within it and nothing is refused by the node; the rest is told why."""
    part = offered(cluster) // 4
    for number in range(8):
        cluster.apply(pod(f"fill-{number}", "fill", part))
    placed = until(lambda: [p for p in pods(cluster, "fill") if p["spec"].get("nodeName")])
    waiting = until(lambda: [p for p in pods(cluster, "fill") if told_why(p)])
    assert placed and waiting and len(placed) * part <= offered(cluster)
    assert [p["status"]["reason"] for p in pods(cluster, "fill") if "reason" in p["status"]] == []
    cluster.kubectl("delete", "pods", "-l", "app=fill", "--wait=true")


def told_why(found: dict[str, Any]) -> bool:
    conditions = found["status"].get("conditions", [])
    return any(c["type"] == "PodScheduled" and f"Insufficient {BATCH_CPU}" in c.get("message", "") for c in conditions)


def test_higher_priorities_are_placed_first(cluster: RunningCluster) -> None:
    """Two wait for one place: the more important of them gets it, though it came later."""
    room = offered(cluster)
    cluster.apply(pod("first", "order", room * 9 // 10))
    assert until(lambda: pods(cluster, "order")[0]["spec"].get("nodeName"))
    cluster.apply(pod("free", "order", room * 8 // 10, priority="koord-free"))
    cluster.apply(pod("batch", "order", room * 8 // 10))
    assert until(lambda: sum(told_why(p) for p in pods(cluster, "order")) == 2)
    # Whoever was refused is not tried again for up to ten seconds, whatever its priority.
    time.sleep(11)
    cluster.kubectl("delete", "pod", "first", "--wait=true")
    assert until(lambda: [p for p in pods(cluster, "order") if p["spec"].get("nodeName")])
    assert [p["metadata"]["name"] for p in pods(cluster, "order") if p["spec"].get("nodeName")] == ["batch"]
    cluster.kubectl("delete", "pods", "-l", "app=order", "--wait=true")


def test_a_fork_bomb_stops_at_its_share(cluster: RunningCluster) -> None:
    """Its pod has a tenth of best effort's share, and a pod beside it starts meanwhile."""
    cluster.apply(pod("bomb", "bomb", 200, BOMB, memory="128Mi"))
    assert until(lambda: pods(cluster, "bomb")[0]["status"].get("phase") == "Running")
    uid = pods(cluster, "bomb")[0]["metadata"]["uid"]
    (root,) = [path for path in cluster.cgroups() if path.parent == CGROUPS / "pids"]
    folder = root / f"kubepods/besteffort/pod{uid}"
    all_of_it = root / "kubepods/besteffort/pids.max"
    assert until(lambda: (folder / "pids.max").read_text().strip() != "max")
    most = int((folder / "pids.max").read_text())
    assert int(all_of_it.read_text()) // 10 == most < 100
    assert until(lambda: int((folder / "pids.current").read_text()) >= most)
    assert int((folder / "pids.current").read_text()) <= most
    cluster.apply(pod("beside", "beside", 50))
    assert until(lambda: pods(cluster, "beside")[0]["status"].get("phase") == "Running")
    told = cluster.kubectl("delete", "pod", "bomb", "beside", "--wait=true", "--timeout=60s")
    assert "bomb" in told


def test_best_effort_is_throttled_when_the_service_wants_cpu(cluster: RunningCluster) -> None:
    """The ceiling falls as an online pod begins to use what it reserved."""
    cluster.apply(pod("spin", "spin", 100, SPIN))
    assert until(lambda: pods(cluster, "spin")[0]["status"].get("phase") == "Running")
    (root,) = [path for path in cluster.cgroups() if path.parent == CGROUPS / "cpu"]
    quota = root / "kubepods/besteffort/cpu.cfs_quota_us"
    before = settled(quota)
    resources = {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}}
    container = {"name": "c", "image": "python:3.9", "command": ["python", "-c", SPIN], "resources": resources}
    metadata = {"name": "web", "labels": {"koordinator.sh/qosClass": "LS"}}
    spec = {"schedulerName": "koord-scheduler", "terminationGracePeriodSeconds": 0, "containers": [container]}
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    assert until(lambda: running(cluster, "web"))
    assert until(lambda: int(quota.read_text()) < before * 3 // 4), (before, quota.read_text())
