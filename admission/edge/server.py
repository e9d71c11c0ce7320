"""The HTTPS server of the webhooks: one answer a review, and no client that could keep others from theirs.

Only API servers have a reason to come here, but anybody in the cluster can: a connection costs little until it has sent
a whole request, and what all of them have sent together is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

from aiohttp import web

from admission.ports import Handle, Limits
from kube.tls import ServerCertificate
from model.fault import ConfigurationFault

_SWEEP_SECONDS = 1.0
_KEEP_ALIVE_SECONDS = 90.0
_END_SECONDS = 5.0
_LINGER_SECONDS = 1.0
"""Of a body nobody reads any more so much is still taken, that the client gets to read our answer."""


class ReviewServer:
    """Listens while entered as a context; `address` is the real one then."""

    def __init__(self, listen: str, certificate: ServerCertificate, handle: Handle, limits: Limits) -> None:
        self.address = ""
        self._listen = listen
        self._tls = _context(certificate)
        self._handle = handle
        self._limits = limits
        self._http = web.Server(
            self._serve, keepalive_timeout=_KEEP_ALIVE_SECONDS, lingering_time=_LINGER_SECONDS, access_log=None
        )
        self._connections = _Connections(limits)
        self._buffered = 0

    async def __aenter__(self) -> ReviewServer:
        """Raises ConfigurationFault where the address cannot be listened on."""
        host, _, port = self._listen.rpartition(":")
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._protocol,
                host.strip("[]"),
                int(port),
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.request_seconds,
            )
        except (OSError, ValueError) as error:
            raise ConfigurationFault(
                f"--listen {self._listen}", f"cannot listen: {error}", "choose HOST:PORT"
            ) from error
        self.address = f"{host}:{self._server.sockets[0].getsockname()[1]}"
        self._sweeping = asyncio.create_task(self._connections.sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Requests under way are answered first."""
        self._server.close()
        self._sweeping.cancel()
        await self._http.shutdown(_END_SECONDS)

    def _protocol(self) -> asyncio.Protocol:
        protocol = self._http()
        self._connections.opened(protocol)
        return protocol

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        async with self._connections.busy(request.protocol):
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


class _Connections:
    """Who is connected, and since when they have asked for nothing; a handler is busy from headers to answer."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: dict[web.RequestHandler, float] = {}
        self._spoken: set[web.RequestHandler] = set()

    def opened(self, protocol: web.RequestHandler) -> None:
        """One more: where there are too many the one that has been idle the longest goes."""
        if len(self._idle) >= self._limits.connections:
            self._close(next(iter(self._idle)))
        self._idle[protocol] = asyncio.get_running_loop().time()

    @contextlib.asynccontextmanager
    async def busy(self, protocol: web.RequestHandler) -> AsyncIterator[None]:
        self._idle.pop(protocol, None)
        self._spoken.add(protocol)
        try:
            yield
        finally:
            self._idle[protocol] = asyncio.get_running_loop().time()

    async def sweep(self) -> None:
        """For ever: closes connections that never sent the head of a request, and forgets those that are gone."""
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._limits.request_seconds))
            late = asyncio.get_running_loop().time() - 2 * self._limits.request_seconds
            for protocol, since in list(self._idle.items()):
                if since < late and (protocol not in self._spoken or protocol.transport is None):
                    self._close(protocol)

    def _close(self, protocol: web.RequestHandler) -> None:
        del self._idle[protocol]
        self._spoken.discard(protocol)
        if protocol.transport is not None:
            protocol.transport.abort()


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
