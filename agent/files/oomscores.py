"""Scores of processes (`oom_score_adj`) as one control file of their cgroup: all have the same, also those below it.

Reading tells the highest, the process that the kernel would kill first; what a process starts has its own score.
Source: kernel Documentation/filesystems/proc.rst, 3.1.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from agent.files.folders import folders

_MOST_READ, _MOST_WRITTEN = 256, 4096
"""Whoever is in a container forks as it likes; what it forks has the score already."""
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
        wanted, refused = text.encode(), None
        for process in islice(_processes(cgroup), _MOST_WRITTEN):
            if self._score(process) not in (None, wanted):
                try:
                    self._put(process, wanted)
                except OSError as error:
                    refused = refused or (error if error.errno not in _ENDED else None)
        if refused is not None:
            raise refused

    def _score(self, process: str) -> bytes | None:
        """None where it has ended, or says no number."""
        try:
            found = _content(f"{self._proc}/{process}/oom_score_adj").strip()
        except OSError:
            return None
        return found if found.removeprefix(b"-").isdigit() else None

    def _put(self, process: str, text: bytes) -> None:
        descriptor = os.open(f"{self._proc}/{process}/oom_score_adj", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, text)
        finally:
            os.close(descriptor)


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
