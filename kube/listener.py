"""A TLS listener for programs on an event loop, bounded from the moment a connection is accepted.

asyncio gives a TLS connection a buffer of 256 KiB before its handshake, and to its protocol only afterwards: a server
that counts protocols sees nobody who never finishes one.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import traceback
from collections.abc import Callable, Iterator

import msgspec

from kube.connection_limit import ConnectionBounds, ConnectionLimit, ConnectionStage
from kube.memory import give_memory_back

_BACKLOG = 1024
_REST_SECONDS = 0.1
_SWEEP_SECONDS = 1.0
_FAREWELL_SECONDS = 1.0
"""For a peer to answer the end of TLS: our answer was sent before it, and until then the buffers are held."""
_NOTABLE = 64
"""So many connections fewer than there were leave memory that is worth giving back: some 20 MiB."""


class HandshakeTimeouts(msgspec.Struct, frozen=True):
    """Seconds for a handshake, and from there to the head of the first request."""

    handshake_seconds: float
    first_seconds: float


class _Connection:
    """An accepted connection; `transport` is there once the handshake is over, `asked` once a request has come."""

    def __init__(self, accepted: socket.socket) -> None:
        self.accepted = accepted
        self.greeting: asyncio.Task[None] | None = None
        self.transport: asyncio.BaseTransport | None = None
        self.asked = False
        self.is_cut = False

    @property
    def gone(self) -> bool:
        """Whether nothing of it is held: what is closing has its buffers until the peer has answered the end of TLS."""
        return self.accepted.fileno() < 0

    @property
    def closing(self) -> bool:
        return self.transport is not None and self.transport.is_closing()

    def cut(self) -> None:
        """In the middle of a handshake the socket is all there is; cancelling that would leave its buffers behind."""
        self.is_cut = True
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()
            return
        with contextlib.suppress(OSError):
            self.accepted.shutdown(socket.SHUT_RDWR)


class TlsListener:
    """Serves protocols made by `make` from `listen` to `cut_all`."""

    def __init__(
        self,
        make: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext,
        bounds: ConnectionBounds,
        waits: HandshakeTimeouts,
    ) -> None:
        self.port = 0
        self._make = make
        self._tls = tls
        self._waits = waits
        self._limit: ConnectionLimit[_Connection] = ConnectionLimit(bounds)
        self._known: dict[asyncio.BaseProtocol, _Connection] = {}
        self._most = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._listening: socket.socket | None = None

    @property
    def connections(self) -> int:
        """Accepted and not known to be gone."""
        return len(self._limit)

    def listen(self, host: str, port: int) -> None:
        """Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._listening.setblocking(False)
        self.port = self._listening.getsockname()[1]
        self._tasks = [asyncio.create_task(work) for work in (self._accept(self._listening), self._sweep())]

    async def serving(self) -> None:
        """Never returns; an exception is a bug and must not leave a program behind that looks alive."""
        await asyncio.gather(*self._tasks)

    async def stop_listening(self) -> None:
        """No more connections; those that are there stay."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._listening is not None:
            self._listening.close()

    def cut_all(self) -> None:
        for connection in self._limit:
            connection.cut()

    @contextlib.contextmanager
    def busy(self, protocol: asyncio.BaseProtocol) -> Iterator[None]:
        """From the head of a request of this protocol to the end of its answer."""
        connection = self._known.get(protocol)
        if connection is None:
            yield
            return
        connection.asked = True
        self._limit.reach(connection, ConnectionStage.BUSY, _now())
        try:
            yield
        finally:
            self._limit.reach(connection, ConnectionStage.IDLE, _now())

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError:
                # Short of descriptors the listening socket stays readable: without a rest this is a busy loop.
                await asyncio.sleep(_REST_SECONDS)
                continue
            connection = _Connection(accepted)
            self._look_again()
            for other in self._limit.enter(connection, peer[0], _now()):
                other.cut()
            self._most = max(self._most, len(self._limit))
            connection.greeting = loop.create_task(self._greet(connection))

    async def _greet(self, connection: _Connection) -> None:
        """TLS begins with the first bytes: until then a connection costs a socket and no buffer."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._waits.handshake_seconds):
                await _readable(connection.accepted)
            begun = bool(connection.accepted.recv(1, socket.MSG_PEEK)) and not connection.is_cut
        except OSError:
            begun = False
        if not begun:
            connection.accepted.close()
            return
        protocol = self._make()
        self._known[protocol] = connection
        try:
            connection.transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                connection.accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._waits.handshake_seconds,
                ssl_shutdown_timeout=_FAREWELL_SECONDS,
            )
            # A request may have come together with the end of the handshake.
            if not connection.asked:
                self._limit.reach(connection, ConnectionStage.SILENT, _now())
        except OSError as error:
            # The error, the future that has it and the frame that waited form a circle, which would keep the buffer.
            traceback.clear_frames(error.__traceback__)
            self._known.pop(protocol, None)

    async def _sweep(self) -> None:
        """For ever: cuts off those that never asked for anything, forgets those that are gone, gives memory back."""
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self._waits.first_seconds))
            for connection in self._limit.since(_now() - self._waits.first_seconds, ConnectionStage.SILENT):
                connection.cut()
            self._look_again()
            if self._most - len(self._limit) >= _NOTABLE:
                self._most = len(self._limit)
                give_memory_back()

    def _look_again(self) -> None:
        """Forget who is gone; who was answered for the last time and lingers is the first to be cut off."""
        self._limit.leave_all(lambda one: one.gone)
        self._known = {protocol: one for protocol, one in self._known.items() if not one.gone}
        for connection in self._limit.at(ConnectionStage.IDLE):
            if connection.closing:
                self._limit.reach(connection, ConnectionStage.CLOSING, _now())


async def _readable(connection: socket.socket) -> None:
    """Until there is something to read, or the end of it."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    connection.setblocking(False)
    loop.add_reader(connection, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(connection)


def _now() -> float:
    return asyncio.get_running_loop().time()
