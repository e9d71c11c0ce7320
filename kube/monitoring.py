"""/metrics, /healthz and /readyz of a program, on few threads of their own: a probe waits for no event loop.

On 127.0.0.1, ::1 and localhost in plain text for everybody, on a unix socket for its owner; elsewhere over TLS, and
/metrics for those alone who may `get` it. The standard library's server costs the agent no memory, since
prometheus_client has imported it already.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from kube.reviews import Reviews
from kube.tls import ServerCertificate
from model.fault import CannotListen, ConfigurationFault, KubernetesFault

log = structlog.get_logger()

_FLAG = "--http-listen"
_MOST_CONNECTIONS = 16
_REST_SECONDS = 0.1
_POLL_SECONDS = 0.25
_REVIEW_SECONDS = 8.0
# Other addresses of 127.0.0.0/8 are those of pods in the embedded cluster, where manifests hold as in any other.
_PLAIN_HOSTS = ("127.0.0.1", "::1", "localhost")
_TEXT = "text/plain; charset=utf-8"
_UNIX = "unix:"


class Probes(msgspec.Struct, frozen=True):
    """What is wrong, in words; empty where nothing is. Called on the server's threads."""

    alive: Callable[[], str]
    ready: Callable[[], str]


class ClientTimeouts(msgspec.Struct, frozen=True):
    """How long a client may say nothing, and how long its request and our answer may take in all; seconds."""

    silence_seconds: float = 10.0
    whole_seconds: float = 30.0


_PATIENCE = ClientTimeouts()


class AccessGuard:
    """What is needed off loopback: the certificate, and who may read /metrics.

    Made on the event loop that `reviews` asks on; asked from other threads.
    """

    def __init__(self, certificate: ServerCertificate, reviews: Reviews) -> None:
        self._certificate = certificate
        self._reviews = reviews
        self._loop = asyncio.get_running_loop()

    def wrap(self, connection: socket.socket) -> ssl.SSLSocket:
        """TLS over a connection; the handshake is left to the thread that serves it."""
        context = self._certificate.newest().context
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)

    def refusal(self, authorization: str) -> _Page | None:
        """Why a reader with this header gets no metrics; None where it does. Waits for the event loop."""
        asking = asyncio.run_coroutine_threadsafe(self._refusal(authorization), self._loop)
        try:
            return asking.result(_REVIEW_SECONDS)
        except TimeoutError:
            asking.cancel()
            return _said(HTTPStatus.SERVICE_UNAVAILABLE, "the token could not be checked in time; try again")

    async def _refusal(self, authorization: str) -> _Page | None:
        scheme, _, token = authorization.partition(" ")
        try:
            caller = await self._reviews.caller(token.strip()) if scheme.lower() == "bearer" else None
            if caller is None:
                return _said(HTTPStatus.UNAUTHORIZED, "send `Authorization: Bearer TOKEN` with a token of this cluster")
            if await self._reviews.allowed(caller, "get", "/metrics"):
                return None
        except KubernetesFault as fault:
            log.warning("metrics refused: who asks cannot be found out", error=str(fault))
            return _said(HTTPStatus.SERVICE_UNAVAILABLE, "the API server cannot be asked who you are; try again")
        told = f"{caller.name} may not get /metrics; bind it to ClusterRole sublet-viewer"
        return _said(HTTPStatus.FORBIDDEN, told)


class MonitoringServer:
    """Serves from `start` to `close`, on HOST:PORT or on `unix:PATH`, a socket of mode 0600.

    Raises ConfigurationFault for an address that must not be served, CannotListen for one that cannot be.
    """

    def __init__(
        self,
        address: str,
        registry: CollectorRegistry,
        probes: Probes,
        guard: AccessGuard | None = None,
        patience: ClientTimeouts = _PATIENCE,
    ) -> None:
        if address.startswith(_UNIX):
            self._server: _Server = _UnixServer(
                Path(address.removeprefix(_UNIX)), _Site(registry, probes, None, patience)
            )
            self.address = address
            return
        host, port = _split(address)
        guard = None if host in _PLAIN_HOSTS else _required(guard, address)
        site = _Site(registry, probes, guard, patience)
        try:
            self._server = _Server((host, port), site)
        except OSError as error:
            raise CannotListen(f"{_FLAG} {address}", f"cannot be listened on: {error.strerror}") from error
        self.address = f"{address.rpartition(':')[0]}:{self._server.server_address[1]}"

    def start(self) -> None:
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(_POLL_SECONDS,), name="http", daemon=True).start()

    def close(self) -> None:
        """Stop listening; only after `start`."""
        self._server.shutdown()
        self._server.server_close()


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationFault(f"{_FLAG} {address}", "is not HOST:PORT", "write for example 127.0.0.1:10316")
    return host.strip("[]"), int(port)


def _required(guard: AccessGuard | None, address: str) -> AccessGuard:
    if guard is None:
        fix = "give --tls-cert and --tls-key, or use 127.0.0.1 and reach it with kubectl port-forward"
        raise ConfigurationFault(f"{_FLAG} {address}", "is not 127.0.0.1, where alone plain text is served", fix)
    return guard


