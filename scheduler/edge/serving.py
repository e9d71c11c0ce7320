"""gRPC servers: listeners, who may call what, limits, health and reflection."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

import grpc
import grpc.aio
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from kube.tls import Pair, ServerCertificate
from model.fault import ConfigurationFault, KubernetesFault
from scheduler.link.callers import Callers, bearer
from scheduler.link.log_limit import LogLimit
from wire.readable import Readable

log = structlog.get_logger()

MESSAGE_LIMIT_BYTES = 4 << 20
_REQUEST_LIMIT_BYTES = 1 << 20
"""Read before we can look at it; one of empty parts takes 25 times as much memory. 2,500 pods of the longest names."""
_OPTIONS = (
    ("grpc.max_receive_message_length", _REQUEST_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.so_reuseport", 0),
)
# Off loopback nobody is trusted with time or with many streams. A link renews itself long before its connection is cut;
# the cut is what ends a stream whose peer reads nothing, since a status waits behind what was not read.
_NETWORK_OPTIONS = (
    *_OPTIONS,
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 16),
    ("grpc.max_connection_idle_ms", 300_000),
    ("grpc.max_connection_age_ms", 2_700_000),
    ("grpc.max_connection_age_grace_ms", 60_000),
    ("grpc.absolute_max_metadata_size", 16_384),
)
_LOOPBACK_CALLS = 64
_OPEN = "/grpc.health.v1.Health/Check"
"""What a probe asks without a token; Watch would let anybody hold a call for as long as it likes."""
_PROBE_SECONDS = 5.0


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


async def tls_server(
    address: str, certificate: ServerCertificate, callers: Callers, servicers: Sequence[Servicer], calls: int
) -> Listener:
    """A TLS server where every call but health needs a token; not started yet. The newest certificate is served.

    More than `calls` at once, open streams included, are answered RESOURCE_EXHAUSTED.
    """
    server = grpc.aio.server(
        interceptors=(_Doorkeeper(callers), Readable()),
        options=(*_NETWORK_OPTIONS, *_connections(calls)),
        maximum_concurrent_rpcs=calls,
    )
    return await _finish(server, servicers, address, lambda: server.add_secure_port(address, _credentials(certificate)))


async def loopback_server(address: str, servicers: Sequence[Servicer], calls: int = _LOOPBACK_CALLS) -> Listener:
    """A plain-text server for this machine alone, of at most `calls` at once.

    Raises ConfigurationFault for any other address.
    """
    if not is_loopback(address):
        fix = "listen on 127.0.0.1, ::1 or localhost; from elsewhere use the TLS listener"
        raise ConfigurationFault(address, "plain-text gRPC is served on loopback only", fix)
    server = grpc.aio.server(interceptors=(Readable(),), options=_OPTIONS, maximum_concurrent_rpcs=calls)
    return await _finish(server, servicers, address, lambda: server.add_insecure_port(address))


def is_loopback(address: str) -> bool:
    """Whether `host:port` can be reached from this machine alone."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def _configuration(pair: Pair) -> Any:
    return grpc.ssl_server_certificate_configuration(((pair.key, pair.certificate),))


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


class _Refusal(NamedTuple):
    code: grpc.StatusCode
    told: str


class _Doorkeeper(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Lets nobody but known callers in, and those to what they may call; health checks are open.

    A refusal ends the call at once and costs us at most one log line a second.
    """

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._refusals, self._faults = LogLimit(), LogLimit()

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        if details.method == _OPEN:
            return _hurried(handler)
        refusal = await self._refusal(details.method, bearer(details.invocation_metadata))
        return handler if refusal is None else _refusing(handler, refusal, lambda peer: self._tell(peer, refusal))

    async def _refusal(self, method: str, token: str) -> _Refusal | None:
        try:
            caller = await self._callers.caller(token)
            if caller is None:
                told = "send metadata `authorization: Bearer TOKEN` with a known token"
                return _Refusal(grpc.StatusCode.UNAUTHENTICATED, told)
            if await self._callers.allowed(caller, method):
                return None
        except KubernetesFault as fault:
            if self._faults.due(asyncio.get_running_loop().time()) is not None:
                log.warning("who calls cannot be found out", error=str(fault))
            told = "the API server cannot be asked who you are; try again"
            return _Refusal(grpc.StatusCode.UNAVAILABLE, told)
        told = f"{caller.name} may not call {method}; bind it to ClusterRole sublet-viewer"
        return _Refusal(grpc.StatusCode.PERMISSION_DENIED, told)

    def _tell(self, peer: str, refusal: _Refusal) -> None:
        untold = self._refusals.due(asyncio.get_running_loop().time())
        if untold is not None:
            log.warning("call refused", peer=peer, code=refusal.code.name, told=refusal.told, untold_before=untold)


def _refusing(handler: Any, refusal: _Refusal, tell: Callable[[str], None]) -> Any:
    """A handler that refuses whatever kind of call it is, before its message is waited for.

    On the wire a unary call is a stream of one message; gRPC waits for that one for as long as the client likes.
    """

    async def refuse(requests: Any, context: Any) -> None:
        tell(context.peer())
        await context.abort(refusal.code, refusal.told)

    return grpc.stream_stream_rpc_method_handler(refuse, handler.request_deserializer, handler.response_serializer)


def _hurried(handler: Any) -> Any:
    """A unary method whose message is waited for no longer than a probe's takes."""

    async def answer(requests: Any, context: Any) -> Any:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                request = await anext(aiter(requests), None)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"no message within {_PROBE_SECONDS:g} s")
        if request is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a call without a message")
        return await handler.unary_unary(request, context)

    return grpc.stream_unary_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)
