"""What the API server is compared with: the same bytes over the same transport, without any server logic.

POST anywhere: the body back. GET /list: a join of as many bodies. The streams are plain TLS sockets that are written
to. `dictionaries` holds pods as decoded JSON instead of bytes, as a server would that does not encode what it keeps.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
from aiohttp import web

from bench.api_child import serve_commands
from bench.api_pods import LARGE_BYTES, body, template
from bench.api_receiver import digest
from bench.api_server import collections
from local.apiserver.server import tls_context

_BURST = 64
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


class Baseline:
    """The commands, and what is served."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._streams: list[asyncio.StreamWriter] = []
        self.ports: dict[str, Any] = {}

    async def where(self, command: dict[str, Any]) -> dict[str, Any]:
        return self.ports

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            return web.Response(status=201, body=await request.read(), content_type="application/json")
        return web.Response(body=b",".join(self._bodies), content_type="application/json")

    async def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_HEAD)
        self._streams.append(writer)

    async def fill(self, command: dict[str, Any]) -> dict[str, Any]:
        """So many bodies of exactly so many bytes."""
        padding = b" " * (command["bytes"] - len(template(LARGE_BYTES)))
        self._bodies = [body(template(LARGE_BYTES), number) + padding for number in range(command["count"])]
        return {}

    async def publish(self, command: dict[str, Any]) -> dict[str, Any]:
        """`events` lines to each stream, made beforehand and written in bursts."""
        events = command["events"]
        filler = b" " * (command["bytes"] - 64)
        lines = [b'{"type":"MODIFIED","object":{"resourceVersion":"%d"%b}}\n' % (n, filler) for n in range(events)]
        bursts = [b"".join(lines[start : start + _BURST]) for start in range(0, events, _BURST)]
        begun = time.monotonic()
        for burst in bursts:
            for stream in self._streams:
                stream.write(burst)
            for stream in self._streams:
                await stream.drain()
        self._streams = []
        return {"begun": begun, "digests": {"": digest(range(events))}}

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
    parser = argparse.ArgumentParser(prog="python -m bench.api_baseline", description=__doc__)
    parser.add_argument("--keys", type=Path, required=True, help="directory of tls.crt and tls.key")
    asyncio.run(_serve(parser.parse_args().keys))


if __name__ == "__main__":
    main()
