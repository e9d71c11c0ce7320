"""SPDY/3.1 frames. Bytes are those of the specification's figures and of what Go's client sends."""

from __future__ import annotations

import struct
import zlib

import pytest

from embedded.node.streams.spdy import (
    DATA_BYTES,
    DICTIONARY,
    Data,
    Frame,
    FrameError,
    FrameReader,
    FrameWriter,
    GoAway,
    Headers,
    IgnoredFrame,
    Ping,
    Reset,
    SynReply,
    SynStream,
)


def read(data: bytes) -> list[Frame]:
    return list(FrameReader().feed(data))


def test_dictionary() -> None:
    """Byte for byte: every peer's first header block names it by this checksum."""
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


FRAMES = {
    "a stream": SynStream(1, {"streamtype": "error", "port": "80"}),
    "a stream that ends at once": SynStream(3, {}, fin=True),
    "a reply": SynReply(1),
    "a reply with headers": SynReply(1, {"a": "b\0c"}, fin=True),
    "data": Data(1, b"text"),
    "the end of a stream": Data(1, b"", fin=True),
    "a reset": Reset(5, 3),
    "a ping": Ping(1),
    "a farewell": GoAway(7, 1),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_there_and_back(frame: Frame) -> None:
    assert read(FrameWriter().encode(frame)) == [frame]


WIRE = {
    "data": ("00000001 00000004 74657874", Data(1, b"text")),
    "data that ends": ("00000001 01000001 74", Data(1, b"t", fin=True)),
    "ping": ("80030006 00000004 00000001", Ping(1)),
    "reset": ("80030003 00000008 00000001 00000005", Reset(1, 5)),
    "goaway": ("80030007 00000008 00000001 00000000", GoAway(1)),
    "settings": ("80030004 00000004 00000000", IgnoredFrame(4)),
    "window update": ("80030009 00000008 00000001 00000010", IgnoredFrame(9)),
    "a type of some later version": ("8003ffff 00000000", IgnoredFrame(0xFFFF)),
}


@pytest.mark.parametrize(("wire", "frame"), WIRE.values(), ids=WIRE)
def test_read(wire: str, frame: Frame) -> None:
    assert read(bytes.fromhex(wire)) == [frame]


def test_header_blocks_share_their_compression() -> None:
    """Each block continues the ones before it, in both directions."""
    writer, reader = FrameWriter(), FrameReader()
    for number in (1, 3, 5):
        frame = SynStream(number, {"streamtype": "data", "requestid": str(number)})
        assert list(reader.feed(writer.encode(frame))) == [frame]
    headers = writer.encode(SynReply(7, {"late": "r"}))
    assert list(reader.feed(headers[:3] + b"\x08" + headers[4:])) == [Headers(7, {"late": "r"})]


def test_byte_by_byte() -> None:
    """Control frames come whole; data comes as it arrives, and its end with the last of it."""
    writer = FrameWriter()
    sent = writer.encode(SynStream(1, {"a": "b"})) + writer.encode(Data(1, b"text", fin=True)) + writer.encode(Ping(1))
    reader = FrameReader()
    got = [frame for at in range(len(sent)) for frame in reader.feed(sent[at : at + 1])]
    assert got == [
        SynStream(1, {"a": "b"}), Data(1, b"t"), Data(1, b"e"), Data(1, b"x"), Data(1, b"t", fin=True), Ping(1),
    ]  # fmt: skip


def block(plain: bytes, dictionary: bytes = DICTIONARY) -> bytes:
    deflater = zlib.compressobj(zdict=dictionary)
    return deflater.compress(plain) + deflater.flush(zlib.Z_SYNC_FLUSH)


def syn(compressed: bytes) -> bytes:
    return struct.pack(">HHIIIH", 0x8003, 1, 10 + len(compressed), 1, 0, 0) + compressed


BROKEN = {
    "another version": bytes.fromhex("80020006 00000004 00000001"),
    "a short frame": bytes.fromhex("80030006 00000002 0000"),
    "a control frame beyond bounds": bytes.fromhex("80030001 00ffffff"),
    "data for no stream": bytes.fromhex("00000000 00000001 00"),
    "no stream": bytes.fromhex("80030003 00000008 00000000 00000005"),
    "a block that is none": syn(b"text"),
    "a block of another dictionary": syn(block(b"\0\0\0\0", b"another")),
    "a block that inflates beyond bounds": syn(block(bytes(1 << 20))),
    "more headers than there are": syn(block(struct.pack(">I", 1 << 31))),
    "a header beyond its block": syn(block(struct.pack(">II", 1, 1 << 31))),
    "a name without a value": syn(block(struct.pack(">II", 1, 1) + b"a")),
}


@pytest.mark.parametrize("wire", BROKEN.values(), ids=BROKEN)
def test_broken(wire: bytes) -> None:
    """One line says what is wrong."""
    with pytest.raises(FrameError) as refused:
        read(wire)
    assert "\n" not in str(refused.value)


def test_nothing_is_kept_of_data() -> None:
    """However long a frame says it is, what has come is passed on."""
    reader = FrameReader()
    assert list(reader.feed(struct.pack(">II", 1, DATA_BYTES))) == []
    for _ in range(3):
        assert list(reader.feed(bytes(1 << 16))) == [Data(1, bytes(1 << 16))]
    assert not reader._held


def test_what_is_not_written() -> None:
    for frame in (IgnoredFrame(4), Data(1, bytes(DATA_BYTES + 1))):
        with pytest.raises(ValueError):
            FrameWriter().encode(frame)
