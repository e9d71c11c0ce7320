"""S37: a pod that names no scheduler is placed by one that knows nothing of batch work."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.scheduling.conftest import Scene
from tests.e2e.scheduling.manifests import gang, listed, members

pytestmark = pytest.mark.slow


def test_without_a_scheduler_name_there_is_no_gang(scene: Scene) -> None:
    """One member of a gang of two, the other never made: it runs alone, by default-scheduler; with the name it waits."""
    (plain,) = members("plain", 1, schedulerName=None)
    (ours,) = members("ours", 1)
    scene.apply(listed(gang("plain", 2), gang("ours", 2), plain, ours))
    assert len(scene.placed("plain-", 1)) == 1
    spec = scene.pods()["plain-0"]["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert not scene.places("ours-")
    told = json.loads(scene.cluster.kubectl("get", "events", "--field-selector", "reason=Scheduled", "-o", "json"))
    by = {
        each["involvedObject"]["name"]: each.get("reportingComponent") or each["source"]["component"]
        for each in told["items"]
    }
    assert by["plain-0"] == "default-scheduler"


def test_no_nodes_kubelet_is_newer_than_the_server(scene: Scene) -> None:
    """Kubernetes' version skew policy: a kubelet is at most as new as the API server."""
    server = json.loads(scene.cluster.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    nodes = json.loads(scene.cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    told = {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes}
    assert told and all(_minor(each) <= _minor(server) for each in told), (told, server)


def _minor(version: str) -> tuple[int, int]:
    found = re.match(r"v(\d+)\.(\d+)\.", version)
    assert found, version
    return int(found[1]), int(found[2])
