"""What a node serves over TLS stays within its bounds, whoever of this machine connects."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import aiohttp
from aiohttp import web

from local.certificates import Authority
from local.node.callers import token_callers
from local.node.logserver import tls_context
from local.node.tokenserver import TokenServer

HALF_A_HELLO = bytes.fromhex("16030102000100")
GREETINGS, MORE = 64, 16
PATIENCE_SECONDS = 20.0


async def _ended(reader: asyncio.StreamReader) -> bool:
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
    return True


def test_who_says_half_a_hello_is_cut_off_for_others(tmp_path: Path) -> None:
    """The oldest first; a caller is answered all the while. A handshake has a buffer, and asyncio bounds none."""
    own = Authority("node")
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
