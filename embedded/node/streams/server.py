"""The kubelet's paths into pods, for the API server to ask on a client's behalf.

GET or POST /exec/{namespace}/{pod}/{container}?command=…    input, output, error, tty: 1
GET or POST /attach/{namespace}/{pod}/{container}
GET or POST /portForward/{namespace}/{pod}                   port, of a websocket without SPDY in it

GET with `Upgrade: websocket`, POST (or GET) with `Upgrade: SPDY/3.1`. Refusals before that are plain text, as the
kubelet's; later ones go over the command's error channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from aiohttp import web

from embedded.fault import KernelFault
from embedded.node.ports import CommandPort, ContainerPort, Ends, Handler
from embedded.node.streams import port_forward
from embedded.node.streams.connections import (
    SPDY_PROTOCOLS,
    WEBSOCKET_PROTOCOLS,
    ChannelConnection,
    RawBytes,
    SpdyChannels,
    SpdyConnection,
    WebSocketBytes,
    WebSocketChannels,
)
from embedded.node.streams.port_forward import SpdyForwarding
from embedded.node.streams.remote_command import Conversation, channels, status_of_fault, tell
from embedded.node.streams.spdy import FrameError
from embedded.raw_connection import TakenOver, taken_over

_STREAMS_SECONDS = 30.0  # remotecommand.DefaultStreamCreationTimeout
_GOODBYE_SECONDS = 5.0
_PROTOCOL = "X-Stream-Protocol-Version"
_MOST_PORTS = 100


class Pods(Protocol):
    """The pods of the node; see pods.kubelet.Kubelet."""

    def container(self, namespace: str, name: str, container: str) -> ContainerPort | str:
        """One that runs, or a sentence why there is none. Raises LookupError for an unknown pod."""

    async def dial(self, namespace: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to what a pod listens on. Raises LookupError for an unknown pod, OSError."""


