"""Sublet leaves: kernel, nodes and pods are as they were before it came. Last, since nothing of it runs afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.deploy.files import control_files
from tests.e2e.deploy.site import BATCH, Site

COMMAND = "sublet uninstall --restore --yes"
KEPT = ("customresourcedefinition.apiextensions.k8s.io/", "priorityclass.scheduling.k8s.io/")
# Of each definition's group kube-apiserver makes one itself, and removes it with the definition.
MADE_BY_THE_SERVER = ("event", "apiservice.apiregistration.k8s.io/")
HOLDER = "holder"
WITNESSES = ("bystander", "best-effort-bystander")


def batch_pod(name: str) -> str:
    amounts = {BATCH[0]: "100", BATCH[1]: "64Mi"}
    container = {"name": "c", "image": "busybox", "command": ["sleep", "3600"]}
    spec = {
        "schedulerName": "koord-scheduler",
        "priorityClassName": "koord-batch",
        "terminationGracePeriodSeconds": 0,
        "containers": [{**container, "resources": {"requests": amounts, "limits": amounts}}],
    }
    metadata = {"name": name, "namespace": "default", "labels": {"koordinator.sh/qosClass": "BE"}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.fixture(scope="module")
def removed(lending: Site) -> Site:
    """Uninstalled while a batch pod runs, which holds what it was lent."""
    kubectl = lending.cluster.kubectl
    lending.cluster.apply(batch_pod(HOLDER))
    kubectl("wait", f"pod/{HOLDER}", "--for=condition=Ready", "--timeout=50s")
    assert control_files(lending.cluster.endpoints) != lending.before[2]
    done = lending.shell(COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr + lending.told()
    assert "original limits are back on 2 of 2 nodes" in done.stdout
    return lending


def state_of(pod: dict[str, Any]) -> tuple[str, str, int]:
    status = pod["status"]["containerStatuses"][0]
    return pod["metadata"]["uid"], pod["status"]["phase"], status["restartCount"]


def test_pods_never_noticed(removed: Site) -> None:
    """The very same, running, with no restart; the batch pod too."""
    for name in WITNESSES:
        pod = removed.get("pod", name, namespace="default")
        assert state_of(pod) == (removed.before[1][name], "Running", 0)
    assert state_of(removed.get("pod", HOLDER, namespace="default"))[1:] == ("Running", 0)


def test_what_a_running_pod_holds_stays_until_it_ends(removed: Site) -> None:
    """A kubelet that restarts must be able to admit it; a second run takes the rest. Twice is no harm."""
    node = removed.get("pod", HOLDER, namespace="default")["spec"]["nodeName"]
    assert {name: removed.nodes()[node]["status"]["allocatable"].get(name) for name in BATCH} == dict(
        zip(BATCH, ("100", "67108864"), strict=True)
    )
    removed.cluster.kubectl("delete", "pod", HOLDER)
    for _ in range(2):
        done = removed.shell(COMMAND)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "still hold" not in done.stdout


def test_control_files_are_as_they_were(removed: Site) -> None:
    """Every setting of the best-effort root of every node."""
    now, before = control_files(removed.cluster.endpoints), removed.before[2]
    assert {path: text for path, text in now.items() if text != before[path]} == {}


def test_nodes_are_as_they_were(removed: Site) -> None:
    """Amounts, annotations, labels and conditions."""
    removed.cluster.kubectl("label", "nodes", "--all", "pool-")  # which the canary's test gave one of them
    for name, node in removed.nodes().items():
        before = removed.before[0][name]
        for field in ("annotations", "labels"):
            assert node["metadata"].get(field) == before["metadata"].get(field)
        for field in ("capacity", "allocatable"):
            assert node["status"][field] == before["status"][field]
        assert [each["type"] for each in node["status"]["conditions"]] == [
            each["type"] for each in before["status"]["conditions"]
        ]
        assert node["spec"] == before["spec"]


def test_nothing_of_sublet_is_left(removed: Site) -> None:
    """Of any kind that can be listed, neither by name nor by label; definitions and priority classes are kept."""
    kinds = removed.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    listed = removed.cluster.kubectl("get", ",".join(kinds), "-A", "-o", "name", "--ignore-not-found").split()
    assert len(kinds) > 30 and any(name.startswith(KEPT[0]) for name in listed)
    left = [name for name in listed if "sublet" in name and not name.startswith((*KEPT, *MADE_BY_THE_SERVER))]
    assert left == []
    made = ("nodemetrics.slo.koordinator.sh", "nodeslos.slo.koordinator.sh", "noderesourcetopologies")
    assert removed.cluster.kubectl("get", ",".join(made), "-o", "name").split() == []


def test_namespaces_for_colocation_are_ordinary_again(removed: Site) -> None:
    """Nobody is asked, so nobody is missed."""
    kubectl = removed.cluster.kubectl
    kubectl("create", "namespace", "afterwards")
    kubectl("label", "namespace", "afterwards", "koordinator.sh/enable-colocation=true")
    kubectl("-n", "afterwards", "run", "ordinary", "--image=busybox", "--restart=Never", "--", "true")
    kubectl("-n", "afterwards", "wait", "pod/ordinary", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=50s")
    kubectl("delete", "namespace", "afterwards")
