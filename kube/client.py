"""A Kubernetes client: identity and TLS from the official package, raw JSON in and out.

The official typed models are not used (see kube/objects.py); its configuration loading, token refresh and
connection pool are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from yaml import YAMLError

from model.fault import ConfigurationFault, KubernetesFault

T = TypeVar("T")


class PatchKind(StrEnum):
    """The media types of a PATCH."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"


class _Cause(msgspec.Struct, frozen=True):
    message: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int | None = None


class _Status(msgspec.Struct, frozen=True):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


class KubeClient:
    """Requests against one API server. Every failure is a KubernetesFault with the HTTP status (0: no answer)."""

    def __init__(self, configuration: Configuration, user_agent: str) -> None:
        self._configuration = configuration
        self._user_agent = user_agent
        self._transport = RESTClientObject(configuration)
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    async def connect(cls, kubeconfig: Path | None, user_agent: str) -> KubeClient:
        """From a kubeconfig file, or from the pod's own service account when `kubeconfig` is None.

        Raises ConfigurationFault naming the file and what is wrong with it.
        """
        if kubeconfig is not None and not kubeconfig.is_file():
            raise ConfigurationFault(str(kubeconfig), "no such file", "give --kubeconfig FILE")
        configuration = Configuration()
        configuration.client_session_kwargs = {"trust_env": False}
        try:
            if kubeconfig is None:
                load_incluster_config(client_configuration=configuration)
            else:
                await load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
            return cls(configuration, user_agent)
        except (ConfigException, YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            where = "service account" if kubeconfig is None else str(kubeconfig)
            raise ConfigurationFault(where, f"no usable cluster access: {error}", "give --kubeconfig FILE") from error

    @property
    def host(self) -> str:
        return str(self._configuration.host)

    async def __aenter__(self) -> KubeClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = 30.0,
    ) -> bytes:
        """One request; returns the body of a 2xx answer. Raises KubernetesFault."""
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        try:
            async with await self._call(method, path, query, body, content_type, timeout) as response:
                payload = await response.read()
                if response.status >= 400:
                    raise _refusal(method, path, response, payload)
                return bytes(payload)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _no_answer(self.host, method, path, error) from error

    async def get(self, path: str, type_: type[T], **query: str | int) -> T:
        """GET decoded into `type_` (a Struct of kube.objects, or dict)."""
        return decode(await self.request("GET", path, query=query), type_, path)

    async def create(self, path: str, body: Any) -> bytes:
        """POST to a collection or subresource."""
        return await self.request("POST", path, body=msgspec.json.encode(body))

    async def replace(self, path: str, body: Any) -> bytes:
        """PUT; with metadata.resourceVersion in `body` it succeeds only on that version."""
        return await self.request("PUT", path, body=msgspec.json.encode(body))

    async def patch(self, path: str, body: Any, kind: PatchKind = PatchKind.MERGE) -> bytes:
        return await self.request("PATCH", path, body=msgspec.json.encode(body), content_type=kind.value)

    async def delete(self, path: str, *, uid: str | None = None, grace_seconds: int | None = None) -> bytes:
        """DELETE with preconditions; a wrong uid answers 409."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return await self.request("DELETE", path, body=msgspec.json.encode(options))

    async def stream(self, path: str, query: Mapping[str, str | int], idle_seconds: float) -> AsyncIterator[bytes]:
        """Lines of a watch as they come; ends when the server ends it. Raises KubernetesFault."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=idle_seconds)
        try:
            async with await self._call("GET", path, query, None, "application/json", timeout) as response:
                if response.status >= 400:
                    raise _refusal("GET", path, response, await response.read())
                pending = b""
                async for chunk, _ in response.content.iter_chunks():
                    *whole, pending = (pending + chunk).split(b"\n")
                    for line in whole:
                        if line:
                            yield line
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _no_answer(self.host, "GET", path, error) from error

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: bytes | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> Any:
        if self._session is None:
            self._session = self._transport._create_pool_manager()
        url = self.host + path + ("?" + urlencode(query) if query else "")
        headers = {"User-Agent": self._user_agent, "Accept": "application/json"}
        try:
            token = await self._configuration.get_api_key_with_prefix("BearerToken")
        except ConfigException as error:
            raise KubernetesFault(f"{method} {path}", f"no identity: {error}", reason="NoIdentity") from error
        if token:
            headers["Authorization"] = token
        if body is not None:
            headers["Content-Type"] = content_type
        return await self._session.request(method, url, data=body, headers=headers, timeout=timeout)


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
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise KubernetesFault(where, f"unreadable object: {error}", reason="Unreadable") from error


def _refusal(method: str, path: str, response: aiohttp.ClientResponse, payload: bytes) -> KubernetesFault:
    try:
        told = msgspec.json.decode(payload, type=_Status)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        told = _Status(message=payload[:200].decode(errors="replace"))
    details = told.details or _Details()
    # Which disruption budget refused stands in the causes alone; elsewhere the message repeats them.
    causes = [cause.message for cause in details.causes or ()] if response.status == 429 else []
    text = " ".join([str(response.status), told.message, *causes]).strip()
    wait = response.headers.get("Retry-After", "")
    seconds = float(wait) if wait.isdecimal() else float(details.retry_after_seconds or 0)
    return KubernetesFault(
        f"{method} {path}", text, status=response.status, reason=told.reason, retry_after_seconds=max(seconds, 0.0)
    )


def _no_answer(host: str, method: str, path: str, error: BaseException) -> KubernetesFault:
    text = str(error) or type(error).__name__
    return KubernetesFault(f"{method} {path}", f"no answer from {host}: {text}", reason="NoAnswer")
