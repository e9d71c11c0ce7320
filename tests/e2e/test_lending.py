"""What a running cluster lends, by which documents, and the same decided again from its journal and its objects."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import grpc
import pytest

from model import quantity
from tests.e2e.conftest import RunningCluster, StartCluster, until
from wire.v1 import agent_pb2, agent_pb2_grpc

BATCH = ("kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")
ALL = (*BATCH, "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory")
# Short windows and reports, and room whatever else this machine does.
SETTINGS = """
colocation: {cpu_reclaim_threshold_pct: 400, aggregate_seconds: 10, report_seconds: 1}
topology_seconds: 1
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: koordinator-system}\n"


@pytest.fixture(scope="module")
def lending(start_cluster: StartCluster, tmp_path_factory: pytest.TempPathFactory) -> RunningCluster:
    """A cluster whose agent keeps a journal."""
    journal = tmp_path_factory.mktemp("journal") / "journal"
    cluster = start_cluster(agent_settings=SETTINGS, agent_journal=journal)
    cluster.apply(NAMESPACE)
    assert until(lambda: set(ALL) <= allocatable(cluster).keys() and allocatable(cluster)[BATCH[1]] != "0")
    return cluster


def node(cluster: RunningCluster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"][0]
    return found


def allocatable(cluster: RunningCluster) -> dict[str, str]:
    found: dict[str, str] = node(cluster)["status"]["allocatable"]
    return found


def ready(cluster: RunningCluster) -> dict[str, str]:
    conditions = node(cluster)["status"]["conditions"]
    found: dict[str, str] = next(c for c in conditions if c["type"] == "ColocationReady")
    return found


def configure(cluster: RunningCluster, **document: Any) -> None:
    data = {"colocation-config": json.dumps(document)}
    metadata = {"name": "slo-controller-config", "namespace": "koordinator-system"}
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))


def test_capacity_and_allocatable_are_one(lending: RunningCluster) -> None:
    """Integers, both together, within what the node has."""
    status = node(lending)["status"]
    assert {name: status["capacity"][name] for name in ALL} == {name: status["allocatable"][name] for name in ALL}
    assert 0 <= quantity.parse_units(status["allocatable"][BATCH[0]]) <= 1000 * int(status["capacity"]["cpu"])


def test_node_metric_and_topology(lending: RunningCluster) -> None:
    """Live usage with statistics once half a window was seen; zones carry what they may lend."""

    def metric() -> Any:
        return json.loads(lending.kubectl("get", "nodemetrics", "-o", "json"))["items"][0]["status"]

    assert until(lambda: metric().get("nodeMetric", {}).get("numaUsages"))
    found = metric()
    assert {"cpu", "memory"} <= found["nodeMetric"]["nodeUsage"]["resources"].keys()
    assert found["prodPeakMetric"]["resource"]["resources"].keys() == {"cpu", "memory"}
    topology = json.loads(lending.kubectl("get", "noderesourcetopologies", "-o", "json"))["items"][0]
    rows = {row["name"] for zone in topology["zones"] for row in zone["resources"]}
    assert rows >= {"cpu", "memory", *BATCH}
    assert "node.koordinator.sh/cpu-topology" in topology["metadata"]["annotations"]


SERVICE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "grows", "labels": {"koordinator.sh/qosClass": "LS"}},
    "spec": {
        "priorityClassName": "koord-prod",
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "command": ["sleep", "1000"],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ],
    },
}


def reclaimable(cluster: RunningCluster, resource: str) -> Any:
    """The Decision about the node."""
    with grpc.insecure_channel(cluster.endpoints["agent_grpc"]) as channel:
        stub = agent_pb2_grpc.AgentDiagnosticsStub(channel)
        return stub.ExplainReclaimable(agent_pb2.ExplainReclaimableRequest(resource=resource), timeout=5).decisions[0]


def kept(cluster: RunningCluster, resource: str) -> int:
    """What is not lent for online pods."""
    terms = reclaimable(cluster, resource).terms
    return -sum(int(term.value) for term in terms if term.name.startswith("high-priority"))


def test_a_service_that_is_resized(lending: RunningCluster) -> None:
    """kubectl asks for more, the node gives it, and what is lent falls by that; and rises again with less."""
    configure(lending, enable=True, cpuCalculatePolicy="maxUsageRequest", memoryCalculatePolicy="request")
    lending.apply(json.dumps(SERVICE))
    lending.kubectl("wait", "--for=condition=Ready", "pod/grows", "--timeout=60s")
    assert until(lambda: reclaimable(lending, BATCH[1]).policy == "request" and kept(lending, BATCH[1]) >= 64 << 20)
    before = {name: kept(lending, name) for name in BATCH}
    offered = reclaimable(lending, BATCH[1]).value

    def resize(cpu: str, memory: str) -> None:
        resources = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        patch = json.dumps({"spec": {"containers": [resources]}})
        lending.kubectl("patch", "pod", "grows", "--subresource", "resize", "--patch", patch)

    def held() -> Any:
        status = json.loads(lending.kubectl("get", "pod", "grows", "-o", "json"))["status"]
        container = status["containerStatuses"][0]
        return container["allocatedResources"], container["resources"]["requests"], container["restartCount"]

    # More than a tenth of what is lent, which is told at once.
    more = {"cpu": "600m", "memory": "4160Mi"}
    resize(**more)
    assert until(lambda: held() == (more, more, 0)), held()
    assert until(lambda: kept(lending, BATCH[1]) == before[BATCH[1]] + (4 << 30)), kept(lending, BATCH[1])
    assert until(lambda: kept(lending, BATCH[0]) >= before[BATCH[0]] + 400), kept(lending, BATCH[0])
    assert until(lambda: quantity.parse_units(allocatable(lending)[BATCH[1]]) == offered - (4 << 30))
    resize("100m", "64Mi")
    assert until(lambda: kept(lending, BATCH[1]) == before[BATCH[1]]), kept(lending, BATCH[1])
    lending.kubectl("delete", "pod", "grows", "--wait=false")
    configure(lending, enable=True, cpuReclaimThresholdPercent=400)


