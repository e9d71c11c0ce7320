"""Callers that the scheduler lets in from the network: by TokenReview, or by a file of tokens for development."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from kube.client import KubeClient, path_of
from kube.objects import Pod
from kube.reviews import POD_KEY, POD_UID_KEY, Caller, Reviews
from model.fault import ConfigurationFault, KubernetesFault

_ACCOUNT_USER = "system:serviceaccount:"
_NODE_USER = "system:node:"
# A link checks by itself whose node it is; which methods there are is no secret to anybody with a token.
_KNOWN_IS_ENOUGH = ("/sublet.v1.NodeLink/", "/grpc.reflection.")


class Callers(Protocol):
    """All three raise KubernetesFault where it cannot be found out; nobody is let in on a guess."""

    async def caller(self, token: str) -> Caller | None:
        """Whose token it is; None for nobody's."""

    async def allowed(self, caller: Caller, method: str) -> bool:
        """Whether the caller may call a gRPC method, as /package.Service/Method."""

    async def node_of(self, caller: Caller) -> str:
        """The node that the caller may speak for; empty where it is no agent."""


class ReviewedCallers:
    """The API server's word. An agent has the service account `agent` (NAMESPACE:NAME) and a token bound to its node.

    API servers before 1.30 bind a token to a pod alone; there the pod says on which node it runs.
    """

    def __init__(self, client: KubeClient, audience: str, agent: str) -> None:
        self._client = client
        self._reviews = Reviews(client, (audience,))
        self._namespace = agent.partition(":")[0]
        self._agent = _ACCOUNT_USER + agent

    async def caller(self, token: str) -> Caller | None:
        return await self._reviews.caller(token)

    async def allowed(self, caller: Caller, method: str) -> bool:
        return method.startswith(_KNOWN_IS_ENOUGH) or await self._reviews.allowed(caller, "get", method)

    async def node_of(self, caller: Caller) -> str:
        if caller.name != self._agent:
            return ""
        return caller.node or await self._node_of_pod(caller.first(POD_KEY), caller.first(POD_UID_KEY))

    async def _node_of_pod(self, name: str, uid: str) -> str:
        if not (name and uid):
            return ""
        try:
            pod = await self._client.get(path_of("v1/pods", namespace=self._namespace, name=name), Pod)
        except KubernetesFault as fault:
            if fault.status == 404:
                return ""
            raise
        return pod.spec.node_name or "" if pod.metadata.uid == uid else ""


class TokenTable:
    """Lines `token,name` (more columns are ignored, so a Kubernetes static token file works too).

    Who is in it may ask everything; `system:node:X` may speak for node X.
    """

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self._names = {_digest(token): name for token, name in entries}

    @classmethod
    def read(cls, path: Path) -> TokenTable:
        """Raises ConfigurationFault naming the file and line; never the token."""
        entries = []
        for number, line in enumerate(_text(path).splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            token, name, *_ = (*(part.strip().strip('"') for part in line.split(",")), "")
            if not token or not name:
                raise ConfigurationFault(f"{path}:{number}", "is not `token,name`", "write one token and name a line")
            entries.append((token, name))
        return cls(entries)

    async def caller(self, token: str) -> Caller | None:
        """Tokens are looked up by their digest, so how long that takes says nothing about any of them."""
        name = self._names.get(_digest(token))
        return None if name is None else Caller(name)

    async def allowed(self, caller: Caller, method: str) -> bool:
        return True

    async def node_of(self, caller: Caller) -> str:
        return caller.node if caller.name.startswith(_NODE_USER) else ""


def bearer(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """The token of a call's `authorization: Bearer TOKEN`, empty without one."""
    given = next((str(value) for key, value in metadata or () if key == "authorization"), "")
    scheme, _, token = given.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}", "give a readable file") from error
    except UnicodeDecodeError as error:
        raise ConfigurationFault(str(path), "is not text", "write lines `token,name`") from error
