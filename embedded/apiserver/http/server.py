"""HTTPS in front of the core: TLS, tokens, the Host check, and streaming. The only file that uses aiohttp to serve."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.http import HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.authentication.authenticator import Authenticator
from embedded.apiserver.authentication.impersonation import IMPERSONATE, SEPARATOR
from embedded.apiserver.authentication.token_file import is_known_host
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.messages import Request, Response, Stream, Upgraded, answer
from embedded.apiserver.request.user_info import ANONYMOUS, UserInfo
from embedded.apiserver.request.warning_headers import warning_headers
from embedded.raw_connection import TakenOver, pass_on, taken_over

_log = logging.getLogger(__name__)
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})  # as system:public-info-viewer
_BODY_BYTES = 3 << 20  # etcd's own request limit is 1.5 MiB; JSON takes more room than protobuf
# Of each connection; it may be idle for longer than clients themselves keep idle ones.
_BOUNDS: dict[str, Any] = {
    "access_log": None,
    "keepalive_timeout": 180.0,
    "max_line_size": 32 << 10,
    "max_field_size": 16 << 10,
    "max_headers": 100,
}
_PIECE_BYTES = 256 << 10
_SHUTDOWN_SECONDS = 1.0
# Protocols that a client of a pod's streams offers, which may be a header each.
_LISTS = {"x-stream-protocol-version": ", ", "sec-websocket-protocol": ", "}
_BROKEN_BODIES = (HttpProcessingError, web.RequestPayloadError, OSError)  # wrongly encoded, or its client left


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """From PEM files. Clients are known by their tokens, so none is asked for a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


