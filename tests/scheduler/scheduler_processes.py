"""The embedded API server and the scheduler as processes, as a user runs them."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

POD_GROUP_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.sigs.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
    },
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
        self.process = start_process("embedded.apiserver", command, folder / "api.log")
        until(ready.exists, "the API server is ready")
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

    def __init__(self, cluster: Cluster, settings: str = "{}", name: str = "") -> None:
        """`name` tells a standby from the first; it is not waited for, since it is ready only once it leads."""
        folder = cluster.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "settings.yaml").write_text(settings)
        (folder / "link-tokens").write_text("agent-token,system:node:n1\n")
        self.ready_file = folder / "scheduler.json"
        self.ready_file.unlink(missing_ok=True)
        command = ["--kubeconfig", cluster.kubeconfig, "--tls-cert", cluster.certificate.certificate]
        command += ["--tls-key", cluster.certificate.key, "--token-file", folder / "link-tokens"]
        command += ["--link-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
        command += ["--ready-file", self.ready_file, "--identity", name or "test"]
        command += ["--settings", folder / "settings.yaml"]
        self.log = folder / "scheduler.log"
        self.process = start_process("scheduler", command, self.log)
        self.ports: dict[str, str] = {}
        if not name:
            self.wait()

    def wait(self) -> None:
        """Until it leads."""
        until(self.ready_file.exists, "the scheduler is ready", self.log)
        self.ports = json.loads(self.ready_file.read_text())

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.ports['http']}{path}", timeout=5) as response:
            return str(response.read().decode())


def start_process(module: str, arguments: list[Any], log: Path) -> subprocess.Popen[bytes]:
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    with log.open("ab") as output:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        return subprocess.Popen(command, stdout=output, stderr=output, env=environment)


def until(holds: Callable[[], bool], what: str, log: Path | None = None, seconds: float = 60.0) -> None:
    """Wait on another process; fails with its log."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"not after {seconds:.0f} s: {what}\n{log.read_text()[-3000:] if log else ''}")
        time.sleep(0.02)