@pytest.mark.slow
def test_the_config_map_rules(lending: RunningCluster) -> None:
    """Off: the keys go and the condition says why. A broken one: what it said stays. On: the keys are back. Gone: off."""
    configure(lending, enable=False)
    assert until(lambda: not set(ALL) & allocatable(lending).keys()), allocatable(lending)
    assert (ready(lending)["status"], ready(lending)["reason"]) == ("False", "LendingDisabled")
    with lending.unchecked():
        configure(lending, enable=True, cpuReclaimThresholdPercent="many")
    assert until(lambda: "cpuReclaimThresholdPercent" in ready(lending)["message"] + events(lending))
    assert not set(ALL) & allocatable(lending).keys()
    configure(lending, enable=True, cpuReclaimThresholdPercent=400, batchCPUThresholdPercent=5)
    assert until(lambda: set(ALL) <= allocatable(lending).keys())
    capped = 50 * int(allocatable(lending)["cpu"])
    assert until(lambda: quantity.parse_units(allocatable(lending).get(BATCH[0], "1Gi")) <= capped)
    assert until(lambda: ready(lending)["reason"] == "LendingActive")
    lending.kubectl("-n", "koordinator-system", "delete", "configmap", "slo-controller-config")
    assert until(lambda: not set(ALL) & allocatable(lending).keys()), allocatable(lending)
    assert "was deleted" in ready(lending)["message"]
    configure(lending, enable=True, cpuReclaimThresholdPercent=400)
    assert until(lambda: set(ALL) <= allocatable(lending).keys())


def events(cluster: RunningCluster) -> str:
    return cluster.kubectl("get", "events", "-A", "-o", "jsonpath={.items[*].message}")


def test_simulating_the_clusters_own_objects(lending: RunningCluster) -> None:
    """kubectl's output goes in as it is; the value is the sum of its terms."""
    kinds = "nodes,pods,nodemetrics,nodeslos,noderesourcetopologies"
    objects = lending.kubectl("get", kinds, "-A", "-o", "yaml")
    command = [sys.executable, "-m", "cli", "simulate", "node", "-f", "-", "-o", "json"]
    done = subprocess.run(command, input=objects, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)
    assert answer["degraded"] is None and set(answer["prepared"]) == set(ALL) == set(answer["resources"])
    for resource in answer["resources"].values():
        assert resource["value"] == sum(term["value"] for term in resource["terms"])
    assert [zone["name"] for zone in answer["zones"]] == ["node-0"]


def test_the_journal_is_decided_again(lending: RunningCluster) -> None:
    """Every tick so far comes out the same; with another threshold less would have been lent."""
    journal, copy = lending.journal, lending.directory / "copy"
    assert journal is not None
    copy.write_bytes(journal.read_bytes())
    replay = [sys.executable, "-m", "cli", "replay", str(copy)]
    same = subprocess.run(replay, capture_output=True, text=True, timeout=60)
    assert same.returncode == 0 and "identical" in same.stdout, same.stdout + same.stderr
    other = lending.directory / "other.yaml"
    other.write_text("colocation: {memory_reclaim_threshold_pct: 20}\n")
    told = subprocess.run([*replay, "--settings", str(other), "-o", "json"], capture_output=True, text=True, timeout=60)
    points = json.loads(told.stdout)
    assert any(p["lent"].get(BATCH[1], 0) > p["would_lend"][BATCH[1]] for p in points), points[-1]


def test_a_pod_is_seen_with_its_containers(lending: RunningCluster) -> None:
    """ListPods: usage of the pod and of each container in its cgroup."""
    lending.kubectl("apply", "-f", "examples/quickstart/1-service.yaml")

    def seen() -> Any:
        with grpc.insecure_channel(lending.endpoints["agent_grpc"]) as channel:
            answer = agent_pb2_grpc.AgentDiagnosticsStub(channel).ListPods(agent_pb2.ListPodsRequest(), timeout=5)
        web = [pod for pod in answer.pods if pod.name == "web" and pod.measured]
        return [container for pod in web for container in pod.containers if container.usage.memory_bytes]

    # A container's memory is read in turn, every tenth tick.
    assert [container.name for container in until(seen)] == ["web"]
    lending.kubectl("delete", "-f", "examples/quickstart/1-service.yaml", "--wait=false")
