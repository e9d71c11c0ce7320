"""HTTPS to admission webhooks. The only file that uses aiohttp to call."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache

import aiohttp

_ANSWER_BYTES = 3 << 20  # as much as a request to this server may hold


class CallFailed(Exception):
    """A webhook was not reached or gave no usable HTTP answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a webhook listens and how it proves who it is.

    `ca_bundle` is base64 of PEM, empty for the system's authorities; `server_name` is the name its certificate is
    for, empty for the URL's host.
    """

    url: str
    ca_bundle: str = ""
    server_name: str = ""


class HttpsCaller:
    """Posts reviews over kept connections. `close` gives them back."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(self, address: Address, body: bytes, timeout_seconds: int) -> bytes:
        """The body of a 2xx answer; raises CallFailed."""
        shown = f'Post "{address.url}?timeout={timeout_seconds}s"'
        try:
            trust = _trust(address.ca_bundle)
            async with asyncio.timeout(timeout_seconds):
                try:
                    return await self._posted(address, body, timeout_seconds, trust)
                except aiohttp.ServerDisconnectedError:  # a kept connection may have gone stale
                    return await self._posted(address, body, timeout_seconds, trust)
        except TimeoutError:
            raise CallFailed(f"{shown}: context deadline exceeded") from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise CallFailed(f"{shown}: tls: failed to verify certificate: {error.certificate_error}") from None
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
            raise CallFailed(f"{shown}: {error}") from None

    async def _posted(self, address: Address, body: bytes, timeout_seconds: int, trust: ssl.SSLContext) -> bytes:
        async with self._connections().post(
            address.url,
            params={"timeout": f"{timeout_seconds}s"},
            data=body,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            ssl=trust,
            server_hostname=address.server_name or None,
            allow_redirects=False,
        ) as response:
            answer = await _bounded(response.content)
            if response.status == 404:
                raise CallFailed("the server could not find the requested resource")
            if not 200 <= response.status < 300:
                text = answer[:200].decode(errors="replace").strip()
                raise CallFailed(f'an error on the server ("{text}") has prevented the request from succeeding')
            return answer

    def _connections(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > _ANSWER_BYTES:
            raise CallFailed(f"the response is larger than {_ANSWER_BYTES} bytes")
    return bytes(body)


@lru_cache(maxsize=64)
def _trust(ca_bundle: str) -> ssl.SSLContext:
    """Contexts are kept: reading the system's authorities takes milliseconds, and connections are kept by context."""
    if not ca_bundle:
        return ssl.create_default_context()
    return ssl.create_default_context(cadata=b64decode(ca_bundle).decode())
