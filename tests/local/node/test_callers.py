"""A node answers whoever has its token, or a certificate of the cluster and the right that a kubelet asks for."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from embedded.node.logs.server import tls_context
from kube import x509 as ours
from local.certificates import LocalAuthority
from local.node.callers import certified_callers, trust_clients_of
from local.node.token_server import TokenServer
from model.fault import ConfigurationFault
from tests.kube.conftest import Answer, ScriptedServer, says

NOW = datetime.now(UTC)
ALLOWED, DENIED = says({"status": {"allowed": True}}), says({"status": {"allowed": False}})


class Client:
    """A pair of files, signed by an authority of its own."""

    def __init__(self, folder: Path, name: str, group: str) -> None:
        authority = ours.Authority.create("cluster", NOW, timedelta(days=1))
        signer = serialization.load_pem_private_key(authority.pair.key, None)
        asked_pem, key = ours.request(name, group)
        asked = x509.load_pem_x509_csr(asked_pem)
        issuer = x509.load_pem_x509_certificate(authority.certificate_pem).subject
        made = (
            x509.CertificateBuilder(issuer, asked.subject, asked.public_key(), 7)
            .not_valid_before(NOW - timedelta(hours=1))
            .not_valid_after(NOW + timedelta(hours=1))
            .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
        )
        self.authority, self.files = folder / f"{name}-ca", (folder / f"{name}.crt", folder / f"{name}.key")
        self.authority.write_bytes(authority.certificate_pem)
        self.files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        self.files[1].write_bytes(key)


def asked(
    folder: Path, trusted: Client, shown: Client | None, *reviews: Answer, method: str = "GET", path: str = "/pods"
) -> tuple[int, list[Any]]:
    """The status, and what the API server was asked; 0 where TLS refuses."""
    own = LocalAuthority("node")
    certificate, key = own.issue("node")
    (folder / "crt").write_bytes(certificate)
    (folder / "key").write_bytes(key)
    context = tls_context(folder / "crt", folder / "key")
    trust_clients_of(context, trusted.authority)

    async def ok(request: web.Request) -> web.StreamResponse:
        return web.Response()

    async def run() -> tuple[int, list[Any]]:
        api = ScriptedServer(folder)
        client = await api.start()
        api.answers = list(reviews)
        node = TokenServer(certified_callers(client, "n1"), {"/pods": ok}, {"/exec": ok})
        port = await node.start(context)
        mine = ssl.create_default_context(cadata=own.certificate_pem.decode())
        if shown is not None:
            mine.load_cert_chain(*shown.files)
        try:
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.request(method, f"https://127.0.0.1:{port}{path}", ssl=mine) as answer,
            ):
                return answer.status, api.requests
        except aiohttp.ClientError:
            return 0, api.requests
        finally:
            await node.stop()
            await client.close()
            await api.stop()

    return asyncio.run(run())


def test_by_certificate(tmp_path: Path) -> None:
    """The API server itself says whether the user that it names may."""
    server = Client(tmp_path, "kubelet-client", "system:masters")
    status, requests = asked(tmp_path, server, server, ALLOWED)
    spec = requests[0][3]["spec"]
    assert status == 200 and spec["user"] == "kubelet-client"
    assert spec["groups"] == ["system:masters", "system:authenticated"]
    assert spec["resourceAttributes"]["subresource"] == "proxy" and spec["resourceAttributes"]["name"] == "n1"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_ways_into_pods_take_create(tmp_path: Path, method: str) -> None:
    """A websocket begins with GET, and runs commands all the same."""
    server = Client(tmp_path, "kubelet-client", "g")
    for review, code in ((ALLOWED, 200), (DENIED, 401)):
        status, requests = asked(tmp_path, server, server, review, method=method, path="/exec")
        assert (status, requests[0][3]["spec"]["resourceAttributes"]["verb"]) == (code, "create")
    assert asked(tmp_path, server, server, ALLOWED)[1][0][3]["spec"]["resourceAttributes"]["verb"] == "get"


def test_nobody_else(tmp_path: Path) -> None:
    """No certificate, one of another authority, one without the right, and one whose right cannot be found out."""
    server, stranger = Client(tmp_path, "kubelet-client", "g"), Client(tmp_path, "stranger", "system:masters")
    assert asked(tmp_path, server, None, ALLOWED) == (401, [])
    assert asked(tmp_path, server, stranger, ALLOWED) == (0, [])
    assert asked(tmp_path, server, server, DENIED)[0] == 401
    assert asked(tmp_path, server, server, says({"message": "down"}, 503))[0] == 401


def test_an_authority_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    with pytest.raises(ConfigurationFault, match="--client-ca"):
        trust_clients_of(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tmp_path / "ca")
