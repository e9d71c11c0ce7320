"""A port of loopback lets root and this user in, and nobody else."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kube.loopback import LoopbackPort, peer_user, user_in

TABLE = b"""  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2841 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:2841 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:D2F0 0100007F:2841 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0 20 4 30 10 -1
   3: 0100007F:D2F0
   4: 0100007F:D2F2 0100007F:2841 05 00000000:00000000 03:00000ABC 00000000     0        0 0 3 0
   5: 0100007F:D2F3 0100007F:2841 04 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   6: 0100007F:D2F4 0100007F:2841 05 00000000:00000000 00:00000000 00000000  1000        0 4 1 0 20 4 30 10 -1
""".splitlines()
ASKED: dict[str, tuple[bytes, bytes, int | None]] = {
    "the end of a peer": (b"0100007F:D2F0", b"0100007F:2841", 1000),
    "our own end": (b"0100007F:2841", b"0100007F:D2F0", 0),
    "closed by whoever made it": (b"0100007F:D2F2", b"0100007F:2841", None),
    "of which one way is closed": (b"0100007F:D2F4", b"0100007F:2841", 1000),
    "held by no process": (b"0100007F:D2F3", b"0100007F:2841", None),
    "nobody": (b"0100007F:D2F1", b"0100007F:2841", None),
}


@pytest.mark.parametrize(("local", "remote", "user"), ASKED.values(), ids=ASKED)
def test_whose_a_connection_is(local: bytes, remote: bytes, user: int | None) -> None:
    """As proc(5) has the table."""
    assert user_in(TABLE, local, remote) == user


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernel_tells_it(host: str, tmp_path: Path) -> None:
    """Of this process it is this user; without the table nobody."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listening, socket.create_connection(listening.getsockname()[:2]):
        accepted, _ = listening.accept()
        with accepted:
            assert peer_user(accepted) == os.geteuid()
            assert peer_user(accepted, tmp_path) is None


def test_a_connection_that_is_closed_before_it_is_accepted_is_nobodys() -> None:
    """The kernel says user 0 of it, and keeps what was written."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as connected:
            connected.sendall(b"x")
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.recv(1) == b"x" and peer_user(accepted) is None


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the other side says that nothing more comes."""
    writer.write(await reader.read())
    writer.close()


async def _asked(port: int, text: bytes, connected: socket.socket | None = None) -> bytes:
    where = {"host": "127.0.0.1", "port": port} if connected is None else {"sock": connected}
    reader, writer = await asyncio.open_connection(**where)
    try:
        writer.write(text)
        writer.write_eof()
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("user", "let_in"), [(0, True), (os.geteuid(), True), (os.geteuid() + 1, False), (None, False)]
)
def test_who_is_let_in(user: int | None, let_in: bool, tmp_path: Path) -> None:
    """Bytes go both ways, and the end of one way too; whoever is not let in reads the end at once, again and again."""

    async def body() -> None:
        server = await asyncio.start_unix_server(_echo, tmp_path / "s")
        port = LoopbackPort("127.0.0.1", 0, tmp_path / "s", lambda accepted: user)
        port.start()
        text = b"x" * 1_000_000 if let_in else b"x"
        for _ in range(3):
            assert await _asked(port.port, text) == (text if let_in else b"")
        await port.stop()
        server.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port.port)

    asyncio.run(body())


def test_more_than_there_is_room_for_wait(tmp_path: Path) -> None:
    """They are not taken at all, so that they cost this process nothing; one that ends makes room."""

    async def body() -> None:
        taken = 0

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal taken
            taken += 1
            await reader.read()
            writer.close()

        server = await asyncio.start_unix_server(hold, tmp_path / "s")
        port = LoopbackPort("127.0.0.1", 0, tmp_path / "s", lambda accepted: 0)
        port.start()
        opened = [await asyncio.open_connection("127.0.0.1", port.port) for _ in range(80)]
        await _until(lambda: taken == 64)
        await asyncio.sleep(0.2)
        assert taken == 64
        for _, writer in opened[:10]:
            writer.close()
        await _until(lambda: taken == 74)
        await port.stop()
        server.close()

    asyncio.run(body())


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user as well")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=("IPv4", "both"))
def test_another_user_of_the_machine(family: socket.AddressFamily, tmp_path: Path) -> None:
    """For real: root is answered, nobody is not; by a socket of IPv4, or of both as gRPC's are."""
    as_user, host = ctypes.CDLL(None).setfsuid, "127.0.0.1" if family is socket.AF_INET else "::ffff:127.0.0.1"

    async def body() -> list[bytes]:
        server = await asyncio.start_unix_server(_echo, tmp_path / "s")
        port = LoopbackPort("127.0.0.1", 0, tmp_path / "s")
        port.start()
        told = []
        for user in (0, 65534):
            as_user(user)
            connection = socket.socket(family)
            as_user(0)
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, (host, port.port))
            told.append(await _asked(port.port, b"x", connection))
        await port.stop()
        server.close()
        return told

    assert asyncio.run(body()) == [b"x", b""]
