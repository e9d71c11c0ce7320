"""The standard streams of a container's main process: where they lead, and who is attached to them.

A process writes straight into its log, which is what an attached client reads. Only with `tty` the node carries what
its terminal shows into the log, and only with `stdin` there is anything for the process to read.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from embedded.node.logs.reading import LogQuery, LogReading
from embedded.node.objects.pod import PodContainer
from embedded.node.ports import Ends, Sink, Source
from embedded.node.processes.descriptors import Descriptor
from embedded.node.processes.exec_process import Inputs

_HANG_UP_SECONDS = 1.0
_LOOK_SECONDS = 0.02


class MainStreams:
    """What a container's main process is given, `output` being its log's descriptor. Raises OSError."""

    def __init__(self, container: PodContainer, output: int, log: Path) -> None:
        self.log = log
        self.over = asyncio.Event()
        self.tty = bool(container.tty)
        self._once = bool(container.stdin_once)
        self._inputs = Inputs(Ends(stdin=bool(container.stdin), tty=self.tty), None)
        stdin, stdout, _ = self._inputs.numbers
        self.numbers = (stdin, stdout) if self.tty else (stdin, output)
        self._reads = bool(container.stdin)
        self._log = os.dup(output) if self.tty else -1
        self._carrying: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The process has its ends."""
        self._inputs.close_given()
        if self.tty and self._inputs.stdout is not None:
            self._carrying = asyncio.create_task(self._carry(self._inputs.stdout))

    async def end(self) -> None:
        """The process has ended; returns when all that it wrote is in its log."""
        if self._carrying is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._carrying, _HANG_UP_SECONDS)
        self.close()
        self.over.set()

    def close(self) -> None:
        self._inputs.close_given()
        self._inputs.close()
        if self._log >= 0:
            os.close(self._log)
            self._log = -1

    @property
    def stdin(self) -> Descriptor | None:
        return self._inputs.stdin if self._reads else None

    def resize(self, width: int, height: int) -> None:
        if self.tty and self._inputs.stdout is not None:
            self._inputs.stdout.resize(width, height)

    def input_ended(self) -> None:
        """An attached client has no more to say; with `stdinOnce` nobody has."""
        if self._once and not self.tty and self.stdin is not None:
            self.stdin.close()

    async def _carry(self, terminal: Descriptor) -> None:
        while data := await terminal.read():
            with suppress(OSError):  # a full disk costs the output, not the container
                os.write(self._log, data)


class Attachment:
    """Implements ports.CommandPort: one client of a main process, from now on."""

    def __init__(self, streams: MainStreams, ends: Ends) -> None:
        self._streams = streams
        self._stdin = _Input(streams) if ends.stdin and streams.stdin is not None else None
        self._output = _Output(streams) if ends.stdout else None

    @property
    def stdin(self) -> Sink | None:
        return self._stdin

    @property
    def stdout(self) -> Source | None:
        return self._output

    @property
    def stderr(self) -> Source | None:
        """It is in the same log."""
        return None

    async def wait(self) -> int:
        """0 whatever the container's exit code is: that is in the pod's status."""
        await self._streams.over.wait()
        return 0

    def resize(self, width: int, height: int) -> None:
        self._streams.resize(width, height)

    def leave(self) -> None:
        if self._stdin is not None:
            self._stdin.close()
        if self._output is not None:
            self._output.close()


class _Input:
    def __init__(self, streams: MainStreams) -> None:
        self._streams = streams

    async def write(self, data: bytes) -> None:
        if self._streams.stdin is not None:
            await self._streams.stdin.write(data)

    def close(self) -> None:
        self._streams.input_ended()


class _Output:
    """The log from its last line on."""

    def __init__(self, streams: MainStreams) -> None:
        self._streams = streams
        self._reading = LogReading(streams.log, LogQuery(tail_lines=0))

    async def read(self) -> bytes:
        with suppress(OSError):  # the pod and its logs are gone
            while True:
                over = self._streams.over.is_set()
                if (block := self._reading.read()) or over:
                    return block
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._streams.over.wait(), _LOOK_SECONDS)
        return b""

    def close(self) -> None:
        self._reading.close()
