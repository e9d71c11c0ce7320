"""Baseline of the API server: the same bytes over the same transport, without any server logic.

POST anywhere: the body back. GET /list: a join of as many bodies. The streams are plain TLS sockets that are written
to. `dictionaries` holds pods as decoded JSON instead of bytes, as a server would that does not encode what it keeps.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
from aiohttp import web

from bench.api.child import serve_commands
from bench.api.pods import LARGE_BYTES, NODES, body, node_of, template
from bench.api.receiver import digest
from bench.api.server import collections
from embedded.apiserver.http.server import tls_context

_BURST = 64  # fewer than there are nodes
_PIECE_BYTES = 256 << 10
_NODE = re.compile(rb"node-\d+")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


class Baseline:
    """The commands, and what is served."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._streams: list[tuple[str, asyncio.StreamWriter]] = []
        self.ports: dict[str, Any] = {}

    async def where(self, command: dict[str, Any]) -> dict[str, Any]:
        return self.ports

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            return web.Response(status=201, body=await request.read(), content_type="application/json")
        return await self._list(request)

    async def _list(self, request: web.BaseRequest) -> web.StreamResponse:
        """In pieces: TLS would be several times slower with all of it at once."""
        joined = memoryview(b",".join(self._bodies))
        response = web.StreamResponse()
        response.content_length = len(joined)
        await response.prepare(request)
        for start in range(0, len(joined), _PIECE_BYTES):
            await response.write(joined[start : start + _PIECE_BYTES])
        await response.write_eof()
        return response

    async def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = _NODE.search(await reader.readuntil(b"\r\n\r\n"))
        writer.write(_HEAD)
        self._streams.append((asked[0].decode() if asked else "", writer))

    async def fill(self, command: dict[str, Any]) -> dict[str, Any]:
        """So many bodies of exactly so many bytes."""
        padding = b" " * (command["bytes"] - len(template(LARGE_BYTES)))
        self._bodies = [body(template(LARGE_BYTES), number) + padding for number in range(command["count"])]
        return {}

    async def publish(self, command: dict[str, Any]) -> dict[str, Any]:
        """`events` lines, made beforehand and written in bursts to each stream, or to that of the line's node."""
        numbers = range(command["events"])
        filler = b" " * (command["bytes"] - 64)
        lines = [b'{"type":"MODIFIED","object":{"resourceVersion":"%d"%b}}\n' % (n, filler) for n in numbers]
        starts = range(0, len(lines), _BURST)
        if all(node for node, _ in self._streams):
            bursts = [{node_of(n): lines[n] for n in numbers[start : start + _BURST]} for start in starts]
        else:
            bursts = [{"": b"".join(lines[start : start + _BURST])} for start in starts]
        begun = time.monotonic()
        for burst in bursts:
            await self._write(burst)
        self._streams = []
        by_node = {node_of(n): digest(numbers[n::NODES]) for n in range(NODES)}
        return {"begun": begun, "digests": {"": digest(numbers), **by_node}}

    async def _write(self, burst: dict[str, bytes]) -> None:
        for node, stream in self._streams:
            if node in burst:
                stream.write(burst[node])
        for _, stream in self._streams:
            await stream.drain()

    async def dictionaries(self, command: dict[str, Any]) -> dict[str, Any]:
        """Full collections while `count` pods are held as dictionaries."""
        one = template(LARGE_BYTES)
        held = [msgspec.json.decode(body(one, number)) for number in range(command["count"])]
        pauses = collections(command["rounds"])
        return {"pauses": pauses, "rss_bytes": psutil.Process().memory_info().rss, "held": len(held)}


async def _serve(keys: Path) -> None:
    baseline, context = Baseline(), tls_context(keys / "tls.crt", keys / "tls.key")
    runner = web.ServerRunner(web.Server(baseline.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    streams = await asyncio.start_server(baseline.stream, "127.0.0.1", 0, ssl=context)
    baseline.ports = {"port": runner.addresses[0][1], "streams": streams.sockets[0].getsockname()[1], "revision": 0}
    handlers = {"where": baseline.where, "fill": baseline.fill, "publish": baseline.publish}
    try:
        await serve_commands({**handlers, "dictionaries": baseline.dictionaries})
    finally:
        streams.close()
        await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.api.baseline", description=__doc__)
    parser.add_argument("--keys", type=Path, required=True, help="directory of tls.crt and tls.key")
    asyncio.run(_serve(parser.parse_args().keys))


if __name__ == "__main__":
    main()
