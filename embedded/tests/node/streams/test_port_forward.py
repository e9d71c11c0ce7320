"""Pairs of streams as kubectl opens them, over bytes of the test's making."""

from __future__ import annotations

import asyncio

import pytest

from embedded.node.streams import spdy
from embedded.node.streams.connections import SpdyConnection
from embedded.node.streams.port_forward import SpdyForwarding


class Bytes:
    """What a client has sent, and its leaving after that; `sent` is what it gets."""

    def __init__(self, *frames: spdy.Frame) -> None:
        writer = spdy.FrameWriter()
        self._said = [*(writer.encode(each) for each in frames), b""]
        self.sent = b""

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        return self._said.pop(0)

    async def write(self, data: bytes) -> None:
        self.sent += data


def answers(*frames: spdy.Frame) -> list[spdy.Frame]:
    """Of a pod on whose ports nobody listens."""

    async def refuse(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise ConnectionRefusedError(f"nobody at {port}")

    client = Bytes(*frames)

    async def served() -> None:
        await SpdyForwarding(SpdyConnection(client), refuse, "web").serve()

    asyncio.run(served())
    return list(spdy.FrameReader().feed(client.sent))


def opening(stream: int, kind: str, port: str = "80", request: str = "0") -> spdy.SynStream:
    return spdy.SynStream(stream, {"streamtype": kind, "port": port, "requestid": request})


UNUSABLE = {
    "no port": opening(1, "error", ""),
    "port 0": opening(1, "error", "0"),
    "beyond the last port": opening(1, "error", "65536"),
    "a number that Python does not convert": opening(1, "error", "9" * 5000),
    "no stream of a pair": opening(1, "task"),
    "a field of ours": opening(1, "port"),
}


@pytest.mark.parametrize("frame", UNUSABLE.values(), ids=UNUSABLE)
def test_a_stream_that_leads_nowhere_is_refused_and_the_others_go_on(frame: spdy.SynStream) -> None:
    told = answers(frame, opening(3, "error"))
    assert told == [spdy.Reset(1, spdy.REFUSED_STREAM), spdy.SynReply(3)]


def test_a_stream_comes_once() -> None:
    told = answers(opening(1, "error"), opening(3, "error"))
    assert told == [spdy.SynReply(1), spdy.Reset(3, spdy.REFUSED_STREAM)]


def test_why_a_port_is_closed_is_told() -> None:
    told = answers(opening(1, "error"), opening(3, "data"), spdy.Data(1, b"", fin=True), spdy.Data(3, b"hello"))
    words = b"error forwarding port 80 to pod web: nobody at 80"
    assert told == [
        spdy.SynReply(1),
        spdy.SynReply(3),
        spdy.Data(1, words),
        spdy.Data(3, b"", fin=True),
        spdy.Data(1, b"", fin=True),
    ]


def test_halves_of_pairs_are_bounded() -> None:
    told = answers(*(opening(2 * each + 1, "error", request=str(each)) for each in range(600)))
    assert len([each for each in told if isinstance(each, spdy.SynReply)]) == 512
    assert len([each for each in told if isinstance(each, spdy.Reset)]) == 88
