"""The token of a node's agent, whoever holds it, on `sublet up`: what it may do to pods and to what its node offers."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from model.quantity import parse_millis, parse_units
from tests.e2e.conftest import RunningCluster, until
from tests.e2e.making import evict_while_made

BINDING = "validatingadmissionpolicybinding"


class Thief:
    """Whoever holds the kubeconfig of the agent."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        self._directory = cluster.directory
        self.kubeconfig = f"{cluster.endpoints['directory']}/keys/agent.kubeconfig"

    def kubectl(self, *arguments: str, body: Any = None) -> str:
        """What kubectl says, on both of its outputs."""
        cache = str(self._directory / "cache-of-a-thief")
        command = ["kubectl", "--kubeconfig", self.kubeconfig, "--cache-dir", cache, *arguments]
        text = "" if body is None else json.dumps(body)
        done = subprocess.run(command, capture_output=True, text=True, input=text, timeout=60)
        return done.stdout + done.stderr

    def evict(self, pod: str) -> str:
        """With its uid, as the agent does."""
        uid = self._cluster.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
        body |= {"deleteOptions": {"preconditions": {"uid": uid}}}
        return self.kubectl("create", "--raw", f"/api/v1/namespaces/default/pods/{pod}/eviction", "-f", "-", body=body)


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


@pytest.mark.parametrize("annotation", ["sublet.dev/preemption-notice", "sublet.dev/eviction"])
def test_an_online_pod_is_told_nothing(cluster: RunningCluster, thief: Thief, pods: None, annotation: str) -> None:
    """A program that hears of its preemption ends by itself, and a scheduler that starts again ends who was told."""
    notice = {
        "deadline": "2099-01-01T00:00:00Z",
        "since": "2026-01-01T00:00:00Z",
        "reason": "Preempted",
        "by": "pod a/b",
    }
    # A name of its own for each annotation: kubectl gives the fields of another's apply to the first.
    manager = annotation.replace("/", ".")
    forced = ("apply", "--server-side", "--force-conflicts", f"--field-manager={manager}", "-f", "-")

    def told(name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "default", "annotations": {annotation: json.dumps(notice)}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}

    assert "an agent tells pods of class BE" in thief.kubectl(*forced, body=told("online"))
    stored = json.loads(cluster.kubectl("get", "pod", "online", "-o", "json"))
    assert annotation not in stored["metadata"].get("annotations", {})
    assert "serverside-applied" in thief.kubectl(*forced, body=told("batch"))


def test_best_effort_goes(thief: Thief, pods: None) -> None:
    """That is what an agent has the right for."""
    assert '"status":"Success"' in thief.evict("batch").replace(" ", "")


