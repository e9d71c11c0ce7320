"""What a node serves over TLS stays within its bounds, whoever of this machine connects."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from embedded.node.logs.server import tls_context
from local.certificates import LocalAuthority
from local.node.callers import token_callers
from local.node.token_server import TokenServer

HALF_A_HELLO = bytes.fromhex("16030102000100")
GREETINGS, MORE = 64, 16
PATIENCE_SECONDS = 20.0


async def _ended(reader: asyncio.StreamReader) -> bool:
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
    return True


def test_who_says_half_a_hello_is_cut_off_for_others(tmp_path: Path) -> None:
    """The oldest first; a caller is answered all the while. A handshake has a buffer, and asyncio bounds none."""
    own = LocalAuthority("node")
    for file, content in zip(("crt", "key"), own.issue("node"), strict=True):
        (tmp_path / file).write_bytes(content)

    async def ok(request: web.Request) -> web.StreamResponse:
        return web.Response()

    async def run() -> tuple[list[bool], int]:
        node = TokenServer(token_callers("t"), {"/pods": ok})
        port = await node.start(tls_context(tmp_path / "crt", tmp_path / "key"))
        opened = []
        for _ in range(GREETINGS + MORE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HALF_A_HELLO)
            opened.append((reader, writer))
        try:
            cut = [await _ended(reader) for reader, _ in opened[:MORE]]
            mine = ssl.create_default_context(cadata=own.certificate_pem.decode())
            headers = {"Authorization": "Bearer t"}
            async with (
                aiohttp.ClientSession(trust_env=False, headers=headers) as session,
                session.get(f"https://127.0.0.1:{port}/pods", ssl=mine) as answer,
            ):
                return cut, answer.status
        finally:
            for _, writer in opened:
                writer.close()
            await node.stop()

    assert asyncio.run(run()) == ([True] * MORE, 200)


async def _found(request: web.Request) -> web.StreamResponse:
    return web.Response(text="found")


@pytest.mark.parametrize(
    "token", [b"", b"Bearer ", b"Bearer wrong", b"Bearer a-toke", b"Bearer \xc3\xa4", b"Bearer \x80"]
)
def test_without_the_exact_token_nothing_is_said(token: bytes) -> None:
    """Bytes that are no text are a wrong token like any other."""

    async def run() -> bytes:
        server = TokenServer(token_callers("a-token"), {"/pods": _found})
        reader, writer = await asyncio.open_connection("127.0.0.1", await server.start(None))
        try:
            writer.write(b"GET /pods HTTP/1.1\r\nHost: x\r\nAuthorization: " + token + b"\r\n\r\n")
            return await reader.readline()
        finally:
            writer.close()
            await server.stop()

    assert b" 401 " in asyncio.run(run())