def _family(address: tuple[str, int] | str) -> socket.AddressFamily:
    if isinstance(address, str):
        return socket.AF_UNIX
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


class _Page(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: bytes


def _said(status: HTTPStatus, text: str) -> _Page:
    return _Page(status, _TEXT, f"{text}\n".encode())


def _probed(problem: str) -> _Page:
    return _said(HTTPStatus.SERVICE_UNAVAILABLE, problem) if problem else _said(HTTPStatus.OK, "ok")


class _Site(NamedTuple):
    """What is served, to whom, and for how long."""

    registry: CollectorRegistry
    probes: Probes
    guard: AccessGuard | None
    patience: ClientTimeouts

    def page(self, path: str, accept: str, authorization: str) -> _Page:
        match path:
            case "/metrics":
                refusal = self.guard.refusal(authorization) if self.guard else None
                return refusal or self._metrics(accept)
            case "/healthz" | "/livez":
                return _probed(self.probes.alive())
            case "/readyz":
                return _probed(self.probes.ready())
            case _:
                return _said(HTTPStatus.NOT_FOUND, "try /metrics, /healthz or /readyz")

    def _metrics(self, accept: str) -> _Page:
        encode, content_type = choose_encoder(accept)
        return _Page(HTTPStatus.OK, content_type, bytes(encode(self.registry)))


class _Since(NamedTuple):
    """When a connection was opened (monotonic), and by which address."""

    seconds: float
    peer: str


class _Server(ThreadingHTTPServer):
    """A thread for each of few connections, so that idle ones never keep a probe out: one more cuts off the oldest of
    whichever peer has most of them."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int] | str, site: _Site) -> None:
        self.address_family = _family(address)
        super().__init__(address, _Handler)  # type: ignore[arg-type]  # a path where the family is AF_UNIX
        self.site = site
        self._open: dict[socket.socket, _Since] = {}
        self._lock = threading.Lock()

    def server_bind(self) -> None:
        """Without the name that http.server asks the DNS for, and waits for."""
        socketserver.TCPServer.server_bind(self)

    def get_request(self) -> tuple[Any, Any]:
        try:
            connection, peer = super().get_request()
        except OSError:
            # Short of descriptors the listening socket stays readable: without a rest this is a busy loop.
            time.sleep(_REST_SECONDS)
            raise
        return (self.site.guard.wrap(connection) if self.site.guard else connection), peer

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= _MOST_CONNECTIONS:
                self._cut(self._dearest())
            self._open[request] = _Since(time.monotonic(), client_address[0] if client_address else "")
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The limit of threads is reached: a program that answers no probe would be ended, and find none to start.
            self.process_request_thread(request, client_address)

    def service_actions(self) -> None:
        """Between two connections: who takes too long in all is cut off, however busily it sends."""
        late = time.monotonic() - self.site.patience.whole_seconds
        with self._lock:
            for request in [request for request, since in self._open.items() if since.seconds < late]:
                self._cut(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up, are cut off or speak no TLS are not news; an error of ours is."""
        if not isinstance(sys.exception(), OSError):
            log.error("monitoring connection failed", exc_info=True)

    def _dearest(self) -> socket.socket:
        """The kubelet has one, whoever floods has many."""
        peers = Counter(since.peer for since in self._open.values())
        return max(self._open, key=lambda request: peers[self._open[request].peer])

    def _cut(self, request: socket.socket) -> None:
        del self._open[request]
        with contextlib.suppress(OSError):
            # The plain socket's own: that of a TLS socket would pull the session from under the thread that reads.
            socket.socket.shutdown(request, socket.SHUT_RDWR)


class _UnixServer(_Server):
    """Of whoever owns the socket's folder; what an earlier program left there is removed."""

    def __init__(self, path: Path, site: _Site) -> None:
        try:
            path.unlink(missing_ok=True)
            super().__init__(str(path), site)
            path.chmod(0o600)
        except OSError as error:
            raise CannotListen(str(path), f"cannot be listened on: {error.strerror or error}") from error


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        self.request.settimeout(self.server.site.patience.silence_seconds)
        super().setup()
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection.do_handshake()

    def do_GET(self) -> None:
        headers = self.headers
        try:
            page = self.server.site.page(
                self.path.partition("?")[0], headers.get("Accept", ""), headers.get("Authorization", "")
            )
        except Exception:
            log.exception("monitoring page failed", path=self.path)
            page = _said(HTTPStatus.INTERNAL_SERVER_ERROR, "an error of this program; see its log")
        self._answer(page)

    do_HEAD = do_GET

    def _refuse(self) -> None:
        self._answer(_said(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD"), ("Allow", "GET, HEAD"))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse

    def _answer(self, page: _Page, *more: tuple[str, str]) -> None:
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        if page.status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Probes and scrapes are not worth a line."""
