"""What counts as an answer of a program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from local.probing import ProbeAddress, unanswered

ANSWERS = {
    "well": (b"HTTP/1.1 200 OK\r\n\r\nok", ""),
    "without a token": (b"HTTP/1.1 401 Unauthorized\r\n\r\nUnauthorized", ""),
    "an unknown path": (b"HTTP/1.1 404 Not Found\r\n\r\n", ""),
    "not alive": (b"HTTP/1.1 503 Service Unavailable\r\n\r\nticks have\nstopped\n", "it says 503: ticks have stopped"),
    "no HTTP": (b"hello\r\n\r\n", "its answer is not HTTP"),
    "nothing": (b"", "IncompleteReadError"),
    "something else": (b"\x00 \x01\r\n\r\n", "ValueError"),
}


@pytest.mark.parametrize(("answer", "why"), ANSWERS.values(), ids=ANSWERS)
def test_any_answer_of_a_live_loop_counts(answer: bytes, why: str) -> None:
    """What says itself that it is not well does not, nor what is no answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async def story() -> str:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return await unanswered(ProbeAddress("127.0.0.1", server.sockets[0].getsockname()[1]), 20.0)

    found = asyncio.run(story())
    assert why in found if why else found == ""


def test_a_socket_is_asked_where_there_is_one(tmp_path: Path) -> None:
    """In a folder of one's own, where a port may be another user's."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 503 Service Unavailable\r\n\r\nticks have stopped\n")
        writer.close()

    async def story() -> tuple[str, str]:
        async with await asyncio.start_unix_server(serve, tmp_path / "s"):
            served = await unanswered(ProbeAddress(socket=str(tmp_path / "s")), 20.0)
        return served, await unanswered(ProbeAddress(socket=str(tmp_path / "none")), 20.0)

    served, nobody = asyncio.run(story())
    assert served == "it says 503: ticks have stopped" and nobody.startswith("FileNotFoundError")


def test_silence_and_nobody_are_told_apart() -> None:
    """One that accepts and says nothing, as a stopped process does, and a port that nobody listens on."""

    async def story() -> tuple[str, str]:
        held = []
        async with await asyncio.start_server(lambda *pair: held.append(pair), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            silent = await unanswered(ProbeAddress("127.0.0.1", port), 0.2)
            for _, writer in held:
                writer.close()
        return silent, await unanswered(ProbeAddress("127.0.0.1", port), 20.0)

    silent, nobody = asyncio.run(story())
    assert silent == "no answer within 0 s"
    assert nobody.startswith("ConnectionRefusedError")
