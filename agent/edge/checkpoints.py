"""The file that carries learned peaks over a restart: one JSON document, replaced atomically.

Losing it costs a day of lending by prediction and nothing else, so a bad file never stops the agent.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import structlog

from agent.core.observe.prediction import Checkpoint
from agent.files.durable import replace_file

log = structlog.get_logger()

_LARGEST_BYTES = 32 << 20
"""Eight thousand models at their largest, thirty times a full node."""


class CheckpointFile:
    """`path` belongs to one agent, as its state file does; writing waits for the disk, so call it from a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, state: Checkpoint) -> bool:
        """Replace the file. A full disk is logged and costs this checkpoint; the last one stays."""
        content = msgspec.json.encode(state)
        if len(content) > _LARGEST_BYTES:
            log.error("prediction checkpoint not written", path=str(self._path), error=f"over {_LARGEST_BYTES} bytes")
            return False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, content)
        except OSError as error:
            log.error("prediction checkpoint not written", path=str(self._path), error=error.strerror)
            return False
        return True

    def load(self) -> Checkpoint | None:
        """What was saved last; None where there is nothing usable, and then peaks are learned again."""
        try:
            return self._read()
        except FileNotFoundError:
            log.info("no prediction checkpoint", path=str(self._path), effect="peaks are learned from the start")
        except (OSError, ValueError, RecursionError) as error:
            moved = self._move_aside()
            effect = "peaks are learned again; nothing is lent by prediction meanwhile"
            log.error(
                "bad prediction checkpoint", path=str(self._path), error=str(error), moved_to=moved, effect=effect
            )
        return None

    def _read(self) -> Checkpoint:
        with self._path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
        if len(content) > _LARGEST_BYTES:
            raise ValueError(f"over {_LARGEST_BYTES} bytes")
        return msgspec.json.decode(content, type=Checkpoint)

    def _move_aside(self) -> str:
        """Where the file is now, for whoever wants to look at it; empty where it could not be moved."""
        aside = self._path.with_name(f"{self._path.name}.bad")
        with contextlib.suppress(OSError):
            self._path.replace(aside)
            return str(aside)
        return ""