class PodStreams:
    """Answers for the paths above."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "/exec/{namespace}/{pod}/{container}": self._exec,
            "/attach/{namespace}/{pod}/{container}": self._attach,
            "/portForward/{namespace}/{pod}": self._port_forward,
        }

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        container = self._container(request)
        if isinstance(container, web.Response):
            return container
        command = request.query.getall("command", [])
        if not command:
            return _refused(400, "you must specify at least 1 command to execute")
        return await self._converse(request, lambda ends: container.open(command, ends))

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        container = self._container(request)
        if isinstance(container, web.Response):
            return container

        async def attached(ends: Ends) -> CommandPort:
            return container.attach(ends)

        return await self._converse(request, attached)

    def _container(self, request: web.Request) -> ContainerPort | web.Response:
        where = request.match_info
        try:
            found = self._pods.container(where["namespace"], where["pod"], where["container"])
        except LookupError:
            return _refused(404, "pod does not exist")
        return _refused(500, found) if isinstance(found, str) else found

    async def _converse(self, request: web.Request, begin: _Begin) -> web.StreamResponse:
        ends = _ends(request)
        if not (ends.stdin or ends.stdout or ends.stderr):
            return _refused(400, "you must specify at least 1 of stdin, stdout, stderr")
        if _wants(request, "websocket"):
            return await self._over_websocket(request, ends, begin)
        protocol = _negotiated(request, SPDY_PROTOCOLS)
        if isinstance(protocol, web.Response):
            return protocol
        async with taken_over(request) as (reader, writer):
            await _switch(writer, protocol)
            client = SpdyChannels(SpdyConnection(RawBytes(reader, writer)))
            try:
                if await client.opened(channels(ends), _STREAMS_SECONDS):
                    await _hold(client, ends, begin)
            except (ConnectionError, FrameError):
                pass
        return TakenOver()

    async def _over_websocket(self, request: web.Request, ends: Ends, begin: _Begin) -> web.StreamResponse:
        if not _offers(request, WEBSOCKET_PROTOCOLS):
            return _refused(400, f"the websocket protocols are {', '.join(WEBSOCKET_PROTOCOLS)}")
        socket = web.WebSocketResponse(protocols=WEBSOCKET_PROTOCOLS, compress=False, timeout=_GOODBYE_SECONDS)
        await socket.prepare(request)
        await _hold(WebSocketChannels(socket), ends, begin)
        return socket

    async def _port_forward(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]

        async def dial(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            try:
                return await self._pods.dial(namespace, pod, port)
            except LookupError as error:
                raise OSError(f"the pod is gone: {error}") from None

        if _wants(request, "websocket"):
            return await _forward_over_websocket(request, dial, pod)
        protocol = _negotiated(request, (port_forward.SPDY_PROTOCOL,))
        if isinstance(protocol, web.Response):
            return protocol
        async with taken_over(request) as (reader, writer):
            await _switch(writer, protocol)
            await SpdyForwarding(SpdyConnection(RawBytes(reader, writer)), dial, pod).serve()
        return TakenOver()


class _Begin(Protocol):
    async def __call__(self, ends: Ends) -> CommandPort: ...


async def _hold(client: ChannelConnection, ends: Ends, begin: _Begin) -> None:
    try:
        command = await begin(ends)
    except KernelFault as fault:
        used = sorted(channels(ends) & {1, 2})
        try:
            await tell(client, status_of_fault(fault.what), *used)
        except ConnectionError:
            return
        return
    await Conversation(client, command, ends).hold()


async def _forward_over_websocket(request: web.Request, dial: port_forward.Dial, pod: str) -> web.StreamResponse:
    if _offers(request, (port_forward.TUNNEL_PROTOCOL,)):
        socket = _socket(port_forward.TUNNEL_PROTOCOL)
        await socket.prepare(request)
        await SpdyForwarding(SpdyConnection(WebSocketBytes(socket)), dial, pod).serve()
        await socket.close()
        return socket
    if not _offers(request, (port_forward.WEBSOCKET_PROTOCOL,)):
        known = f"{port_forward.TUNNEL_PROTOCOL}, {port_forward.WEBSOCKET_PROTOCOL}"
        return _refused(400, f"the websocket protocols are {known}")
    texts = [text for each in request.query.getall("port", []) for text in each.split(",")]
    ports = [port for text in texts if (port := port_forward.port_of(text))]
    if not ports or len(ports) != len(texts) or len(ports) > _MOST_PORTS:
        return _refused(400, f"query parameter 'port' must hold 1 to {_MOST_PORTS} ports")
    socket = _socket(port_forward.WEBSOCKET_PROTOCOL)
    await socket.prepare(request)
    await port_forward.forward_over_websocket(socket, ports, dial, pod)
    return socket


def _socket(protocol: str) -> web.WebSocketResponse:
    return web.WebSocketResponse(protocols=(protocol,), compress=False, timeout=_GOODBYE_SECONDS)


def _ends(request: web.Request) -> Ends:
    """A terminal has no error output of its own."""
    asked = {name: request.query.get(name) == "1" for name in ("input", "output", "error", "tty")}
    return Ends(asked["input"], asked["output"], asked["error"] and not asked["tty"], asked["tty"])


def _wants(request: web.Request, protocol: str) -> bool:
    return protocol in request.headers.get("Upgrade", "").lower()


def _offers(request: web.Request, known: Iterable[str]) -> bool:
    offered = [each.strip() for each in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    return any(each in known for each in offered)


def _negotiated(request: web.Request, known: tuple[str, ...]) -> str | web.Response:
    """The first of the client's protocols that is known here, as apimachinery's httpstream.Handshake takes it."""
    if not _wants(request, "spdy/3.1"):
        return _refused(400, "Upgrade request required")
    offered = [each.strip() for text in request.headers.getall(_PROTOCOL, []) for each in text.split(",")]
    for each in offered or known:
        if each in known:
            return each
    told = f"unable to upgrade: unable to negotiate protocol: client supports {offered}, server accepts {list(known)}"
    response = _refused(403, told)
    response.headers["X-Accepted-Stream-Protocol-Versions"] = ", ".join(known)
    return response


async def _switch(writer: asyncio.StreamWriter, protocol: str) -> None:
    lines = ("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: SPDY/3.1", f"{_PROTOCOL}: {protocol}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    await writer.drain()


def _refused(code: int, text: str) -> web.Response:
    return web.Response(status=code, text=text)
