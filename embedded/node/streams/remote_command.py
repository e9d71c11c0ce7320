"""One command and its client: what each writes the other reads, and how it ended is said last.

Source: kubernetes k8s.io/kubelet pkg/cri/streaming/remotecommand (exec.go, attach.go), whose words these are.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from embedded.fault import KernelFault
from embedded.node.ports import CommandPort, Ends, Source
from embedded.node.streams.connections import Channel, ChannelConnection
from embedded.node.streams.spdy import FrameError

IDLE_SECONDS = 4 * 3600.0  # the kubelet's streamingConnectionIdleTimeout
_RESIZE_BYTES = 200
# What a client may have typed and the command has not read: while there is room, the client's leaving is noticed.
_HELD_PIECES, _PIECE_BYTES = 256, 8 << 10
# A client closes when it has read everything; a connection closed before that may lose the last of it.
_GOODBYE_SECONDS = 5.0
_LAST_WORDS_SECONDS = 1.0

Status = dict[str, Any]


def channels(ends: Ends) -> set[Channel]:
    """Those that a client has with these ends."""
    wanted = {Channel.ERROR}
    wanted |= {Channel.STDIN} if ends.stdin else set()
    wanted |= {Channel.STDOUT} if ends.stdout else set()
    wanted |= {Channel.STDERR} if ends.stderr else set()
    return wanted | ({Channel.RESIZE} if ends.tty else set())


def status_of(code: int) -> Status:
    """How a command that ran ended."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def status_of_fault(what: str) -> Status:
    """A command that never ran."""
    message = f"Internal error occurred: error executing command in container: {what}"
    details = {"causes": [{"message": message.removeprefix("Internal error occurred: ")}]}
    failure = {"status": "Failure", "reason": "InternalError", "code": 500}
    return {"metadata": {}, "message": message, "details": details, **failure}


async def tell(client: ChannelConnection, status: Status, *used: Channel) -> None:
    """The last word. Raises ConnectionError."""
    await client.send(Channel.ERROR, json.dumps(status).encode())
    await client.close(*used, Channel.ERROR)


_Cells = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]


class _Size(msgspec.Struct, rename="pascal"):
    """Of a terminal, in characters."""

    width: _Cells
    height: _Cells


class Conversation:
    """`hold` returns when the command has ended and its client knows, or the client has left, or both were silent."""

    def __init__(
        self, client: ChannelConnection, command: CommandPort, ends: Ends, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._client = client
        self._command = command
        self._ends = ends
        self._idle_seconds = idle_seconds
        self._deadline = asyncio.timeout(idle_seconds)
        self._sizes = b""
        self._typed: asyncio.Queue[bytes] = asyncio.Queue(_HELD_PIECES)
        self._telling = False

    async def hold(self) -> None:
        tasks: list[asyncio.Task[Any]] = []
        try:
            async with self._deadline:
                left = asyncio.create_task(self._listen())
                ended = asyncio.create_task(self._to_the_end())
                tasks += (left, ended, asyncio.create_task(self._feed()))
                await asyncio.wait({left, ended}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done() or self._telling:
                    await ended
                    await asyncio.wait({left}, timeout=_GOODBYE_SECONDS)
                else:
                    await asyncio.wait_for(self._typed.join(), _LAST_WORDS_SECONDS)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._command.leave()

    async def _to_the_end(self) -> None:
        outputs = {Channel.STDOUT: self._command.stdout, Channel.STDERR: self._command.stderr}
        used = {channel: source for channel, source in outputs.items() if source and channel in channels(self._ends)}
        async with asyncio.TaskGroup() as pumps:
            for channel, source in used.items():
                pumps.create_task(self._pump(source, channel))
            status = await self._status()
        self._telling = True
        await tell(self._client, status, *(channel for channel in outputs if channel in channels(self._ends)))

    async def _status(self) -> Status:
        try:
            return status_of(await self._command.wait())
        except KernelFault as fault:
            return status_of_fault(fault.what)

    async def _pump(self, source: Source, channel: Channel) -> None:
        """A client that has left is noticed by who listens."""
        with suppress(ConnectionError):
            while data := await source.read():
                self._awake()
                await self._client.send(channel, data)

    async def _listen(self) -> None:
        """Returns when the client has left."""
        with suppress(ConnectionError, FrameError):
            while (received := await self._client.receive()) is not None:
                self._awake()
                channel, data = received
                if channel is Channel.RESIZE:
                    self._resize(data)
                elif channel is Channel.STDIN and self._ends.stdin:
                    for start in range(0, max(len(data), 1), _PIECE_BYTES):
                        await self._typed.put(data[start : start + _PIECE_BYTES])

    async def _feed(self) -> None:
        """What was typed, to the command."""
        stdin = self._command.stdin
        while True:
            data = await self._typed.get()
            if stdin is not None and data:
                with suppress(BrokenPipeError):  # it does not read, which is its own affair
                    await stdin.write(data)
            elif stdin is not None and not self._ends.tty:
                stdin.close()
            self._typed.task_done()

    def _resize(self, data: bytes) -> None:
        """One size after the other, as JSON; what is none is passed over."""
        *whole, self._sizes = (self._sizes + data).split(b"\n")
        if self._sizes.endswith(b"}"):
            whole, self._sizes = [*whole, self._sizes], b""
        self._sizes = self._sizes[-_RESIZE_BYTES:]
        for text in whole:
            with suppress(msgspec.MsgspecError):
                size = msgspec.json.decode(text[:_RESIZE_BYTES], type=_Size)
                self._command.resize(size.width, size.height)

    def _awake(self) -> None:
        if not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._idle_seconds)
