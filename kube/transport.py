"""Connections to one API server: identity and TLS from the official package, requests by aiohttp, bytes in and out.

Loading this module costs a program most of its start, so `kube.client` does it with the first request.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from yaml import YAMLError

from kube.kubeconfig import token_access
from kube.packages import defer_init
from model.fault import TOO_LONG, ConfigurationFault, KubernetesFault

_KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""Seconds, and how often: a path that is gone (a load balancer that forgot it, a machine that died) is noticed within
half a minute, as by the pings of other clients. What does not send anything would wait for as long as a watch may be
silent."""

# Their `__init__` loads the synchronous client, too, with requests, OAuth and pydantic.
defer_init("kubernetes", "kubernetes.aio", "kubernetes.aio.config")

from kubernetes.aio.client.configuration import Configuration  # noqa: E402
from kubernetes.aio.client.rest import RESTClientObject  # noqa: E402
from kubernetes.aio.config.config_exception import ConfigException  # noqa: E402

__all__ = ["ConfigException", "Configuration", "Connections"]

# The official reader lets through whatever a document that it does not expect brings about.
_UNUSABLE = (ConfigException, YAMLError, OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError)


class _Cause(msgspec.Struct, frozen=True):
    message: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int | None = None


class _Status(msgspec.Struct, frozen=True):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


class Connections:
    """Requests against one server. Every failure is a KubernetesFault with the HTTP status (0: no answer).

    Raises OSError for certificates that cannot be used.
    """

    def __init__(self, configuration: Configuration, user_agent: str) -> None:
        # As many as our own programs have under way: of 100, the default, watches take some forty for good, and whoever
        # waits for one of the others is passed over by each request that begins as another ends.
        configuration.connection_pool_maxsize = 0
        self._configuration = configuration
        self._user_agent = user_agent
        self._transport = RESTClientObject(configuration)
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    async def of(cls, kubeconfig: Path | None, user_agent: str) -> Connections:
        """From a kubeconfig file, or from the pod's own service account when `kubeconfig` is None.

        Raises ConfigurationFault naming the file and what is wrong with it.
        """
        configuration = Configuration()
        configuration.client_session_kwargs = {"trust_env": False}
        try:
            await _identify(configuration, kubeconfig)
            return cls(configuration, user_agent)
        except _UNUSABLE as error:
            where, words = "service account" if kubeconfig is None else str(kubeconfig), " ".join(str(error).split())
            raise ConfigurationFault(where, f"no usable cluster access: {words}", "give --kubeconfig FILE") from error

    @property
    def host(self) -> str:
        return str(self._configuration.host)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: bytes | None,
        content_type: str,
        timeout_seconds: float,
        most_bytes: int = 0,
    ) -> bytes:
        """One request; returns the body of a 2xx answer. One of more than `most_bytes` is not read on (0: no bound)."""
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        try:
            async with await self._call(method, path, query, body, content_type, timeout) as response:
                payload = await _read(response, most_bytes)
                if payload is None:
                    raise KubernetesFault(
                        f"{method} {path}", f"answer of more than {most_bytes} bytes", reason=TOO_LONG
                    )
                if response.status >= 400:
                    raise _refusal(method, path, response, payload)
                return payload
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _no_answer(self.host, method, path, error) from error

    async def stream(self, path: str, query: Mapping[str, str | int], idle_seconds: float) -> AsyncGenerator[bytes]:
        """Lines of a watch as they come; ends when the server ends it."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=idle_seconds)
        try:
            async with await self._call("GET", path, query, None, "application/json", timeout) as response:
                if response.status >= 400:
                    raise _refusal("GET", path, response, await response.read())
                _keep_alive(response)
                parts = list[bytes]()
                async for chunk, _ in response.content.iter_chunks():
                    end, *begun = chunk.split(b"\n")
                    parts.append(end)
                    for begin in begun:
                        if line := b"".join(parts):
                            yield line
                        parts = [begin]
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


async def _identify(configuration: Configuration, kubeconfig: Path | None) -> None:
    """The server, its authorities and who we are."""
    if kubeconfig is None:
        from kubernetes.aio.config.incluster_config import load_incluster_config

        load_incluster_config(client_configuration=configuration)
    elif (access := token_access(kubeconfig)) is not None:
        configuration.host = access.server
        configuration.ca_cert_data = access.authority_pem
        configuration.api_key["BearerToken"] = f"Bearer {access.token}"
    else:
        from kubernetes.aio.config.kube_config import load_kube_config

        await load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    """Of an answer that may be silent for minutes."""
    connection = response.connection
    used = connection.transport.get_extra_info("socket") if connection and connection.transport else None
    if used is None:
        return
    used.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        used.setsockopt(socket.IPPROTO_TCP, option, value)


async def _read(response: aiohttp.ClientResponse, most_bytes: int) -> bytes | None:
    """The body as it was before it was compressed; None where it is longer."""
    if not most_bytes:
        return bytes(await response.read())
    parts, size = list[bytes](), 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most_bytes:
            return None
        parts.append(part)
    return b"".join(parts)


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
