"""Log lines: one an event on standard error, for programs or for people."""

from __future__ import annotations

import json
from datetime import UTC, datetime

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
