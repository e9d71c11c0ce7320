"""Log lines on standard error, one an event. A program imports this before anything else that logs.

Who logs neither ends nor waits where nobody takes the line: a disk without room, a reader that is gone or stands still.
"""

from __future__ import annotations

import os
import select
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO, cast

from kube.packages import hidden

# It takes rich for coloured tracebacks wherever it is installed: 4 MiB that no line of ours needs.
with hidden("rich"):
    import structlog


if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

_PATIENCE_MS = 50
"""For a reader that is merely slow, once: who stood still for so long is waited for no more until it reads."""
_AT_ONCE_BYTES = select.PIPE_BUF
"""A pipe that is ready takes so much without making anybody wait (pipe(7))."""


class LogFormat(StrEnum):
    JSON = "json"
    CONSOLE = "console"


class LogLines:
    """A stream's lines, straight to its descriptor; what cannot be written is lost, and `lost` counts such lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ready = select.poll()
        self._ready.register(stream.fileno(), select.POLLOUT)
        self._patience_ms = _PATIENCE_MS
        self._cut = False
        self.lost = 0

    def write(self, text: str) -> None:
        """One line with its end. Never raises."""
        line = (("\n" if self._cut else "") + text).encode(errors="backslashreplace")
        left = memoryview(line)
        try:
            while left and self._ready.poll(self._patience_ms):
                left = left[os.write(self._stream.fileno(), left[:_AT_ONCE_BYTES]) :]
                self._patience_ms = _PATIENCE_MS
        except OSError:
            # A full disk, or nobody at the other end.
            pass
        self._cut = bool(left) and (self._cut or len(left) < len(line))
        if left:
            self.lost += 1
            self._patience_ms = 0

    def flush(self) -> None:
        """Nothing is kept back."""

    def told(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """A processor: once lines were lost, each says how many so far."""
        return {**event, "lines_lost": self.lost} if self.lost else event


def log_lines() -> LogLines | None:
    """Those of standard error; None where it has no descriptor."""
    try:
        return LogLines(sys.stderr)
    except (OSError, ValueError):
        return None


def logger_factory(lines: LogLines | None) -> structlog.WriteLoggerFactory:
    """What structlog makes its loggers by."""
    return structlog.WriteLoggerFactory(cast("TextIO", lines) if lines else sys.stderr)


def configure(style: LogFormat) -> None:
    """Set up structlog for this process."""
    render: structlog.typing.Processor = structlog.processors.JSONRenderer()
    if style is LogFormat.CONSOLE:
        render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    lines = log_lines()
    structlog.configure(
        processors=[
            *((lines.told,) if lines else ()),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        logger_factory=logger_factory(lines),
    )
