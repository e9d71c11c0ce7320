"""The webhooks as deploy/ installs them, asked by the embedded API server on behalf of real kubectl."""

from __future__ import annotations

import json
import ssl
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from admission_builders import BATCH_SPEC
from admission_processes import AdmissionCluster, namespace

pytestmark = pytest.mark.e2e

PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "batch"},
    "spec": BATCH_SPEC,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdmissionCluster]:
    """With one replica, a namespace for batch work and the profile of the quick start."""
    found = AdmissionCluster(tmp_path_factory.mktemp("admission"))
    try:
        found.admission()
        found.until(lambda: trusted(found))
        found.apply(namespace("batch", **{"koordinator.sh/enable-colocation": "true"}), PROFILE)
        found.until(lambda: in_force(found))
        yield found
    finally:
        found.close()


def trusted(cluster: AdmissionCluster) -> bool:
    """Whether the API server knows the authority of every webhook."""
    hooks = cluster.get("mutatingwebhookconfigurations,validatingwebhookconfigurations")["items"]
    return all(hook["clientConfig"].get("caBundle") for item in hooks for hook in item["webhooks"])


def pod(name: str, space: str = "batch", labels: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"cpu": "2", "memory": "4Gi"}}}
    metadata = {"name": name, "namespace": space, "labels": {"app-type": "batch"} if labels is None else labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def created(cluster: AdmissionCluster, body: dict[str, Any]) -> Any:
    cluster.apply(body)
    return cluster.get("pod", "-n", body["metadata"]["namespace"], body["metadata"]["name"])


def in_force(cluster: AdmissionCluster) -> bool:
    """Whether the profile is seen; nothing is created."""
    told = cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod("probe")))
    return "koordinator.sh/qosClass" in told


