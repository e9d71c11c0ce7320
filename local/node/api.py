"""The API server as a node and its pods' workers need it, over kube.client: what it raises is the node's own fault."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import model.fault
from embedded.fault import KubernetesFault
from embedded.node.objects.pod import NodeObject, PodObject
from embedded.node.objects.sources import SourceKind, SourceRef, TokenRef
from embedded.node.objects.times import moment
from embedded.node.objects.tokens import Token
from embedded.node.registration.node_object import LEASE_NAMESPACE
from kube.client import KubeClient, PatchKind, decode, path_of
from kube.events import EventRecorder, ObjectRef

_LEASES = "coordination.k8s.io/v1/leases"


class _Keyed(msgspec.Struct, frozen=True, rename="camel"):
    """A ConfigMap or a Secret."""

    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class _IssuedToken(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    expiration_timestamp: str = ""


class _TokenRequest(msgspec.Struct, frozen=True):
    status: _IssuedToken = _IssuedToken()


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except model.fault.KubernetesFault as fault:
        raise KubernetesFault(fault.where, fault.what, fault.fix, status=fault.status) from fault


class KubeNodeApi:
    """Implements ports.NodePort."""

    def __init__(self, client: KubeClient, name: str) -> None:
        self._client = client
        self._path = path_of("v1/nodes", name=name)
        self._status_path = path_of("v1/nodes", name=name, subresource="status")
        self._lease_path = path_of(_LEASES, namespace=LEASE_NAMESPACE, name=name)

    async def read_node(self) -> NodeObject:
        with _asking():
            return await self._client.get(self._path, NodeObject)

    async def create_node(self, body: dict[str, Any]) -> bool:
        with _asking():
            return await self._client.create_missing(path_of("v1/nodes"), body)

    async def patch_node(self, body: dict[str, Any]) -> None:
        with _asking():
            await self._client.patch(self._path, body, PatchKind.MERGE)

    async def patch_node_status(self, status: dict[str, Any]) -> None:
        with _asking():
            await self._client.patch(self._status_path, {"status": status}, PatchKind.STRATEGIC)

    async def create_lease(self, body: dict[str, Any]) -> None:
        with _asking():
            await self._client.create(path_of(_LEASES, namespace=LEASE_NAMESPACE), body)

    async def patch_lease(self, body: dict[str, Any]) -> None:
        with _asking():
            await self._client.patch(self._lease_path, body, PatchKind.MERGE)


class KubeApi:
    """Implements ports.ApiPort."""

    def __init__(
        self, client: KubeClient, events: EventRecorder, read_node: Callable[[], Awaitable[NodeObject]]
    ) -> None:
        self._client = client
        self._events = events
        self._read_node = read_node

    async def patch_pod_status(self, pod: PodObject, status: dict[str, Any]) -> None:
        # The uid makes a pod of the same name that came later answer 409 instead of taking our status.
        body = {"metadata": {"uid": pod.uid}, "status": status}
        with _asking():
            await self._client.patch(_path(pod, "status"), body, PatchKind.STRATEGIC)

    async def create_pod(self, body: dict[str, Any]) -> None:
        with _asking():
            await self._client.create(path_of("v1/pods", namespace=body["metadata"]["namespace"]), body)

    async def delete_pod(self, pod: PodObject) -> None:
        with _asking():
            await self._client.delete(_path(pod), uid=pod.uid, grace_seconds=0)

    async def read_node(self) -> NodeObject:
        return await self._read_node()

    async def read_source(self, namespace: str, ref: SourceRef) -> Mapping[str, bytes] | None:
        path = path_of(f"v1/{ref.kind.plural}", namespace=namespace, name=ref.name)
        try:
            with _asking():
                found = await self._client.get(path, _Keyed)
        except KubernetesFault as fault:
            if fault.status == 404:
                return None
            raise
        if ref.kind is SourceKind.SECRET:
            return {key: _decoded(value) for key, value in (found.data or {}).items()}
        text = {key: value.encode() for key, value in (found.data or {}).items()}
        return text | {key: _decoded(value) for key, value in (found.binary_data or {}).items()}

    async def request_token(self, pod: PodObject, ref: TokenRef) -> Token:
        spec: dict[str, Any] = {
            "expirationSeconds": ref.expiration_seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.uid},
        }
        if ref.audience:
            spec["audiences"] = [ref.audience]
        account, namespace = pod.spec.service_account_name or "default", pod.metadata.namespace
        path = path_of("v1/serviceaccounts", namespace=namespace, name=account, subresource="token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        asked_at = datetime.now(UTC)
        with _asking():
            answer = decode(await self._client.create(path, body), _TokenRequest, path)
        expires_at = moment(answer.status.expiration_timestamp)
        return Token(answer.status.token, asked_at, expires_at or asked_at + timedelta(seconds=ref.expiration_seconds))

    def record(self, pod: PodObject, reason: str, message: str, *, warning: bool = False) -> None:
        about = ObjectRef("Pod", pod.metadata.name, pod.metadata.namespace, pod.uid)
        self._events.record(about, reason, message, warning=warning)


def _path(pod: PodObject, subresource: str = "") -> str:
    return path_of("v1/pods", namespace=pod.metadata.namespace, name=pod.metadata.name, subresource=subresource)


def _decoded(text: str) -> bytes:
    """The server has checked it; what is no base64 all the same counts as empty."""
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""
