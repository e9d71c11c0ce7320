"""A command that runs beside a container, with its standard streams or its terminal in the node's hands."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

from embedded.fault import KernelFault
from embedded.node.ports import Ends
from embedded.node.processes import entry
from embedded.node.processes.descriptors import Descriptor, open_terminal
from embedded.node.processes.spawning import DOOR_BYTES, spawn

_HANG_UP_SECONDS = 1.0


class Inputs:
    """The numbers that a process is given as its own, and the ends that the node keeps. Raises OSError.

    `root` is where a terminal is to be named, a container's root; else it is one of the machine's.
    """

    def __init__(self, ends: Ends, root: Path | None) -> None:
        self._given = ExitStack()
        self._kept = ExitStack()
        self.stdin: Descriptor | None = None
        self.stdout: Descriptor | None = None
        self.stderr: Descriptor | None = None
        self.numbers: tuple[int, int, int] = (subprocess.DEVNULL,) * 3
        try:
            if ends.tty:
                self._open_terminal(root)
            else:
                self._open_pipes(ends)
        except OSError:
            self.close_given()
            self.close()
            raise

    def _open_terminal(self, root: Path | None) -> None:
        try:
            ours, theirs = open_terminal(root or Path("/"))
        except OSError:
            ours, theirs = open_terminal()  # a container may lack the file system of terminals
        self._given.callback(os.close, theirs)
        self.stdin = self.stdout = Descriptor(ours)
        self._kept.callback(self.stdout.close)
        self.numbers = (theirs, theirs, theirs)

    def _open_pipes(self, ends: Ends) -> None:
        stdin = stdout = stderr = subprocess.DEVNULL
        if ends.stdin:
            stdin, ours = self._pipe()
            self.stdin = self._keep(ours)
        if ends.stdout:
            ours, stdout = self._pipe(reading=True)
            self.stdout = self._keep(ours)
        if ends.stderr:
            ours, stderr = self._pipe(reading=True)
            self.stderr = self._keep(ours)
        self.numbers = (stdin, stdout, stderr)

    def _pipe(self, *, reading: bool = False) -> tuple[int, int]:
        read, write = os.pipe()
        self._given.callback(os.close, write if reading else read)
        return read, write

    def _keep(self, number: int) -> Descriptor:
        kept = Descriptor(number)
        self._kept.callback(kept.close)
        return kept

    def close_given(self) -> None:
        """Once the process has them."""
        self._given.close()

    def close(self) -> None:
        self._kept.close()

    def finish(self) -> None:
        for each in (self.stdout, self.stderr):
            if each is not None:
                each.finish()


class ExecProcess:
    """Implements ports.CommandPort. Begins at once; raises OSError.

    It is in the container's cgroup, and ends with it. Where everybody has left, its terminal is hung up or its pipes
    are closed, and who goes on all the same is left alone; `_watch` waits for its end in any case.
    """

    def __init__(self, launch: entry.Launch, ends: Ends, root: Path | None) -> None:
        self._inputs = Inputs(ends, root)
        self._ends = ends
        stdin, stdout, stderr = self._inputs.numbers
        try:
            self._spawned = spawn(launch, stdout, stderr, stdin)
        except OSError:
            self._inputs.close()
            raise
        finally:
            self._inputs.close_given()
        self._loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(self._spawned.process.pid)
        except OSError:
            # Nobody would ever reap what cannot be watched.
            self._inputs.close()
            os.close(self._spawned.door)
            self._spawned.process.kill()
            self._spawned.process.wait()
            raise
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._pidfd, self._watch)
        self._why_not = ""

    @property
    def stdin(self) -> Descriptor | None:
        return self._inputs.stdin

    @property
    def stdout(self) -> Descriptor | None:
        return self._inputs.stdout

    @property
    def stderr(self) -> Descriptor | None:
        return self._inputs.stderr

    async def wait(self) -> int:
        code = await asyncio.shield(self._ended)
        if self._ends.tty:
            # The end of a session's leader hangs its terminal up, and what was written can be read until then.
            self._loop.call_later(_HANG_UP_SECONDS, self._inputs.finish)
        else:
            self._inputs.finish()
        if self._why_not:
            raise KernelFault("exec", self._why_not)
        return 128 - code if code < 0 else code

    def resize(self, width: int, height: int) -> None:
        if self._ends.tty and self._inputs.stdout is not None:
            self._inputs.stdout.resize(width, height)

    def leave(self) -> None:
        self._inputs.close()

    def _watch(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        with suppress(OSError):
            told = os.read(self._spawned.door, DOOR_BYTES).decode(errors="replace")
            self._why_not = told.removeprefix(entry.FAILED) if told.startswith(entry.FAILED) else ""
        os.close(self._spawned.door)
        self._ended.set_result(self._spawned.process.wait())
