"""An agent's token, whoever holds it, is worth one node: what the API server says to kubectl with it.

`kubectl apply --server-side` sends the patch and nothing else, as the agent does; agents may `get` neither nodes nor pods.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from local.kubeconfig import flattened
from tests.e2e.deploy.files import processes_of
from tests.e2e.deploy.site import NAMESPACE, Site
from tests.e2e.making import evict_while_made

OTHER_NODE = "may not touch what belongs to another node"
OTHER_POD = "may not touch a pod of another node"
API_TOKEN = "var/run/secrets/kubernetes.io/serviceaccount/token"
MINE, THEIRS, ONLINE = "pod-of-mine", "pod-of-theirs", "online-pod-of-mine"
Asking = Callable[..., subprocess.CompletedProcess[str]]


class Thief(NamedTuple):
    """Somebody with the token of the agent on `node`; `other` is another node."""

    site: Site
    node: str
    other: str
    token: str

    def kubectl(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Without the administrator's credentials: an empty kubeconfig beside the token."""
        command = ["kubectl", "--kubeconfig", "/dev/null", "--server", self.site.cluster.endpoints["api"]]
        command += ["--token", self.token, "--certificate-authority", str(self._authority()), *arguments]
        cache = str(self.site.cluster.directory / "cache-of-a-thief")
        return subprocess.run([*command, "--cache-dir", cache], capture_output=True, text=True, timeout=60, input=text)

    def kubeconfig(self) -> Path:
        """The same for who needs a file."""
        server = {"server": self.site.cluster.endpoints["api"], "certificate-authority": str(self._authority())}
        told = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "u", "user": {"token": self.token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        path = self.site.cluster.directory / "kubeconfig-of-a-thief"
        path.write_text(json.dumps(told))
        return path

    def _authority(self) -> Path:
        path = self.site.cluster.directory / "authority-of-the-server.crt"
        path.write_bytes(flattened(Path(self.site.cluster.endpoints["kubeconfig"]))[2])
        return path

    def apply(self, body: dict[str, Any], *more: str) -> str:
        """What kubectl says of a server-side apply."""
        forced = ("apply", "--server-side", "--force-conflicts", "--field-manager=test", *more, "-f", "-")
        done = self.kubectl(*forced, text=json.dumps(body))
        return done.stdout + done.stderr

    def evict(self, pod: str) -> str:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
        body |= {"deleteOptions": {"preconditions": {"uid": self.site.uids("default")[pod]}}}
        path = f"/api/v1/namespaces/default/pods/{pod}/eviction"
        done = self.kubectl("create", "--raw", path, "-f", "-", text=json.dumps(body))
        return done.stdout + done.stderr


@pytest.fixture(scope="module", params=["kubectl create token", "the file in the pod"])
def thief(request: pytest.FixtureRequest, site: Site) -> Iterator[Thief]:
    """With a token that an administrator made for the agent's pod, and with that which the pod has."""
    node, other = site.node_names
    pod = site.agent_on(node)
    if request.param == "the file in the pod":
        token = (processes_of(pod["metadata"]["uid"])[0].root / API_TOKEN).read_text()
    else:
        bound = f"--bound-object-kind Pod --bound-object-name {pod['metadata']['name']}"
        token = site.shell(f"kubectl -n {NAMESPACE} create token sublet-agent {bound}").stdout
    for name, place, qos in ((MINE, node, "BE"), (THEIRS, other, "BE"), (ONLINE, node, "LS")):
        container = {"name": "c", "image": "busybox", "command": ["sleep", "3600"]}
        spec = {"nodeName": place, "terminationGracePeriodSeconds": 0, "containers": [container]}
        spec |= {"priorityClassName": "koord-batch"} if qos == "BE" else {}
        metadata = {"name": name, "namespace": "default", "labels": {"koordinator.sh/qosClass": qos}}
        site.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    yield Thief(site, node, other, token.strip())
    site.cluster.kubectl("delete", "pod", MINE, THEIRS, ONLINE, "--ignore-not-found", "--wait=true")


def node(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def metric(name: str) -> dict[str, Any]:
    status = {"updateTime": "2026-01-01T00:00:00Z"}
    return {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "status": status,
    }


def pod(name: str, annotation: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "annotations": {annotation: "because"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


RATIO = {"metadata": {"annotations": {"node.koordinator.sh/cpu-normalization-ratio": "1.00"}}}
STATUS = ("--subresource=status",)


def test_the_token_says_which_node(thief: Thief) -> None:
    told = thief.kubectl("auth", "whoami", "-o", "json").stdout
    extra = json.loads(told)["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/node-name"] == [thief.node]


def test_another_node_is_out_of_reach(thief: Thief) -> None:
    """Its annotations, its status, its NodeMetric; the message names policy and node."""
    lent = {"status": {"allocatable": {"kubernetes.io/batch-cpu": "1"}}}
    refusals = (
        thief.apply(node(thief.other, **RATIO)),
        thief.apply(node(thief.other, **lent), *STATUS),
        thief.apply(metric(thief.other), *STATUS),
    )
    for said in refusals:
        assert "ValidatingAdmissionPolicy 'sublet-agent-own-node'" in said, said
        assert f"the agent of node {thief.node} {OTHER_NODE}" in said, said


def test_pods_of_another_node_are_out_of_reach(thief: Thief) -> None:
    """Neither annotated nor evicted, and it goes on running."""
    before = thief.site.uids("default")[THEIRS]
    assert OTHER_POD in thief.apply(pod(THEIRS, "sublet.dev/eviction"))
    said = thief.evict(THEIRS)
    assert "ValidatingAdmissionPolicy 'sublet-agent-own-pods'" in said, said
    assert f"the agent of node {thief.node} may not evict a pod of another node" in said, said
    found = thief.site.get("pod", THEIRS, namespace="default")
    assert found["metadata"]["uid"] == before and "deletionTimestamp" not in found["metadata"]


def test_an_online_pod_of_its_node_stays(thief: Thief) -> None:
    """An agent has business with best effort and batch alone."""
    before = thief.site.uids("default")[ONLINE]
    said = thief.evict(ONLINE)
    assert "ValidatingAdmissionPolicy 'sublet-agent-own-pods'" in said and f"{ONLINE} is none of them" in said, said
    found = thief.site.get("pod", ONLINE, namespace="default")
    assert found["metadata"]["uid"] == before and "deletionTimestamp" not in found["metadata"]


@pytest.mark.parametrize("of", ["its node", "another node"])
def test_an_online_pod_stays_also_while_it_is_made(thief: Thief, of: str) -> None:
    """The policy's copy of the pods is some milliseconds old: the webhook looks at the stored pod."""
    place = thief.node if of == "its node" else thief.other
    container = {"name": "c", "image": "busybox", "command": ["sleep", "3600"]}
    spec = {"nodeName": place, "terminationGracePeriodSeconds": 0, "containers": [container]}
    names = [f"being-made-{number}" for number in range(20)]
    metadata = {"namespace": "default", "labels": {"koordinator.sh/qosClass": "LS"}}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": name}, "spec": spec} for name in names]
    admin = Path(thief.site.cluster.endpoints["kubeconfig"])
    try:
        made = asyncio.run(evict_while_made(admin, thief.kubeconfig(), pods))
        assert [each for each in made if each.evicted or "an agent may evict" not in each.told] == []
    finally:
        thief.site.cluster.kubectl("delete", "pod", *names, "--ignore-not-found", "--wait=true")


def test_its_own_node_and_pods_are_not(thief: Thief) -> None:
    """The very same calls, for what is its business."""
    assert "serverside-applied" in thief.apply(node(thief.node, **RATIO))
    assert "serverside-applied" in thief.apply(metric(thief.node), *STATUS)
    assert "serverside-applied" in thief.apply(pod(MINE, "sublet.dev/eviction"))
    assert '"status":"Success"' in thief.evict(MINE).replace(" ", "")


FOREIGN = {
    "labels": ({"metadata": {"labels": {"pool": "mine"}}}, (), "neither labels nor spec"),
    "another annotation": ({"metadata": {"annotations": {"a": "b"}}}, (), "its own annotations only"),
    "what the node has": ({"status": {"allocatable": {"cpu": "99"}}}, STATUS, "batch and mid resources"),
    "readiness": (
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        STATUS,
        "the condition ColocationReady only",
    ),
    "taints": ({"spec": {"unschedulable": True}}, (), "neither labels nor spec"),
}
"""Of its own node: what is changed, where, and how that is refused."""


@pytest.mark.parametrize(("change", "where", "refusal"), FOREIGN.values(), ids=FOREIGN)
def test_of_its_own_node_only_what_is_lent(
    thief: Thief, change: dict[str, Any], where: tuple[str, ...], refusal: str
) -> None:
    assert refusal in thief.apply(node(thief.node, **change), *where)


def test_nothing_else_at_all(thief: Thief) -> None:
    """RBAC's own refusals: no secrets, no deletions, no reading of single pods."""
    for arguments in (("get", "secrets", "-A"), ("delete", "node", thief.other), ("delete", "pod", "bystander")):
        done = thief.kubectl(*arguments)
        assert done.returncode != 0 and "cannot" in done.stderr and "sublet-agent" in done.stderr, done.stderr


def test_a_token_of_no_pod_is_worth_nothing(site: Site) -> None:
    """Made for the account alone, it names no node."""
    token = site.shell(f"kubectl -n {NAMESPACE} create token sublet-agent").stdout.strip()
    own, other = site.node_names
    thief = Thief(site, own, other, token)
    assert "the agent's token is bound to no node" in thief.apply(node(thief.node, **RATIO))
