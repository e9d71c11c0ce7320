"""gRPC servers of all programs: listeners, bounds, health, reflection.

The standard health service and reflection are on every server, so that probes and grpcurl need no .proto file.
"""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from kube.grpc_readable import Readable
from kube.loopback import LoopbackPort
from kube.tls import ServerCertificate, TlsPair
from model.fault import CannotListen, ConfigurationFault

MESSAGE_LIMIT_BYTES = 4 << 20
"""Of an answer; more than that a client refuses that was told nothing else."""
_REQUEST_LIMIT_BYTES = 1 << 20
"""Read before we can look at it; one of empty parts takes 25 times as much memory. 2,500 pods of the longest names."""
_OPTIONS = (
    ("grpc.max_receive_message_length", _REQUEST_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.so_reuseport", 0),
)
# A peer that does not answer for so long has its calls ended. Not on a socket: its peers are processes of this node,
# of which the kernel tells the end, and best effort may be kept from answering for as long as it is limited.
_PORT_OPTIONS = (
    *_OPTIONS,
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.keepalive_permit_without_calls", 1),
)
# Off loopback nobody is trusted with time or with many streams. A link renews itself long before its connection is cut;
# the cut is what ends a stream whose peer reads nothing, since a status waits behind what was not read.
_NETWORK_OPTIONS = (
    *_PORT_OPTIONS,
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 16),
    ("grpc.max_connection_idle_ms", 300_000),
    ("grpc.max_connection_age_ms", 2_700_000),
    ("grpc.max_connection_age_grace_ms", 60_000),
    ("grpc.absolute_max_metadata_size", 16_384),
)
_LOOPBACK_CALLS = 64
_SOCKET_CALLS = 1024
"""At once, open streams included: one takes some 15 KiB, which are not given back. On the socket each pod may wait."""
_SOCKET_MODE = 0o600


class Servicer(Protocol):
    """What can be added to a server; `name` is the full name of its gRPC service."""

    name: str

    def register(self, server: Any) -> None: ...


class Listener:
    """A server and its real address; its health is SERVING unless told otherwise."""

    def __init__(
        self, server: Any, address: str, names: Sequence[str], health_servicer: Any, behind: _Behind | None = None
    ) -> None:
        self.address = address
        self._behind = behind
        self._server = server
        self._names = names
        self._health = health_servicer

    async def start(self) -> None:
        await self._server.start()
        if self._behind is not None:
            self._behind.port.start()

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Calls under way get `grace_seconds` to end."""
        await self._server.stop(grace_seconds)
        if self._behind is not None:
            await self._behind.end()

    async def serving(self, yes: bool) -> None:
        """What health checks are answered, for each service and for the whole."""
        kinds = health_pb2.HealthCheckResponse
        for name in ("", *self._names):
            await self._health.set(name, kinds.SERVING if yes else kinds.NOT_SERVING)


async def tls_server(
    address: str, certificate: ServerCertificate, authorization: Any, servicers: Sequence[Servicer], calls: int
) -> Listener:
    """A TLS server; not started yet, like the others. The newest certificate is served.

    `authorization` is an interceptor that knows who may call what. More than `calls` at once, open streams included,
    are answered RESOURCE_EXHAUSTED. Raises CannotListen.
    """
    server = _Server((*_NETWORK_OPTIONS, *_connections(calls)), calls, servicers, authorization)
    port = server.bind(address, _credentials(certificate))
    return await server.listener(f"{address.rpartition(':')[0]}:{port}")


async def loopback_server(address: str, servicers: Sequence[Servicer], calls: int = _LOOPBACK_CALLS) -> Listener:
    """A plain-text server for root and this user of this machine alone, of at most `calls` at once.

    Raises ConfigurationFault for any other address, CannotListen.
    """
    if not is_loopback(address):
        fix = "listen on 127.0.0.1, ::1 or localhost; from elsewhere use the TLS listener"
        raise ConfigurationFault(address, "plain-text gRPC is served on loopback only", fix)
    behind = _Behind(address)
    server = _Server(_PORT_OPTIONS, calls, servicers)
    server.bind(f"unix:{behind.path}")
    return await server.listener(f"{address.rpartition(':')[0]}:{behind.port.port}", behind)


async def socket_server(path: Path, servicers: Sequence[Servicer], calls: int = _SOCKET_CALLS) -> Listener:
    """A plain-text server on a unix socket of this user alone, in place of what is there. Raises CannotListen."""
    server = _Server(_OPTIONS, calls, servicers)
    path.unlink(missing_ok=True)
    server.bind(f"unix:{path}")
    path.chmod(_SOCKET_MODE)
    return await server.listener(f"unix:{path}")


def is_loopback(address: str) -> bool:
    """Whether `host:port` can be reached from this machine alone."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Behind:
    """The socket of a server that is reached by a port of loopback, in a folder of this user alone; and that port.

    Raises CannotListen.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._folder = _own_folder(address)
        self.path = self._folder / "grpc.sock"
        try:
            self.port = LoopbackPort("127.0.0.1" if host == "localhost" else host.strip("[]"), int(port), self.path)
        except (OSError, ValueError, OverflowError) as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise CannotListen(address, "cannot be listened on", "choose a free HOST:PORT") from error

    async def end(self) -> None:
        await self.port.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _own_folder(address: str) -> Path:
    """Memory before the disk, which may be read-only, and whose folders may have names too long for a socket."""
    for place in ("/dev/shm", None):
        with contextlib.suppress(OSError):
            return Path(tempfile.mkdtemp(prefix="sublet-", dir=place))
    raise CannotListen(address, "needs a folder of its own for a socket", "make /dev/shm or /tmp writable")


class _Server:
    """A server with its services, health and reflection."""

    def __init__(
        self, options: Sequence[tuple[str, int]], calls: int, servicers: Sequence[Servicer], *interceptors: Any
    ) -> None:
        self._server = grpc.aio.server(
            interceptors=(*interceptors, Readable()), options=options, maximum_concurrent_rpcs=calls
        )
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for servicer in servicers:
            servicer.register(self._server)
        self._names = (health.SERVICE_NAME, *(servicer.name for servicer in servicers))
        reflection.enable_server_reflection((*self._names, reflection.SERVICE_NAME), self._server)

    def bind(self, address: str, credentials: Any = None) -> int:
        """The port in use. Raises CannotListen."""
        try:
            if credentials is None:
                return int(self._server.add_insecure_port(address))
            return int(self._server.add_secure_port(address, credentials))
        except RuntimeError as error:
            fix = "" if address.startswith("unix:") else "choose a free HOST:PORT"
            raise CannotListen(address, "cannot be listened on", fix) from error

    async def listener(self, address: str, behind: _Behind | None = None) -> Listener:
        listener = Listener(self._server, address, self._names, self._health, behind)
        await listener.serving(True)
        return listener


def _connections(calls: int) -> tuple[tuple[str, int], ...]:
    """A connection that makes no call costs a descriptor too; a few more than calls, so that probes get in."""
    return (("grpc.max_allowed_incoming_connections", calls + _LOOPBACK_CALLS),)


def _credentials(certificate: ServerCertificate) -> Any:
    """gRPC asks at each handshake, on a thread of its own; None says that nothing changed."""
    served = certificate.newest()

    def newest() -> Any:
        nonlocal served
        pair = certificate.newest()
        if pair is served:
            return None
        served = pair
        return _configuration(pair)

    return grpc.dynamic_ssl_server_credentials(_configuration(served), newest)


def _configuration(pair: TlsPair) -> Any:
    return grpc.ssl_server_certificate_configuration(((pair.key, pair.certificate),))
