"""A lock that nobody else can take: on a file that only its owner can open.

flock(2) asks for no right beyond an open descriptor, so whoever may read a file or directory may lock it, too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path

_ATTEMPTS = 16
_CLOSED = -1
_LONGEST_COMMAND = 200
_LONGEST_HOLDER = 256
_OTHERS = 0o077


class LockHeld(Exception):
    """Another process has the lock; `holder` is its process id and command, empty where it has not told them."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(holder)

    @property
    def by(self) -> str:
        """The holder, to be put behind a sentence; empty where that is not known."""
        return f": process {self.holder}" if self.holder else ""


class LockFile:
    """Held until `close` or the process's end. The file says who holds it, where the disk has room for that.

    Raises LockHeld where another process holds it, OSError where the file cannot be opened or is not our own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = _locked(path)
        # A disk without room takes the lock, but no word.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {_command()}".encode(), 0)

    def close(self) -> None:
        """The file goes with the lock: whoever opened it meanwhile notices that it is no longer there.

        A second time it does nothing: file and number may be another's by then.
        """
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            self._path.unlink(missing_ok=True)
            os.close(descriptor)


def _locked(path: Path) -> int:
    for _ in range(_ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            _require_own(path, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):
                return descriptor
        except BlockingIOError:
            holder = os.pread(descriptor, _LONGEST_HOLDER, 0).decode(errors="replace")
            os.close(descriptor)
            raise LockHeld(_printable(holder)) from None
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise LockHeld("")


def _require_own(path: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EPERM, "it is no regular file", str(path))
    if found.st_uid != os.geteuid():
        raise OSError(errno.EPERM, f"it belongs to user {found.st_uid}", str(path))
    if found.st_mode & _OTHERS:
        raise OSError(errno.EPERM, f"other users may open it (mode {stat.S_IMODE(found.st_mode):04o})", str(path))


def _is_at(path: Path, descriptor: int) -> bool:
    """The locked file is still the one of that name: the holder before us removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _command() -> str:
    try:
        return _printable(Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    except OSError:
        return ""


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text).strip()[:_LONGEST_COMMAND]
