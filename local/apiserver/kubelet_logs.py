"""Container logs fetched from the node that has them, over HTTPS on loopback."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping

import aiohttp

from local.apiserver.messages import Response, Stream
from local.apiserver.status import StatusError


class KubeletLogs:
    """Asks `https://127.0.0.1:<port>/containerLogs/…` with the nodes' bearer token."""

    def __init__(self, token: str, tls: ssl.SSLContext) -> None:
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def open(self, port: int, path: str, query: Mapping[str, str]) -> Response | Stream:
        """A stream of the log; raises 502 when the node does not answer, and the node's own status otherwise."""
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, connect=5, sock_connect=5)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        try:
            answer = await self._session.get(
                f"https://127.0.0.1:{port}{path}", params=dict(query), headers=self._headers, ssl=self._tls
            )
        except aiohttp.ClientError as error:
            raise StatusError(
                502, "BadGateway", f"the node's log server on port {port} does not answer: {error}"
            ) from None
        if answer.status >= 400:
            text = (await answer.text())[:1000]
            raise StatusError(answer.status, "NodeRefused", f"the node's log server answered {answer.status}: {text}")
        return Stream(200, _chunks(answer), "text/plain")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except aiohttp.ClientError:
        return  # the node went away: the log ends here
    finally:
        answer.close()
