"""The server for statistics answers who has the token, for nodes that are simulated."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest

from local.certificates import LOOPBACK_NAMES, LocalAuthority
from local.simnodes.statserver import StatisticsServer


def answer(name: str) -> bytes:
    return {"sim-0": b'{"node": {}}'}[name]


@pytest.mark.parametrize(
    ("case", "path", "token", "code", "words"),
    [
        ("a simulated node", "/stats/summary?node=sim-0", "t", 200, '{"node": {}}'),
        ("another node", "/stats/summary?node=x", "t", 404, "'x' is not a simulated node"),
        ("no node", "/stats/summary", "t", 404, "give ?node=NAME"),
        ("no token", "/stats/summary?node=sim-0", "", 401, "Unauthorized"),
        ("a wrong token", "/stats/summary?node=sim-0", "é", 401, "Unauthorized"),
        ("output", "/containerLogs/d/p/c", "t", 400, "no output"),
        ("output without a token", "/containerLogs/d/p/c", "", 401, "Unauthorized"),
    ],
)
def test_answers(tmp_path: Path, case: str, path: str, token: str, code: int, words: str) -> None:
    """Over TLS on loopback."""
    authority = LocalAuthority("test")
    certificate, key = authority.issue("test", LOOPBACK_NAMES)
    (tmp_path / "crt").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())

    async def ask() -> tuple[int, str]:
        server = StatisticsServer(answer, "t")
        port = await server.start(serving)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"https://127.0.0.1:{port}{path}", headers=headers, ssl=trusting) as found,
            ):
                return found.status, await found.text()
        finally:
            await server.stop()

    status, text = asyncio.run(ask())
    assert status == code and words in text, case
