"""The token of a node's agent, whoever holds it, on `sublet up`: what it may do to pods and to what its node offers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.conftest import ALWAYS_ROOM, RunningCluster, until


class Thief:
    """Whoever holds the kubeconfig of the agent."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._directory = cluster.directory
        self._kubeconfig = f"{cluster.endpoints['directory']}/keys/agent.kubeconfig"

    def kubectl(self, *arguments: str, body: Any = None) -> str:
        """What kubectl says, on both of its outputs."""
        cache = str(self._directory / "cache-of-a-thief")
        command = ["kubectl", "--kubeconfig", self._kubeconfig, "--cache-dir", cache, *arguments]
        text = "" if body is None else json.dumps(body)
        done = subprocess.run(command, capture_output=True, text=True, input=text, timeout=60)
        return done.stdout + done.stderr

    def evict(self, pod: str) -> str:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
        return self.kubectl("create", "--raw", f"/api/v1/namespaces/default/pods/{pod}/eviction", "-f", "-", body=body)


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., RunningCluster]) -> RunningCluster:
    return start_cluster(agent_settings=ALWAYS_ROOM)


@pytest.fixture(scope="module")
def thief(cluster: RunningCluster) -> Thief:
    return Thief(cluster)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "python:3.9", "command": ["python", "-c", "import time; time.sleep(600)"]}
    labels = {"koordinator.sh/qosClass": "BE"} if "priorityClassName" in spec else {}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def pods(cluster: RunningCluster) -> Iterator[None]:
    """An online pod and one of best effort, both running."""
    for each in (pod("online"), pod("batch", priorityClassName="koord-batch")):
        cluster.apply(json.dumps(each))
    phases = ("get", "pods", "online", "batch", "-o", "jsonpath={.items[*].status.phase}")
    assert until(lambda: cluster.kubectl(*phases) == "Running Running", 60), cluster.kubectl(*phases)
    yield
    cluster.kubectl("delete", "pod", "online", "batch", "--ignore-not-found", "--wait=true")


def test_an_online_pod_stays(cluster: RunningCluster, thief: Thief, pods: None) -> None:
    """It can be neither evicted nor deleted; nor made one that can be evicted."""
    assert "online is none of them" in thief.evict("online")
    assert "cannot delete resource" in thief.kubectl("delete", "pod", "online")
    label = {"metadata": {"labels": {"koordinator.sh/eviction-enabled": "true"}}}
    labelled = {**pod("online"), "metadata": {**pod("online")["metadata"], **label["metadata"]}}
    del labelled["spec"]
    forced = ("apply", "--server-side", "--force-conflicts", "--field-manager=thief", "-f", "-")
    assert "neither labels nor spec" in thief.kubectl(*forced, body=labelled)
    found = json.loads(cluster.kubectl("get", "pod", "online", "-o", "json"))
    assert "deletionTimestamp" not in found["metadata"] and found["status"]["phase"] == "Running"


def test_best_effort_goes(thief: Thief, pods: None) -> None:
    """That is what an agent has the right for."""
    assert '"status":"Success"' in thief.evict("batch").replace(" ", "")
