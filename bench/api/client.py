"""The client of the API benchmark: creates over several connections at once, and one large answer at a time.

It does as little as HTTP allows, so that what is measured is the other side.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Iterator

from bench.api.child import ChildFault
from bench.api.pods import body, template
from bench.api.server import TOKEN

_HEAD_LIMIT = 64 << 10
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def trusting() -> ssl.SSLContext:
    """TLS to a server of this very benchmark, on loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def request(method: str, path: str, content: bytes = b"") -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def creates_per_second(port: int, size_bytes: int, connections: int, seconds: float, numbers: Iterator[int]) -> float:
    """POST pods with the next of these numbers for so long, each connection its next when the last is answered."""
    return asyncio.run(_creates(port, template(size_bytes), connections, seconds, numbers))


async def _creates(port: int, of: bytes, connections: int, seconds: float, numbers: Iterator[int]) -> float:
    context = trusting()
    opened = [await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(connections)]
    begun = time.monotonic()
    counts = await asyncio.gather(*(_post(*pair, of, begun + seconds, numbers) for pair in opened))
    taken = time.monotonic() - begun
    for _, writer in opened:
        writer.transport.abort()
    return sum(counts) / taken


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, of: bytes, end: float, numbers: Iterator[int]
) -> int:
    count = 0
    while time.monotonic() < end:
        writer.write(request("POST", "/api/v1/namespaces/default/pods", body(of, next(numbers))))
        head = await reader.readuntil(b"\r\n\r\n")
        answer = await reader.readexactly(_length(head))
        if b" 201 " not in head.partition(b"\r\n")[0]:
            raise ChildFault("create", f"refused: {answer[:300].decode(errors='replace')}")
        count += 1
    return count


def fetch_seconds(port: int, path: str, buffer: bytearray) -> float:
    """From the request to the last byte of the answer, which must fit the buffer."""
    with socket.create_connection(("127.0.0.1", port)) as plain, trusting().wrap_socket(plain) as wrapped:
        begun = time.monotonic()
        wrapped.sendall(request("GET", path))
        _receive(wrapped, buffer)
        return time.monotonic() - begun


def _receive(wrapped: ssl.SSLSocket, buffer: bytearray) -> None:
    view, filled, wanted = memoryview(buffer), 0, _HEAD_LIMIT
    head = 0
    while filled < head + wanted:
        taken = wrapped.recv_into(view[filled:])
        if taken == 0:
            raise ChildFault("list", "the answer ended early")
        filled += taken
        if head == 0 and (found := buffer.find(b"\r\n\r\n", 0, min(filled, _HEAD_LIMIT))) >= 0:
            head = found + 4
            if b" 200 " not in buffer[: buffer.index(b"\r\n")]:
                raise ChildFault("list", f"refused: {bytes(buffer[:filled]).decode(errors='replace')}")
            wanted = _length(bytes(buffer[:head]))


def _length(head: bytes) -> int:
    found = _LENGTH.search(head)
    if found is None:
        raise ChildFault("answer", "it does not say how long it is")
    return int(found[1])
