"""One installation: what a person types, and what they look at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, RunningCluster, until

NAMESPACE = "sublet-system"
DOCUMENT = (ROOT / "docs" / "deploy.md").read_text()
BATCH = ("kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")
_COMMAND_SECONDS = 120
# The machine under the test does other work too, and is smaller than its nodes say.
_ROOM = {"enable": True, "cpuReclaimThresholdPercent": 400, "memoryReclaimThresholdPercent": 400}


class Site:
    """A cluster with `before`: its nodes, pods of namespace default (name → uid) and control files as they once were."""

    def __init__(self, cluster: RunningCluster, audit: Path) -> None:
        self.cluster = cluster
        self.audit = audit
        self.before: tuple[dict[str, Any], dict[str, str], dict[str, str]] = ({}, {}, {})
        self.node_names = [node["name"] for node in cluster.endpoints["nodes"]]

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """A line in the shell of somebody who has kubectl and sublet, in the repository."""
        own = {
            "KUBECONFIG": self.cluster.endpoints["kubeconfig"],
            "KUBECACHEDIR": str(self.cluster.directory / "cache"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.cluster.directory),
        }
        return subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            cwd=ROOT,
            env={**os.environ, **own},
        )

    def documented(self, ending: str) -> str:
        """Run the one command of docs/deploy.md that holds this text; returns what it printed."""
        lines = [line.partition(" # ")[0].strip() for line in DOCUMENT.splitlines() if line.startswith("kubectl ")]
        (command,) = {line for line in lines if ending in line and not line.removeprefix(ending).startswith("/")}
        done = self.shell(command)
        assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
        return done.stdout

    def get(self, *arguments: str, namespace: str = NAMESPACE) -> dict[str, Any]:
        """`kubectl get` as JSON."""
        found: dict[str, Any] = json.loads(self.cluster.kubectl("-n", namespace, "get", *arguments, "-o", "json"))
        return found

    def items(self, *arguments: str, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(*arguments, namespace=namespace)["items"]
        return found

    def rolled_out(self, workload: str) -> None:
        """Returns once `kubectl rollout status` is content."""
        done = self.shell(f"kubectl -n {NAMESPACE} rollout status {workload} --timeout=110s")
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.told()}"

    def told(self) -> str:
        """What a person would look at where something does not work."""
        return "\n".join(self._told())

    def _told(self) -> Iterator[str]:
        yield self.shell(f"kubectl -n {NAMESPACE} get pods -o wide; kubectl get nodes").stdout
        yield self.shell(f"kubectl -n {NAMESPACE} get events | tail -40").stdout
        for pod in self.items("pods"):
            name = pod["metadata"]["name"]
            yield self.shell(f"kubectl -n {NAMESPACE} logs {name} --all-containers --tail=15 --prefix").stdout

    def pods_of(self, program: str) -> list[dict[str, Any]]:
        return self.items("pods", "-l", f"app.kubernetes.io/name=sublet-{program}")

    def agent_on(self, node: str) -> dict[str, Any]:
        """The agent's pod on a node."""
        return next(pod for pod in self.pods_of("agent") if pod["spec"].get("nodeName") == node)

    def nodes(self) -> dict[str, dict[str, Any]]:
        return {node["metadata"]["name"]: node for node in self.items("nodes")}

    def uids(self, namespace: str) -> dict[str, str]:
        pods = self.items("pods", namespace=namespace)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    def lent(self, node: str) -> bool:
        """Whether the node offers any of both batch resources."""
        allocatable = self.get("node", node)["status"]["allocatable"]
        return all(allocatable.get(name, "0") != "0" for name in BATCH)

    def fleet(self) -> dict[str, str]:
        """The switch as it is; a key that is missing is the default."""
        found: dict[str, str] = self.get("configmap", "sublet-fleet").get("data") or {}
        return found

    @property
    def upstream_gangs(self) -> bool:
        """Whether the API server has pod groups of Kubernetes' own."""
        served = self.cluster.kubectl("api-resources", "--api-group=scheduling.k8s.io", "-o", "name")
        return "podgroups" in served

    @property
    def room(self) -> dict[str, Any]:
        """Of colocation-config."""
        return dict(_ROOM)

    def make_room(self) -> None:
        """Koordinator's own configuration says how much of a node may be lent."""
        documents = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "koordinator-system"}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "slo-controller-config", "namespace": "koordinator-system"},
                "data": {"colocation-config": json.dumps(_ROOM)},
            },
        ]
        for document in documents:
            self.cluster.apply(json.dumps(document))

    def events_of(self, user: str) -> list[dict[str, Any]]:
        """What the audit log has of a service account of ours, once it is written down."""
        if not self.audit.is_file():
            pytest.skip("needs the API server's audit log: $SUBLET_AUDIT_LOG")
        self.cluster.kubectl("get", "--raw", "/readyz")
        name = f"system:serviceaccount:{NAMESPACE}:sublet-{user}"
        with self.audit.open() as lines:
            events = [json.loads(line) for line in lines if name in line and line.endswith("\n")]
        return [event for event in events if event["user"]["username"] == name]

    def eventually(self, condition: Any, what: str, bound_seconds: float = 60.0) -> Any:
        """The truth of `condition`; fails the test with what a person would look at."""
        found = until(condition, bound_seconds, 0.5)
        assert found, f"{what}\n{self.told()}"
        return found
