"""What clients say over websockets, channel by channel."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import WSMessage, WSMsgType

from embedded.node.streams.connections import BASE64_V4, V4, V5, Channel, WebSocketChannels


@dataclass
class Socket:
    """Implements what is used of aiohttp's; afterwards its client leaves."""

    ws_protocol: str
    said: list[Any]
    sent: list[bytes | str] = field(default_factory=list)

    async def receive(self) -> WSMessage:
        if not self.said:
            return WSMessage(WSMsgType.CLOSE, 1000, "")
        data = self.said.pop(0)
        return WSMessage(WSMsgType.TEXT if isinstance(data, str) else WSMsgType.BINARY, data, "")

    async def send_bytes(self, data: bytes) -> None:
        self.sent.append(data)

    async def send_str(self, text: str) -> None:
        self.sent.append(text)


def heard(protocol: str, *said: bytes | str) -> list[tuple[Channel, bytes]]:
    async def play() -> list[tuple[Channel, bytes]]:
        channels = WebSocketChannels(Socket(protocol, list(said)))  # type: ignore[arg-type]
        found = []
        while (received := await channels.receive()) is not None:
            found.append(received)
        return found

    return asyncio.run(play())


SAID: dict[str, tuple[str, bytes | str, list[tuple[Channel, bytes]]]] = {
    "input": (V5, b"\x00words", [(Channel.STDIN, b"words")]),
    "a size": (V4, b'\x04{"Width":1,"Height":2}', [(Channel.RESIZE, b'{"Width":1,"Height":2}')]),
    "input, as text": (V4, "\x00words", [(Channel.STDIN, b"words")]),
    "the end of input": (V5, b"\xff\x00", [(Channel.STDIN, b"")]),
    "which v4 does not know": (V4, b"\xff\x00", []),
    "the end of a channel that is the node's": (V5, b"\xff\x01", []),
    "output, which is the node's": (V5, b"\x01words", []),
    "no such channel": (V5, b"\x09words", []),
    "a greeting without words": (V5, b"\x00", []),
    "nothing": (V5, b"", []),
    "input in base64": (BASE64_V4, "0d29yZHM=", [(Channel.STDIN, b"words")]),
    "a size in base64": (BASE64_V4, b"4e30=", [(Channel.RESIZE, b"{}")]),
    "what is no base64": (BASE64_V4, "0d29yZHM", []),
    "what is not even text": (BASE64_V4, b"\x00\xff\xfe", []),
}


@pytest.mark.parametrize(("protocol", "said", "wanted"), SAID.values(), ids=SAID)
def test_what_is_said(protocol: str, said: bytes | str, wanted: list[tuple[Channel, bytes]]) -> None:
    """And what says nothing is passed over."""
    last = "0Lg==" if protocol == BASE64_V4 else b"\x00."
    assert heard(protocol, said, last) == [*wanted, (Channel.STDIN, b".")]


@pytest.mark.parametrize(
    ("protocol", "wanted"), [(V5, [b"\x01" + b"x" * 32768, b"\x01x"]), (BASE64_V4, ["1" + "eHh4" * 10922 + "eHg=", "1eA=="])]
)  # fmt: skip
def test_what_is_told(protocol: str, wanted: list[bytes | str]) -> None:
    """In messages of a size that lets others between."""
    socket = Socket(protocol, [])
    asyncio.run(WebSocketChannels(socket).send(Channel.STDOUT, b"x" * 32769))  # type: ignore[arg-type]
    assert socket.sent == wanted
