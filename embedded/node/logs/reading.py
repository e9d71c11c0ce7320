"""One reader's way through a log: where it begins, how much it may have, and the time before each line if it wants it.

Source for the parameters: kubernetes pkg/apis/core/types.go (PodLogOptions).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from io import FileIO
from pathlib import Path
from types import TracebackType

import msgspec

from embedded.node.logs import files

_CHUNK = 256 * 1024


class LogQuery(msgspec.Struct, frozen=True):
    """`since_ns` in nanoseconds since 1970; None: no such bound."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_ns: int | None = None


def parse(query: Mapping[str, str], now: datetime) -> LogQuery:
    """Raises ValueError with a sentence for the reader."""
    seconds, since = _number(query, "sinceSeconds"), query.get("sinceTime")
    if seconds is not None and since:
        raise ValueError("at most one of sinceTime or sinceSeconds may be specified")
    return LogQuery(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        tail_lines=_number(query, "tailLines"),
        limit_bytes=_number(query, "limitBytes"),
        since_ns=_nanoseconds(now) - seconds * 10**9 if seconds is not None else _since(since),
    )


def _since(text: str | None) -> int | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"sinceTime {text!r} is no RFC 3339 time") from None
    if moment.tzinfo is None:
        raise ValueError(f"sinceTime {text!r} lacks its time zone")
    return _nanoseconds(moment)


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{name} must be a whole number of 0 or more, not {text!r}")
    return int(text)


class LogReading:
    """`read` gives what there is now, empty at the end; more may come later."""

    def __init__(self, file: Path, query: LogQuery) -> None:
        """Raises OSError when the log is gone."""
        self._file = file
        self._log = FileIO(file)
        self._stamped = query.timestamps
        self._left = query.limit_bytes
        self._times = files.read_times(file)
        self._line_begins = True
        self._log.seek(self._start(query))

    def __enter__(self) -> LogReading:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._log.close()

    @property
    def exhausted(self) -> bool:
        """As much was read as was asked for."""
        return self._left == 0

    def read(self) -> bytes:
        """Raises OSError when the log is gone."""
        offset, block = self._next()
        if self._stamped and block:
            block = self._with_times(block, offset)
        if self._left is not None:
            block = block[: self._left]
            self._left -= len(block)
        return block

    def _next(self) -> tuple[int, bytes]:
        if self._file.stat().st_size < self._log.tell():
            self._log.seek(0)  # the log was emptied, see LogKeeper
            self._times = files.read_times(self._file)
        while True:
            offset = self._log.tell()
            block = self._log.read(_CHUNK) or b""
            # Asked after reading: what the node took away meanwhile reads as zeros.
            kept = files.after_hole(self._log, offset)
            if not block or kept == offset:
                self._log.seek(offset + len(block))
                return offset, block
            self._log.seek(kept)

    def _start(self, query: LogQuery) -> int:
        start = max(files.first_offset(self._log), min(files.read_begin(self._file), self._log.seek(0, 2)))
        if query.since_ns is not None:
            end = self._log.seek(0, 2)
            since = min(self._times.offset_since(query.since_ns), end)
            start = max(start, files.next_line(self._log, since))
        return files.tail_offset(self._log, query.tail_lines, start)

    def _with_times(self, block: bytes, offset: int) -> bytes:
        if offset + len(block) > self._times.end:
            self._times = files.read_times(self._file, offset)
        parts: list[bytes] = []
        for line in _lines(block):
            if self._line_begins:
                parts.append(files.rfc3339(self._times.of(offset)).encode() + b" ")
            parts.append(line)
            offset += len(line)
            self._line_begins = line.endswith(b"\n")
        return b"".join(parts)


def _lines(block: bytes) -> list[bytes]:
    """Split at newlines only: bytes.splitlines takes a carriage return for an end too."""
    lines = [each + b"\n" for each in block.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return [each for each in lines if each]
