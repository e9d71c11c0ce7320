"""One control file that is read again and again."""

from __future__ import annotations

import os


class OpenFile:
    """Opened on first use, read from its beginning each time, opened again after a failure.

    A descriptor of a removed cgroup never reads another's file, not even a same-named one's: it fails.
    """

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._size = size
        self._descriptor = -1

    def fileno(self) -> int:
        """-1 while it is not open."""
        return self._descriptor

    def read(self) -> bytes:
        """At most `size` bytes. Raises OSError."""
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(self._descriptor, self._size, 0)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
