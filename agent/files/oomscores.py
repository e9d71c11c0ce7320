"""Scores of processes (`oom_score_adj`) as one control file of their cgroup: all have the same, also those below it.

Reading tells the highest, the process that the kernel would kill first; what a process starts has its own score.
Source: kernel Documentation/filesystems/proc.rst, 3.1.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from agent.files.folders import folders

_MOST_READ, _MOST_WRITTEN = 256, 4096
"""Whoever is in a container forks as it likes; what it forks has the score already."""
_HELD_AT_ONCE = 256
_MOST_FOLDERS = 64
_LONGEST_BYTES = 1 << 16
_ENDED = (errno.ENOENT, errno.ESRCH)


class ProcessScores:
    """Of the processes that `proc` shows: those of this process id namespace."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = str(proc)

    def read(self, cgroup: str) -> bytes:
        """The highest score below a cgroup's folder. Raises OSError; one without processes has no such file."""
        scores = [score for process in islice(_processes(cgroup), _MOST_READ) if (score := self._score(process))]
        if not scores:
            raise FileNotFoundError(errno.ENOENT, "no process")
        return max(scores, key=int)

    def write(self, cgroup: str, text: str) -> None:
        """To every process that has another one. Raises the first OSError after all others were tried."""
        wanted = text.encode()
        due = [each for each in islice(_processes(cgroup), _MOST_WRITTEN) if self._score(each) not in (None, wanted)]
        refused: list[OSError] = []
        while due:
            refused += self._put(cgroup, due[:_HELD_AT_ONCE], wanted)
            del due[:_HELD_AT_ONCE]
        if refused:
            raise refused[0]

    def _score(self, process: str) -> bytes | None:
        """None where it has ended, or says no number."""
        try:
            found = _content(f"{self._proc}/{process}/oom_score_adj").strip()
        except OSError:
            return None
        return found if found.removeprefix(b"-").isdigit() else None

    def _put(self, cgroup: str, processes: Iterable[str], text: bytes) -> list[OSError]:
        """What was refused. A number read a moment ago may be another's by now: an open folder stays that of the
        process it was opened for, which then has to be in the cgroup still."""
        refused: list[OSError] = []
        with contextlib.ExitStack() as stack:
            opened: dict[str, int] = {}
            for process in processes:
                with _not_ended(refused):
                    folder = f"{self._proc}/{process}"
                    opened[process] = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    stack.callback(os.close, opened[process])
            for process in opened.keys() & set(_processes(cgroup)):
                with _not_ended(refused):
                    _write(opened[process], text)
        return refused


def _write(folder: int, text: bytes) -> None:
    descriptor = os.open("oom_score_adj", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _not_ended(refused: list[OSError]) -> Iterator[None]:
    """Takes what is no end of a process."""
    try:
        yield
    except OSError as error:
        if error.errno not in _ENDED:
            refused.append(error)


def _processes(cgroup: str) -> Iterator[str]:
    """Each once, of the folder and those below; 0 is one that this namespace cannot see."""
    for folder in folders(cgroup, _MOST_FOLDERS):
        with contextlib.suppress(OSError):
            for process in _content(f"{folder}/cgroup.procs").split():
                if process.isdigit() and process != b"0":
                    yield process.decode()


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST_BYTES)
    finally:
        os.close(descriptor)
