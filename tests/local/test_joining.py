"""The steps by which `sublet up --join` becomes known to an API server; tests/e2e --kubeconfig has the whole of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from kube.client import KubeClient
from local.joining import forget_programs, kubelet_certificate, refuse_another
from model.fault import ConfigurationFault, KubernetesFault
from tests.kube.conftest import Answer, ScriptedServer, says

REQUEST = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNED = {"status": {"certificate": base64.b64encode(b"signed").decode()}}


def played(folder: Path, step: Callable[[KubeClient], Awaitable[Any]], *answers: Answer) -> tuple[Any, list[Any]]:
    async def run() -> tuple[Any, list[Any]]:
        server = ScriptedServer(folder)
        client = await server.start()
        server.answers = list(answers)
        try:
            return await step(client), server.requests
        finally:
            await client.close()
            await server.stop()

    return asyncio.run(run())


def test_a_node_gets_a_kubelets_certificate(tmp_path: Path) -> None:
    """Asked for by name and group, approved by the administrator, waited for, and the request taken away."""
    gone = says({"message": "not found"}, 404)
    answers = [gone, says({}, 201), says({}), says({"status": {}}), says(SIGNED), says({})]
    pair, asked = played(tmp_path, lambda client: kubelet_certificate(client, "r", "n1"), *answers)
    assert pair.certificate == b"signed" and b"PRIVATE KEY" in pair.key
    steps = [(method, path) for method, path, _, _ in asked]
    assert steps == [
        ("DELETE", f"{REQUEST}/r"),
        ("POST", REQUEST),
        ("PATCH", f"{REQUEST}/r/approval"),
        ("GET", f"{REQUEST}/r"),
        ("GET", f"{REQUEST}/r"),
        ("DELETE", f"{REQUEST}/r"),
    ]
    spec = asked[1][3]["spec"]
    subject = x509.load_pem_x509_csr(base64.b64decode(spec["request"])).subject.rfc4514_string()
    assert subject == "CN=system:node:n1,O=system:nodes" and spec["signerName"].endswith(
        "kube-apiserver-client-kubelet"
    )


def test_nobody_signs(tmp_path: Path) -> None:
    """A control plane without its controller manager."""
    with pytest.raises(KubernetesFault, match=r"nobody signed it.*kube-controller-manager"):
        played(tmp_path, lambda client: kubelet_certificate(client, "r", "n1", 0.0), says({}), says({}))


def test_two_sublets_in_one_cluster_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationFault, match="holds a Sublet already"):
        played(tmp_path, refuse_another, says({"kind": "Deployment"}))
    played(tmp_path, refuse_another, says({"message": "not found"}, 404))


PODS = "/api/v1/namespaces/koordinator-system/pods"
MIRRORED = {"metadata": {"name": "m", "annotations": {"kubernetes.io/config.mirror": "x"}}}


def test_pods_of_the_programs_go_with_the_node(tmp_path: Path) -> None:
    """Those that only said what ran here, at once; what anybody else put on the node is the cluster's to end."""
    listed = says({"items": [MIRRORED, {"metadata": {"name": "other"}}]})
    _, asked = played(tmp_path, lambda client: forget_programs(client, "n1"), listed, says({"message": "gone"}, 404))
    assert [(method, path) for method, path, _, _ in asked] == [("GET", PODS), ("DELETE", f"{PODS}/m")]
    assert asked[0][2] == {"fieldSelector": "spec.nodeName=n1"} and asked[1][3]["gracePeriodSeconds"] == 0
