"""Where `sublet up` asks whether the proxy's event loop still turns."""

from __future__ import annotations

import asyncio

_HERE = "127.0.0.1"
_BOUND_SECONDS = 5.0
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


async def serve_health() -> str:
    """Answer whoever connects on loopback with 200, for as long as the loop runs; its HOST:PORT."""
    server = await asyncio.start_server(_answer, _HERE, 0)
    return f"{_HERE}:{server.sockets[0].getsockname()[1]}"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_BOUND_SECONDS):
            await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # whoever asked left, or did not ask
    finally:
        writer.close()
