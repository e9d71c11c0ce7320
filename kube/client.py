"""A Kubernetes client: raw JSON in and out; the official typed models are not used (see kube/objects.py)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from model.fault import ConfigurationFault, KubernetesFault

if TYPE_CHECKING:
    from kube.transport import Connections

T = TypeVar("T")
_CONFLICT, _NOT_FOUND = 409, 404


class PatchKind(StrEnum):
    """The media types of a PATCH."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class KubeClient:
    """Requests against one API server. Every failure is a KubernetesFault with the HTTP status (0: no answer).

    `opening` gives the connections; it is called once, by `open` or by the first request.
    """

    def __init__(self, opening: Callable[[], Awaitable[Connections]]) -> None:
        self._opening = opening
        self._one_at_a_time = asyncio.Lock()
        self._connections: Connections | None = None

    @classmethod
    async def connect(cls, kubeconfig: Path | None, user_agent: str) -> KubeClient:
        """From a kubeconfig file, or from the pod's own service account when `kubeconfig` is None.

        Raises ConfigurationFault naming the file and what is wrong with it.
        """
        client = cls.later(kubeconfig, user_agent)
        await client.open()
        return client

    @classmethod
    def later(
        cls, kubeconfig: Path | None, user_agent: str, due: Callable[[], Awaitable[object]] | None = None
    ) -> KubeClient:
        """The same, opened by its first request, and not before `due` returns: what that loads would hold up a start.

        Raises ConfigurationFault at once where the file is missing; the first request raises it for a wrong one.
        """
        if kubeconfig is not None and not kubeconfig.is_file():
            raise ConfigurationFault(str(kubeconfig), "no such file", "give --kubeconfig FILE")

        async def opening() -> Connections:
            if due is not None:
                await due()
            # In a thread: the event loop has other work than to load modules.
            made = await asyncio.to_thread(_connections)
            return await made.of(kubeconfig, user_agent)

        return cls(opening)

    async def open(self) -> Connections:
        """Load what requests need, unless that is done. Raises ConfigurationFault."""
        if self._connections is None:
            async with self._one_at_a_time:
                if self._connections is None:
                    self._connections = await self._opening()
        return self._connections

    @property
    def host(self) -> str:
        """The server's URL; only once it is open."""
        assert self._connections is not None
        return self._connections.host

    async def __aenter__(self) -> KubeClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = 30.0,
        most_bytes: int = 0,
    ) -> bytes:
        """One request; returns the body of a 2xx answer. Raises KubernetesFault.

        Its reason is TOO_LONG for an answer of more than `most_bytes`; 0 is no bound.
        """
        connections = await self.open()
        return await connections.request(method, path, query, body, content_type, timeout_seconds, most_bytes)

    async def get(self, path: str, type_: type[T], **query: str | int) -> T:
        """GET decoded into `type_` (a Struct of kube.objects, or dict)."""
        return decode(await self.request("GET", path, query=query), type_, path)

    async def create(self, path: str, body: Any) -> bytes:
        """POST to a collection or subresource."""
        return await self.request("POST", path, body=msgspec.json.encode(body))

    async def create_missing(self, path: str, body: Any) -> bool:
        """POST to a collection; False where an object of that name is there already, which stays as it is."""
        try:
            await self.create(path, body)
        except KubernetesFault as fault:
            if fault.status != _CONFLICT:
                raise
            return False
        return True

    async def replace(self, path: str, body: Any) -> bytes:
        """PUT; with metadata.resourceVersion in `body` it succeeds only on that version."""
        return await self.request("PUT", path, body=msgspec.json.encode(body))

    async def patch(
        self, path: str, body: Any, kind: PatchKind = PatchKind.MERGE, query: Mapping[str, str] | None = None
    ) -> bytes:
        content = msgspec.json.encode(body)
        return await self.request("PATCH", path, query=query, body=content, content_type=kind.value)

    async def patch_as_read(self, path: str, uid: str, version: str, body: Mapping[str, Any]) -> bool:
        """A merge patch of the very object that was read, by uid and resourceVersion; False where it is another by now,
        or gone. Without a version it is that of the uid.
        """
        metadata = {"uid": uid, **({"resourceVersion": version} if version else {})}
        try:
            await self.patch(path, {"metadata": metadata, **body})
        except KubernetesFault as fault:
            if fault.status not in (_CONFLICT, _NOT_FOUND):
                raise
            return False
        return True

    async def delete(self, path: str, *, uid: str | None = None, grace_seconds: int | None = None) -> bytes:
        """DELETE with preconditions; a wrong uid answers 409."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return await self.request("DELETE", path, body=msgspec.json.encode(options))

    async def delete_as_read(self, path: str, uid: str) -> bool:
        """DELETE of the very object that was read; False where it is another by now, or gone."""
        try:
            await self.delete(path, uid=uid)
        except KubernetesFault as fault:
            if fault.status not in (_CONFLICT, _NOT_FOUND):
                raise
            return False
        return True

    async def stream(self, path: str, query: Mapping[str, str | int], idle_seconds: float) -> AsyncIterator[bytes]:
        """Lines of a watch as they come; ends when the server ends it. Raises KubernetesFault."""
        connections = await self.open()
        async with contextlib.aclosing(connections.stream(path, query, idle_seconds)) as lines:
            async for line in lines:
                yield line


def path_of(resource: str, *, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
    """The URL path of a resource given as `v1/pods` or `batch/v1/jobs`."""
    group_version, _, plural = resource.rpartition("/")
    root = f"/api/{group_version}" if "/" not in group_version else f"/apis/{group_version}"
    parts = [
        root,
        f"namespaces/{quote(namespace)}" if namespace else "",
        plural,
        quote(name) if name else "",
        subresource,
    ]
    return "/".join(part for part in parts if part)


def decode(payload: bytes, type_: type[T], where: str) -> T:
    """Decode an answer. Raises KubernetesFault naming the object and the field that is wrong."""
    try:
        return msgspec.json.decode(payload, type=type_, strict=False)
    except RecursionError as error:
        raise KubernetesFault(where, "unreadable object: nested too deep", reason="Unreadable") from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise KubernetesFault(where, f"unreadable object: {error}", reason="Unreadable") from error


def _connections() -> type[Connections]:
    from kube.transport import Connections

    return Connections
