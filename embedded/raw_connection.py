"""The connection of an HTTP request as plain bytes, once both sides have agreed to go on in another protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

_BUFFER_BYTES = 256 << 10
_PIECE_BYTES = 64 << 10


class TakenOver(web.StreamResponse):
    """To be returned to aiohttp after `taken_over`: nothing more is to be answered."""

    async def prepare(self, request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


@asynccontextmanager
async def taken_over(request: web.BaseRequest) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """What comes after the request's head, and what goes out; closed at the end. Raises ConnectionResetError.

    Reading pauses the client once a buffer of some hundred KiB is full, and `drain` waits for it.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client left")
    assert isinstance(transport, asyncio.Transport)
    before = transport.get_protocol()
    reader = asyncio.StreamReader(limit=_BUFFER_BYTES)
    protocol = _Borrowed(reader, before)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    transport.resume_reading()
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    try:
        yield reader, writer
    finally:
        if not protocol.lost:
            transport.set_protocol(before)
            transport.close()


class _Borrowed(asyncio.StreamReaderProtocol):
    """Tells the protocol that had the connection before of its loss, which it counts connections by."""

    def __init__(self, reader: asyncio.StreamReader, before: asyncio.BaseProtocol) -> None:
        super().__init__(reader)
        self._before = before
        self.lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost = True
        self._before.connection_lost(exc)


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def pass_on(one: Ends, other: Ends) -> None:
    """Bytes in both directions until either side ends; each waits for the other's reader."""
    copies = {asyncio.create_task(_copy(one[0], other[1])), asyncio.create_task(_copy(other[0], one[1]))}
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_PIECE_BYTES):
            writer.write(data)
            await writer.drain()
