"""Log lines on standard error, one an event. A program imports this before anything else that logs."""

from __future__ import annotations

import sys
from enum import StrEnum

from kube.packages import hidden

# It takes rich for coloured tracebacks wherever it is installed: 4 MiB that no line of ours needs.
with hidden("rich"):
    import structlog


class LogFormat(StrEnum):
    JSON = "json"
    CONSOLE = "console"


def configure(style: LogFormat) -> None:
    """Set up structlog for this process."""
    render: structlog.typing.Processor = structlog.processors.JSONRenderer()
    if style is LogFormat.CONSOLE:
        render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