@dataclass(slots=True)
class Server:
    """Serves a core on one address until stopped; `hosts` are the names it answers to besides the local ones."""

    core: Router
    authenticator: Authenticator
    tls: ssl.SSLContext
    hosts: frozenset[str] = frozenset()
    _streams: set[asyncio.Task[None]] = field(default_factory=set)
    _runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; the port, chosen by the kernel when 0 was asked for."""
        self._runner = web.ServerRunner(_Connections(self._handle, **_BOUNDS), shutdown_timeout=_SHUTDOWN_SECONDS)
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
        user = self.authenticator.user_of(raw.headers.get("Authorization", ""))
        refusal = self._refusal(raw, user)
        if refusal is not None:
            return _refused(refusal)
        if (raw.content_length or 0) > _BODY_BYTES:
            return _refused(_too_large())
        try:
            body = await _read(raw) if raw.can_read_body else b""
        except StatusError as error:
            return _refused(error)
        result = await self.core.handle(_request(raw, body, user or ANONYMOUS))
        if isinstance(result, Upgraded):
            return await self._passed_on(raw, result)
        if isinstance(result, Stream):
            return await self._streamed(raw, result)
        return _whole(result) if len(result.body) <= _PIECE_BYTES else await _in_pieces(raw, result)

    async def _passed_on(self, raw: web.BaseRequest, upgraded: Upgraded) -> web.StreamResponse:
        """Bytes between a client and a node, until one of them ends or this server stops."""
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            async with taken_over(raw) as (reader, writer):
                writer.write(_with_warnings(upgraded))
                await pass_on((reader, writer), (upgraded.reader, upgraded.writer))
        except ConnectionError:
            pass  # the client left before the node agreed
        finally:
            self._streams.discard(task)
            upgraded.writer.close()
        return TakenOver()

    def _refusal(self, raw: web.BaseRequest, user: UserInfo | None) -> status.StatusError | None:
        if not is_known_host(raw.headers.get("Host", ""), self.hosts):
            return status.StatusError(403, "Forbidden", "forbidden: the Host header does not name this machine")
        if user is None or (user is ANONYMOUS and raw.path not in _OPEN_PATHS):
            return status.unauthorized()
        return None

    async def _streamed(self, raw: web.BaseRequest, stream: Stream) -> web.StreamResponse:
        """Write the chunks until they end, this server stops or the client leaves, if only while nothing is written."""
        response = web.StreamResponse(status=stream.status, headers={"Content-Type": stream.content_type})
        response.enable_chunked_encoding()
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        connection = raw.protocol
        assert isinstance(connection, _Connection)
        try:
            with connection.ending(task):
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


def _with_warnings(upgraded: Upgraded) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in warning_headers(upgraded.warnings)]
    return upgraded.head[:-2] + "".join(lines).encode() + b"\r\n"


def _request(raw: web.BaseRequest, body: bytes, user: UserInfo) -> Request:
    target = raw.rel_url
    return Request(
        raw.method, target.raw_path, dict(raw.query), _received(raw), body, user, query_string=target.raw_query_string
    )


def _received(raw: web.BaseRequest) -> dict[str, str]:
    """The headers by their names in lower case; every value of those of which more than one counts."""
    headers: dict[str, str] = {}
    for name, value in ((name.lower(), value) for name, value in raw.headers.items()):
        separator = SEPARATOR if name.startswith(IMPERSONATE) else _LISTS.get(name)
        headers[name] = f"{headers[name]}{separator}{value}" if separator and name in headers else value
    return headers


async def _in_pieces(raw: web.BaseRequest, result: Response) -> web.StreamResponse:
    """A large body, with room for the other clients between its pieces."""
    response = web.StreamResponse(status=result.status, headers=_headers(result))
    response.content_length = len(result.body)
    whole = memoryview(result.body)
    try:
        await response.prepare(raw)
        for start in range(0, len(whole), _PIECE_BYTES):
            await response.write(whole[start : start + _PIECE_BYTES])
        await response.write_eof()
    except ConnectionError:
        pass  # the client left
    return response


async def _close(stream: Stream) -> None:
    closer: Callable[[], Awaitable[None]] | None = getattr(stream.chunks, "aclose", None)
    if closer is not None:
        await closer()


async def _read(raw: web.BaseRequest) -> bytes:
    """The body. Raises 413 when it is larger than any object may be, 400 when it ends early or is not what it says."""
    await _invite(raw)
    body = bytearray()
    try:
        async for chunk in raw.content.iter_any():
            body += chunk
            if len(body) > _BODY_BYTES:
                raise _too_large()
    except _BROKEN_BODIES:
        raise status.bad_request("the request body ends early, or is not encoded as its headers say") from None
    return bytes(body)


async def _invite(raw: web.BaseRequest) -> None:
    """Tell a client that asks before it sends (curl does, with more than 1 MiB) to go on."""
    if raw.headers.get("Expect", "").lower() == "100-continue" and raw.version >= HttpVersion11:
        await raw.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        raw.writer.output_size = 0  # the answer itself has not begun


def _too_large() -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_BODY_BYTES}")


def _refused(error: status.StatusError) -> web.Response:
    return _whole(answer(error.body, error.code))


def _whole(result: Response) -> web.Response:
    return web.Response(status=result.status, body=result.body, headers=_headers(result))


def _headers(result: Response) -> list[tuple[str, str]]:
    return [("Content-Type", result.content_type), *result.headers.items(), *warning_headers(result.warnings)]


class _Connections(web.Server):
    """Accepts connections whose requests are bounded, and whose broken ones are answered with a Status."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    """One client's connection, whose loss ends the stream that runs over it."""

    __slots__ = ("_stream",)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._stream: asyncio.Task[None] | None = None

    @contextmanager
    def ending(self, stream: asyncio.Task[None]) -> Iterator[None]:
        """Within it the task is cancelled when the client leaves, which is no failure of the task's."""
        if self.transport is None:
            raise ConnectionResetError("the client left before its stream began")
        self._stream = stream
        try:
            yield
        except asyncio.CancelledError:
            if self.transport is not None:
                raise
        finally:
            self._stream = None

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self._stream is not None:
            self._stream.cancel()

    def log_exception(self, *given: Any, **named: Any) -> None:
        """Only what is this server's fault: a broken body is answered, and met again when the rest of it is read."""
        if not isinstance(named.get("exc_info"), _BROKEN_BODIES):
            super().log_exception(*given, **named)

    def handle_error(
        self,
        request: web.BaseRequest,
        status_code: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is not HTTP, or too much of it; the connection ends with the answer."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun already")
        response = _refused(_broken_request(status_code, exc))
        response.force_close()
        return response


def _broken_request(code: int, exc: BaseException | None) -> status.StatusError:
    if isinstance(exc, LineTooLong):
        return status.StatusError(431, "RequestHeaderFieldsTooLarge", "the request line or a header is too long")
    if code < 500:
        return status.bad_request("the request is not valid HTTP")
    _log.error("request failed", exc_info=exc)
    return status.internal()