@pytest.fixture(params=["policies and webhook", pytest.param("the webhook alone", marks=pytest.mark.slow)])
def barriers(request: pytest.FixtureRequest, cluster: RunningCluster) -> Iterator[None]:
    """A policy of this API server knows each pod at once; elsewhere it does not, and is as if it were not there.

    With `Fail` a webhook that is too slow on a busy machine refuses and does not let pass.
    """
    if request.param == "policies and webhook":
        yield
        return
    configuration = ("validatingwebhookconfiguration", "sublet-admission")
    hooks = json.loads(cluster.kubectl("get", *configuration, "-o", "json"))["webhooks"]
    place = [hook["name"] for hook in hooks].index("evictions.sublet.dev")
    change = {"op": "replace", "path": f"/webhooks/{place}/failurePolicy"}
    names = ("sublet-agent-own-pods", "sublet-agent-evictions")
    kept = [json.loads(cluster.kubectl("get", BINDING, name, "-o", "json")) for name in names]
    cluster.kubectl("patch", *configuration, "--type=json", "-p", json.dumps([{**change, "value": "Fail"}]))
    cluster.kubectl("delete", BINDING, *names)
    yield
    for each in kept:
        each["metadata"] = {key: each["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
        cluster.apply(json.dumps(each))
    cluster.kubectl("patch", *configuration, "--type=json", "-p", json.dumps([{**change, "value": "Ignore"}]))


def test_an_online_pod_stays_also_while_it_is_made(cluster: RunningCluster, thief: Thief, barriers: None) -> None:
    """Asked for by name before it is there, and by its uid from then on."""
    node = cluster.endpoints["node"]
    pods = [pod(f"being-made-{number}", nodeName=node) for number in range(20)]
    admin = Path(cluster.endpoints["kubeconfig"])
    try:
        made = asyncio.run(evict_while_made(admin, Path(thief.kubeconfig), pods))
        assert [each for each in made if each.evicted or "an agent may evict" not in each.told] == []
        found = json.loads(cluster.kubectl("get", "pods", *(each.name for each in made), "-o", "json"))["items"]
        assert [each for each in found if "deletionTimestamp" in each["metadata"]] == []
    finally:
        names = [each["metadata"]["name"] for each in pods]
        cluster.kubectl("delete", "pod", *names, "--ignore-not-found", "--wait=true")


BATCH_CPU = "kubernetes.io/batch-cpu"


def offer(node: str, amount: str) -> dict[str, Any]:
    amounts = {BATCH_CPU: amount}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status}


@pytest.mark.parametrize("amount", ["1000000", "1e30"])
def test_a_node_attracts_no_more_than_it_has(cluster: RunningCluster, thief: Thief, amount: str) -> None:
    """Nor is its own cpu the agent's to change, by which it would have more."""
    node = cluster.endpoints["node"]
    status = ("apply", "--server-side", "--force-conflicts", "--field-manager=thief", "--subresource=status", "-f", "-")
    said = thief.kubectl(*status, body=offer(node, amount))
    assert f"a node lends at most its own cpu and memory, and {BATCH_CPU} is more than that" in said, said
    more = {**offer(node, "1"), "status": {"capacity": {"cpu": "1k"}}}
    assert "batch and mid resources of its node only" in thief.kubectl(*status, body=more)
    found = json.loads(cluster.kubectl("get", "node", node, "-o", "json"))["status"]
    assert parse_units(found["allocatable"].get(BATCH_CPU, "0")) <= parse_millis(found["capacity"]["cpu"])


@pytest.mark.parametrize(("amount", "ratio"), [("1000000", "1.00"), ("4000", "5.00")])
def test_what_nobody_refused_attracts_nothing(cluster: RunningCluster, amount: str, ratio: str) -> None:
    """Where the policy is not there (before Kubernetes 1.30) the scheduler itself believes no such offer, and says why.

    The ratio is the token's to write, and counts as far as people allow it; here nobody does.
    """
    binding = ("validatingadmissionpolicybinding", "sublet-agent-own-node")
    kept = json.loads(cluster.kubectl("get", *binding, "-o", "json"))
    cluster.kubectl("delete", *binding)
    annotations = {"node.koordinator.sh/cpu-normalization-ratio": ratio}
    metadata = {"name": "boaster", "labels": {"boasts": "yes"}, "annotations": annotations}
    has = {"cpu": "1", "memory": "4Gi", "pods": "110"}
    lent = {BATCH_CPU: amount, "kubernetes.io/batch-memory": "1Gi"}
    status = {"capacity": {**has, **lent}, "allocatable": {**has, **lent}}
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": metadata}))
    cluster.kubectl("patch", "node", "boaster", "--subresource=status", "-p", json.dumps({"status": status}))
    amounts = {BATCH_CPU: "2000", "kubernetes.io/batch-memory": "16Mi"}
    asking = pod("asking", priorityClassName="koord-batch", schedulerName="koord-scheduler")
    asking["spec"] |= {"nodeSelector": {"boasts": "yes"}, "tolerations": [{"operator": "Exists"}]}
    asking["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    cluster.apply(json.dumps(asking))
    try:
        condition = "{.status.conditions[?(@.type=='PodScheduled')].message}"
        told = ("get", "pod", "asking", "-o", f"jsonpath={condition}")
        assert until(lambda: "nodes are available" in cluster.kubectl(*told)), cluster.kubectl(*told)
        assert cluster.kubectl("get", "pod", "asking", "-o", "jsonpath={.spec.nodeName}") == ""
        explained = [cluster.sublet("explain", "pod", "default/asking")]
        if ratio == "1.00":
            node = ("explain", "node", "boaster", "--kubeconfig", cluster.endpoints["kubeconfig"])
            explained.append(cluster.sublet(*node))
        for said in explained:
            assert f"its offer of {amount} {BATCH_CPU} counts as 0" in said.stdout + said.stderr, said
    finally:
        cluster.kubectl("delete", "pod/asking", "node/boaster", "--ignore-not-found", "--wait=true")
        kept["metadata"] = {key: kept["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
        cluster.apply(json.dumps(kept))
