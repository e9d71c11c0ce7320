"""Receivers of watch streams in a process of their own: which revisions came, in which order, and when the last did."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from collections.abc import Sequence
from typing import Any

from bench.api_child import serve_commands

_REVISION = b'"resourceVersion":"'
_EVENT = b'{"type":'
_LAST_BOUND_SECONDS = 60.0


def digest(revisions: Sequence[int]) -> str:
    """Equal only for the same revisions in the same order."""
    return hashlib.sha256(",".join(map(str, revisions)).encode()).hexdigest()


class Events:
    """The revisions in a stream that arrives in pieces; lines between the events are HTTP's framing."""

    def __init__(self) -> None:
        self.revisions: list[int] = []
        self.cut_short = 0
        self._rest = b""

    def feed(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.startswith(_EVENT):
                self._take(line)

    def _take(self, line: bytes) -> None:
        start = line.find(_REVISION) + len(_REVISION)
        self.revisions.append(int(line[start : line.index(b'"', start)]))
        self.cut_short += not line.endswith(b"}}")


class Receiver(asyncio.Protocol):
    """One GET whose answer does not end; `begun` once its head is there, `done` after so many events."""

    def __init__(self, request: bytes, expected: int) -> None:
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[float] = loop.create_future()
        self.events = Events()
        self._request, self._expected, self._head = request, expected, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.begun.done():
            self._head, end, data = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                return
            if b" 200 " not in self._head.partition(b"\r\n")[0]:
                self.begun.set_exception(ConnectionError(self._head.decode()))
                return
            self.begun.set_result(None)
        self.events.feed(data)
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
