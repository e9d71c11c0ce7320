"""Kueue's definitions and the example's manifests on a real API server, and the scheduler that acts on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from scheduler_processes import Cluster, SchedulerProcess, until

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
DEFINITIONS = sorted((ROOT / "deploy" / "crds" / "optional" / "kueue").glob("*s.yaml"))
EXAMPLE = list(yaml.safe_load_all((ROOT / "examples" / "kueue" / "training.yaml").read_text()))
APIS, GPU = "/apis/kueue.x-k8s.io", "nvidia.com/gpu"
PLURALS = {"ResourceFlavor": "resourceflavors", "ClusterQueue": "clusterqueues", "LocalQueue": "localqueues"}
PRODUCTS = {"a": "NVIDIA-A100-SXM4-80GB", "v": "Tesla-V100-SXM2-32GB"}


def install(cluster: Cluster, controlled: str = "true") -> None:
    """The definitions; with another word they are those of a running Kueue."""
    for path in DEFINITIONS:
        body = yaml.safe_load(path.read_text())
        if controlled != "true":
            body["metadata"].pop("annotations", None)
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)


def apply_example(cluster: Cluster) -> None:
    for namespace in ("ml-research", "ml-production"):
        metadata = {"name": namespace}
        cluster.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for body in EXAMPLE:
        where = f"/namespaces/{body['metadata']['namespace']}" if "namespace" in body["metadata"] else ""
        cluster.request("POST", f"{APIS}/v1beta1{where}/{PLURALS[body['kind']]}", body)


def add_node(cluster: Cluster, name: str) -> None:
    metadata = {"name": name, "labels": {"nvidia.com/gpu.product": PRODUCTS[name[0]]}}
    taints = [{"key": GPU, "value": "present", "effect": "NoSchedule"}]
    body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}}
    cluster.request("POST", "/api/v1/nodes", body)
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", GPU: "8"}
    status = {"status": {"capacity": amounts, "allocatable": amounts}}
    cluster.request("PATCH", f"/api/v1/nodes/{name}/status", status, "application/strategic-merge-patch+json")


def add_pod(cluster: Cluster, name: str, queue: str = "ml-research-queue", namespace: str = "ml-research") -> None:
    amounts = {"cpu": "32", "memory": "256Gi", GPU: "8"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"schedulerName": "koord-scheduler", "containers": [container]}
    metadata = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def pod(cluster: Cluster, name: str, namespace: str = "ml-research") -> Any:
    return cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")


def told(cluster: Cluster, name: str, namespace: str = "ml-research") -> str:
    conditions = pod(cluster, name, namespace)["status"].get("conditions") or []
    return next((each["message"] for each in conditions if each["type"] == "PodScheduled"), "")


@pytest.fixture
def scheduler(cluster: Cluster) -> Iterator[list[SchedulerProcess]]:
    """Those that are started; all are stopped afterwards."""
    started: list[SchedulerProcess] = []
    yield started
    for each in started:
        each.process.kill()
        each.process.wait(10)


def test_the_example_governs(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """A100 first, then V100; both versions are served, and say how the queues stand."""
    install(cluster)
    apply_example(cluster)
    for node in ("a0", "v0"):
        add_node(cluster, node)
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    add_pod(cluster, "one")
    until(lambda: pod(cluster, "one")["spec"].get("nodeName") == "a0", "an A100 node", log)
    assert pod(cluster, "one")["metadata"]["annotations"]["sublet.dev/flavors"].startswith(
        "cpu=gpu-a100,memory=gpu-a100"
    )
    add_pod(cluster, "two")
    until(lambda: pod(cluster, "two")["spec"].get("nodeName") == "v0", "a V100 node", log)
    add_pod(cluster, "lost", "no-such-queue")
    missing = "LocalQueue ml-research/no-such-queue does not exist; create it, or name another"
    until(lambda: told(cluster, "lost") == missing, "it waits for its LocalQueue", log)

    def admitted(version: str, where: str) -> Any:
        return cluster.request("GET", f"{APIS}/{version}/{where}").get("status", {}).get("admittedWorkloads")

    queue = "clusterqueues/training-cluster-queue"
    until(lambda: admitted("v1beta1", queue) == 2, "the ClusterQueue says what runs", log)
    status = cluster.request("GET", f"{APIS}/v1beta2/{queue}")["status"]
    used = {each["name"]: each["resources"] for each in status["flavorsUsage"]}
    assert used["gpu-a100"] == [
        {"name": "cpu", "total": "32", "borrowed": "0"},
        {"name": "memory", "total": "256Gi", "borrowed": "0"},
        {"name": GPU, "total": "8", "borrowed": "0"},
    ]
    assert [(each["type"], each["status"], each["reason"]) for each in status["conditions"]] == [
        ("Active", "True", "Ready")
    ]
    local = "namespaces/ml-research/localqueues/ml-research-queue"
    until(lambda: admitted("v1beta2", local) == 2, "so does the LocalQueue", log)
    assert admitted("v1beta2", "namespaces/ml-production/localqueues/ml-production-queue") == 0


def test_where_kueue_runs_its_objects_are_left_alone(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """Definitions without our mark are those of another controller: its quota is not ours to count."""
    install(cluster, controlled="")
    apply_example(cluster)
    add_node(cluster, "a0")
    scheduler.append(SchedulerProcess(cluster))
    add_pod(cluster, "one", "no-such-queue")
    taint = "node(s) had untolerated taint"
    until(lambda: taint in told(cluster, "one"), "it is judged by nodes alone", scheduler[0].log)
    assert "status" not in cluster.request("GET", f"{APIS}/v1beta1/clusterqueues/training-cluster-queue")
