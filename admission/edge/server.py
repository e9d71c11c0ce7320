"""The HTTPS server of the webhooks: one answer a review, and no client that could keep others from theirs.

Only API servers have a reason to come here, but anybody in the cluster can: a connection costs little until it has sent
a whole request, and what all of them have sent together is bounded.
"""

from __future__ import annotations

import asyncio
import logging
import ssl

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from admission.ports import Handle, WebhookLimits
from kube.connection_limit import ConnectionBounds
from kube.listener import HandshakeTimeouts, TlsListener
from kube.tls import ServerCertificate
from model.fault import ConfigurationFault

_KEEP_ALIVE_SECONDS = 90.0
_END_SECONDS = 5.0
_LINGER_SECONDS = 1.0
"""Of a body nobody reads any more so much is still taken, that the client gets to read our answer."""
_MOST_HEADERS, _LONGEST_HEADER_BYTES = 32, 4_096
"""Of a head: API servers send a dozen, of which a token is the longest. It is held several times over while it is read,
by each connection: with aiohttp's own bounds, 128 of 8 KB, 200 connections took 480 MB.
"""


class ReviewServer:
    """Listens while entered as a context; `address` is the real one then. Its end waits `end_seconds` for answers."""

    def __init__(
        self,
        listen: str,
        certificate: ServerCertificate,
        handle: Handle,
        limits: WebhookLimits,
        end_seconds: float = _END_SECONDS,
    ) -> None:
        self.address = ""
        self._listen = listen
        self._handle = handle
        self._limits = limits
        self._end_seconds = end_seconds
        self._http = web.Server(
            self._serve,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            lingering_time=_LINGER_SECONDS,
            max_headers=_MOST_HEADERS,
            max_field_size=_LONGEST_HEADER_BYTES,
            max_line_size=_LONGEST_HEADER_BYTES,
            access_log=None,
            logger=_log,
        )
        bounds = ConnectionBounds(limits.connections, limits.handshakes)
        waits = HandshakeTimeouts(limits.request_seconds, limits.request_seconds)
        self.listener = TlsListener(self._http, _context(certificate), bounds, waits)
        self._buffered = 0

    async def __aenter__(self) -> ReviewServer:
        """Raises ConfigurationFault where the address cannot be listened on."""
        host, _, port = self._listen.rpartition(":")
        try:
            self.listener.listen(host.strip("[]"), int(port))
        except (OSError, ValueError, OverflowError) as error:
            raise ConfigurationFault(
                f"--listen {self._listen}", f"cannot listen: {error}", "choose HOST:PORT"
            ) from error
        self.address = f"{host}:{self.listener.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Requests under way are answered first; connections without one end at once."""
        await self.listener.stop_listening()
        self._http.pre_shutdown()
        await self._http.shutdown(self._end_seconds)
        self.listener.cut_all()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        with self.listener.busy(request.protocol):
            try:
                async with asyncio.timeout(self._limits.request_seconds):
                    body = await self._body(request)
            except TimeoutError:
                return _said(408, "the request took too long to arrive", close=True)
            except _Refused as refused:
                return _said(refused.status, str(refused), close=True)
            reply = await self._handle(request.path, body)
            if reply.status == 200:
                return web.Response(body=reply.body, content_type="application/json")
            return _said(reply.status, reply.body.decode())

    async def _body(self, request: web.BaseRequest) -> bytes:
        if request.method != "POST":
            raise _Refused(405, "only POST")
        if request.content_type != "application/json":
            raise _Refused(415, f"expected application/json, got {request.content_type}")
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.content.iter_any():
                size += len(part)
                self._buffered += len(part)
                if size > self._limits.body_bytes:
                    raise _Refused(413, f"a review may have {self._limits.body_bytes} bytes")
                if self._buffered > self._limits.buffered_bytes:
                    raise _Refused(503, "too much is being sent at once; try again")
                parts.append(part)
        finally:
            self._buffered -= size
        return b"".join(parts)


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


def _is_ours(record: logging.LogRecord) -> bool:
    """Of a request that is no HTTP its sender is told: nobody who reaches the port fills a log with tracebacks."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log = logging.getLogger(__name__)
_log.addFilter(_is_ours)


def _context(certificate: ServerCertificate) -> ssl.SSLContext:
    """TLS 1.2 or newer; each handshake is shown the newest certificate."""

    def choose(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = certificate.newest().context

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sni_callback = choose
    return context


def _said(status: int, text: str, *, close: bool = False) -> web.Response:
    response = web.Response(status=status, text=text + "\n")
    if close:
        response.force_close()
    return response
