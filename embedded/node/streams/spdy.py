"""SPDY/3.1 frames, from bytes and to bytes: as much of it as exec and port-forward use. Pure.

Source: https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/. The other side is moby/spdystream, which
knows no flow control and ignores WINDOW_UPDATE: whoever reads slowly lets the connection wait.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

import msgspec

_VERSION = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8
_FIN = 1
_HEAD_BYTES = 8
_CONTROL_BYTES = 64 << 10
_HEADER_BLOCK_BYTES = 64 << 10
_STREAM_MASK = 0x7FFFFFFF
DATA_BYTES = (1 << 24) - 1

PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL = 1, 2, 3, 5

_NAMES = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    "00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset="
    "iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    """What header blocks are compressed with (2.6.10.1), byte for byte."""
    words = [*_NAMES.split(), "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin"]
    return b"".join(struct.pack(">I", len(word)) + word.encode() for word in words) + _REST.encode()


DICTIONARY = _dictionary()


class FrameError(ValueError):
    """The peer sent what is no SPDY/3.1; the connection cannot go on."""


class SynStream(msgspec.Struct, frozen=True):
    """A stream begins. Header names are in lower case; several values of a name are joined by NUL."""

    stream: int
    headers: Mapping[str, str]
    fin: bool = False


class SynReply(msgspec.Struct, frozen=True):
    stream: int
    headers: Mapping[str, str] = {}
    fin: bool = False


class Headers(msgspec.Struct, frozen=True):
    stream: int
    headers: Mapping[str, str]
    fin: bool = False


class Data(msgspec.Struct, frozen=True):
    """What arrives of a large frame at once is a value of its own; `fin` is with the last."""

    stream: int
    data: bytes
    fin: bool = False


class Reset(msgspec.Struct, frozen=True):
    stream: int
    status: int


class Ping(msgspec.Struct, frozen=True):
    id: int


class GoAway(msgspec.Struct, frozen=True):
    last_stream: int
    status: int = 0


class IgnoredFrame(msgspec.Struct, frozen=True):
    """SETTINGS, WINDOW_UPDATE, and control frames of unknown types, which are to be ignored (2.2.1)."""

    kind: int


Frame = SynStream | SynReply | Headers | Data | Reset | Ping | GoAway | IgnoredFrame


class FrameReader:
    """Bytes in, frames out; keeps at most one control frame and a chunk of data."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._inflater = zlib.decompressobj(zdict=DICTIONARY)
        self._data: tuple[int, bool, int] | None = None  # stream, fin, bytes to come

    def feed(self, received: bytes) -> Iterator[Frame]:
        """The frames that are complete, and parts of data. Raises FrameError."""
        self._held += received
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        if self._data is not None:
            return self._more_data(*self._data)
        if len(self._held) < _HEAD_BYTES:
            return None
        first, second = struct.unpack_from(">II", self._held)
        flags, length = second >> 24, second & DATA_BYTES
        if not first >> 31:
            if first == 0:
                raise FrameError("data for stream 0")
            del self._held[:_HEAD_BYTES]
            return self._more_data(first, bool(flags & _FIN), length)
        if first >> 16 & 0x7FFF != _VERSION:
            raise FrameError(f"version {first >> 16 & 0x7FFF}, not {_VERSION}")
        if length > _CONTROL_BYTES:
            raise FrameError(f"a control frame of {length} bytes exceeds {_CONTROL_BYTES}")
        if len(self._held) < _HEAD_BYTES + length:
            return None
        body = bytes(self._held[_HEAD_BYTES : _HEAD_BYTES + length])
        del self._held[: _HEAD_BYTES + length]
        return self._control(first & 0xFFFF, bool(flags & _FIN), body)

    def _more_data(self, stream: int, fin: bool, missing: int) -> Frame | None:
        taken = bytes(self._held[:missing])
        del self._held[: len(taken)]
        left = missing - len(taken)
        self._data = (stream, fin, left) if left else None
        return Data(stream, taken, fin and not left) if taken or not left else None

    def _control(self, kind: int, fin: bool, body: bytes) -> Frame:
        if kind == _SYN_STREAM:
            stream, _, _ = _fields(">IIH", body)
            return SynStream(_id(stream), self._headers(body[10:]), fin)
        if kind in (_SYN_REPLY, _HEADERS):
            (stream,) = _fields(">I", body)
            made = SynReply if kind == _SYN_REPLY else Headers
            return made(_id(stream), self._headers(body[4:]), fin)
        if kind == _RST_STREAM:
            stream, status = _fields(">II", body)
            return Reset(_id(stream), status)
        if kind == _PING:
            return Ping(*_fields(">I", body))
        if kind == _GOAWAY:
            last, status = _fields(">II", body)
            return GoAway(last & _STREAM_MASK, status)
        return IgnoredFrame(kind)

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflater.decompress(block, _HEADER_BLOCK_BYTES)
        except zlib.error as error:
            raise FrameError(f"a header block cannot be inflated: {error}") from None
        if self._inflater.unconsumed_tail:
            raise FrameError(f"a header block exceeds {_HEADER_BLOCK_BYTES} bytes")
        return _unpacked(plain)


