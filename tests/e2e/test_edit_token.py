"""Somebody who may edit the pods of one namespace, as ClusterRole `edit` grants it, takes nothing of a node by that."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import CGROUPS, RunningCluster, until

SPEC = "node.koordinator.sh/extended-resource-spec"
QOS = "koordinator.sh/qosClass"
CLAIM = {"kubernetes.io/batch-cpu": "256000", "kubernetes.io/batch-memory": "900Gi"}
CLAIMED = json.dumps({"containers": {"c": {"requests": CLAIM, "limits": CLAIM}}})
OFFERED = {"kubernetes.io/batch-cpu": "15", "kubernetes.io/batch-memory": "16Mi"}
OWN_QUOTA = "1500"
"""Below the smallest ceiling of best effort as a whole, above which a quota would bind nobody and is not written."""
NATIVE = {"cpu": "100m", "memory": "64Mi"}
GUARDS = (
    "mutatingwebhookconfiguration/sublet-admission",
    "validatingwebhookconfiguration/sublet-admission",
    "validatingadmissionpolicybinding/sublet-settled-pods",
)
FILES = ("cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "memory/memory.limit_in_bytes")


def pod(name: str, amounts: dict[str, str], /, **metadata: Any) -> dict[str, Any]:
    """A pod of the batch band, as any editor of the namespace may create it."""
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "c", "image": "python:3.9", "command": ["python", "-c", "import time; time.sleep(600)"]}
    spec = {"priorityClassName": "koord-batch", "terminationGracePeriodSeconds": 0}
    spec |= {"containers": [{**container, "resources": resources}]}  # type: ignore[dict-item]
    labels = {QOS: "BE", **metadata.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels, **metadata},
        "spec": spec,
    }


class Editor:
    """Service account `ann`, with ClusterRole `edit` in namespace default and a token of its own."""

    def __init__(self, cluster: RunningCluster) -> None:
        cluster.kubectl("create", "serviceaccount", "ann")
        cluster.kubectl("create", "rolebinding", "ann", "--clusterrole=edit", "--serviceaccount=default:ann")
        self._cluster = cluster
        self._token = cluster.kubectl("create", "token", "ann").strip()

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """What kubectl says, on both of its outputs."""
        endpoints = self._cluster.endpoints
        command = ["kubectl", "--kubeconfig", "/dev/null", "--server", endpoints["api"], "--token", self._token]
        command += ["--certificate-authority", f"{endpoints['directory']}/keys/ca.crt"]
        command += ["--cache-dir", str(self._cluster.directory / "cache-of-ann"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, input=text, timeout=60)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def ann(cluster: RunningCluster) -> Iterator[Editor]:
    yield Editor(cluster)
    cluster.kubectl("delete", "rolebinding/ann", "serviceaccount/ann")


@contextmanager
def unguarded(cluster: RunningCluster) -> Iterator[None]:
    """While the block runs neither webhooks nor the policy of pods are there, as before they were installed."""
    kept = [json.loads(cluster.kubectl("get", guard, "-o", "json")) for guard in GUARDS]
    cluster.kubectl("delete", *GUARDS)
    try:
        yield
    finally:
        for each in kept:
            each["metadata"] = {key: each["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
            cluster.apply(json.dumps(each))


def running(cluster: RunningCluster, *names: str) -> bool:
    found = [json.loads(cluster.kubectl("get", "pod", name, "-o", "json")) for name in names]
    return all(each["status"].get("phase") == "Running" for each in found)


def limits(cluster: RunningCluster, name: str) -> dict[str, str]:
    """What the kernel holds a pod and its container to, by path below the pod's cgroup."""
    uid = json.loads(cluster.kubectl("get", "pod", name, "-o", "json"))["metadata"]["uid"]
    found = {}
    for file in map(Path, FILES):
        (root,) = [path for path in cluster.cgroups() if path.parent == CGROUPS / file.parent]
        (folder,) = root.glob(f"kubepods/**/pod{uid}")
        for path in (folder / file.name, *folder.glob(f"*/{file.name}")):
            found[f"{file.parent}/{path.relative_to(folder)}"] = path.read_text().strip()
    return found


@pytest.fixture(scope="module")
def victims(cluster: RunningCluster) -> Iterator[tuple[str, ...]]:
    """A pod that the kubelet limits, one of best effort without batch resources, and a batch pod."""
    made = {"limited": NATIVE, "plain": {}, "batch": OFFERED}
    for name, amounts in made.items():
        cluster.apply(json.dumps(pod(name, amounts)))
    assert until(lambda: running(cluster, *made), 60), cluster.kubectl("get", "pods", "-o", "yaml")
    yield tuple(made)
    cluster.kubectl("delete", "pod", *made, "--ignore-not-found", "--wait=true")