def test_an_unchanged_pod_becomes_batch(cluster: AdmissionCluster) -> None:
    """S26 to S28 through every part: profile, namespace label, webhook, patch."""
    found = created(cluster, pod("by-profile"))
    amounts = {"kubernetes.io/batch-cpu": "2k", "kubernetes.io/batch-memory": "4Gi"}
    assert found["spec"]["containers"][0]["resources"] == {"limits": amounts, "requests": amounts}
    assert found["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE"
    assert (found["spec"]["priorityClassName"], found["spec"]["priority"]) == ("koord-batch", 5000)
    assert found["spec"]["schedulerName"] == "koord-scheduler"
    told = json.loads(found["metadata"]["annotations"]["node.koordinator.sh/extended-resource-spec"])
    assert told["containers"]["main"]["requests"]["kubernetes.io/batch-cpu"] == "2000"


def test_a_batch_pod_by_hand(cluster: AdmissionCluster) -> None:
    """S29: no profile selects it, and it is let in."""
    body = pod("by-hand", labels={"koordinator.sh/qosClass": "BE"}, priorityClassName="koord-batch")
    lent = {"kubernetes.io/batch-cpu": "1000", "kubernetes.io/batch-memory": "2Gi"}
    body["spec"]["containers"][0]["resources"] = {"limits": lent, "requests": lent}
    assert created(cluster, body)["spec"]["priority"] == 5000


def test_refusals_reach_the_person(cluster: AdmissionCluster) -> None:
    """In the words of the rule, in the colocation namespace and in any other."""
    for space in ("batch", "default"):
        told = cluster.apply(pod("wrong", space, labels={"koordinator.sh/qosClass": "BE"}), code=1)
        assert "priority class none cannot be used in combination" in told


def test_settled_labels(cluster: AdmissionCluster) -> None:
    """The class of a running pod stays; any other label may change."""
    created(cluster, pod("settled"))
    told = cluster.kubectl(
        "label", "pod", "-n", "batch", "settled", "koordinator.sh/qosClass=LS", "--overwrite", code=1
    )
    assert "cannot change from BE to LS" in told
    cluster.kubectl("label", "pod", "-n", "batch", "settled", "team=a")


def test_documents(cluster: AdmissionCluster) -> None:
    """Settings and profiles are checked as they are written; what only looks wrong is a warning."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "slo-controller-config", "namespace": "koordinator-system"},
    }
    assert "degradeTimeMinutes: is 0" in cluster.apply(
        {**config, "data": {"colocation-config": '{"degradeTimeMinutes":0}'}}, code=1
    )
    cluster.apply({**config, "data": {"colocation-config": '{"enable":true}'}})
    slo = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": "n"}}
    bad = {"resourceUsedThresholdWithBE": {"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 75}}
    assert "memoryEvictLowerPercent below" in cluster.apply({**slo, "spec": bad}, code=1)
    wrong = {**PROFILE, "metadata": {"name": "wrong"}, "spec": {"labels": {"a b": "c"}}}
    assert "'a b' is no valid key" in cluster.apply(wrong, code=1)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"probability": 101}, "write a number from 0 to 100"),
        ({"probability": "101%"}, "write a number from 0 to 100"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "In and NotIn need values"),
        ({"qosClass": "XL"}, 'Unsupported value: "XL"'),
    ],
)
def test_the_definition_checks_what_it_can(cluster: AdmissionCluster, spec: dict[str, Any], words: str) -> None:
    """Without any webhook."""
    assert words in cluster.apply({**PROFILE, "metadata": {"name": "wrong"}, "spec": spec}, code=1)


def test_system_pods_are_never_asked_about(cluster: AdmissionCluster) -> None:
    """Not even in a namespace of batch work."""
    created(cluster, pod("critical", priorityClassName="system-node-critical"))
    assert '"name": "critical"' not in cluster.log("one")
    created(cluster, pod("system", "kube-system", labels={"koordinator.sh/qosClass": "BE"}))


def test_certificates_are_those_of_the_leader(cluster: AdmissionCluster) -> None:
    """Three Secrets, each signed by what the ConfigMap says; only their keys are secret."""
    bundle = cluster.get("configmap", "-n", "sublet-system", "sublet-ca")["data"]["ca.crt"]
    for name in ("sublet-admission", "sublet-agent", "sublet-scheduler"):
        secret = cluster.get("secret", "-n", "sublet-system", f"{name}-tls")
        assert secret["type"] == "kubernetes.io/tls" and b64decode(secret["data"]["tls.key"])
    assert ssl.create_default_context(cadata=bundle).cert_store_stats()["x509_ca"] == 1


def test_metrics(cluster: AdmissionCluster) -> None:
    """What was done can be counted."""
    http = json.loads((cluster.folder / "one.json").read_text())["http"]
    with urllib.request.urlopen(f"http://{http}/metrics", timeout=10) as response:
        text = response.read().decode()
    assert 'sublet_admission_profile_pods_total{profile="batch",reason="ProfileApplied"}' in text
    assert "sublet_admission_leader 1.0" in text


@pytest.mark.slow
def test_an_outage_stops_nobody_but_batch_work(tmp_path: Path) -> None:
    """Ordinary pods, system pods and changes that are not checked pass; a new batch pod is refused and tried again."""
    cluster = AdmissionCluster(tmp_path)
    try:
        cluster.admission()
        cluster.until(lambda: trusted(cluster))
        cluster.apply(namespace("batch", **{"koordinator.sh/enable-colocation": "true"}), PROFILE)
        cluster.until(lambda: in_force(cluster))
        created(cluster, pod("before"))
        assert cluster.stop() == 0
        lease = cluster.get("lease", "-n", "sublet-system", "sublet-admission")
        assert not lease["spec"].get("holderIdentity")
        created(cluster, pod("ordinary", "default"))
        created(cluster, pod("system", "kube-system"))
        told = cluster.apply(pod("after"), code=1)
        assert 'failed calling webhook "colocation.pods.sublet.dev"' in told
        cluster.kubectl("annotate", "pod", "-n", "batch", "before", "note=x")
        cluster.kubectl("delete", "pod", "-n", "batch", "before", "--wait=false")
        cluster.admission("two")
        created(cluster, pod("after"))
    finally:
        cluster.close()
