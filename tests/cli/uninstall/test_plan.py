"""What taking Sublet off asks of one object: patches, and when a node is done."""

from __future__ import annotations

from typing import Any

import pytest

from cli.uninstall.plan import LentNode, Unfinished, cleaned, has_restored, held_by_pods, restores, restoring
from tests.cli.uninstall.daemonset import daemon_set

CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"


def test_the_agents_own_container_puts_the_originals_back() -> None:
    """With its image, mounts and options; no probe may end it, no guard may take the rest for silence."""
    patch = {step["path"]: step.get("value") for step in restoring(daemon_set())}
    (first,) = patch["/spec/template/spec/initContainers"]
    assert first["args"] == ["--state-file=/s", "--restore", "--if-any"]
    assert first["volumeMounts"] and first["image"] == "sublet-agent:1" and "livenessProbe" not in first
    assert [container["name"] for container in patch["/spec/template/spec/containers"]] == ["agent"]
    assert patch["/metadata/resourceVersion"] == "7"
    assert patch["/spec/updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "100%"}


def test_a_patched_daemon_set_is_known_again() -> None:
    """So that an uninstallation that was interrupted does not patch it twice."""
    assert not restores(daemon_set())
    assert restores(daemon_set(initContainers=restoring(daemon_set())[2]["value"]))
    assert not restores(daemon_set(initContainers=[]))


def test_a_daemon_set_that_is_not_ours() -> None:
    with pytest.raises(Unfinished, match="no container named agent"):
        restoring(daemon_set(containers=[{"name": "other"}]))


STATES: dict[str, tuple[dict[str, Any], bool]] = {
    "ended well": ({"terminated": {"exitCode": 0}}, True),
    "ended badly": ({"terminated": {"exitCode": 2}}, False),
    "still at it": ({"running": {}}, False),
    "not begun": ({"waiting": {"reason": "PodInitializing"}}, False),
}


@pytest.mark.parametrize(("state", "restored"), STATES.values(), ids=STATES)
def test_when_a_node_is_restored(state: dict[str, Any], restored: bool) -> None:
    pod = {"status": {"initContainerStatuses": [{"name": "restore", "state": state}]}}
    assert has_restored(pod) is restored


def test_an_agents_pod_of_before_is_not_restored() -> None:
    assert not has_restored({"status": {"initContainerStatuses": [{"name": "preflight", "state": {}}]}})


def pod(name: str, node: str, phase: str = "Running", **requests: str) -> dict[str, Any]:
    container = {
        "name": "c",
        "resources": {"requests": {f"kubernetes.io/{k.replace('_', '-')}": v for k, v in requests.items()}},
    }
    return {
        "metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": phase},
    }


def test_what_running_pods_hold() -> None:
    pods = [
        pod("a", "n1", batch_cpu="500", batch_memory="1Gi"),
        pod("b", "n1", batch_cpu="250"),
        pod("c", "n1", "Succeeded", batch_cpu="100"),
        pod("d", "n2"),
        pod("e", "", "Pending", batch_cpu="100"),
    ]
    assert held_by_pods(pods) == {"n1": {CPU: 750, MEMORY: 1 << 30}}


def test_a_nodes_amounts_shrink_to_what_is_held_and_go_where_nothing_is() -> None:
    status = cleaned(LentNode("n", {CPU: "4000", MEMORY: "8Gi"}, {CPU: 750}))["status"]
    assert status["allocatable"] == status["capacity"] == {CPU: "750", MEMORY: None}
    assert status["conditions"] == [{"type": "ColocationReady", "$patch": "delete"}]