SETTLED = {
    "annotate": ("annotate", "--overwrite", "pod", "{}", f"{SPEC}={CLAIMED}"),
    "label": ("label", "--overwrite", "pod", "{}", f"{QOS}=LS"),
    "a label away": ("label", "pod", "{}", f"{QOS}-"),
    "priority": ("label", "--overwrite", "pod", "{}", "koordinator.sh/priority-class=koord-prod"),
    "patch": ("patch", "pod", "{}", "--type=merge", "-p", json.dumps({"metadata": {"annotations": {SPEC: CLAIMED}}})),
}


@pytest.mark.parametrize("attempt", SETTLED.values(), ids=SETTLED)
def test_what_is_settled_cannot_be_edited(
    cluster: RunningCluster, ann: Editor, victims: tuple[str, ...], attempt: tuple[str, ...]
) -> None:
    """Neither of a pod that has it nor of one that does not; what the kernel holds stays as it is."""
    for name in victims:
        before = json.loads(cluster.kubectl("get", "pod", name, "-o", "json"))["metadata"]
        said = ann.kubectl(*(each.format(name) if each == "{}" else each for each in attempt))
        assert "is settled when the pod is created" in said or "cannot change" in said, said
        after = json.loads(cluster.kubectl("get", "pod", name, "-o", "json"))["metadata"]
        assert (after["labels"], after.get("annotations")) == (before["labels"], before.get("annotations"))


def test_nobody_but_a_kubelet_makes_mirrors(ann: Editor) -> None:
    """One could claim the cgroup of any pod of the node."""
    metadata = {"annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "y"}}
    body = pod("mirror", {}, **metadata)
    body["spec"]["nodeName"] = "local"
    said = ann.kubectl("create", "-f", "-", text=json.dumps(body))
    assert "config.mirror] is the kubelet's, of its own node" in said, said


def test_what_an_annotation_claims_is_not_written(
    cluster: RunningCluster, ann: Editor, victims: tuple[str, ...]
) -> None:
    """Whatever got onto a pod while nobody looked at it: shares, quota and memory limit stay as they were."""
    assert until(lambda: limits(cluster, "batch")["cpu/cpu.cfs_quota_us"] == OWN_QUOTA)
    before = {name: limits(cluster, name) for name in victims}
    assert before["limited"]["cpu/cpu.cfs_quota_us"] == "10000"
    with unguarded(cluster):
        for name in victims:
            assert "annotated" in ann.kubectl("annotate", "--overwrite", "pod", name, f"{SPEC}={CLAIMED}")
        cluster.apply(json.dumps(pod("late", NATIVE, annotations={SPEC: CLAIMED})))
    # The agent has seen all of it once it limits a batch pod that came after.
    cluster.apply(json.dumps(pod("marker", OFFERED)))
    assert until(lambda: running(cluster, "marker", "late"), 60), cluster.kubectl("get", "pods", "-o", "yaml")
    assert until(lambda: limits(cluster, "marker")["cpu/cpu.cfs_quota_us"] == OWN_QUOTA)
    assert {name: limits(cluster, name) for name in victims} == before
    late = limits(cluster, "late")
    assert (late["cpu/cpu.cfs_quota_us"], late["memory/memory.limit_in_bytes"]) == ("10000", str(64 << 20))
    cluster.kubectl("delete", "pod", "marker", "late", "--wait=true")


TRAIN = """
apiVersion: sublet.dev/v1alpha1
kind: TrainingJob
metadata: {name: anns}
spec:
  jobType: PyTorchJob
  resources: {minReplicas: 1, replicaResources: {cpu: 10m, memory: 16Mi}}
  template: {spec: {containers: [{name: main, image: any, command: ["true"]}]}}
"""
MAY = {
    "patch trainingjobs.sublet.dev": "yes",
    "create podgroups.scheduling.sigs.k8s.io": "yes",
    "create jobs.batch.volcano.sh": "yes",
    "create commands.bus.volcano.sh": "yes",
    "list elasticquotas.scheduling.sigs.k8s.io": "yes",
    "patch elasticquotas.scheduling.sigs.k8s.io": "no",
    "patch trainingjobs.sublet.dev/status": "no",
}


@pytest.fixture(scope="module")
def kinds(cluster: RunningCluster) -> None:
    """All of them are defined: of others kubectl asks by a wrong name."""
    for folder in ("sublet", "volcano", "koordinator"):
        cluster.kubectl("apply", "-k", f"deploy/crds/optional/{folder}")


def test_the_name_of_a_pod_that_ends_holds_nobody_up(cluster: RunningCluster, ann: Editor) -> None:
    """A pod of ten millicores with a long name of many numbers runs to its end; others are placed after that."""
    name, spec = "x" + "-111" * 45 + "-a", {"requests": {"cpu": "10m"}}
    quick = {"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 0"], "resources": spec}
    odd = {**pod(name, {}), "spec": {"restartPolicy": "Never", "containers": [quick]}}
    odd["metadata"].pop("labels")
    assert "created" in ann.kubectl("create", "-f", "-", text=json.dumps(odd))
    phase = ("get", "pod", name, "-o", "jsonpath={.status.phase}")
    assert until(lambda: cluster.kubectl(*phase) == "Succeeded", 60), cluster.kubectl("get", "pods", "-o", "yaml")
    cluster.kubectl("run", "later", "--image=busybox", "--", "sleep", "600")
    try:
        assert until(lambda: running(cluster, "later")), cluster.kubectl("get", "pod", "later", "-o", "yaml")
    finally:
        cluster.kubectl("delete", "pod", "later", name, "--now")