class FrameWriter:
    """Frames in, bytes out; they have to be sent in the order in which they were made."""

    def __init__(self) -> None:
        self._deflater = zlib.compressobj(zdict=DICTIONARY)

    def encode(self, frame: Frame) -> bytes:
        """Raises ValueError for what is only read, and for more data than a frame holds."""
        match frame:
            case Data(stream, data, fin):
                if len(data) > DATA_BYTES:
                    raise ValueError(f"{len(data)} bytes do not fit into a frame")
                return struct.pack(">II", stream, (_FIN if fin else 0) << 24 | len(data)) + data
            case SynStream(stream, headers, fin):
                return _frame(_SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._block(headers), fin)
            case SynReply(stream, headers, fin):
                return _frame(_SYN_REPLY, struct.pack(">I", stream) + self._block(headers), fin)
            case Reset(stream, status):
                return _frame(_RST_STREAM, struct.pack(">II", stream, status))
            case Ping(id):
                return _frame(_PING, struct.pack(">I", id))
            case GoAway(last, status):
                return _frame(_GOAWAY, struct.pack(">II", last, status))
        raise ValueError(f"{type(frame).__name__} is not written")

    def _block(self, headers: Mapping[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode(), value.encode()):
                parts += (struct.pack(">I", len(text)), text)
        return self._deflater.compress(b"".join(parts)) + self._deflater.flush(zlib.Z_SYNC_FLUSH)


def _frame(kind: int, body: bytes, fin: bool = False) -> bytes:
    return struct.pack(">HHI", 1 << 15 | _VERSION, kind, (_FIN if fin else 0) << 24 | len(body)) + body


def _fields(form: str, body: bytes) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, body)
    except struct.error:
        raise FrameError(f"a control frame of {len(body)} bytes is too short") from None


def _id(field: int) -> int:
    stream = field & _STREAM_MASK
    if stream == 0:
        raise FrameError("stream 0")
    return stream


def _unpacked(plain: bytes) -> dict[str, str]:
    """Of a header block: a count, then names and values, each behind its length."""
    words: list[str] = []
    at = 4
    (count,) = _fields(">I", plain)
    while len(words) < 2 * count:
        if at + 4 > len(plain):
            raise FrameError(f"a header block says {count} headers and ends before them")
        (length,) = struct.unpack_from(">I", plain, at)
        at += 4 + length
        if at > len(plain):
            raise FrameError("a header is longer than its block")
        words.append(plain[at - length : at].decode("latin-1"))
    return {name.lower(): value for name, value in zip(words[::2], words[1::2], strict=True)}
