"""Identity end to end: embedded API server, scheduler process with --token-review, tokens that the API server made."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from link_fakes import hello, report
from scheduler_processes import Cluster, start_process, until

from agent.edge.link import STATUS_LOST
from cli.access import scheduler_at
from model.fault import PeerFault
from wire.v1 import link_pb2_grpc

pytestmark = pytest.mark.e2e

ACCOUNTS = "/api/v1/namespaces/sublet-system/serviceaccounts"


class Reviewed:
    """The scheduler with --token-review, and tokens for accounts of sublet-system."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "sublet-system"}})
        for name in ("sublet-agent", "viewer"):
            cluster.request("POST", ACCOUNTS, {"metadata": {"name": name}})
        for node in ("n1", "n2"):
            cluster.add_node(node, 4000)
        self.ready = cluster.folder / "scheduler.json"
        self.log = cluster.folder / "scheduler.log"
        command = ["--kubeconfig", cluster.kubeconfig, "--tls-cert", cluster.certificate.certificate]
        command += ["--tls-key", cluster.certificate.key, "--token-review", "--identity", "test"]
        command += ["--link-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--http-listen", "0.0.0.0:0"]
        self.process = start_process("scheduler", [*command, "--ready-file", self.ready], self.log)
        until(self.ready.exists, "the scheduler is ready", self.log)
        self.ports = json.loads(self.ready.read_text())

    def token(self, account: str, audience: str = "sublet-scheduler", node: str = "") -> str:
        spec: dict[str, Any] = {"audiences": [audience], "expirationSeconds": 3600}
        if node:
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.cluster.request("POST", f"{ACCOUNTS}/{account}/token", body)["status"]["token"])

    def api_token(self, account: str) -> str:
        """For the API server itself, as Prometheus has one."""
        return self.token(account, "https://kubernetes.default.svc.cluster.local")

    def link(self, token: str, node: str) -> str:
        """What becomes of a link that says it is `node`'s: ok, or the status and its text."""
        for _ in range(10):
            told = asyncio.run(self._link(token, node))
            if not told.endswith(STATUS_LOST):
                break
        return told

    async def _link(self, token: str, node: str) -> str:
        credentials = grpc.ssl_channel_credentials(Path(self.cluster.certificate.certificate).read_bytes())
        async with grpc.aio.secure_channel(self.ports["link"], credentials) as channel:
            metadata = (("authorization", f"Bearer {token}"),)
            call = link_pb2_grpc.NodeLinkStub(channel).Connect(metadata=metadata, timeout=20)
            try:
                await call.write(hello(node))
                await call.read()
                await call.write(report(2))
                while (await call.read()).acknowledged_sequence < 2:
                    pass
            except grpc.aio.AioRpcError as error:
                return f"{error.code().name}: {error.details()}"
            return "ok"

    def page(self, path: str, token: str = "") -> int:
        port = self.ports["http"].rpartition(":")[2]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, context=self.cluster._tls, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@pytest.fixture
def reviewed(cluster: Cluster) -> Any:
    running = Reviewed(cluster)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait(20)


def grant(cluster: Cluster, account: str, *paths: str) -> None:
    """As ClusterRole sublet-viewer does."""
    group = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"nonResourceURLs": list(paths), "verbs": ["get"]}]
    cluster.request("POST", f"{group}/clusterroles", {"metadata": {"name": "sublet-viewer"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "sublet-viewer"}
    subject = {"kind": "ServiceAccount", "namespace": "sublet-system", "name": account}
    binding = {"metadata": {"name": "viewers"}, "roleRef": role, "subjects": [subject]}
    cluster.request("POST", f"{group}/clusterrolebindings", binding)


def test_tokens_of_a_cluster(reviewed: Reviewed) -> None:
    """The agent's token opens its node's link and nothing else; rights to ask are RBAC's."""
    agent = reviewed.token("sublet-agent", node="n1")
    cases = {
        "its node": (agent, "n1", "ok"),
        "another node": (agent, "n2", "PERMISSION_DENIED: the token is bound to node n1 and cannot speak for node n2"),
        "no node": (reviewed.token("sublet-agent"), "n1", "PERMISSION_DENIED: the token belongs to system:serviceacc"),
        "another account": (reviewed.token("viewer", node="n1"), "n1", "PERMISSION_DENIED: the token belongs to"),
        "wrong audience": (reviewed.api_token("sublet-agent"), "n1", "UNAUTHENTICATED: send metadata"),
        "no token": ("x", "n1", "UNAUTHENTICATED: send metadata"),
    }
    got = {name: reviewed.link(token, node) for name, (token, node, _) in cases.items()}
    assert {name: told for name, told in got.items() if not told.startswith(cases[name][2])} == {}
    assert agent not in reviewed.log.read_text()


def test_people_and_prometheus(reviewed: Reviewed, tmp_path: Path) -> None:
    """Diagnostics and metrics by RBAC: refused before the grant, answered after it, by command line and grpcurl."""
    token = tmp_path / "token"
    token.write_text(reviewed.token("viewer"))
    ca = Path(reviewed.cluster.certificate.certificate)
    asking = scheduler_at(reviewed.ports["link"], ca, token, "")
    assert "viewer may not call /sublet.v1.SchedulerDiagnostics/ListGangs" in _gangs(asking)
    assert [reviewed.page("/healthz"), reviewed.page("/metrics")] == [200, 401]
    assert reviewed.page("/metrics", reviewed.api_token("viewer")) == 403
    grant(reviewed.cluster, "viewer", "/sublet.v1.SchedulerDiagnostics/*", "/metrics")
    # Tokens of their own: a refusal is remembered for ten seconds.
    token.write_text(reviewed.token("viewer"))
    assert reviewed.page("/metrics", reviewed.api_token("viewer")) == 200
    assert _gangs(scheduler_at(reviewed.ports["link"], ca, token, "")) == ()
    command = [Path(sys.executable).with_name("grpcurl"), "-cacert", ca]
    command += ["-H", f"authorization: Bearer {token.read_text()}", reviewed.ports["link"]]
    nodes = subprocess.run([*command, "sublet.v1.SchedulerDiagnostics/ListNodes"], capture_output=True, timeout=60)
    assert nodes.returncode == 0, nodes.stderr
    assert {node["node"] for node in json.loads(nodes.stdout)["nodes"]} == {"n1", "n2"}


def _gangs(asking: Any) -> Any:
    try:
        return asking.gangs()
    except PeerFault as fault:
        return str(fault)
