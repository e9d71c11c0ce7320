"""The journal file: one JSON line a tick with what was used and what changed, in a bounded pair of files."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec
import structlog

from agent.core.usage import NodeUsage
from agent.feed import news
from agent.ports import TickResult
from model.decision import Decision
from model.fault import ConfigurationFault

log = structlog.get_logger()

_LARGEST_BYTES = 64 << 20


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tick; `decisions` holds only what changed."""

    at_seconds: float
    usage: NodeUsage | None
    decisions: tuple[Decision, ...] = ()
    errors: tuple[str, ...] = ()


class Journal:
    """A sink of the tick. A full disk costs the journal, never the tick."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[tuple[str, str], Decision] = {}
        try:
            self._file: BinaryIO = path.open("ab")
        except OSError as error:
            raise ConfigurationFault(str(path), f"cannot be written: {error.strerror}", "check --journal") from error
        self._failed = False

    def take(self, result: TickResult) -> None:
        fresh = (*result.cuts, *news(self._last, (*result.reclaimable, *result.limits.decisions.values())))
        self._last.update({(d.subject, d.name): d for d in fresh})
        errors = tuple(outcome.error for outcome in result.outcomes if outcome.error)
        line = msgspec.json.encode(Entry(result.observation.at_seconds, result.usage, fresh, errors)) + b"\n"
        try:
            if self._file.tell() + len(line) > _LARGEST_BYTES:
                self._rotate()
            self._file.write(line)
            self._file.flush()
            self._failed = False
        except OSError as error:
            if not self._failed:
                log.error("journal not written", path=str(self._path), error=error.strerror)
            self._failed = True

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        self._path.replace(self._path.with_suffix(self._path.suffix + ".1"))
        full, self._file = self._file, self._path.open("ab")
        full.close()
