"""Pipes and terminals between the node and a process, without waiting in the event loop's way."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_BYTES = 32 << 10
_MOST_CELLS = 0xFFFF
# asm-generic/ioctls.h: unlock a pseudo-terminal, and open its other end, whatever file system that is named in.
_TIOCSPTLCK, _TIOCGPTPEER = 0x40045431, 0x5441
_PTMX = os.makedev(5, 2)


class Descriptor:
    """The node's end. Nothing is buffered here: who does not read lets the process wait, and the other way round."""

    def __init__(self, number: int) -> None:
        self._number = number
        os.set_blocking(number, False)
        self._loop = asyncio.get_running_loop()
        self._waits: set[asyncio.Future[None]] = set()
        self._last = False
        self.open = True

    async def read(self) -> bytes:
        """Empty at the end: nobody has the other end any more, or `finish` was called and nothing is left."""
        while self.open:
            try:
                return os.read(self._number, _BYTES)
            except BlockingIOError:
                if self._last:
                    return b""
                await self._until(self._loop.add_reader, self._loop.remove_reader)
            except OSError:
                return b""  # EIO: a terminal without a process
        return b""

    async def write(self, data: bytes) -> None:
        """Raises BrokenPipeError where nobody reads any more."""
        left = memoryview(data)
        while left:
            if not self.open:
                raise BrokenPipeError
            try:
                left = left[os.write(self._number, left) :]
            except BlockingIOError:
                await self._until(self._loop.add_writer, self._loop.remove_writer)
            except OSError:
                raise BrokenPipeError from None

    def finish(self) -> None:
        """What is there is the last to be read."""
        self._last = True
        self._wake()

    def resize(self, width: int, height: int) -> None:
        """The size of a terminal, in characters; its processes are told."""
        if self.open:
            size = struct.pack("HHHH", min(height, _MOST_CELLS), min(width, _MOST_CELLS), 0, 0)
            with suppress(OSError):
                fcntl.ioctl(self._number, termios.TIOCSWINSZ, size)

    def close(self) -> None:
        """Of a terminal this hangs up: its processes get SIGHUP."""
        if self.open:
            self.open = False
            self._loop.remove_reader(self._number)
            self._loop.remove_writer(self._number)
            os.close(self._number)
            self._wake()

    async def _until(self, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._waits.add(ready)
        add(self._number, _set, ready)
        try:
            await ready
        finally:
            self._waits.discard(ready)
            if self.open:
                remove(self._number)

    def _wake(self) -> None:
        for ready in self._waits:
            _set(ready)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def open_terminal(root: Path = Path("/")) -> tuple[int, int]:
    """A new pseudo-terminal of the devpts below `root`: the node's end and the process's. Raises OSError.

    No link below `root` is followed, and nothing but the multiplexer opened: what is there may be a container's own.
    """
    at = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        for name in ("dev", "pts", "ptmx"):
            at, above = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=at), at
            os.close(above)
        if os.fstat(at).st_rdev != _PTMX:
            raise OSError(errno.ENODEV, "no terminals", str(root / "dev/pts/ptmx"))
        ours = os.open(f"/proc/self/fd/{at}", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(at)
    try:
        fcntl.ioctl(ours, _TIOCSPTLCK, struct.pack("i", 0))
        return ours, fcntl.ioctl(ours, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        os.close(ours)
        raise
