"""Listening on the addresses of Services, and passing on what comes to one of the endpoints behind each.

An address without endpoints is not listened on: the kernel refuses the connection, as it does without the proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence

import structlog

from embedded import local_routes
from embedded.proxy.routes import Place, Routes
from embedded.proxy.settings import Pick, ProxySettings

log = structlog.get_logger()

_CHUNK_BYTES = 1 << 16


class Listeners:
    """All open fronts. `apply` brings them in line with a table; `close` lets connections end and then ends them."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._servers: dict[Place, asyncio.Server] = {}
        self._behind: dict[Place, tuple[Place, ...]] = {}
        self._turn: dict[Place, int] = {}
        self._open: dict[asyncio.Task[None], tuple[Place, Place]] = {}  # connection → front and endpoint
        self._ending: set[asyncio.Task[None]] = set()
        self._routed: set[str] = set()

    @property
    def places(self) -> list[Place]:
        """Where it listens."""
        return sorted(self._servers)

    async def apply(self, table: Routes) -> bool:
        """Whether every address of the table is listened on; one that is not may be tried again."""
        self._behind = dict(table)
        for place in [place for place in self._servers if place not in table]:
            self._servers.pop(place).close()
            self._turn.pop(place, None)
        await self._give_up_addresses()
        for place in sorted(table.keys() - self._servers.keys()):
            await self._listen(place)
        self._end_strays()
        return self._servers.keys() == table.keys()

    async def _listen(self, place: Place) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._accepted(place, reader, writer)

        try:
            if self._settings.routed:
                await local_routes.add(place[0])
                self._routed.add(place[0])
            self._servers[place] = await asyncio.start_server(accept, *place)
        except OSError as error:
            log.warning("cannot listen for a service", address=f"{place[0]}:{place[1]}", error=str(error))

    async def _give_up_addresses(self) -> None:
        """Those that no front listens on any more are no longer this machine's."""
        for address in self._routed - {address for address, _ in self._servers}:
            await local_routes.remove(address)
            self._routed.discard(address)

    def _end_strays(self) -> None:
        """Connections to endpoints that are gone have a while to come to their end."""
        loop = asyncio.get_running_loop()
        for task, (front, endpoint) in self._open.items():
            if endpoint not in self._behind.get(front, ()) and task not in self._ending:
                self._ending.add(task)
                loop.call_later(self._settings.drain_seconds, task.cancel)

    # -- one connection ----------------------------------------------------------------------------------------

    async def _accepted(self, front: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= self._settings.most_connections:
            log.warning("too many connections", address=f"{front[0]}:{front[1]}")
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None, "streams are served in tasks"
        self._open[task] = (front, front)
        try:
            await self._served(task, front, reader, writer)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._open.pop(task, None)
            self._ending.discard(task)

    async def _served(
        self, task: asyncio.Task[None], front: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for endpoint in self._order(front)[: self._settings.most_tries]:
            self._open[task] = (front, endpoint)
            try:
                async with asyncio.timeout(self._settings.connect_seconds):
                    inner = await asyncio.open_connection(*endpoint)
            except (OSError, TimeoutError):
                continue
            await _joined((reader, writer), inner)
            return
        writer.transport.abort()

    def _order(self, front: Place) -> Sequence[Place]:
        """The endpoints in the order in which they are tried."""
        places = self._behind.get(front, ())
        if self._settings.pick is Pick.RANDOM:
            return random.sample(places, len(places))
        turn = self._turn[front] = self._turn.get(front, -1) + 1
        first = turn % max(len(places), 1)
        return (*places[first:], *places[:first])

    async def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        await self._give_up_addresses()
        tasks = list(self._open)
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.drain_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _joined(outer: Stream, inner: Stream) -> None:
    """Pass bytes both ways until both sides have said all; where one breaks, both end."""
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_passed(outer[0], inner[1]))
            both.create_task(_passed(inner[0], outer[1]))
    except* OSError:
        for _, writer in (outer, inner):
            writer.transport.abort()
    finally:
        for _, writer in (outer, inner):
            writer.close()
    for _, writer in (outer, inner):
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction; the end of what one side says is told to the other, which may go on talking."""
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
