"""Log lines: one an event on standard error, as JSON or as text."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog

from kube.logs import LogFormat, configure


def test_lines_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Level, time in UTC and every field; standard output is left to answers."""
    configure(LogFormat.JSON)
    structlog.get_logger().warning("node not seen", node="n1", error='a "b"\nc')
    seen = capsys.readouterr()
    (line,) = seen.err.splitlines()
    record = json.loads(line)
    when = datetime.fromisoformat(record.pop("timestamp"))
    assert record == {"event": "node not seen", "level": "warning", "node": "n1", "error": 'a "b"\nc'}
    assert when.tzinfo == UTC and seen.out == ""


def test_a_traceback_is_a_field_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A collector takes every line of its own for an event."""
    configure(LogFormat.JSON)
    try:
        raise OSError("gone")
    except OSError:
        structlog.get_logger().exception("turn failed")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["exception"].endswith("OSError: gone")


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Without colours where nobody looks at a terminal."""
    configure(LogFormat.CONSOLE)
    structlog.get_logger().info("started", port=10316)
    (line,) = capsys.readouterr().err.splitlines()
    assert "started" in line and "port=10316" in line and "\x1b" not in line


WRITER = """
import sys, structlog
from kube.logs import LogFormat, configure
configure(LogFormat.JSON)
log = structlog.get_logger()
for number in range({lines}):
    log.info("line", number=number, text="x" * {length})
print("done", flush=True)
sys.stdin.read(1)
log.info("last")
"""


@contextlib.contextmanager
def writing(lines: int, length: int, stderr: int) -> Iterator[subprocess.Popen[bytes]]:
    """A program of ours that logs, says "done" on standard output, and logs a last line once it is told to."""
    code = WRITER.format(lines=lines, length=length)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def test_a_disk_without_room_ends_nobody() -> None:
    """Where the log is a file, a batch pod may have filled its disk."""
    with Path("/dev/full").open("wb") as full, writing(3, 10, full.fileno()) as program:
        assert program.communicate(b"x", timeout=60)[0] == b"done\n"
        assert program.returncode == 0


def test_a_reader_that_is_gone_ends_nobody() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        with writing(3, 10, write) as program:
            assert program.communicate(b"x", timeout=60)[0] == b"done\n"
            assert program.returncode == 0
    finally:
        os.close(write)


@pytest.mark.parametrize("length", [100, 20_000], ids=["short", "longer than a pipe takes at once"])
def test_a_reader_that_stands_still_holds_nobody_up(length: int) -> None:
    """What does not fit the pipe is lost, whole lines at a time, and the next that fits says how many were."""
    read, write = os.pipe()
    lines = 300_000 // length
    with os.fdopen(read, "rb") as pipe, writing(lines, length, write) as program:
        os.close(write)
        assert program.stdout is not None and program.stdin is not None
        assert program.stdout.readline() == b"done\n"
        os.set_blocking(read, False)
        text = pipe.read()
        os.set_blocking(read, True)
        program.stdin.write(b"x")
        program.stdin.close()
        text += pipe.read()
        assert program.wait(60) == 0
    told = [json.loads(line) for line in text.splitlines() if line.endswith(b"}")]
    numbers = [line["number"] for line in told[:-1]]
    assert numbers == list(range(len(numbers))) and 0 < len(numbers) < lines
    assert told[-1]["event"] == "last" and told[-1]["lines_lost"] == lines - len(numbers)
