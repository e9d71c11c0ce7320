"""Receivers of watch streams in a process of their own: which revisions came, in which order, and when the last did."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from collections.abc import Sequence
from typing import Any

from bench.api.child import serve_commands

_REVISION = b'"resourceVersion":"'
_EVENT = b'{"type":'
_LAST_BOUND_SECONDS = 60.0


def digest(revisions: Sequence[int]) -> str:
    """Equal only for the same revisions in the same order."""
    return hashlib.sha256(",".join(map(str, revisions)).encode()).hexdigest()


class Events:
    """The revisions in a stream, scanned where it arrives; lines between the events are HTTP's framing."""

    def __init__(self, capacity_bytes: int = 256 << 10) -> None:
        self.revisions: list[int] = []
        self.cut_short = 0
        self.head = ""
        self._buffer = bytearray(capacity_bytes)
        self._filled = 0

    def room(self) -> memoryview:
        """Where the next bytes belong."""
        return memoryview(self._buffer)[self._filled :]

    def feed(self, count: int) -> None:
        """So many bytes were written to the room."""
        self._filled += count
        start = 0
        while (end := self._buffer.find(b"\n", start, self._filled)) >= 0:
            if self._buffer.startswith(_EVENT, start):
                self._take(start, end)
            elif not self.head:
                self.head = self._buffer[start:end].decode().strip()
            start = end + 1
        self._buffer[: self._filled - start] = self._buffer[start : self._filled]
        self._filled -= start

    def _take(self, start: int, end: int) -> None:
        found = self._buffer.find(_REVISION, start, end)
        if found < 0 or not self._buffer.endswith(b"}}", start, end):
            self.cut_short += 1
            return
        number = found + len(_REVISION)
        self.revisions.append(int(self._buffer[number : self._buffer.index(b'"', number)]))


class Receiver(asyncio.BufferedProtocol):
    """One GET whose answer does not end; `begun` once it is there, `done` after so many events."""

    def __init__(self, request: bytes, expected: int) -> None:
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[float] = loop.create_future()
        self.events = Events()
        self._request, self._expected = request, expected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.events.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.events.feed(nbytes)
        if not self.begun.done() and self.events.head:
            if " 200 " in self.events.head:
                self.begun.set_result(None)
            else:
                self.begun.set_exception(ConnectionError(self.events.head))
        if len(self.events.revisions) >= self._expected and not self.done.done():
            self.done.set_result(time.monotonic())

    def connection_lost(self, error: Exception | None) -> None:
        for future in (self.begun, self.done):
            if not future.done():
                future.set_exception(error or ConnectionError("the stream ended"))


class Receivers:
    """The commands: `open` streams, then `take` what came over them."""

    def __init__(self) -> None:
        self._receivers: list[Receiver] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE

    async def open(self, command: dict[str, Any]) -> dict[str, Any]:
        """One stream for each request text, all of `expected` events."""
        loop, port = asyncio.get_running_loop(), command["port"]
        for text in command["requests"]:
            made = Receiver(text.encode(), command["expected"])
            self._receivers.append(made)
            await loop.create_connection(lambda made=made: made, "127.0.0.1", port, ssl=self._context)  # type: ignore[misc]
        await asyncio.gather(*(receiver.begun for receiver in self._receivers))
        return {}

    async def take(self, command: dict[str, Any]) -> dict[str, Any]:
        """When the last event came (None: not all did within the bound), and each receiver's digest."""
        waiting = [receiver.done for receiver in self._receivers]
        await asyncio.wait(waiting, timeout=_LAST_BOUND_SECONDS)
        whole = all(done.done() and done.exception() is None for done in waiting)
        ended = max(done.result() for done in waiting) if whole else None
        found = [receiver.events for receiver in self._receivers]
        for receiver in self._receivers:
            receiver.transport.abort()
        self._receivers = []
        return {
            "ended": ended,
            "received": sum(len(events.revisions) for events in found),
            "cut_short": sum(events.cut_short for events in found),
            "digests": [digest(events.revisions) for events in found],
        }


def main() -> None:
    receivers = Receivers()
    asyncio.run(serve_commands({"open": receivers.open, "take": receivers.take}))


if __name__ == "__main__":
    main()
