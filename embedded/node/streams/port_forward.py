"""Connections of a client's machine to a pod's ports, any number of them over one connection.

Source: kubernetes k8s.io/kubelet pkg/cri/streaming/portforward (httpstream.go, websocket.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from aiohttp import WSMsgType, web

from embedded.node.streams import spdy
from embedded.node.streams.connections import SpdyConnection
from embedded.node.streams.remote_command import IDLE_SECONDS
from embedded.node.streams.spdy import FrameError

SPDY_PROTOCOL = "portforward.k8s.io"
TUNNEL_PROTOCOL = f"SPDY/3.1+{SPDY_PROTOCOL}"
WEBSOCKET_PROTOCOL = "v4.channel.k8s.io"
_BYTES = 32 << 10
_HELD_CHUNKS = 32
# kubectl opens a pair for each connection that it accepts.
_MOST_PAIRS = 512
_PORT_DIGITS = 5

Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def port_of(text: str) -> int | None:
    """Of a client's words for one."""
    number = int(text) if text.isdecimal() and len(text) <= _PORT_DIGITS else 0
    return number if 0 < number < 65536 else None


class _Pair(msgspec.Struct):
    """The two streams of one forwarded connection, as they come; the task carries it."""

    port: int
    data: int = 0
    error: int = 0
    task: asyncio.Task[None] | None = None


class SpdyForwarding:
    """Pairs of streams, data and error, told together by their header `requestid`.

    `dial` connects to a port of the pod and raises OSError where nobody listens; `name` is how the pod is called.
    """

    def __init__(self, connection: SpdyConnection, dial: Dial, name: str, idle_seconds: float = IDLE_SECONDS) -> None:
        self._connection = connection
        self._dial = dial
        self._name = name
        self._idle_seconds = idle_seconds
        self._deadline = asyncio.timeout(idle_seconds)
        self._pairs: dict[str, _Pair] = {}
        self._waiting: dict[int, asyncio.Queue[bytes | None]] = {}  # by data stream: None at its end

    async def serve(self) -> None:
        """Returns when the client has left, or nothing was said for the idle time."""
        try:
            async with self._deadline:
                while (frame := await self._connection.next()) is not None:
                    self._awake()
                    await self._take(frame)
        except (TimeoutError, ConnectionError, FrameError):
            pass
        finally:
            tasks = [pair.task for pair in self._pairs.values() if pair.task]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, frame: spdy.Frame) -> None:
        if isinstance(frame, spdy.SynStream):
            await self._open(frame)
        elif isinstance(frame, spdy.Data) and frame.stream in self._waiting:
            if frame.data:
                await self._waiting[frame.stream].put(frame.data)
            if frame.fin and frame.stream in self._waiting:
                await self._waiting[frame.stream].put(None)
        elif isinstance(frame, spdy.Reset):
            for pair in self._pairs.values():
                if pair.data == frame.stream and pair.task:
                    pair.task.cancel()

    async def _open(self, frame: spdy.SynStream) -> None:
        kind, id_ = frame.headers.get("streamtype", ""), frame.headers.get("requestid", "")
        port = port_of(frame.headers.get("port", ""))
        pair = self._pairs.get(id_)
        full = getattr(pair, kind, 0) if pair else len(self._pairs) >= _MOST_PAIRS
        if kind not in ("data", "error") or port is None or full:
            await self._connection.send(spdy.Reset(frame.stream, spdy.REFUSED_STREAM))
            return
        pair = self._pairs.setdefault(id_, _Pair(port))
        setattr(pair, kind, frame.stream)
        if kind == "data":
            self._waiting[frame.stream] = asyncio.Queue(_HELD_CHUNKS)
        await self._connection.send(spdy.SynReply(frame.stream))
        if pair.data and pair.error:
            pair.task = asyncio.create_task(self._carry(id_, pair))

    async def _carry(self, id_: str, pair: _Pair) -> None:
        try:
            with suppress(ConnectionError):
                await self._connect(pair)
                await self._connection.send(spdy.Data(pair.data, b"", fin=True))
                await self._connection.send(spdy.Data(pair.error, b"", fin=True))
        finally:
            del self._pairs[id_]
            queue = self._waiting.pop(pair.data)
            while not queue.empty():  # whoever waits to put something in goes on
                queue.get_nowait()

    async def _connect(self, pair: _Pair) -> None:
        try:
            reader, writer = await self._dial(pair.port)
        except OSError as error:
            told = f"error forwarding port {pair.port} to pod {self._name}: {error.strerror or error}"
            await self._connection.send_data(pair.error, told.encode())
            return
        sending = asyncio.create_task(_send(self._waiting[pair.data], writer))
        try:
            while data := await _read(reader):
                self._awake()
                await self._connection.send_data(pair.data, data)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            writer.close()

    def _awake(self) -> None:
        if not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._idle_seconds)


async def _send(queue: asyncio.Queue[bytes | None], writer: asyncio.StreamWriter) -> None:
    """What the client sends; its end ends what the pod reads, and not what it writes."""
    try:
        while (data := await queue.get()) is not None:
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        while await queue.get() is not None:
            pass  # the pod has closed; its client may not know yet


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Empty when the pod has closed, in whatever way."""
    try:
        return await reader.read(_BYTES)
    except OSError:
        return b""


async def forward_over_websocket(socket: web.WebSocketResponse, ports: list[int], dial: Dial, name: str) -> None:
    """One connection to each of the ports that the request names: channel 2n is data of the nth, 2n+1 its error.

    Each channel begins with its port, two bytes, the lower one first. This is what client libraries speak.
    """
    queues = [asyncio.Queue[bytes | None](_HELD_CHUNKS) for _ in ports]
    tasks = []
    try:
        for number, port in enumerate(ports):
            for channel in (2 * number, 2 * number + 1):
                await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
            tasks.append(asyncio.create_task(_carry_port(socket, number, port, queues[number], dial, name)))
        listening = asyncio.create_task(_distribute(socket, queues))
        tasks.append(listening)
        await asyncio.wait({listening}, timeout=IDLE_SECONDS)
        await socket.close()
    except ConnectionError:
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _distribute(socket: web.WebSocketResponse, queues: list[asyncio.Queue[bytes | None]]) -> None:
    while (message := await socket.receive()).type is WSMsgType.BINARY:
        data = bytes(message.data)
        if len(data) > 1 and data[0] % 2 == 0 and data[0] // 2 < len(queues):
            await queues[data[0] // 2].put(data[1:])


async def _carry_port(
    socket: web.WebSocketResponse, number: int, port: int, queue: asyncio.Queue[bytes | None], dial: Dial, name: str
) -> None:
    try:
        reader, writer = await dial(port)
    except OSError as error:
        told = f"error forwarding port {port} to pod {name}: {error.strerror or error}"
        await socket.send_bytes(bytes([2 * number + 1]) + told.encode())
        return
    sending = asyncio.create_task(_send(queue, writer))
    try:
        while data := await _read(reader):
            await socket.send_bytes(bytes([2 * number]) + data)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()
