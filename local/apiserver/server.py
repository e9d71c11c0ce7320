"""HTTPS in front of the core: TLS, tokens, the Host check, and streaming. The only file that uses aiohttp to serve."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from local.apiserver import status
from local.apiserver.auth import Tokens, is_local_host
from local.apiserver.core import Core
from local.apiserver.messages import Request, Response, Stream, answer

_log = logging.getLogger(__name__)
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
_BODY_BYTES = 3 << 20  # etcd's own request limit is 1.5 MiB; JSON takes more room than protobuf
_SHUTDOWN_SECONDS = 1.0


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """From PEM files. Clients are known by their tokens, so none is asked for a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


@dataclass(slots=True)
class Server:
    """Serves a core on a loopback address until stopped."""

    core: Core
    tokens: Tokens
    tls: ssl.SSLContext
    _streams: set[asyncio.Task[None]] = field(default_factory=set)
    _runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; the port, chosen by the kernel when 0 was asked for."""
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=_SHUTDOWN_SECONDS)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=self.tls)
        await site.start()
        address = self._runner.addresses[0]
        return int(address[1])

    async def stop(self) -> None:
        """End the running streams and stop listening."""
        for task in list(self._streams):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        refusal = self._refusal(raw)
        if refusal is not None:
            return _whole(answer(refusal.body, refusal.code))
        if (raw.content_length or 0) > _BODY_BYTES:
            return _whole(_too_large())
        body = await _read(raw)
        if body is None:
            return _whole(_too_large())
        result = await self.core.handle(
            Request(
                raw.method,
                raw.rel_url.raw_path,
                dict(raw.query),
                {name.lower(): value for name, value in raw.headers.items()},
                body,
                self.tokens.user_of(raw.headers.get("Authorization", "")) or "",
            )
        )
        return _whole(result) if isinstance(result, Response) else await self._streamed(raw, result)

    def _refusal(self, raw: web.BaseRequest) -> status.StatusError | None:
        if not is_local_host(raw.headers.get("Host", "")):
            return status.StatusError(403, "Forbidden", "forbidden: the Host header does not name this machine")
        if raw.path in _OPEN_PATHS or self.tokens.user_of(raw.headers.get("Authorization", "")):
            return None
        return status.unauthorized()

    async def _streamed(self, raw: web.BaseRequest, stream: Stream) -> web.StreamResponse:
        response = web.StreamResponse(status=stream.status, headers={"Content-Type": stream.content_type})
        response.enable_chunked_encoding()
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            await response.prepare(raw)
            async for chunk in stream.chunks:
                await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            pass  # the client left, which is how most watches end
        finally:
            self._streams.discard(task)
            await _close(stream)
            stream.release()
        return response


async def _close(stream: Stream) -> None:
    closer: Callable[[], Awaitable[None]] | None = getattr(stream.chunks, "aclose", None)
    if closer is not None:
        await closer()


async def _read(raw: web.BaseRequest) -> bytes | None:
    """The body; None when it is larger than any object may be."""
    body = bytearray()
    async for chunk in raw.content.iter_any():
        body += chunk
        if len(body) > _BODY_BYTES:
            return None
    return bytes(body)


def _too_large() -> Response:
    error = status.StatusError(413, "RequestEntityTooLarge", f"the request body is larger than {_BODY_BYTES} bytes")
    return answer(error.body, error.code)


def _whole(result: Response) -> web.Response:
    response = web.Response(status=result.status, body=result.body, headers={"Content-Type": result.content_type})
    for warning in result.warnings:
        text = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", " ")
        response.headers.add("Warning", f'299 - "{text}"')
    return response
