"""What nodes serve over HTTPS on loopback: container logs, and their usage."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping

import aiohttp

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.request.messages import Response, Stream

_SUMMARY_SECONDS = 5.0
_SUMMARY_BYTES = 32 << 20
# Of the codes that have a reason of their own: apimachinery's errors.NewGenericServerResponse.
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class KubeletLogs:
    """Asks `https://127.0.0.1:<port>/…` with the nodes' bearer token."""

    def __init__(self, token: str, tls: ssl.SSLContext) -> None:
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def open(self, port: int, path: str, query: Mapping[str, str]) -> Response | Stream:
        """A stream of the log; raises 502 when the node does not answer, and the node's own status otherwise."""
        answer = await self._get(port, path, query, aiohttp.ClientTimeout(total=None, connect=5, sock_connect=5))
        return Stream(200, _chunks(answer), "text/plain", release=answer.close)

    async def fetch(self, port: int, path: str, query: Mapping[str, str]) -> bytes:
        """A whole answer; raises StatusError like `open`."""
        answer = await self._get(port, path, query, aiohttp.ClientTimeout(total=_SUMMARY_SECONDS))
        whole = bytearray()
        try:
            async for chunk in answer.content.iter_any():
                whole += chunk
                if len(whole) > _SUMMARY_BYTES:
                    raise _too_much(port)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _silent(port, error) from None
        finally:
            answer.close()
        return bytes(whole)

    async def _get(
        self, port: int, path: str, query: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            # Without a limit, or many followed logs would keep everybody else from the nodes.
            self._session = aiohttp.ClientSession(trust_env=False, connector=aiohttp.TCPConnector(limit=0))
        try:
            answer = await self._session.get(
                f"https://127.0.0.1:{port}{path}",
                params=dict(query),
                headers=self._headers,
                ssl=self._tls,
                timeout=timeout,
            )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _silent(port, error) from None
        if answer.status >= 400:
            text = (await answer.text())[:1000].strip()
            raise _refused(answer.status, text)
        return answer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _refused(code: int, text: str) -> StatusError:
    if code == 400:
        return StatusError(400, "BadRequest", text)
    reason = _REASONS.get(code) or ("InternalError" if code >= 500 else "Unknown")
    return StatusError(code, reason, f"the node's log server answered {code}: {text}")


def _silent(port: int, error: Exception) -> StatusError:
    return StatusError(502, "BadGateway", f"the node's log server on port {port} does not answer: {error}")


def _too_much(port: int) -> StatusError:
    return StatusError(502, "BadGateway", f"the answer of the node on port {port} exceeds {_SUMMARY_BYTES} bytes")


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except aiohttp.ClientError:
        return  # the node went away: the log ends here
    finally:
        answer.close()