def test_names_of_owners_that_nobody_has_take_no_memory(cluster: RunningCluster, ann: Editor) -> None:
    """Pods that say they are on a node that is not there run nothing, and teach how long such work runs by their end."""
    process = f"/proc/{cluster.endpoints['programs']['scheduler']}/status"

    def resident_kib() -> int:
        return int(Path(process).read_text().partition("VmRSS:")[2].split()[0])

    def owned(number: int) -> str:
        owner = {"apiVersion": "x/v1", "kind": "X", "name": f"x{number}" + "y" * 1_000_000, "uid": "u"}
        made = pod(f"owned-{number}", {}, labels={"odd": "owned"}, ownerReferences=[{**owner, "controller": True}])
        made["metadata"]["labels"].pop(QOS)
        made["spec"] = {"nodeName": "nowhere", "containers": [{"name": "c", "image": "busybox"}]}
        return json.dumps(made)

    before = resident_kib()
    for first in range(0, 80, 10):
        items = ",".join(owned(number) for number in range(first, first + 10))
        text = f'{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}'
        assert ann.kubectl("create", "-f", "-", text=text).count("created") == 10
        ann.kubectl("delete", "pods", "--selector", "odd=owned", "--grace-period=0", "--force")
    assert resident_kib() - before < 40_000


def test_an_editor_runs_jobs(cluster: RunningCluster, ann: Editor) -> None:
    """With nothing but ClusterRole `edit` in the namespace: she makes one, sees it run, and deletes it."""
    cluster.kubectl("apply", "-k", "deploy/crds/optional/sublet")
    assert until(lambda: "created" in ann.kubectl("create", "-f", "-", text=TRAIN))
    phase = ("get", "trainingjob", "anns", "-o", "jsonpath={.status.phase}")
    assert until(lambda: ann.kubectl(*phase) == "Succeeded", 60), ann.kubectl(
        "get", "trainingjob", "anns", "-o", "yaml"
    )
    assert "deleted" in ann.kubectl("delete", "trainingjob", "anns")


@pytest.mark.parametrize(("right", "answer"), MAY.items(), ids=MAY)
def test_what_an_editor_may(ann: Editor, kinds: None, right: str, answer: str) -> None:
    """Jobs and gangs of the namespace, of whichever kind; not what all namespaces share."""
    verb, _, kind = right.partition(" ")
    kind, _, subresource = kind.partition("/")
    asked = ("auth", "can-i", verb, kind, *((f"--subresource={subresource}",) if subresource else ()))
    assert ann.kubectl(*asked, "-n", "default").splitlines()[0] == answer
    assert "Forbidden" in ann.kubectl("get", "queues.sublet.dev")  # of no namespace


def test_a_reader_of_the_whole_cluster_sees_queues(cluster: RunningCluster) -> None:
    cluster.kubectl("create", "clusterrolebinding", "bob", "--clusterrole=view", "--serviceaccount=default:bob")
    for right, answer in {"list queues.sublet.dev": "yes", "create trainingjobs.sublet.dev": "no"}.items():
        asked = ("auth", "can-i", *right.split(), "--as", "system:serviceaccount:default:bob")
        assert cluster.kubectl(*asked, check=False).strip() == answer
