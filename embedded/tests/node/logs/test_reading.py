"""A reader's way through a log that is being written and shortened."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from embedded.node.logs.files import LogKeeper, open_log
from embedded.node.logs.reading import LogQuery, LogReading, parse

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LINE = b"x" * 1023 + b"\n"


def read_all(reading: LogReading) -> bytes:
    return b"".join(iter(reading.read, b""))


def test_a_slow_reader_misses_what_was_taken_away(tmp_path: Path) -> None:
    """It goes on with the first whole line that is left, and never sees the hole."""
    file, keeper = tmp_path / "0.log", LogKeeper(segment_bytes=1 << 20)
    descriptor = open_log(file)
    keeper.add(file)
    os.write(descriptor, LINE)
    with LogReading(file, LogQuery(follow=True)) as reading:
        assert reading.read() == LINE
        for _ in range(8):
            os.write(descriptor, LINE * 1024)
            keeper.look()
        os.write(descriptor, b"end\n")
        os.close(descriptor)
        rest = read_all(reading)
    if len(rest) > 5 << 20:
        pytest.skip("this file system punches no holes")
    assert rest == LINE * ((len(rest) - 4) // 1024) + b"end\n"
    assert len(rest) > 4 << 20


def test_times_within_a_line(tmp_path: Path) -> None:
    """A line has one time, even if it arrives in pieces; a carriage return ends none."""
    file, keeper = tmp_path / "0.log", LogKeeper()
    file.write_bytes(b"half")
    keeper.add(file)
    os.utime(file, (NOW.timestamp(), NOW.timestamp()))
    with LogReading(file, LogQuery(timestamps=True)) as reading:
        assert reading.read() == b"2030-01-01T00:00:00.000000000Z half"
        with file.open("ab") as log:
            log.write(b" and\r half\n\n")
        os.utime(file, (NOW.timestamp(), NOW.timestamp()))
        assert reading.read() == b" and\r half\n2030-01-01T00:00:00.000000000Z \n"


def test_since() -> None:
    """Seconds count from now."""
    assert parse({"sinceSeconds": "10"}, NOW).since_ns == int(NOW.timestamp() - 10) * 10**9
    assert parse({"sinceTime": "2030-01-01T01:00:00+01:00"}, NOW).since_ns == int(NOW.timestamp()) * 10**9
    with pytest.raises(ValueError, match="time zone"):
        parse({"sinceTime": "2030-01-01T00:00:00"}, NOW)


def test_times_after_the_log_was_emptied(tmp_path: Path) -> None:
    """The times of what was there before are not those of what is there."""
    file, keeper = tmp_path / "0.log", LogKeeper(segment_bytes=10, punch=lambda descriptor, length: False)
    file.write_bytes(b"")
    keeper.add(file)
    write_at(file, NOW, b"one\n")
    keeper.look()
    with LogReading(file, LogQuery(timestamps=True)) as reading:
        assert reading.read() == b"2030-01-01T00:00:00.000000000Z one\n"
        write_at(file, NOW, b"x" * 99)
        keeper.look()
        assert file.stat().st_size == 0
        write_at(file, NOW + timedelta(seconds=5), b"n\n")
        assert reading.read() == b"2030-01-01T00:00:05.000000000Z n\n"


def write_at(file: Path, moment: datetime, text: bytes) -> None:
    with file.open("ab") as log:
        log.write(text)
    os.utime(file, (moment.timestamp(), moment.timestamp()))
