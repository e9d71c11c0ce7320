"""gRPC servers: listeners, bearer tokens, limits, health and reflection."""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio
import msgspec
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from model.fault import ConfigurationFault

MESSAGE_LIMIT_BYTES = 4 << 20
_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.so_reuseport", 0),
)
_LOOPBACK_CALLS = 64
_OPEN_PREFIX = "/grpc.health.v1.Health/"


class Servicer(Protocol):
    """What can be added to a server."""

    name: str

    def register(self, server: Any) -> None: ...


class Listener:
    """A server and its real address; its health is SERVING unless told otherwise."""

    def __init__(self, server: Any, address: str, names: Sequence[str], health_servicer: Any) -> None:
        self.address = address
        self._server = server
        self._names = names
        self._health = health_servicer

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Calls under way get `grace_seconds` to end."""
        await self._server.stop(grace_seconds)

    async def serving(self, yes: bool) -> None:
        """What health checks are answered, for each service and for the whole."""
        kinds = health_pb2.HealthCheckResponse
        for name in ("", *self._names):
            await self._health.set(name, kinds.SERVING if yes else kinds.NOT_SERVING)


class TlsFiles(msgspec.Struct, frozen=True):
    """PEM files of the server's certificate and key."""

    certificate: Path
    key: Path


class TokenTable:
    """Who may call: lines `token,name` (more columns are ignored, so a Kubernetes static token file works too)."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self._names = {_digest(token): name for token, name in entries}

    @classmethod
    def read(cls, path: Path) -> TokenTable:
        """Raises ConfigurationFault naming the file and line; never the token."""
        entries = []
        for number, line in enumerate(_text(path).splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            token, name, *_ = (*(part.strip().strip('"') for part in line.split(",")), "")
            if not token or not name:
                raise ConfigurationFault(f"{path}:{number}", "is not `token,name`", "write one token and name a line")
            entries.append((token, name))
        return cls(entries)

    def caller(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
        """The name that belongs to the call's bearer token, None without a known one.

        Tokens are looked up by their digest, so how long that takes says nothing about any of them.
        """
        given = next((str(value) for key, value in metadata or () if key == "authorization"), "")
        scheme, _, token = given.partition(" ")
        return self._names.get(_digest(token.strip())) if scheme.lower() == "bearer" else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


async def tls_server(
    address: str, files: TlsFiles, tokens: TokenTable, servicers: Sequence[Servicer], calls: int
) -> Listener:
    """A TLS server where every call but health needs a token; not started yet.

    More than `calls` at once, open streams included, are answered RESOURCE_EXHAUSTED.
    """
    check_tls(files)
    credentials = grpc.ssl_server_credentials(((_bytes(files.key), _bytes(files.certificate)),))
    server = grpc.aio.server(interceptors=(_RequireToken(tokens),), options=_OPTIONS, maximum_concurrent_rpcs=calls)
    return await _finish(server, servicers, address, lambda: server.add_secure_port(address, credentials))


async def loopback_server(address: str, servicers: Sequence[Servicer], calls: int = _LOOPBACK_CALLS) -> Listener:
    """A plain-text server for this machine alone, of at most `calls` at once.

    Raises ConfigurationFault for any other address.
    """
    if not is_loopback(address):
        fix = "listen on 127.0.0.1, ::1 or localhost; from elsewhere use the TLS listener"
        raise ConfigurationFault(address, "plain-text gRPC is served on loopback only", fix)
    server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=calls)
    return await _finish(server, servicers, address, lambda: server.add_insecure_port(address))


def is_loopback(address: str) -> bool:
    """Whether `host:port` can be reached from this machine alone."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _finish(server: Any, servicers: Sequence[Servicer], address: str, listen: Callable[[], int]) -> Listener:
    health_servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    for servicer in servicers:
        servicer.register(server)
    names = (health.SERVICE_NAME, *(servicer.name for servicer in servicers), reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    try:
        port = listen()
    except RuntimeError as error:
        raise ConfigurationFault(address, f"cannot listen: {error}", "choose a free HOST:PORT") from error
    listener = Listener(server, f"{address.rpartition(':')[0]}:{port}", names[:-1], health_servicer)
    await listener.serving(True)
    return listener


class _RequireToken(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """UNAUTHENTICATED for every call without a known token, health checks apart."""

    def __init__(self, tokens: TokenTable) -> None:
        self._tokens = tokens

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        known = self._tokens.caller(details.invocation_metadata) is not None
        if handler is None or known or details.method.startswith(_OPEN_PREFIX):
            return handler
        return _refusing(handler)


def _refusing(handler: Any) -> Any:
    """A handler of the same kind that refuses."""

    async def refuse(request: Any, context: Any) -> None:
        await context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "send metadata `authorization: Bearer TOKEN` with a known token"
        )

    if handler.request_streaming:
        kind = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
    else:
        kind = (
            grpc.unary_stream_rpc_method_handler if handler.response_streaming else grpc.unary_unary_rpc_method_handler
        )
    return kind(refuse, handler.request_deserializer, handler.response_serializer)


def check_tls(files: TlsFiles) -> None:
    """gRPC would only say that it cannot listen."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)
    except (ssl.SSLError, OSError) as error:
        what = f"no usable certificate and key: {error}"
        raise ConfigurationFault(f"{files.certificate}, {files.key}", what, "give two PEM files") from error


def _text(path: Path) -> str:
    return _bytes(path).decode()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}", "give a readable file") from error
