"""The journal file: one head, then one line a tick, rotated by size into FILE.1."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import msgspec
import structlog

from agent.ports import TickResult
from agent.report.journal import JournalHead, LineWriter
from model.fault import ConfigurationFault

log = structlog.get_logger()


class JournalFile:
    """A sink of the tick; `head` describes the state as it is now.

    A full disk, or a name that is no text, costs the journal and never the tick.
    """

    def __init__(self, path: Path, largest_bytes: int, head: Callable[[], JournalHead]) -> None:
        self._path = path
        self._largest = largest_bytes
        self._head = head
        self._lines = LineWriter()
        self._whole = True
        try:
            self._open()
            if self._good_bytes:
                self._rotate()
        except OSError as error:
            raise ConfigurationFault(str(path), f"cannot be written: {error.strerror}", "check --journal") from error

    def begin(self) -> None:
        """Write the head, before the first tick; after a rotation the journal does so itself."""
        self._attempt(self._begin)

    def take(self, result: TickResult) -> None:
        self._attempt(lambda: self._append(result) if self._whole else self._start_again(result))

    def close(self) -> None:
        self._file.close()

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
            self._whole = True
        except (OSError, ValueError) as error:
            if self._whole:
                log.error("journal not written", path=str(self._path), error=getattr(error, "strerror", str(error)))
            self._whole = False

    def _begin(self) -> None:
        self._lines.begin()
        self._write(msgspec.json.encode(self._head()))

    def _append(self, result: TickResult) -> None:
        self._write(self._lines.line(result))
        if self._good_bytes > self._largest:
            self._rotate()
            self._begin()

    def _start_again(self, result: TickResult) -> None:
        """A line that did not get out whole would hide what changed with it: go on from the state as it is now."""
        # As long as ticks cannot be put into lines, heads would push out what the file holds.
        self._lines.line(result)
        self._file.truncate(self._good_bytes)
        if self._good_bytes > self._largest:
            self._rotate()
        self._begin()

    def _write(self, line: bytes) -> None:
        if self._file.write(line + b"\n") <= len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._good_bytes = self._file.tell()

    def _rotate(self) -> None:
        # Somebody may have moved the file away.
        with contextlib.suppress(FileNotFoundError):
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        full = self._file
        self._open()
        full.close()

    def _open(self) -> None:
        # Without a buffer nothing of a failed line is left to be written later.
        self._file: FileIO = os.fdopen(_opened(self._path), "ab", buffering=0)
        self._good_bytes = self._file.tell()


def _opened(path: Path) -> int:
    """A descriptor of a file of our own: root must not append to what somebody else put behind this name."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EPERM, "it is no file of this user alone", str(path))
