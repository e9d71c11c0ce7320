"""CPU time of all pods and of best effort, read many times a second."""

from __future__ import annotations

import time
from pathlib import Path

from agent.core.limit.brake import BrakeSample
from agent.core.observe.files import FILES, FilePart
from agent.core.observe.layout import Layout
from agent.files.openfile import OpenFile

_GIVEN_UP = 10


class CpuCounters:
    """Both counters at nearly one moment; `unreadable` counts the readings that failed."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._kind = next(kind for kind in FILES[layout.version] if kind.part is FilePart.CPU)
        folder = root / self._kind.controller
        groups = (layout.root, layout.best_effort)
        self._files = [OpenFile(f"{folder}{group}/{self._kind.file}", self._kind.size) for group in groups]
        self._in_vain = _GIVEN_UP
        self.unreadable = 0

    @property
    def working(self) -> bool:
        """Read within the last few intervals: a single failure is no other state."""
        return self._in_vain < _GIVEN_UP

    def sample(self) -> BrakeSample | None:
        try:
            kubepods, best_effort = (self._kind.parse(file.read())[0] for file in self._files)
        except (OSError, ValueError):
            self.unreadable += 1
            self._in_vain += 1
            return None
        self._in_vain = 0
        return BrakeSample(time.monotonic(), kubepods, best_effort)

    def close(self) -> None:
        for file in self._files:
            file.close()
