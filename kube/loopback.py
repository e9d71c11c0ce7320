"""A port of this machine's loopback for root and this user alone, in front of a server on a unix socket.

TCP tells no user, so whoever has an account, or a pod with the host's network, could fill a server on loopback with
connections and headers that never end, which gRPC reads before it knows who asks. The kernel's table of connections
tells whose a connection is; one of somebody else is closed before a byte of it is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

_Address: TypeAlias = tuple[str, int]
_CONNECTIONS = 64
"""At once; more wait until one ends."""
_PIECE_BYTES = 1 << 16
_REST_SECONDS = 0.05
"""After one that was closed at once, so that whoever connects all the time takes no more of a CPU by it."""
_BACKLOG = 64
_LOCAL_COLUMN, _REMOTE_COLUMN, _UID_COLUMN, _INODE_COLUMN = 1, 2, 7, 9


class LoopbackPort:
    """Listens from its construction on; passes bytes on to `socket_path` from `start` to `stop`. Raises OSError.

    `user_of` gives the user of an accepted connection, None where that cannot be told.
    """

    def __init__(
        self, host: str, port: int, socket_path: Path, user_of: Callable[[socket.socket], int | None] | None = None
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self._path = socket_path
        self._user_of = user_of or peer_user
        self._room = asyncio.Semaphore(_CONNECTIONS)
        self._accepting: asyncio.Task[None] | None = None
        self._passing: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._accepting = asyncio.create_task(self._accept())

    async def stop(self) -> None:
        """Connections that are there end, too."""
        tasks = [*self._passing, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError:  # such as no descriptor left: whoever waits goes on waiting
                self._room.release()
                await asyncio.sleep(_REST_SECONDS)
                continue
            if await asyncio.to_thread(self._user_of, accepted) in (0, os.geteuid()):
                task = asyncio.create_task(self._pass(accepted))
                self._passing.add(task)
                task.add_done_callback(self._ended)
            else:
                accepted.close()
                self._room.release()
                await asyncio.sleep(_REST_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._passing.discard(task)
        self._room.release()

    async def _pass(self, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError), accepted, socket.socket(socket.AF_UNIX) as inner:
            inner.setblocking(False)
            await asyncio.get_running_loop().sock_connect(inner, str(self._path))
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(accepted, inner))
                group.create_task(_copy(inner, accepted))


async def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Until the source says that nothing more comes, which the sink is told, or either is gone."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while piece := await loop.sock_recv(source, _PIECE_BYTES):
            await loop.sock_sendall(sink, piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def peer_user(accepted: socket.socket, proc: Path = Path("/proc")) -> int | None:
    """The user whose process holds the other end of a connection of this machine, None where that cannot be told."""
    try:
        ours, theirs = accepted.getsockname()[:2], accepted.getpeername()[:2]
        found = _looked_up(proc, ours, theirs) if accepted.family == socket.AF_INET else None
        # Of a socket that speaks both, as gRPC's do, the other end stands among those of IPv6.
        return found if found is not None else _looked_up(proc, *map(_mapped, (ours, theirs)))
    except (OSError, ValueError):
        return None


def _looked_up(proc: Path, ours: _Address, theirs: _Address) -> int | None:
    table = proc / "self/net" / ("tcp6" if ":" in ours[0] else "tcp")
    return user_in(table.read_bytes().splitlines(), _written(theirs), _written(ours))


def _mapped(address: _Address) -> _Address:
    host, port = address
    return (host if ":" in host else f"::ffff:{host}", port)


def user_in(lines: Iterable[bytes], local: bytes, remote: bytes) -> int | None:
    """The user of the connection between these addresses in a table as /proc/net/tcp has it (proc(5)).

    None for one that no process holds any more: the kernel says user 0 of it, whoever closed it, and inode 0.
    """
    for line in lines:
        if local in line and remote in line:
            columns = line.split()
            if (columns[_LOCAL_COLUMN], columns[_REMOTE_COLUMN]) == (local, remote):
                return int(columns[_UID_COLUMN]) if columns[_INODE_COLUMN] != b"0" else None
    return None


def _written(address: _Address) -> bytes:
    """As the table has it: words of 32 bits in this machine's order, and the port."""
    host, port = address
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    step = -1 if sys.byteorder == "little" else 1
    words = b"".join(packed[at : at + 4][::step] for at in range(0, len(packed), 4))
    return f"{words.hex().upper()}:{port:04X}".encode()
