"""Callers that a node answers: the API server, by the kubelet token or, as on any cluster, by its client certificate.

A certificate is the kubelet's own rule: its authority is the cluster's, and whoever it names may `get nodes/proxy` to
read, `create nodes/proxy` to be led into pods, by whatever method.

Source: kubernetes pkg/kubelet/server/auth.go.
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from kube.client import KubeClient
from kube.reviews import Caller, Reviews
from model.fault import ConfigurationFault, KubernetesFault

Admits = Callable[[web.Request, str], Awaitable[bool]]
"""Of a request and the verb that it takes on the node's proxy."""


def token_callers(token: str) -> Admits:
    """Those with `Authorization: Bearer <token>`."""
    expected = f"Bearer {token}".encode()

    async def admits(request: web.Request, verb: str) -> bool:
        # A header's bytes that are not UTF-8 arrive as surrogates.
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        return hmac.compare_digest(given, expected)

    return admits


def certified_callers(client: KubeClient, node: str) -> Admits:
    """Those whose certificate the TLS context verified, and whom the API server lets use the node's proxy.

    Nobody while the API server does not answer.
    """
    reviews = Reviews(client)

    async def admits(request: web.Request, verb: str) -> bool:
        caller = _named(request.get_extra_info("peercert"))
        try:
            return caller is not None and await reviews.allowed_object(caller, verb, "nodes", node, "proxy")
        except KubernetesFault:
            return False

    return admits


def trust_clients_of(context: ssl.SSLContext, authority: Path) -> None:
    """Let clients show a certificate of this authority. Raises ConfigurationFault naming the file."""
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationFault(f"--client-ca {authority}", f"not usable: {error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL


def _named(certificate: dict[str, Any] | None) -> Caller | None:
    """The common name is the user, the organizations are the groups."""
    subject = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
    names = [text for key, text in subject if key == "commonName"]
    groups = tuple(text for key, text in subject if key == "organizationName")
    return Caller(names[0], groups=(*groups, "system:authenticated")) if names else None
