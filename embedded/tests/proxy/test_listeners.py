"""Connections through the proxy, over loopback sockets."""

import asyncio
import contextlib
import socket

import pytest

from embedded.proxy.listeners import Listeners
from embedded.proxy.settings import Pick, ProxySettings

SECONDS = 10  # nothing here waits for it unless something is broken


class Backend:
    """Answers every line with its name and the line, and ends when its peer has said all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = 0

    async def start(self) -> tuple[str, int]:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()

    async def _serve(self, reader, writer) -> None:
        self.open += 1
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                writer.write(self.name.encode() + b" " + line)
                await writer.drain()
            writer.write(b"bye\n")
            writer.close()
        self.open -= 1

    def stop(self) -> None:
        self._server.close()


def free_place(address: str = "127.96.0.1") -> tuple[str, int]:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()


async def say(place, text=b"hello\n"):
    """One line there and back; raises ConnectionError."""
    reader, writer = await asyncio.open_connection(*place)
    writer.write(text)
    answer = await reader.readline()
    writer.close()
    return answer


def run(body, names=("one", "two"), **settings):
    """`body` gets the fronts, an address to serve, and backends that listen."""

    async def whole() -> None:
        fronts = Listeners(ProxySettings(**{"pick": Pick.ROUND_ROBIN, "drain_seconds": 0.01, **settings}))
        backends = [Backend(name) for name in names]
        places = tuple([await backend.start() for backend in backends])
        async with asyncio.timeout(SECONDS):
            try:
                await body(fronts, free_place(), places, backends)
            finally:
                await fronts.close()
                for backend in backends:
                    backend.stop()

    asyncio.run(whole())


def test_connections_take_turns():
    """Round robin."""

    async def body(fronts, front, places, _):
        assert await fronts.apply({front: places})
        assert [(await say(front))[:3] for _ in range(4)] == [b"one", b"two", b"one", b"two"]

    run(body)


def test_by_chance_everyone_has_their_turn():
    """In time."""

    async def body(fronts, front, places, _):
        await fronts.apply({front: places})
        seen = set()
        while len(seen) < 2:
            seen.add((await say(front))[:3])

    run(body, pick=Pick.RANDOM)


def test_an_endpoint_that_refuses_is_passed_over():
    """The next one takes the connection."""

    async def body(fronts, front, places, _):
        await fronts.apply({front: (free_place("127.0.0.1"), places[0])})
        assert [(await say(front))[:3] for _ in range(2)] == [b"one", b"one"]

    run(body)


def test_without_endpoints_a_connection_is_refused():
    """Before there are any, after the last is gone, and where none of them answers."""

    async def body(fronts, front, places, _):
        with pytest.raises(ConnectionRefusedError):
            await say(front)
        await fronts.apply({front: places})
        await say(front)
        await fronts.apply({})
        with pytest.raises(ConnectionRefusedError):
            await say(front)
        await fronts.apply({front: (free_place("127.0.0.1"),)})
        with pytest.raises(ConnectionResetError):
            if not await say(front):
                raise ConnectionResetError

    run(body)


class Echo(Backend):
    """Answers with all that was said, once its peer has said all."""

    async def _serve(self, reader, writer) -> None:
        writer.write(await reader.read())
        await writer.drain()
        writer.close()


def test_who_has_said_all_still_hears_the_answer():
    """Each direction ends for itself."""

    async def body(fronts, front, _, __):
        backend, said = Echo("echo"), b"x" * 300_000
        await fronts.apply({front: (await backend.start(),)})
        reader, writer = await asyncio.open_connection(*front)
        writer.write(said)
        writer.write_eof()
        assert await reader.read() == said
        writer.close()
        backend.stop()

    run(body)


def test_connections_to_what_is_gone_are_drained():
    """They end after a while; the others stay."""

    async def body(fronts, front, places, _):
        await fronts.apply({front: places})
        (first, to_first), (second, to_second) = [await asyncio.open_connection(*front) for _ in range(2)]
        for writer, reader in ((to_first, first), (to_second, second)):
            writer.write(b"hello\n")
            await reader.readline()
        await fronts.apply({front: places[1:]})
        with contextlib.suppress(ConnectionError):
            assert await first.read() == b""
        to_second.write(b"still\n")
        assert await second.readline() == b"two still\n"
        to_second.close()

    run(body)


def test_there_are_never_more_connections_than_allowed():
    """The one too many is closed at once; when one has ended there is room again."""

    async def body(fronts, front, places, backends):
        await fronts.apply({front: places[:1]})
        reader, writer = await asyncio.open_connection(*front)
        writer.write(b"hello\n")
        await reader.readline()
        with pytest.raises(ConnectionError):
            if not await say(front):
                raise ConnectionResetError
        writer.write_eof()
        assert await reader.read() == b"bye\n"
        writer.close()
        for _ in range(1000):
            with contextlib.suppress(ConnectionError):
                if await say(front):
                    return
        raise AssertionError("no room")

    run(body, most_connections=1)


def test_an_address_that_is_taken_is_tried_again():
    """`apply` says that something is missing."""

    async def body(fronts, front, places, _):
        with socket.create_server(front):
            assert not await fronts.apply({front: places})
        assert await fronts.apply({front: places})
        await say(front)

    run(body)


def test_at_the_end_connections_are_given_a_while():
    """And no new ones are taken."""

    async def body(fronts, front, places, _):
        await fronts.apply({front: places[:1]})
        reader, writer = await asyncio.open_connection(*front)
        writer.write(b"hello\n")
        await reader.readline()
        await fronts.close()
        with pytest.raises(ConnectionRefusedError):
            await say(front)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    run(body)
