"""Idle peers, unfinished handshakes and silent connections against a bounded listener, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from admission.edge.memoryfiles import MemoryFiles
from kube.connection_limit import ConnectionBounds
from kube.listener import HandshakeTimeouts, TlsListener
from kube.tls import ServerCertificate
from kube.x509 import Authority

CA = Authority.create("test", datetime.now(UTC), timedelta(days=1))
BOUNDS = ConnectionBounds(connections=64, greetings=16)
_MANY_DESCRIPTORS = 8192


class Echo(asyncio.Protocol):
    """A line is a request; `stay` keeps it under way, `bye` is the last of its connection."""

    def __init__(self, listener: Callable[[], TlsListener]) -> None:
        self._listener = listener
        self._held = contextlib.ExitStack()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held.enter_context(self._listener().busy(self))
        self._transport.write(data)
        if data != b"stay":
            self._held.close()
        if data == b"bye":
            self._transport.close()


class Scene:
    def __init__(self, listener: TlsListener) -> None:
        self.listener = listener
        self.trust = ssl.create_default_context(cadata=CA.certificate_pem.decode())
        self._sockets: list[socket.socket] = []

    async def idle(self, count: int, first: bytes = b"") -> list[socket.socket]:
        """So many peers that connect and say nothing, or no more than `first`."""
        for _ in range(count):
            peer = socket.create_connection(("127.0.0.1", self.listener.port), timeout=5)
            self._sockets.append(peer)
            peer.sendall(first)
            await asyncio.sleep(0)
        return self._sockets

    async def client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", self.listener.port, ssl=self.trust, server_hostname="localhost"
        )

    async def answered(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], said: bytes) -> bytes:
        streams[1].write(said)
        return await streams[0].read(100)

    async def parting(self, count: int) -> None:
        """So many peers that get their last answer and never say goodbye themselves."""
        for _ in range(count):
            peer = await asyncio.to_thread(self._dial)
            self._sockets.append(peer)
            await asyncio.to_thread(peer.sendall, b"bye")

    def _dial(self) -> socket.socket:
        peer = socket.create_connection(("127.0.0.1", self.listener.port), timeout=10)
        return self.trust.wrap_socket(peer, server_hostname="localhost")

    def close(self) -> None:
        for peer in self._sockets:
            peer.close()


def play(
    play_scene: Callable[[Scene], Awaitable[None]], waits: HandshakeTimeouts, bounds: ConnectionBounds = BOUNDS
) -> None:
    async def run() -> None:
        files = MemoryFiles(CA.issue("server", ("localhost",), datetime.now(UTC), timedelta(hours=1)))
        context = ServerCertificate(files.files).newest().context
        files.close()
        listener = TlsListener(lambda: Echo(lambda: listener), context, bounds, waits)
        listener.listen("127.0.0.1", 0)
        scene = Scene(listener)
        try:
            async with asyncio.timeout(30):
                await play_scene(scene)
        finally:
            scene.close()
            await listener.stop_listening()
            listener.cut_all()
            await asyncio.sleep(0)

    asyncio.run(run())


PATIENT = HandshakeTimeouts(handshake_seconds=20, first_seconds=20)


@pytest.mark.parametrize("first", [b"", b"\x16\x03\x01"], ids=["nothing", "half a hello"])
def test_three_hundred_idle_peers_keep_nobody_out(first: bytes) -> None:
    """Unfinished handshakes stay within their bound, and a good client is served between them and kept."""

    async def scene(it: Scene) -> None:
        gc.collect()
        before = live_transports()
        gc.disable()
        kept = await it.client()
        assert await it.answered(kept, b"one") == b"one"
        await it.idle(300, first)
        new = await it.client()
        assert await it.answered(new, b"two") == b"two"
        assert await it.answered(kept, b"three") == b"three"
        assert it.listener.connections <= BOUNDS.greetings + 2
        assert live_transports() <= before + BOUNDS.greetings + 4
        for _, writer in (kept, new):
            writer.close()

    try:
        play(scene, PATIENT)
    finally:
        gc.enable()


def test_connections_are_bounded_too() -> None:
    """Who asks for nothing goes first, who has a request under way last."""

    async def scene(it: Scene) -> None:
        busy = await it.client()
        assert await it.answered(busy, b"stay") == b"stay"
        clients = [await it.client() for _ in range(20)]
        assert it.listener.connections <= 8
        assert await clients[0][0].read() == b""
        assert await it.answered(busy, b"again") == b"again"
        assert await it.answered(clients[-1], b"last") == b"last"
        for _, writer in (busy, *clients):
            writer.close()

    play(scene, PATIENT, ConnectionBounds(connections=8, greetings=4))


def test_who_never_says_goodbye_counts_until_its_buffers_are_free() -> None:
    """Answered for the last time a peer holds as much memory as before: it is the first to be cut off for another."""
    bounds = ConnectionBounds(connections=8, greetings=4)

    async def scene(it: Scene) -> None:
        before = live_transports()
        kept = await it.client()
        assert await it.answered(kept, b"one") == b"one"
        await it.parting(60)
        assert it.listener.connections <= bounds.connections
        assert live_transports() <= before + bounds.connections + 2
        assert await it.answered(kept, b"two") == b"two"
        kept[1].close()

    play(scene, PATIENT, bounds)


@pytest.mark.parametrize("finishes", [True, False], ids=["silent after its handshake", "no handshake"])
def test_who_says_nothing_is_cut_off(finishes: bool) -> None:
    async def scene(it: Scene) -> None:
        if finishes:
            reader, writer = await it.client()
            assert await reader.read() == b""
            writer.close()
        else:
            (peer,) = await it.idle(1)
            peer.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(peer, 10) == b""
        while it.listener.connections:
            await asyncio.sleep(0.02)

    play(scene, HandshakeTimeouts(handshake_seconds=0.2, first_seconds=0.2))


@pytest.mark.slow
@pytest.mark.parametrize("first", [b"", b"\x16\x03\x01"], ids=["nothing", "half a hello"])
def test_memory_comes_back_after_4500_idle_peers(first: bytes) -> None:
    """The clients' sockets are this process's too, and cost it next to nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < _MANY_DESCRIPTORS:
        pytest.skip(f"needs ulimit -n {_MANY_DESCRIPTORS}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, _MANY_DESCRIPTORS), hard))

    async def scene(it: Scene) -> None:
        await it.idle(100, first)
        before = resident_mib()
        await it.idle(4_500, first)
        during = resident_mib()
        it.close()
        while it.listener.connections:
            await asyncio.sleep(0.1)
        client = await it.client()
        assert await it.answered(client, b"one") == b"one"
        client[1].close()
        assert during - before < 64
        assert resident_mib() - before < 24

    try:
        play(scene, PATIENT)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_mib() -> float:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def live_transports() -> int:
    """TLS connections of this process that hold buffers, with no help of the garbage collector."""
    return sum(isinstance(one, SSLProtocol) for one in gc.get_objects())
