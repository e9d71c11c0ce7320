"""The journal file: one head, then one line a tick, rotated by size into FILE.1; a thread waits for its disk."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import msgspec
import structlog

from agent.ports import TickResult
from agent.report.journal import JournalHead, LineWriter
from agent.worker import WorkerThread
from model.fault import ConfigurationFault

log = structlog.get_logger()

_MOST_WAITING = 30
"""Of ticks, which hold what they saw of the node."""
_OPEN_SECONDS, _CLOSE_SECONDS = 2.0, 2.0
_DISK = "look at the disk of --journal"


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

    def interrupted(self) -> None:
        """Ticks are missing before the next one: it begins with a head."""
        self._whole = False

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


class JournalThread:
    """A sink of the tick in front of the file: no tick waits for a disk, which may never answer.

    At most `bound` ticks wait for it; what comes then is `lost`, and the journal goes on with a head once there is
    room. `make` opens the file and gets what tells the head of the line that is written; `head` describes the state as
    it is now.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], JournalHead]], JournalFile],
        head: Callable[[], JournalHead],
        bound: int = _MOST_WAITING,
        patience_seconds: float = _OPEN_SECONDS,
    ) -> None:
        self._head = head
        self._bound = bound
        self._lock = threading.Lock()
        self._waiting: deque[tuple[bool, JournalHead, TickResult | None]] = deque()
        self._interrupted = False
        self._now: JournalHead | None = None
        self._file: JournalFile | None = None
        self._fault: ConfigurationFault | None = None
        self._worker = WorkerThread("journal")
        self.lost = 0
        self._worker.submit("open", lambda: self._open(make))
        if not self._worker.idle(patience_seconds):
            log.error("journal not opened yet", effect="the agent works on without it", fix=_DISK)
        if self._fault is not None:
            raise self._fault

    def begin(self) -> None:
        """Write the head, before the first tick."""
        self._put(None)

    def take(self, result: TickResult) -> None:
        self._put(result)

    def close(self) -> None:
        """What waits is written where the disk answers soon."""
        if self._worker.idle(_CLOSE_SECONDS) and self._file is not None:
            self._file.close()

    def _put(self, result: TickResult | None) -> None:
        head = self._head()
        with self._lock:
            if len(self._waiting) < self._bound:
                self._waiting.append((self._interrupted, head, result))
                self._interrupted = False
            else:
                if not self._interrupted:
                    log.error("journal is behind, ticks are left out of it", lost_before=self.lost, fix=_DISK)
                self._interrupted = True
                self.lost += 1
        self._worker.submit("write", self._write)

    def _open(self, make: Callable[[Callable[[], JournalHead]], JournalFile]) -> None:
        try:
            self._file = make(self._head_of_line)
        except ConfigurationFault as fault:
            self._fault = fault

    def _write(self) -> None:
        while self._file is not None:
            with self._lock:
                if not self._waiting:
                    return
                interrupted, self._now, result = self._waiting[0]
            if interrupted:
                self._file.interrupted()
            if result is None:
                self._file.begin()
            else:
                self._file.take(result)
            # Until then it has its place: no more than the bound wait with the one that is written.
            with self._lock:
                self._waiting.popleft()

    def _head_of_line(self) -> JournalHead:
        return self._now if self._now is not None else self._head()


def _opened(path: Path) -> int:
    """A descriptor of a file of our own: root must not append to what somebody else put behind this name."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EPERM, "it is no file of this user alone", str(path))
