"""A client's connection in three forms: plain bytes, SPDY frames, and the channels of one command."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from enum import IntEnum
from typing import Protocol

from aiohttp import WSCloseCode, WSMsgType, web

from embedded.node.streams import spdy
from embedded.node.streams.spdy import Frame, FrameReader, FrameWriter

_READ_BYTES = 64 << 10
_FRAME_BYTES = 32 << 10


class ByteConnection(Protocol):
    async def read(self) -> bytes:
        """What has come; empty when the client left."""

    async def write(self, data: bytes) -> None:
        """Waits while the client is slow. Raises ConnectionError."""


class RawBytes:
    """A connection whose HTTP is over."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_READ_BYTES)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class WebSocketBytes:
    """A byte stream in the binary messages of a websocket (KEP-4006)."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                return b""
            if message.data:
                return bytes(message.data)

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


class SpdyConnection:
    """Frames of a client, one after the other, and frames to it."""

    def __init__(self, connection: ByteConnection) -> None:
        self._connection = connection
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._frames: list[Frame] = []

    async def next(self) -> Frame | None:
        """None when the client left. Pings are answered on the way. Raises FrameError, ConnectionError."""
        while True:
            while self._frames:
                frame = self._frames.pop(0)
                if isinstance(frame, spdy.Ping):
                    await self.send(frame)
                elif isinstance(frame, spdy.GoAway):
                    return None
                else:
                    return frame
            received = await self._connection.read()
            if not received:
                return None
            self._frames = list(self._reader.feed(received))

    async def send(self, frame: Frame) -> None:
        """Waits while the client is slow. Raises ConnectionError."""
        await self._connection.write(self._writer.encode(frame))

    async def send_data(self, stream: int, data: bytes) -> None:
        """In frames of a size that lets others between."""
        for start in range(0, len(data), _FRAME_BYTES):
            await self.send(spdy.Data(stream, data[start : start + _FRAME_BYTES]))


class Channel(IntEnum):
    """The streams of one command, by their numbers in websocket messages (remotecommand.StreamStdIn and so on)."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4


class ChannelConnection(Protocol):
    """The client of one command."""

    async def receive(self) -> tuple[Channel, bytes] | None:
        """What came on a channel, empty at the channel's end; None when the client left. Raises ConnectionError."""

    async def send(self, channel: Channel, data: bytes) -> None:
        """Waits while the client is slow. Raises ConnectionError."""

    async def close(self, *used: Channel) -> None:
        """All is said."""


CLOSE_SIGNAL = 255
V5, V4, BASE64_V4 = "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"
WEBSOCKET_PROTOCOLS = (V5, V4, BASE64_V4)


class WebSocketChannels:
    """Messages whose first byte is the channel.

    With v5 a message of 255 and a channel ends that channel. Source: kubernetes k8s.io/apimachinery
    pkg/util/remotecommand and pkg/util/httpstream/wsstream.
    """

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._base64 = socket.ws_protocol == BASE64_V4

    async def receive(self) -> tuple[Channel, bytes] | None:
        while True:
            message = await self._socket.receive()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                return None
            found = self._channel(message.data if isinstance(message.data, bytes) else message.data.encode())
            if found is not None:
                return found

    def _channel(self, message: bytes) -> tuple[Channel, bytes] | None:
        """None for what says nothing: an empty message, or one on a channel that is not the client's."""
        if len(message) < 2:
            return None
        number, data = message[0], message[1:]
        if self._base64:
            try:
                number, data = number - ord("0"), base64.b64decode(data)
            except binascii.Error:
                return None
        if number == CLOSE_SIGNAL and self._socket.ws_protocol == V5:
            return (Channel.STDIN, b"") if data[0] == Channel.STDIN else None
        return (Channel(number), data) if number in (Channel.STDIN, Channel.RESIZE) and data else None

    async def send(self, channel: Channel, data: bytes) -> None:
        for start in range(0, len(data), _FRAME_BYTES):
            piece = data[start : start + _FRAME_BYTES]
            if self._base64:
                await self._socket.send_str(str(int(channel)) + base64.b64encode(piece).decode())
            else:
                await self._socket.send_bytes(bytes([channel]) + piece)

    async def close(self, *used: Channel) -> None:
        await self._socket.close(code=WSCloseCode.OK)


SPDY_PROTOCOLS = (V4,)
_STREAM_TYPES = {
    "stdin": Channel.STDIN,
    "stdout": Channel.STDOUT,
    "stderr": Channel.STDERR,
    "error": Channel.ERROR,
    "resize": Channel.RESIZE,
}


class SpdyChannels:
    """A stream for each channel, which the client opens and names by its header `streamtype`."""

    def __init__(self, connection: SpdyConnection) -> None:
        self._connection = connection
        self._streams: dict[Channel, int] = {}
        self._channels: Mapping[int, Channel] = {}
        self._ended: Channel | None = None

    async def opened(self, wanted: set[Channel], seconds: float) -> bool:
        """Wait for all the wanted streams; False where they do not come. Raises FrameError, ConnectionError."""
        try:
            async with asyncio.timeout(seconds):
                while wanted - self._streams.keys():
                    frame = await self._connection.next()
                    if frame is None:
                        return False
                    if isinstance(frame, spdy.SynStream):
                        await self._take(frame, wanted)
        except TimeoutError:
            return False
        self._channels = {stream: channel for channel, stream in self._streams.items()}
        return True

    async def _take(self, frame: spdy.SynStream, wanted: set[Channel]) -> None:
        channel = _STREAM_TYPES.get(frame.headers.get("streamtype", ""))
        if channel is None or channel not in wanted or channel in self._streams:
            await self._connection.send(spdy.Reset(frame.stream, spdy.REFUSED_STREAM))
            return
        self._streams[channel] = frame.stream
        await self._connection.send(spdy.SynReply(frame.stream))

    async def receive(self) -> tuple[Channel, bytes] | None:
        if self._ended is not None:
            channel, self._ended = self._ended, None
            return channel, b""
        while (frame := await self._connection.next()) is not None:
            if isinstance(frame, spdy.SynStream):
                await self._connection.send(spdy.Reset(frame.stream, spdy.REFUSED_STREAM))
            elif isinstance(frame, spdy.Data | spdy.Reset) and frame.stream in self._channels:
                channel = self._channels[frame.stream]
                if isinstance(frame, spdy.Reset) or not frame.data:
                    return channel, b""
                self._ended = channel if frame.fin else None
                return channel, frame.data
        return None

    async def send(self, channel: Channel, data: bytes) -> None:
        await self._connection.send_data(self._streams[channel], data)

    async def close(self, *used: Channel) -> None:
        for channel in used:
            await self._connection.send(spdy.Data(self._streams[channel], b"", fin=True))
